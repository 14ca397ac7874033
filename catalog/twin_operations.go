package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// TwinOperations is the schema of a twin that stands before pg_catalog in its search path. It has functions that answer as if nobody else
// were on the server, and operations on numeric whose time is bounded: PostgreSQL looks for a cancellation between two operations, not
// within one, and 9::numeric ^ 130000 is a number of 124,000 digits. What an analyst lists does not have it; see sqlrewrite/statement.
const TwinOperations = "noisegate_ops"

// maxNumericBytes bounds an operand: 500 digits of base 10,000; a product of two takes 250,000 steps.
const maxNumericBytes = 1000

// twinLayout changes when a twin of the same revision has to be made again.
const twinLayout = 3

// operation is a function on numeric values that replaces PostgreSQL's of the same name and arguments.
type operation struct {
	name, arguments string
	operands        int    // how many of the first arguments are numeric
	body            string // in PL/pgSQL's expressions, or a query where it returns a set
	operator        string // that it is of; "": none
}

// twinOperations are those whose time grows faster than their operands, or which give results far longer than these. Others of numeric
// (+, -, comparisons, abs, sum) are linear in operands that a text of the greatest length can write.
func twinOperations() []operation {
	const two = "numeric, numeric"
	return []operation{
		{"mul", two, 2, "$1 OPERATOR(pg_catalog.*) $2", "*"},
		{"quotient", two, 2, "$1 OPERATOR(pg_catalog./) $2", "/"},
		{"mod", two, 2, "pg_catalog.mod($1, $2)", "%"},
		{"power", two, 2, "pg_catalog.power($1::float8, $2::float8)::numeric", "^"},
		{"div", two, 2, "pg_catalog.div($1, $2)", ""},
		{"exp", "numeric", 1, "pg_catalog.exp($1::float8)::numeric", ""},
		{"ln", "numeric", 1, "pg_catalog.ln($1::float8)::numeric", ""},
		{"log", "numeric", 1, "pg_catalog.log($1::float8)::numeric", ""},
		{"log", two, 2, "(pg_catalog.ln($2::float8) OPERATOR(pg_catalog./) pg_catalog.ln($1::float8))::numeric", ""},
		{"log10", "numeric", 1, "pg_catalog.log($1::float8)::numeric", ""},
		{"sqrt", "numeric", 1, "pg_catalog.sqrt($1::float8)::numeric", ""},
		{"round", "numeric", 1, "pg_catalog.round($1)", ""},
		{"round", "numeric, int4", 1, "pg_catalog.round($1, $2)", ""},
		{"trunc", "numeric", 1, "pg_catalog.trunc($1)", ""},
		{"trunc", "numeric, int4", 1, "pg_catalog.trunc($1, $2)", ""},
		{"to_char", "numeric, text", 1, "pg_catalog.to_char($1, $2)", ""},
		{"width_bucket", "numeric, numeric, numeric, int4", 3, "pg_catalog.width_bucket($1, $2, $3, $4)", ""},
		{"generate_series", two, 2, "SELECT pg_catalog.generate_series(noisegate_ops.small($1), noisegate_ops.small($2))", ""},
		{"generate_series", "numeric, numeric, numeric", 3,
			"SELECT pg_catalog.generate_series(noisegate_ops.small($1), noisegate_ops.small($2), noisegate_ops.small($3))", ""},
	}
}

// twinAggregates of numeric values are computed in float8, by the names of PostgreSQL's functions of three sums.
const twinAggregates = "var_pop var_samp stddev_pop stddev_samp variance:var_samp stddev:stddev_samp"

// operations makes the schema.
func (t *twin) operations() {
	const (
		function = "CREATE FUNCTION " + TwinOperations + ".%s(%s) RETURNS %s LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE " +
			"AS $f$BEGIN %s END$f$"
		tooLong = "RAISE EXCEPTION 'a numeric value of more than %d bytes is no operand of %s' " +
			"USING ERRCODE = 'program_limit_exceeded', HINT = 'ask for shorter numbers';"
		isLong = "pg_catalog.pg_column_size($%d) OPERATOR(pg_catalog.>) %d"
	)
	t.schema(TwinOperations)
	t.add(function, "small", "numeric", "numeric", fmt.Sprintf("IF "+isLong+" THEN %s END IF; RETURN $1;", 1, maxNumericBytes,
		fmt.Sprintf(tooLong, maxNumericBytes, "this function")))
	for _, o := range twinOperations() {
		if strings.HasPrefix(o.body, "SELECT") { // in SQL, as it gives row by row
			t.add("CREATE FUNCTION %s.%s(%s) RETURNS SETOF numeric LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $f$%s$f$", TwinOperations,
				o.name, o.arguments, o.body)
			continue
		}
		var long []string
		for i := range o.operands {
			long = append(long, fmt.Sprintf(isLong, i+1, maxNumericBytes))
		}
		result, called := "numeric", o.name
		switch o.name {
		case "to_char":
			result = "text"
		case "width_bucket":
			result = "int4"
		}
		if o.operator != "" {
			called = strings.ReplaceAll(o.operator, "%", "%%") // RAISE has it for an argument's place
		}
		t.add(function, o.name, o.arguments, result, fmt.Sprintf("IF %s THEN %s END IF; RETURN %s;", strings.Join(long, " OR "),
			fmt.Sprintf(tooLong, maxNumericBytes, called), o.body))
		if o.operator != "" {
			t.add("CREATE OPERATOR %s.%s (FUNCTION = %s.%s, LEFTARG = numeric, RIGHTARG = numeric)", TwinOperations, o.operator,
				TwinOperations, o.name)
		}
	}
	t.add(function, "accumulate", "float8[], numeric", "float8[]", "RETURN pg_catalog.float8_accum($1, $2::float8);")
	for pair := range strings.FieldsSeq(twinAggregates) {
		name, of, _ := strings.Cut(pair, ":")
		if of == "" {
			of = name
		}
		t.add(function, "final_"+name, "float8[]", "numeric", "RETURN pg_catalog.float8_"+of+"($1)::numeric;")
		t.add("CREATE AGGREGATE %s.%s(numeric) (SFUNC = %s.accumulate, STYPE = float8[], FINALFUNC = %s.final_%s, INITCOND = '{0,0,0}')",
			TwinOperations, name, TwinOperations, TwinOperations, name)
	}
	// age counts the transactions of the whole server since then, those of other people among them.
	t.add("CREATE FUNCTION " + TwinOperations + ".age(xid) RETURNS int4 LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $f$SELECT 0$f$")
	t.names()
}

// names makes the functions about names see the path and the functions as if the schema were not there.
func (t *twin) names() {
	const function = "CREATE FUNCTION " + TwinOperations + ".%s(%s) RETURNS %s LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $f$%s$f$"
	t.add(function, "current_schemas", "bool", "name[]", `SELECT pg_catalog.array_remove(CASE
		WHEN NOT $1 AND pg_catalog.starts_with(pg_catalog.current_setting('search_path'), `+literal(implicitPath)+`)
		THEN pg_catalog.array_remove(pg_catalog.current_schemas(true), 'pg_catalog'::name)
		ELSE pg_catalog.current_schemas(true) END, '`+TwinOperations+`'::name)`)
	t.add(function, "current_schema", "", "name", "SELECT ("+TwinOperations+".current_schemas(false))[1]")
	for _, kind := range []struct{ name, catalog, schema string }{
		{"pg_function_is_visible", "pg_proc", "pronamespace"},
		{"pg_operator_is_visible", "pg_operator", "oprnamespace"},
	} {
		t.add(function, kind.name, "oid", "bool", fmt.Sprintf(`SELECT pg_catalog.%s($1) OR c.%s OPERATOR(pg_catalog.=) 11::oid
			FROM pg_catalog.%s c WHERE c.oid OPERATOR(pg_catalog.=) $1`, kind.name, kind.schema, kind.catalog))
	}
}

// implicitPath begins a search path that does not name pg_catalog: PostgreSQL would look there before [TwinOperations].
const implicitPath = TwinOperations + ", pg_catalog"

// twinPath is a search path with [TwinOperations] before what it has. The names that a session gave are quoted, ours are not.
func twinPath(path []string) string {
	first := implicitPath
	if slices.Contains(path, "pg_catalog") {
		first = TwinOperations
	}
	if len(path) == 0 {
		return first
	}
	return first + ", " + identifiers(path)
}
