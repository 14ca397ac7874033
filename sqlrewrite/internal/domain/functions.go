package domain

import (
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// Incremental reports whether PostgreSQL computes a value from the one of the row before: the frame's start does not move, or what leaves the
// frame can be taken back. Of numerics without fixed digits it cannot always be.
func Incremental(w *algebra.UnitWindow, e algebra.UnitAggregate) bool {
	if IsRank(e) || w.Frame == nil || w.Frame.Start.Kind == syntax.UnboundedPreceding || len(w.Order) == 0 && w.Frame.Mode == syntax.Range {
		return true
	}
	switch e.Name {
	case "count", "bool_or", "bool_and", "every":
		return true
	case "sum", "avg":
		_, fixed := algebra.Scale(e.X)
		return e.X.Typ().IsInteger() || algebra.CarrierOf(e.X) == catalog.Numeric && fixed
	default:
		return false
	}
}

// AggregateForm is how an aggregate's arguments and result are typed.
type AggregateForm int

const (
	CountForm     AggregateForm = iota // any -> bigint
	SumForm                            // number -> as sum
	MeanForm                           // number -> as avg
	ExtremeForm                        // what has an order -> the same
	SpreadForm                         // number -> numeric or float8
	BooleanForm                        // boolean -> boolean
	PairForm                           // two numbers -> float8
	PairCountForm                      // two numbers -> bigint
	JoinForm                           // two texts -> text
	QuantileForm                       // fraction, WITHIN GROUP (ORDER BY number) -> float8
	OrderedForm                        // fraction, WITHIN GROUP (ORDER BY x) -> as x
	ModeForm                           // WITHIN GROUP (ORDER BY x) -> as x
	MedianForm                         // number -> float8; percentile_cont(0.5) in PostgreSQL's words
)

var ExactAggregates = map[string]AggregateForm{
	"count": CountForm, "sum": SumForm, "avg": MeanForm, "min": ExtremeForm, "max": ExtremeForm,
	"var_pop": SpreadForm, "var_samp": SpreadForm, "variance": SpreadForm, "stddev": SpreadForm, "stddev_pop": SpreadForm, "stddev_samp": SpreadForm,
	"bool_and": BooleanForm, "bool_or": BooleanForm, "every": BooleanForm,
	"corr": PairForm, "covar_pop": PairForm, "covar_samp": PairForm, "regr_slope": PairForm, "regr_intercept": PairForm, "regr_r2": PairForm,
	"regr_avgx": PairForm, "regr_avgy": PairForm, "regr_sxx": PairForm, "regr_syy": PairForm, "regr_sxy": PairForm, "regr_count": PairCountForm,
	"string_agg":      JoinForm,
	"percentile_cont": QuantileForm, "percentile_disc": OrderedForm, "mode": ModeForm, "median": MedianForm,
}

// Arguments is how many a form takes, and how many after WITHIN GROUP.
func (f AggregateForm) Arguments(star bool) (plain, within int) {
	switch f {
	case PairForm, PairCountForm, JoinForm:
		return 2, 0
	case QuantileForm, OrderedForm:
		return 1, 1
	case ModeForm:
		return 0, 1
	case CountForm, SumForm, MeanForm, ExtremeForm, SpreadForm, BooleanForm, MedianForm:
	}
	if star {
		return 0, 0
	}
	return 1, 0
}

// Constants is the type of a string constant among the arguments.
func (f AggregateForm) Constants() catalog.Type {
	switch f {
	case CountForm, ExtremeForm, JoinForm:
		return catalog.Text
	case BooleanForm:
		return catalog.Bool
	case SumForm, MeanForm, SpreadForm, PairForm, PairCountForm, QuantileForm, OrderedForm, ModeForm, MedianForm:
	}
	return catalog.Float8
}

// functionKind is what Noisegate does with a function name.
type functionKind int

const (
	unknownFunction  functionKind = iota
	Aggregate                     // released with noise
	RefusedAggregate              // an aggregate of PostgreSQL that has no private form here
	PostFunction                  // computed from released values and keys
	RowFunction                   // computed below the aggregates only, from the columns of a row; post functions are taken there too
)

// functionInfo is an entry of the list of functions.
type functionInfo struct {
	Name string
	Kind functionKind
	Hint string // RefusedAggregate: what to write instead
}

// Functions is the list of every function name that Noisegate knows. All others do not exist for analysts: PostgreSQL has
// 3,185 functions that anyone may call, so only an allow-list can be checked.
func Functions() []functionInfo {
	return []functionInfo{
		{"count", Aggregate, ""}, {"sum", Aggregate, ""}, {"avg", Aggregate, ""},
		{"min", Aggregate, ""}, {"max", Aggregate, ""}, {"median", Aggregate, ""}, {"mode", Aggregate, ""},
		{"percentile_cont", Aggregate, ""}, {"percentile_disc", Aggregate, ""},
		{"var_pop", Aggregate, ""}, {"var_samp", Aggregate, ""}, {"variance", Aggregate, ""},
		{"stddev_pop", Aggregate, ""}, {"stddev_samp", Aggregate, ""}, {"stddev", Aggregate, ""},
		{"covar_pop", Aggregate, ""}, {"covar_samp", Aggregate, ""}, {"corr", Aggregate, ""},
		{"regr_slope", Aggregate, ""}, {"regr_intercept", Aggregate, ""}, {"regr_r2", Aggregate, ""},
		{"regr_count", Aggregate, ""}, {"regr_avgx", Aggregate, ""}, {"regr_avgy", Aggregate, ""},
		{"regr_sxx", Aggregate, ""}, {"regr_syy", Aggregate, ""}, {"regr_sxy", Aggregate, ""},

		{"bool_or", RefusedAggregate, "one row would decide it; use count(*) FILTER (WHERE x) > 0"},
		{"bool_and", RefusedAggregate, "one row would decide it; use count(*) FILTER (WHERE NOT x) = 0"},
		{"every", RefusedAggregate, "one row would decide it; use count(*) FILTER (WHERE NOT x) = 0"},
		{"string_agg", RefusedAggregate, "it would list the values of single rows; group by the column and count"},
		{"array_agg", RefusedAggregate, "it would list the values of single rows; group by the column and count"},
		{"json_agg", RefusedAggregate, "it would list the values of single rows; group by the column and count"},
		{"jsonb_agg", RefusedAggregate, "it would list the values of single rows; group by the column and count"},

		{"round", PostFunction, ""}, {"floor", PostFunction, ""}, {"ceil", PostFunction, ""}, {"ceiling", PostFunction, ""},
		{"abs", PostFunction, ""}, {"coalesce", PostFunction, ""}, {"nullif", PostFunction, ""},
		{"greatest", PostFunction, ""}, {"least", PostFunction, ""}, {"upper", PostFunction, ""}, {"lower", PostFunction, ""},

		{"extract", RowFunction, ""}, {"date_part", RowFunction, ""}, {"date_trunc", RowFunction, ""},
		{"width_bucket", RowFunction, ""}, {"sqrt", RowFunction, ""}, {"ln", RowFunction, ""}, {"log", RowFunction, ""},
		{"log10", RowFunction, ""}, {"exp", RowFunction, ""}, {"power", RowFunction, ""}, {"pow", RowFunction, ""},
		{"mod", RowFunction, ""}, {"div", RowFunction, ""}, {"sign", RowFunction, ""}, {"trunc", RowFunction, ""},
		{"length", RowFunction, ""}, {"char_length", RowFunction, ""}, {"character_length", RowFunction, ""}, {"initcap", RowFunction, ""},
		{"trim", RowFunction, ""}, {"btrim", RowFunction, ""}, {"ltrim", RowFunction, ""}, {"rtrim", RowFunction, ""},
		{"left", RowFunction, ""}, {"right", RowFunction, ""}, {"substring", RowFunction, ""}, {"substr", RowFunction, ""},
		{"position", RowFunction, ""}, {"strpos", RowFunction, ""}, {"starts_with", RowFunction, ""}, {"concat", RowFunction, ""},
	}
}

func FunctionNames() []string {
	var names []string
	for _, f := range Functions() {
		names = append(names, f.Name)
	}
	return names
}

// Function looks a call's name up. Only names without a schema, or in pg_catalog, can be found.
func Function(b *algebra.Binder, n *syntax.Call) (functionInfo, error) {
	if n.Over != nil {
		return functionInfo{}, b.Unsupported(n, "a window function (OVER) here", "compute ranks and shares from the released answer, or those of one person's rows in a query in FROM")
	}
	if n.Schema == "" || n.Schema == "pg_catalog" {
		for _, f := range Functions() {
			if f.Name == n.Name {
				return f, nil
			}
		}
	}
	if n.Schema != "" {
		return functionInfo{}, fault.UnknownFunction(b.At(n), n.Schema+"."+n.Name, nil)
	}
	return functionInfo{}, fault.UnknownFunction(b.At(n), n.Name, FunctionNames())
}

// Scope says what the names inside an expression mean.
type Scope interface {
	Column(*syntax.Column) (algebra.Expr, error)
	Call(*syntax.Call) (algebra.Expr, error)
	// Computes is false below the aggregates, where every operation is printed in its total form: nothing may fail on a row's values.
	Computes() bool
}

// IsRank reports whether it is a function that exists only with OVER.
func IsRank(e algebra.UnitAggregate) bool {
	_, ranks := WindowFunctions[e.Name]
	return ranks
}

// windowForm is what a function that exists only with OVER takes and gives.
type windowForm struct {
	Least, Most int          // arguments
	Count       int          // which of them counts rows; -1: none
	Result      catalog.Type // "": that of the first argument
}

var WindowFunctions = map[string]windowForm{
	"row_number":   {0, 0, -1, catalog.Int8},
	"rank":         {0, 0, -1, catalog.Int8},
	"dense_rank":   {0, 0, -1, catalog.Int8},
	"percent_rank": {0, 0, -1, catalog.Float8},
	"cume_dist":    {0, 0, -1, catalog.Float8},
	"ntile":        {1, 1, 0, catalog.Int4},
	"lag":          {1, 3, 1, scalar.UnknownType},
	"lead":         {1, 3, 1, scalar.UnknownType},
	"first_value":  {1, 1, -1, scalar.UnknownType},
	"last_value":   {1, 1, -1, scalar.UnknownType},
	"nth_value":    {2, 2, 1, scalar.UnknownType},
}
