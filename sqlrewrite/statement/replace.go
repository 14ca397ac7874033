package statement

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The limits of what is put into a statement: its text is parsed, printed and checked, so that these bound the time, before it is spent.
const (
	maxDepthAdded = 100       // how much deeper than the client's tree the rewritten one may be
	maxReplaced   = 32        // relations; the messages of clients replace four at most
	maxAdded      = 512 << 10 // bytes of SQL in place of functions
	maxArguments  = 4         // of a function that is replaced: those of has_column_privilege
)

// rewriter changes a checked tree in place: names get their schemas, and what a server's databases share becomes the session's own.
type rewriter struct {
	view      *View
	replaced  int // how many nodes were
	relations int // how many relations were
	inserted  int // bytes of SQL in their places
	added     int // bytes of SQL in place of functions
	hidden    int // how many relations have rows that are not shown
}

// message rewrites what a node holds, then the node itself; visible are the names of WITH.
func (w *rewriter) message(m protoreflect.Message, visible *cte) {
	switch n := m.Interface().(type) {
	case *pg.SelectStmt:
		eachCTE(n.WithClause, visible, func(query *pg.Node, inside *cte) { w.message(query.ProtoReflect(), inside) })
		visible = withNames(n.WithClause, visible)
		w.targets(n.TargetList, visible)
	case *pg.WithClause:
		return // with its statement
	case *pg.ResTarget:
		return // with its list
	case *pg.TypeName:
		if names := texts(n.Names); len(names) == 1 {
			n.Names = slices.Concat([]*pg.Node{pg.MakeStrNode("pg_catalog")}, n.Names)
		}
	case *pg.ColumnRef:
		w.column(n)
	case *pg.RangeFunction:
		named(n)
	case *pg.A_Expr:
		n.Name = unqualified(n.Name)
	case *pg.SubLink:
		n.OperName = unqualified(n.OperName)
	case *pg.SortBy:
		n.UseOp = unqualified(n.UseOp)
	case *pg.TypeCast:
		if n.Arg.GetAConst() != nil { // has its type
			w.message(n.TypeName.ProtoReflect(), visible)
			return
		}
	}
	children(m, func(child protoreflect.Message) { w.message(child, visible) })
	if n, ok := m.Interface().(*pg.Node); ok {
		w.node(n, visible)
	}
}

// targets rewrites a select list. An output whose expression changed keeps the name that PostgreSQL would have given it.
func (w *rewriter) targets(list []*pg.Node, visible *cte) {
	for _, node := range list {
		target, before := node.GetResTarget(), w.replaced
		name, _ := outputName(target.Val)
		children(target.ProtoReflect(), func(child protoreflect.Message) { w.message(child, visible) })
		if w.replaced != before && target.Name == "" && target.Val.GetColumnRef() == nil {
			if name == "" {
				name = "?column?"
			}
			target.Name = name
		}
	}
}

// column takes from a column's name what the rewritten FROM no longer has: the database, and the schema of a replaced relation.
func (w *rewriter) column(n *pg.ColumnRef) {
	if len(n.Fields) == 4 && n.Fields[0].GetString_().GetSval() == w.view.Database {
		n.Fields = n.Fields[1:]
	}
	if len(n.Fields) < 3 {
		return
	}
	switch relations[TableName{n.Fields[0].GetString_().GetSval(), n.Fields[1].GetString_().GetSval()}] {
	case shownRelation, emptyRelation:
		n.Fields = n.Fields[1:]
	default:
	}
}

func (w *rewriter) node(n *pg.Node, visible *cte) {
	switch inner := n.Node.(type) {
	case *pg.Node_RangeVar:
		w.relation(n, inner.RangeVar, visible)
	case *pg.Node_RangeFunction:
		w.rangeFunction(n, inner.RangeFunction)
	case *pg.Node_SqlvalueFunction:
		switch name := valueOf(inner.SqlvalueFunction); name {
		case "":
		case "current_schema":
			n.Node = &pg.Node_FuncCall{FuncCall: &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode(name)},
				Funcformat: pg.CoercionForm_COERCE_EXPLICIT_CALL}}
		default:
			w.become(n, w.value(name))
		}
	case *pg.Node_AConst:
		if text := inner.AConst.GetSval().GetSval(); mayNameRole(text) {
			name := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("text")}, Typemod: -1}
			w.become(n, &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: &pg.Node{Node: inner}, TypeName: name}}})
		}
	case *pg.Node_FuncCall:
		names := texts(inner.FuncCall.Funcname)
		switch {
		case overlaid[names[len(names)-1]]:
			inner.FuncCall.Funcname = unqualified(inner.FuncCall.Funcname)
		case len(names) == 1:
			inner.FuncCall.Funcname = []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(names[0])}
		}
		w.call(n, inner.FuncCall, names[len(names)-1])
	}
}

// become puts another node in place of one.
func (w *rewriter) become(n, other *pg.Node) {
	n.Node = other.Node
	w.replaced++
}

func (w *rewriter) relation(n *pg.Node, r *pg.RangeVar, visible *cte) {
	if r.Schemaname == "" && visible.hides(r.Relname) {
		return
	}
	name, _ := w.view.resolve(r.Schemaname, r.Relname)
	r.Catalogname, r.Schemaname = "", name.Schema
	var text string
	switch relations[name] {
	case shownRelation:
		text = w.view.shown(name).query()
	case emptyRelation:
		text = Rows{Columns: w.view.columns(name)}.query()
	default:
		if condition, ok := hides[name]; ok {
			w.hide(n, r, condition)
		}
		return
	}
	if w.relations++; w.relations > maxReplaced {
		halt(r.Location, stateTooMany, "ask in several smaller queries",
			"statement too complex: it names more than %d relations that the session has rows of its own for", maxReplaced)
	}
	if w.inserted += len(text); w.inserted > maxPrintedBytes {
		halt(r.Location, stateTooMany, "ask in several smaller queries", "statement too complex: its relations have too many rows")
	}
	alias := r.Alias
	if alias == nil {
		alias = &pg.Alias{Aliasname: r.Relname}
	}
	w.become(n, &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: parsed(text), Alias: alias}}})
}

// named gives a function in FROM that becomes a value the alias that PostgreSQL gives it, while its name is known.
func named(f *pg.RangeFunction) {
	if f.Alias != nil || len(f.Functions) != 1 {
		return
	}
	call := f.Functions[0].GetList().GetItems()[0]
	name, _ := outputName(call)
	if call.GetSqlvalueFunction() != nil || isReplaced(name) {
		f.Alias = &pg.Alias{Aliasname: name}
	}
}

// rangeFunction makes a subquery of a function in FROM that became a value.
func (w *rewriter) rangeFunction(n *pg.Node, f *pg.RangeFunction) {
	for _, item := range f.Functions {
		if of := item.GetList().GetItems()[0]; of.GetFuncCall() != nil || of.GetSqlvalueFunction() != nil {
			continue
		}
		if len(f.Functions) > 1 || f.Alias == nil || f.Ordinality || len(f.Coldeflist) > 0 || len(f.Alias.GetColnames()) > 1 {
			halt(-1, stateUnsupported, "write the function into the select list", "a function of the session cannot stand in FROM like this")
		}
		query := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
			TargetList: []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Name: f.Alias.Aliasname, Val: item.GetList().GetItems()[0]}}}}}
		w.become(n, &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Lateral: true, Alias: f.Alias,
			Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}}}}})
		return
	}
}

// valueOf is the name of a function that SQL writes without parentheses and that becomes another node; "" for the others.
func valueOf(n *pg.SQLValueFunction) string {
	switch n.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg.SQLValueFunctionOp_SVFOP_USER,
		pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		return "current_user"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		return "current_database"
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		return "current_schema"
	default:
		return ""
	}
}

// The functions that become a value, with the value in SQL: %u is the analyst, %d the dataset, %v the version, %p the session's number.
var replacements = map[string]string{
	"current_user":             "%u",
	"session_user":             "%u",
	"getpgusername":            "%u",
	"current_database":         "%d",
	"version":                  "%v",
	"pg_backend_pid":           "%p",
	"pg_get_userbyid":          "%u",
	"pg_database_size":         "0::pg_catalog.int8",
	"pg_tablespace_size":       "0::pg_catalog.int8",
	"pg_tablespace_location":   "''::pg_catalog.text",
	"inet_client_addr":         "NULL::pg_catalog.inet",
	"inet_server_addr":         "NULL::pg_catalog.inet",
	"inet_client_port":         "NULL::pg_catalog.int4",
	"inet_server_port":         "NULL::pg_catalog.int4",
	"pg_postmaster_start_time": "NULL::pg_catalog.timestamptz",
	"pg_conf_load_time":        "NULL::pg_catalog.timestamptz",
	"pg_is_in_recovery":        "false",
	"pg_jit_available":         "false",
	"shobj_description":        "NULL::pg_catalog.text",
	"pg_stat_get_numscans":     "0::pg_catalog.int8",
	"pg_stat_get_live_tuples":  "0::pg_catalog.int8",
	"pg_has_role":              "true",
	"has_database_privilege":   "",
	"has_tablespace_privilege": "false",
	"current_setting":          "",
}

// value is what a function of the session is worth.
func (w *rewriter) value(name string) *pg.Node {
	return w.expression(strings.NewReplacer("%u", quote(w.view.User)+"::pg_catalog.name", "%d", quote(w.view.Database)+"::pg_catalog.name",
		"%v", quote(w.view.Version)+"::pg_catalog.text", "%p", strconv.Itoa(int(w.view.PID))).Replace(replacements[name]))
}

// call rewrites the call of a function.
func (w *rewriter) call(n *pg.Node, f *pg.FuncCall, name string) {
	named := slices.ContainsFunc(f.Args, func(arg *pg.Node) bool { return arg.GetNamedArgExpr() != nil })
	plain := f.Over == nil && f.AggFilter == nil && !f.AggStar && !f.AggDistinct && len(f.AggOrder) == 0 && !f.FuncVariadic && !named
	if !plain && (isReplaced(name) || strings.HasPrefix(name, "has_")) {
		halt(f.Location, stateUnsupported, "call it with its arguments alone", "function %s cannot be called like this", name)
	}
	if (isReplaced(name) || strings.HasPrefix(name, "has_")) && len(f.Args) > maxArguments { // each makes the tree deeper
		halt(f.Location, stateNoFunction, "", "function %s takes at most %d arguments", name, maxArguments)
	}
	switch _, valued := replacements[name]; {
	case name == "current_setting":
		w.setting(n, f)
	case name == "has_database_privilege":
		last := ""
		if len(f.Args) > 0 {
			last, _ = stringOf(f.Args[len(f.Args)-1])
		}
		w.become(n, w.keeping(f.Args, w.expression(strconv.FormatBool(strings.EqualFold(last, "connect")))))
	case valued:
		w.become(n, w.keeping(f.Args, w.value(name)))
	case isReplaced(name):
		w.describe(f)
	case strings.HasPrefix(name, "has_") && strings.HasSuffix(name, "_privilege"):
		w.privilege(n, f, name)
	}
}

// keeping is a value that is NULL where an argument is, and that keeps the parameters in its arguments: a parameter that stands nowhere
// would have no type.
func (w *rewriter) keeping(args []*pg.Node, value *pg.Node) *pg.Node {
	for _, arg := range args {
		if _, constant := stringOf(arg); constant || arg.GetAConst() != nil {
			continue
		}
		value = w.expression("CASE WHEN ($1)::pg_catalog.text IS NOT NULL THEN $2 END", arg, value)
	}
	return value
}

// setting looks a setting of the session up.
func (w *rewriter) setting(n *pg.Node, f *pg.FuncCall) {
	if len(f.Args) < 1 || len(f.Args) > 2 {
		halt(f.Location, stateNoFunction, "", "function current_setting takes one or two arguments")
	}
	name, constant := stringOf(f.Args[0])
	if !constant { // CASE opens no scope that could capture the argument's columns
		var b strings.Builder
		b.WriteString("CASE pg_catalog.lower(($1)::pg_catalog.text)")
		for _, p := range w.view.Parameters {
			b.WriteString(" WHEN " + quote(strings.ToLower(p.Name)) + " THEN " + quote(p.Value))
		}
		b.WriteString(" ELSE NULL::pg_catalog.text END")
		w.become(n, w.expression(b.String(), f.Args[0]))
		return
	}
	i := slices.IndexFunc(w.view.Parameters, func(p Parameter) bool { return strings.EqualFold(p.Name, name) })
	switch {
	case i >= 0:
		w.become(n, w.expression(quote(w.view.Parameters[i].Value)+"::pg_catalog.text"))
	case len(f.Args) == 2 && f.Args[1].GetAConst().GetBoolval().GetBoolval():
		w.become(n, w.expression("NULL::pg_catalog.text"))
	default:
		halt(f.Location, stateNoSetting, "", "unrecognized configuration parameter %q", name)
	}
}

// describe keeps functions that describe any object from those that belong to a server's databases together, or to roles: the class is
// one of a list, else NULL.
func (w *rewriter) describe(f *pg.FuncCall) {
	if len(f.Args) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("CASE ($1)::pg_catalog.oid")
	for class := range strings.FieldsSeq(describedClasses) {
		b.WriteString(" WHEN " + class + " THEN " + class)
	}
	b.WriteString(" END")
	f.Args[0] = w.expression(b.String(), f.Args[0])
	w.replaced++
}

// privilege asks for the analyst's rights, whoever was asked about, and for REFERENCES, which stands in the twin for SELECT.
func (w *rewriter) privilege(n *pg.Node, f *pg.FuncCall, name string) {
	full := 3
	if name == "has_column_privilege" {
		full = 4
	}
	var role []*pg.Node
	if len(f.Args) == full {
		role, f.Args = f.Args[:1], f.Args[1:]
	}
	if len(f.Args) > 0 && slices.Contains([]string{"has_table_privilege", "has_any_column_privilege", "has_column_privilege"}, name) {
		last := &f.Args[len(f.Args)-1]
		switch text, constant := stringOf(*last); {
		case !constant:
			*last = w.expression("pg_catalog.replace(pg_catalog.upper(($1)::pg_catalog.text), 'SELECT', 'SELECT, REFERENCES')", *last)
		default:
			*last = w.expression(quote(regexp.MustCompile(`(?i)^select$`).ReplaceAllString(text, "SELECT, REFERENCES")))
		}
	}
	w.replaced++
	if role != nil && holdsParameter(role[0]) {
		w.become(n, w.keeping(role, &pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}))
	}
}

// expression parses SQL that this package wrote; $1 and so on stand for nodes. It refuses when there was too much of it.
func (w *rewriter) expression(text string, nodes ...*pg.Node) *pg.Node {
	if w.added += len(text); w.added > maxAdded {
		halt(-1, stateTooMany, "ask in several smaller queries", "statement too complex: it asks the session too often")
	}
	n := parsed("SELECT " + text).GetSelectStmt().TargetList[0].GetResTarget().Val
	var fill func(m protoreflect.Message)
	fill = func(m protoreflect.Message) {
		if n, ok := m.Interface().(*pg.Node); ok {
			if p := n.GetParamRef(); p != nil {
				n.Node = nodes[p.Number-1].Node
				return
			}
		}
		children(m, fill)
	}
	if len(nodes) > 0 {
		fill(n.ProtoReflect())
	}
	return n
}

// parsed is the tree of a query that this package wrote.
func parsed(text string) *pg.Node {
	tree, err := pg.Parse(text)
	if err != nil {
		halt(-1, stateInternal, "", "internal error while a statement was rewritten")
	}
	return tree.Stmts[0].Stmt
}

// quote writes a text as a literal, of a type of its own where it may name a role.
func quote(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "'", "''")
	literal := "'" + text + "'"
	if strings.Contains(text, `\`) { // whatever standard_conforming_strings says
		literal = "E'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
	}
	if mayNameRole(text) {
		literal += "::pg_catalog.text"
	}
	return literal
}

// mayNameRole reports whether a literal could be read as an access right, whose input looks up its roles on the server and so tells whether
// they are there: name=rights/name, also within an array or a row. A literal has no type of its own, and takes that of its place, such as
// the other side of an operator; as text it stays text. One of operators alone, such as <=, has no name in it.
func mayNameRole(text string) bool {
	return strings.Contains(text, "=") && strings.ContainsFunc(text, func(r rune) bool {
		return r == '_' || r == '"' || r > unicode.MaxASCII || unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}
