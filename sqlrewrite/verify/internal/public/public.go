// Package public proves that queries read nothing private. It does not know how a statement over private rows is proven.
package public

import (
	"reflect"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Public queries: outer layers over released values, and free queries. They may compute what they like, and read nothing private: every
// table that they name, wherever in the tree, is one that the snapshot has as public, or a query of their own WITH. Functions, types and
// nodes of the tree are of lists, since a function or a cast could read a table by its name (query_to_xml, regclass), a file, or a setting.
// Without a schema PostgreSQL looks in pg_catalog: such a name must be one of WITH, and none that begins with pg_, as all names there do.

// Prove proves that a query reads public tables of a snapshot and its arguments only; without a snapshot, its arguments only.
func Prove(sql string, on *catalog.Snapshot) (err error) {
	defer tree.Caught(&err)
	parsed, parseError := pgquery.Parse(sql)
	if parseError != nil {
		tree.Refuse("PostgreSQL's grammar does not read it")
	}
	w := &publicWalk{on: on, ctes: make(map[string]bool)}
	s := reflect.ValueOf(tree.Only(parsed))
	each(s, func(n any) {
		if c, ok := n.(*pgquery.CommonTableExpr); ok {
			w.ctes[c.Ctename] = true
		}
	})
	each(s, w.node)
	return nil
}

type publicWalk struct {
	on   *catalog.Snapshot
	ctes map[string]bool
}

// publicNodes are the nodes of a SELECT.
var publicNodes = listed(`Node SelectStmt ResTarget ColumnRef ParamRef A_Expr A_Const TypeCast TypeName CollateClause FuncCall WindowDef CaseExpr CaseWhen NullTest
	BooleanTest BoolExpr SubLink CoalesceExpr MinMaxExpr RowExpr RangeVar RangeSubselect RangeFunction JoinExpr Alias SortBy WithClause CommonTableExpr List
	String Integer Float Boolean A_Star A_ArrayExpr SQLValueFunction GroupingSet GroupingFunc`)

// publicFunctions compute values of their arguments alone.
var publicFunctions = listed(`unnest count sum avg min max bool_or bool_and every mode percentile_cont percentile_disc var_pop var_samp variance stddev_pop
	stddev_samp stddev covar_pop covar_samp corr regr_slope regr_intercept regr_r2 regr_count regr_avgx regr_avgy regr_sxx regr_syy regr_sxy string_agg array_agg
	row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
	abs sign round trunc floor ceil ceiling div mod sqrt ln log log10 exp power pow width_bucket trim_scale
	upper lower initcap length char_length character_length octet_length pg_column_size pg_column_compression left right substr substring position strpos starts_with split_part replace regexp_replace concat btrim ltrim rtrim
	extract date_part date_bin date_trunc timezone age make_interval to_char
	generate_series array_position num_nulls int8xor hashint8extended hash_numeric_extended hashfloat8extended hashtextextended
	int2smaller int2larger int4smaller int4larger int8smaller int8larger numeric_smaller numeric_larger float8smaller float8larger
	date_smaller date_larger timestamp_smaller timestamp_larger timestamptz_smaller timestamptz_larger interval_smaller interval_larger`)

// publicTypes have casts that compute.
var publicTypes = listed(`bool int2 int4 int8 numeric float4 float8 text bpchar varchar date timestamp timestamptz interval uuid time timetz`)

func listed(names string) map[string]bool {
	all := make(map[string]bool)
	for _, name := range strings.Fields(names) {
		all[name] = true
	}
	return all
}

// each visits every node at and below a value.
func each(v reflect.Value, visit func(any)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			visit(v.Interface())
			each(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				each(v.Field(i), visit)
			}
		}
	}
}

// node refuses a node that reads something else, or might.
func (w *publicWalk) node(n any) {
	switch n := n.(type) {
	case *pgquery.RangeVar:
		w.table(n)
	case *pgquery.FuncCall:
		if name := tree.Builtin(n.Funcname); !publicFunctions[name] {
			tree.Refuse("function %s in a public query", name)
		} else if name == "age" && len(n.Args) != 2 { // of one argument it reads the clock, or how many transactions there were
			tree.Refuse("age of one argument in a public query")
		} else if name == "timezone" && (len(n.Args) != 2 || !tree.IsZone(n.Args[0].GetAConst().GetSval().GetSval())) { // else a setting's
			tree.Refuse("a time zone without a name in a public query")
		}
	case *pgquery.TypeName:
		w.typeName(n)
	case *pgquery.A_Expr:
		tree.Operator(n.Name)
	case *pgquery.SubLink:
		if len(n.OperName) > 0 {
			tree.Operator(n.OperName)
		}
	case *pgquery.SortBy:
		if len(n.UseOp) > 0 {
			tree.Refuse("ORDER BY with an operator")
		}
	}
	name := reflect.TypeOf(n).Elem().Name()
	if _, is := n.(interface{ ProtoMessage() }); is && !publicNodes[name] { // what wraps a node is none
		tree.Refuse("a node of the parse tree that no public query has: %s", name)
	}
}

func (w *publicWalk) table(v *pgquery.RangeVar) {
	if v.Catalogname != "" || v.Relpersistence != "p" {
		tree.Refuse("a table written in another way")
	}
	if v.Schemaname == "" {
		if !w.ctes[v.Relname] || strings.HasPrefix(v.Relname, "pg_") {
			tree.Refuse("a table without a schema in a public query")
		}
		return
	}
	if w.on == nil {
		tree.Refuse("a table in a query over released values alone")
	}
	t, known := w.on.Table(v.Schemaname, v.Relname)
	if !known || !t.Public {
		tree.Refuse("a table in a public query that is not public")
	}
}

func (w *publicWalk) typeName(n *pgquery.TypeName) {
	names := tree.Words(n.Names)
	if n.TypeOid != 0 || n.Setof || n.PctType {
		tree.Refuse("a type written in another way")
	}
	if len(names) == 2 && names[0] == "pg_catalog" && publicTypes[names[1]] {
		return
	}
	if w.on != nil && len(names) == 2 { // an enum of a public table
		for _, t := range w.on.Tables {
			for _, c := range t.Columns {
				if c.Type == catalog.Enum && quotes(c.Enum, names[0], names[1]) {
					return
				}
			}
		}
	}
	tree.Refuse("a type that no public query casts to")
}

// quotes reports whether a text is a name with its schema as PostgreSQL's format('%I.%I') writes it: in quotes, or without where it
// needs none.
func quotes(written, schema, name string) bool {
	for _, s := range []string{schema, quoted(schema)} {
		for _, n := range []string{name, quoted(name)} {
			if written == s+"."+n {
				return true
			}
		}
	}
	return false
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
