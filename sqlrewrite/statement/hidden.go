package statement

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// twinOperations is the schema of a twin whose functions and operators stand before PostgreSQL's own: they bound what one call takes, and
// answer about names as if the schema were not there. See catalog.TwinOperations.
const twinOperations = "noisegate_ops"

// overlaid are the functions of that schema. They are printed without a schema, so that the search path finds these before PostgreSQL's, by
// the types of the arguments.
var overlaid = set(strings.Fields(`age current_schema current_schemas div exp generate_series ln log log10 mod pg_function_is_visible
	pg_operator_is_visible power round sqrt stddev stddev_pop stddev_samp to_char trunc var_pop var_samp variance width_bucket`))

// hides says which rows of catalogs are of that schema: those for which the condition does not hold. %s is the relation's alias.
var hides = map[TableName]string{
	{"pg_catalog", "pg_namespace"}: "%s.nspname <> '" + twinOperations + "'",
	{"pg_catalog", "pg_proc"}:      "%s.pronamespace IS DISTINCT FROM " + operationsOID,
	{"pg_catalog", "pg_operator"}:  "%s.oprnamespace IS DISTINCT FROM " + operationsOID,
	{"pg_catalog", "pg_aggregate"}: `(SELECT "noisegate.0".pronamespace FROM pg_catalog.pg_proc "noisegate.0"
		WHERE "noisegate.0".oid = %s.aggfnoid) IS DISTINCT FROM ` + operationsOID,
	{"information_schema", "schemata"}:             "%s.schema_name <> '" + twinOperations + "'",
	{"information_schema", "routines"}:             "%s.specific_schema <> '" + twinOperations + "'",
	{"information_schema", "parameters"}:           "%s.specific_schema <> '" + twinOperations + "'",
	{"information_schema", "routine_privileges"}:   "%s.specific_schema <> '" + twinOperations + "'",
	{"information_schema", "role_routine_grants"}:  "%s.specific_schema <> '" + twinOperations + "'",
	{"information_schema", "element_types"}:        "%s.object_schema <> '" + twinOperations + "'",
	{"information_schema", "data_type_privileges"}: "%s.object_schema <> '" + twinOperations + "'",
}

const operationsOID = "pg_catalog.to_regnamespace('" + twinOperations + "')"

// hide joins a relation with a row without columns, on the condition that its rows are not of the schema. So it keeps its names, its system
// columns and its keys, which a subquery in its place would not have.
func (w *rewriter) hide(n *pg.Node, r *pg.RangeVar, condition string) {
	w.hidden++
	name := r.Relname
	if r.Alias != nil {
		name = r.Alias.Aliasname
	}
	quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	text := fmt.Sprintf(`SELECT FROM %s.%s %s JOIN (SELECT) "noisegate.%d" ON %s`, r.Schemaname, r.Relname, quoted, w.hidden,
		fmt.Sprintf(condition, quoted))
	if w.inserted += len(text); w.inserted > maxPrintedBytes {
		halt(r.Location, stateTooMany, "ask in several smaller queries", "statement too complex: it names too many relations")
	}
	join := parsed(text).GetSelectStmt().FromClause[0]
	if len(r.Alias.GetColnames()) == 0 {
		join.GetJoinExpr().Larg = &pg.Node{Node: &pg.Node_RangeVar{RangeVar: r}}
		n.Node = join.Node
		return
	}
	query := parsed(strings.Replace(text, "SELECT", "SELECT *", 1)) // its columns have other names outside
	n.Node = &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: query, Alias: r.Alias}}
}

// unqualified leaves the schema of a function or an operator out, so that the search path finds it.
func unqualified(names []*pg.Node) []*pg.Node {
	if len(names) == 2 && names[0].GetString_().GetSval() == "pg_catalog" {
		return names[1:]
	}
	return names
}
