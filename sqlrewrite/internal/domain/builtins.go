package domain

import (
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Builtins are all functions that Noisegate knows, an entry each. All others do not exist for analysts: PostgreSQL has 3,185 functions that
// anyone may call, so only an allow-list can be checked.
var Builtins = []Builtin{
	{Name: "count", Kind: Aggregate, Form: CountForm, OfUnit: true},
	{Name: "sum", Kind: Aggregate, Form: SumForm, OfUnit: true},
	{Name: "avg", Kind: Aggregate, Form: MeanForm, How: algebra.MeanOf, OfUnit: true},
	{Name: "min", Kind: Aggregate, Form: ExtremeForm, OfUnit: true},
	{Name: "max", Kind: Aggregate, Form: ExtremeForm, OfUnit: true},
	{Name: "median", Kind: Aggregate, Form: MedianForm},
	{Name: "mode", Kind: Aggregate, Form: ModeForm},
	{Name: "percentile_cont", Kind: Aggregate, Form: QuantileForm},
	{Name: "percentile_disc", Kind: Aggregate, Form: OrderedForm},
	{Name: "var_pop", Kind: Aggregate, Form: SpreadForm, How: algebra.VariancePop},
	{Name: "var_samp", Kind: Aggregate, Form: SpreadForm, How: algebra.VarianceSamp},
	{Name: "variance", Kind: Aggregate, Form: SpreadForm, How: algebra.VarianceSamp},
	{Name: "stddev_pop", Kind: Aggregate, Form: SpreadForm, How: algebra.DeviationPop},
	{Name: "stddev_samp", Kind: Aggregate, Form: SpreadForm, How: algebra.DeviationSamp},
	{Name: "stddev", Kind: Aggregate, Form: SpreadForm, How: algebra.DeviationSamp},
	{Name: "covar_pop", Kind: Aggregate, Form: PairForm, How: algebra.CovariancePop},
	{Name: "covar_samp", Kind: Aggregate, Form: PairForm, How: algebra.CovarianceSamp},
	{Name: "corr", Kind: Aggregate, Form: PairForm, How: algebra.Correlation},
	{Name: "regr_slope", Kind: Aggregate, Form: PairForm, How: algebra.Slope},
	{Name: "regr_intercept", Kind: Aggregate, Form: PairForm, How: algebra.Intercept},
	{Name: "regr_r2", Kind: Aggregate, Form: PairForm, How: algebra.Determination},
	{Name: "regr_count", Kind: Aggregate, Form: PairCountForm},
	{Name: "regr_avgx", Kind: Aggregate, Form: PairForm, How: algebra.MeanOf},
	{Name: "regr_avgy", Kind: Aggregate, Form: PairForm, How: algebra.MeanOf},
	{Name: "regr_sxx", Kind: Aggregate, Form: PairForm, How: algebra.Squares},
	{Name: "regr_syy", Kind: Aggregate, Form: PairForm, How: algebra.Squares},
	{Name: "regr_sxy", Kind: Aggregate, Form: PairForm, How: algebra.Covariances},
	{
		Name: "bool_or", Kind: RefusedAggregate,
		Form: BooleanForm, OfUnit: true, Hint: "one row would decide it; use count(*) FILTER (WHERE x) > 0",
	},
	{
		Name: "bool_and", Kind: RefusedAggregate,
		Form: BooleanForm, OfUnit: true, Hint: "one row would decide it; use count(*) FILTER (WHERE NOT x) = 0",
	},
	{
		Name: "every", Kind: RefusedAggregate,
		Form: BooleanForm, OfUnit: true, Hint: "one row would decide it; use count(*) FILTER (WHERE NOT x) = 0",
	},
	{Name: "string_agg", Kind: RefusedAggregate, Form: JoinForm, Hint: listsValues},
	{Name: "array_agg", Kind: RefusedAggregate, Hint: listsValues},
	{Name: "json_agg", Kind: RefusedAggregate, Hint: listsValues},
	{Name: "jsonb_agg", Kind: RefusedAggregate, Hint: listsValues},

	// Of released values, keys and columns alike.
	{
		Name: "round", Args: oneOrTwoArgs, Type: roundedCall,
		Safe: safeRounded, Keys: roundings, Whole: true,
		Interval: RoundSpan, Moves: InSteps,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 100}},
	},
	{
		Name: "floor", Args: oneArg, Type: realCall,
		Safe: safeRounded, Keys: roundings, Whole: true,
		Interval: floorSpan, Moves: InSteps,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 200}},
	},
	{
		Name: "ceil", Args: oneArg, Type: realCall,
		Safe: safeRounded, Keys: roundings, Whole: true,
		Interval: ceilSpan, Moves: InSteps,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 100, PerUnit: 2000}},
	},
	{
		Name: "ceiling", Args: oneArg, Type: realCall,
		Safe: safeRounded, Keys: roundings, Whole: true,
		Interval: ceilSpan, Moves: InSteps,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 200}},
	},
	{
		Name: "abs", Args: oneArg, Type: absoluteCall,
		Safe: safeAbsolute, Keys: roundings,
		Interval: absSpan, Moves: NoMore,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 200}},
	},
	{
		Name: "coalesce", Grammar: true, Args: someArgs, Type: alternativesCall,
		Safe: safeCoalesce, Keys: firstOf, Letters: longestArgument,
		Interval: hullSpan, First: FirstUnlessNull,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 100},
			Text: Price{Ns: 100}, Time: Price{Ns: 100}, Other: Price{Ns: 100}},
	},
	{
		Name: "nullif", Grammar: true, Args: twoArgs, Type: nullifCall,
		Safe: safeNullif, Keys: nullifs,
		Interval: hullSpan, Moves: NoMore, First: FirstOrNull,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 500},
			Text: Price{Ns: 200, PerUnit: 2000}, Time: Price{Ns: 100}, Other: Price{Ns: 100}},
	},
	{
		Name: "greatest", Grammar: true, Args: someArgs, Type: alternativesCall,
		Safe: safeGreatest, Letters: longestArgument,
		Interval: greatestSpan, Moves: NoMore,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 100, PerUnit: 1000},
			Text: Price{Ns: 100, PerUnit: 5000}, Time: Price{Ns: 100}, Other: Price{Ns: 100}},
	},
	{
		Name: "least", Grammar: true, Args: someArgs, Type: alternativesCall,
		Safe: safeLeast, Letters: longestArgument,
		Interval: leastSpan, Moves: NoMore,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 100, PerUnit: 500},
			Text: Price{Ns: 200, PerUnit: 2000}, Time: Price{Ns: 100}, Other: Price{Ns: 100}},
	},

	// Of times.
	{
		Name: "extract", Args: twoArgs, Type: fieldCall,
		Safe: safeField, Keys: fields,
		Cost: Costs{Time: Price{Ns: 500}},
	},
	{
		Name: "date_part", Args: twoArgs, Type: fieldCall,
		Safe: safeField, Keys: fields,
		Cost: Costs{Time: Price{Ns: 500}},
	},
	{
		Name: "date_trunc", Args: twoArgs, Type: truncationCall,
		Safe: safeTruncation, Keys: truncations,
		Cost: Costs{Time: Price{Ns: 500}},
	},
	{
		Name: "date_bin", Args: threeArgs, Type: binCall,
		Safe: safeBin,
		Cost: Costs{Time: Price{Ns: 500}},
	},
	{
		Name: "timezone", Args: twoArgs, Type: zoneCall,
		Safe: safeZone,
		Cost: Costs{Time: Price{Ns: 2000}},
	},
	{Name: "date", Args: oneArg, Type: dateCall},
	{
		Name: "age", Args: twoArgs, Type: ageCall,
		Safe: safeAge,
		Cost: Costs{Time: Price{Ns: 500}},
	},
	{
		Name: "to_char", Args: twoArgs, Type: templateCall,
		Safe: safeTemplate, Keys: templateTexts, Letters: templateLetters,
		Cost: Costs{Time: Price{Ns: 1000, PerUnit: 100_000}}, // of each letter of the template
	},

	// Of numbers.
	{
		Name: "width_bucket", Args: arity{4, 4, "four arguments: value, low, high, number of buckets"}, Type: bucketCall,
		Safe: safeBucket,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 1000, PerUnit: 4000, Grows: Bucketed, PerByte: 1000}},
	},
	{
		Name: "sqrt", Args: oneArg, Type: realCall,
		Safe: safeSqrt,
		Cost: Costs{Float: Price{Ns: 100}},
	},
	{
		Name: "ln", Args: oneArg, Type: realCall,
		Safe: safeLogarithm,
		Cost: Costs{Float: Price{Ns: 200}},
	},
	{
		Name: "log", Args: oneArg, Type: realCall,
		Safe: safeLogarithm,
		Cost: Costs{Float: Price{Ns: 200}},
	},
	{
		Name: "log10", Args: oneArg, Type: realCall,
		Safe: safeLogarithm,
		Cost: Costs{Float: Price{Ns: 200}},
	},
	{Name: "exp", Args: oneArg, Type: realCall, Safe: safeExp, Cost: Costs{Float: Price{Ns: 200}}},
	{
		Name: "power", Args: twoArgs, Type: powerCall,
		Safe: safePower,
		Cost: Costs{Float: Price{Ns: 200}},
	},
	{Name: "pow", Prints: "power", Args: twoArgs, Type: powerCall, Safe: safePower},
	{
		Name: "mod", Args: twoArgs, Type: moduloCall,
		Cost: Costs{Integer: Price{Ns: 100}, Numeric: Price{Ns: 500, PerUnit: 4000, Grows: DividedWhole, PerByte: 1000}},
	},
	{
		Name: "div", Args: twoArgs, Type: divCall,
		Safe: safeDiv,
		Cost: Costs{Integer: Price{Ns: 100}, Numeric: Price{Ns: 500, PerUnit: 4000, Grows: DividedWhole, PerByte: 1000}},
	},
	{
		Name: "sign", Args: oneArg, Type: realCall,
		Safe: safeSign, Keys: roundings, Whole: true,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 100}},
	},
	{
		Name: "trunc", Args: oneOrTwoArgs, Type: roundedCall,
		Safe: safeRounded, Keys: roundings, Whole: true,
		Cost: Costs{Integer: Price{Ns: 100}, Float: Price{Ns: 100}, Numeric: Price{Ns: 200}},
	},

	// Of texts.
	{
		Name: "length", Args: oneArg, Type: textCall,
		Result: catalog.Int4,
		Safe:   safeText, Keys: lengths,
		Cost: Costs{Text: Price{Ns: 100, PerUnit: 5000}},
	},
	{
		Name: "char_length", Prints: "length", Args: oneArg, Type: textCall,
		Result: catalog.Int4,
		Safe:   safeText,
		Cost:   Costs{Text: Price{Ns: 100, PerUnit: 5000}},
	},
	{
		Name: "character_length", Prints: "length", Args: oneArg, Type: textCall,
		Result: catalog.Int4,
		Safe:   safeText,
		Cost:   Costs{Text: Price{Ns: 100, PerUnit: 5000}},
	},
	{
		Name: "upper", Args: oneArg, Type: textCall,
		Result: catalog.Text,
		Safe:   safeText, Letters: otherCase,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 20000}},
	},
	{
		Name: "lower", Args: oneArg, Type: textCall,
		Result: catalog.Text,
		Safe:   safeText, Letters: otherCase,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 20000}},
	},
	{
		Name: "initcap", Args: oneArg, Type: textCall,
		Result: catalog.Text,
		Safe:   safeText, Letters: otherCase,
		Cost: Costs{Text: Price{Ns: 20000, PerUnit: 50000}},
	},
	{
		Name: "trim", Prints: "btrim", Args: upToTwoArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, constantText},
		Safe: safeText,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 5000, Grows: Trimmed, PerByte: 2000}},
	},
	{
		Name: "btrim", Args: upToTwoArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, constantText},
		Safe: safeText,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 5000, Grows: Trimmed, PerByte: 2000}},
	},
	{
		Name: "ltrim", Args: upToTwoArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, constantText},
		Safe: safeText,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 5000, Grows: Trimmed, PerByte: 2000}},
	},
	{
		Name: "rtrim", Args: upToTwoArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, constantText},
		Safe: safeText,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 5000, Grows: Trimmed, PerByte: 2000}},
	},
	{
		Name: "left", Prints: `"left"`, Args: twoArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, wholeNumber},
		Safe: safeText, Keys: parts, Letters: countedLetters,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 5000}},
	},
	{
		Name: "right", Prints: `"right"`, Args: twoArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, wholeNumber},
		Safe: safeText, Letters: countedLetters,
		Cost: Costs{Text: Price{Ns: 100, PerUnit: 2000}},
	},
	{
		Name: "substring", Prints: "substr", Args: arity{2, 3, "three arguments"}, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, wholeNumber, wholeCount},
		Safe: safeText, Keys: parts, Letters: countedLetters,
		Cost: Costs{Text: Price{Ns: 100, PerUnit: 2000}},
	},
	{
		Name: "substr", Args: arity{2, 3, "three arguments"}, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, wholeNumber, wholeCount},
		Safe: safeText, Keys: parts, Letters: countedLetters,
		Cost: Costs{Text: Price{Ns: 100, PerUnit: 2000}},
	},
	{
		Name: "position", Prints: "strpos", Args: twoArgs, Type: textCall,
		Result: catalog.Int4,
		Safe:   safeText,
		Cost:   Costs{Text: Price{Ns: 500, PerUnit: 1000, Grows: Found, PerByte: 2000}},
	},
	{
		Name: "strpos", Args: twoArgs, Type: textCall,
		Result: catalog.Int4,
		Safe:   safeText,
		Cost:   Costs{Text: Price{Ns: 500, PerUnit: 1000, Grows: Found, PerByte: 2000}},
	},
	{
		Name: "starts_with", Args: twoArgs, Type: textCall,
		Result: catalog.Bool,
		Safe:   safeText,
		Cost:   Costs{Text: Price{Ns: 100, PerUnit: 2000}},
	},
	{
		Name: "concat", Args: arity{1, anyNumber, "one argument"}, Type: textCall,
		Result: catalog.Text,
		Safe:   safeText, Letters: allLetters,
		Cost: Costs{Text: Price{Ns: 100, PerUnit: 500}},
	},

	{
		Name: "split_part", Args: threeArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, shortConstant, wholePlace},
		Safe: safeText, Keys: splits,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 1000, Grows: Found, PerByte: 20000}},
	},
	{
		Name: "replace", Args: threeArgs, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, shortConstant, shortConstant},
		Safe: safeText, Keys: replacements, Letters: replacedLetters,
		Cost: Costs{Text: Price{Ns: 500, PerUnit: 1000, Grows: Found, PerByte: 20000}},
	},
	{
		Name: "regexp_replace", Args: threeOrFour, Type: textCall,
		Result: catalog.Text, Params: [4]textParameter{anyText, regexConstant, plainConstant, regexFlags},
		Safe: safeText, Letters: rewrittenLetters,
		Cost: Costs{Text: Price{Ns: 2000, PerUnit: 5000, Grows: Rewritten, PerByte: 20000}},
	},

	// With OVER only.
	{Name: "row_number", Kind: WindowFunction, Window: windowForm{0, 0, -1, catalog.Int8}},
	{Name: "rank", Kind: WindowFunction, Window: windowForm{0, 0, -1, catalog.Int8}},
	{Name: "dense_rank", Kind: WindowFunction, Window: windowForm{0, 0, -1, catalog.Int8}},
	{Name: "percent_rank", Kind: WindowFunction, Window: windowForm{0, 0, -1, catalog.Float8}},
	{Name: "cume_dist", Kind: WindowFunction, Window: windowForm{0, 0, -1, catalog.Float8}},
	{Name: "ntile", Kind: WindowFunction, Window: windowForm{1, 1, 0, catalog.Int4}},
	{Name: "lag", Kind: WindowFunction, Window: windowForm{1, 3, 1, scalar.UnknownType}},
	{Name: "lead", Kind: WindowFunction, Window: windowForm{1, 3, 1, scalar.UnknownType}},
	{Name: "first_value", Kind: WindowFunction, Window: windowForm{1, 1, -1, scalar.UnknownType}},
	{Name: "last_value", Kind: WindowFunction, Window: windowForm{1, 1, -1, scalar.UnknownType}},
	{Name: "nth_value", Kind: WindowFunction, Window: windowForm{2, 2, 1, scalar.UnknownType}},
}

const listsValues = "it would list the values of single rows; group by the column and count"
