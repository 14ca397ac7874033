package sqlrewrite

import (
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// functionKind is what Noisegate does with a function name.
type functionKind int

const (
	unknownFunction  functionKind = iota
	aggregate                     // released with noise
	refusedAggregate              // an aggregate of PostgreSQL that has no private form here
	postFunction                  // computed from released values and keys
	rowFunction                   // computed below the aggregates only, from the columns of a row; post functions are taken there too
)

// functionInfo is an entry of the list of functions.
type functionInfo struct {
	name string
	kind functionKind
	hint string // refusedAggregate: what to write instead
}

// functions is the list of every function name that Noisegate knows. All others do not exist for analysts: PostgreSQL has
// 3,185 functions that anyone may call, so only an allow-list can be checked.
func functions() []functionInfo {
	return []functionInfo{
		{"count", aggregate, ""}, {"sum", aggregate, ""}, {"avg", aggregate, ""},
		{"min", aggregate, ""}, {"max", aggregate, ""}, {"median", aggregate, ""}, {"mode", aggregate, ""},
		{"percentile_cont", aggregate, ""}, {"percentile_disc", aggregate, ""},
		{"var_pop", aggregate, ""}, {"var_samp", aggregate, ""}, {"variance", aggregate, ""},
		{"stddev_pop", aggregate, ""}, {"stddev_samp", aggregate, ""}, {"stddev", aggregate, ""},
		{"covar_pop", aggregate, ""}, {"covar_samp", aggregate, ""}, {"corr", aggregate, ""},
		{"regr_slope", aggregate, ""}, {"regr_intercept", aggregate, ""}, {"regr_r2", aggregate, ""},
		{"regr_count", aggregate, ""}, {"regr_avgx", aggregate, ""}, {"regr_avgy", aggregate, ""},
		{"regr_sxx", aggregate, ""}, {"regr_syy", aggregate, ""}, {"regr_sxy", aggregate, ""},

		{"bool_or", refusedAggregate, "one row would decide it; use count(*) FILTER (WHERE x) > 0"},
		{"bool_and", refusedAggregate, "one row would decide it; use count(*) FILTER (WHERE NOT x) = 0"},
		{"every", refusedAggregate, "one row would decide it; use count(*) FILTER (WHERE NOT x) = 0"},
		{"string_agg", refusedAggregate, "it would list the values of single rows; group by the column and count"},
		{"array_agg", refusedAggregate, "it would list the values of single rows; group by the column and count"},
		{"json_agg", refusedAggregate, "it would list the values of single rows; group by the column and count"},
		{"jsonb_agg", refusedAggregate, "it would list the values of single rows; group by the column and count"},

		{"round", postFunction, ""}, {"floor", postFunction, ""}, {"ceil", postFunction, ""}, {"ceiling", postFunction, ""},
		{"abs", postFunction, ""}, {"coalesce", postFunction, ""}, {"nullif", postFunction, ""},
		{"greatest", postFunction, ""}, {"least", postFunction, ""}, {"upper", postFunction, ""}, {"lower", postFunction, ""},

		{"extract", rowFunction, ""}, {"date_part", rowFunction, ""}, {"date_trunc", rowFunction, ""},
		{"width_bucket", rowFunction, ""}, {"sqrt", rowFunction, ""}, {"ln", rowFunction, ""}, {"log", rowFunction, ""},
		{"log10", rowFunction, ""}, {"exp", rowFunction, ""}, {"power", rowFunction, ""}, {"pow", rowFunction, ""},
		{"mod", rowFunction, ""}, {"div", rowFunction, ""}, {"sign", rowFunction, ""}, {"trunc", rowFunction, ""},
		{"length", rowFunction, ""}, {"char_length", rowFunction, ""}, {"character_length", rowFunction, ""}, {"initcap", rowFunction, ""},
		{"trim", rowFunction, ""}, {"btrim", rowFunction, ""}, {"ltrim", rowFunction, ""}, {"rtrim", rowFunction, ""},
		{"left", rowFunction, ""}, {"right", rowFunction, ""}, {"substring", rowFunction, ""}, {"substr", rowFunction, ""},
		{"position", rowFunction, ""}, {"strpos", rowFunction, ""}, {"starts_with", rowFunction, ""}, {"concat", rowFunction, ""},
	}
}

func functionNames() []string {
	var names []string
	for _, f := range functions() {
		names = append(names, f.name)
	}
	return names
}

// function looks a call's name up. Only names without a schema, or in pg_catalog, can be found.
func (b *binder) function(n *syntax.Call) (functionInfo, error) {
	if n.Over != nil {
		return functionInfo{}, b.unsupported(n, "a window function (OVER) here", "compute ranks and shares from the released answer, or those of one person's rows in a query in FROM")
	}
	if n.Schema == "" || n.Schema == "pg_catalog" {
		for _, f := range functions() {
			if f.name == n.Name {
				return f, nil
			}
		}
	}
	if n.Schema != "" {
		return functionInfo{}, fault.UnknownFunction(b.at(n), n.Schema+"."+n.Name, nil)
	}
	return functionInfo{}, fault.UnknownFunction(b.at(n), n.Name, functionNames())
}
