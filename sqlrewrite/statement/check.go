package statement

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// checker holds a query about catalogs against the lists: nodes, relations, functions, types and operators. What no list names is
// refused.
type checker struct {
	view  *View
	final bool // the text that is sent: everything replaced, everything with its schema
	depth int
	// scalars are the names of functions in FROM whose rows may be one value, with the columns that they surely have.
	scalars map[string][]string
}

// queryNodes are the nodes of a query's tree that are understood; Node itself stands for one of them.
func queryNodes() []string {
	return strings.Fields(`Node List String Integer Float Boolean BitString A_Const A_Star ColumnRef ParamRef A_Expr BoolExpr NullTest
		BooleanTest CaseExpr CaseWhen CoalesceExpr MinMaxExpr FuncCall NamedArgExpr A_ArrayExpr A_Indices A_Indirection RowExpr TypeCast
		TypeName CollateClause SubLink SQLValueFunction GroupingFunc GroupingSet SelectStmt ResTarget RangeVar RangeSubselect
		RangeFunction JoinExpr Alias SortBy WindowDef WithClause CommonTableExpr`)
}

var understood = set(queryNodes())

func set(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// node checks a node and what it holds; visible are the names of WITH.
func (c *checker) node(m protoreflect.Message, visible *cte) {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxDepth+maxDepthAdded {
		halt(-1, stateUnsupported, "ask in several smaller queries", "the query is nested too deeply")
	}
	if name := string(m.Descriptor().Name()); !understood[name] {
		halt(-1, stateUnsupported, "", "%s is not supported in a query about catalogs", name)
	}
	if c.depth == 1 {
		c.scalars = map[string][]string{}
		c.findScalars(m)
	}
	if c.final {
		refuseLeft(m)
	}
	switch n := m.Interface().(type) {
	case *pg.SelectStmt:
		eachCTE(n.WithClause, visible, func(query *pg.Node, inside *cte) { c.node(query.ProtoReflect(), inside) })
		visible = withNames(n.WithClause, visible)
	case *pg.WithClause:
		return // checked with its statement
	case *pg.RangeVar:
		c.relation(n, visible)
	case *pg.FuncCall:
		c.call(n)
	case *pg.TypeCast:
		c.cast(n, visible)
		return
	case *pg.TypeName:
		c.typeName(n)
	case *pg.ColumnRef:
		c.column(n)
	case *pg.A_Indirection:
		for _, name := range texts(n.Indirection) { // "" for a subscript
			if name != "" {
				field(name, -1)
			}
		}
	case *pg.A_Expr:
		c.operator(n.Name, n.Location)
	case *pg.SubLink:
		c.operator(n.OperName, n.Location)
	case *pg.SortBy:
		c.operator(n.UseOp, n.Location)
	case *pg.CollateClause:
		if names := texts(n.Collname); len(names) > 2 || len(names) == 2 && names[0] != "pg_catalog" {
			halt(n.Location, stateUnsupported, "", "collation %s is not supported", strings.Join(names, "."))
		}
	}
	children(m, func(child protoreflect.Message) { c.node(child, visible) })
}

// refuseLeft refuses what the text that is sent must not hold any more.
func refuseLeft(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg.SQLValueFunction:
		if valueOf(n) != "" {
			halt(n.Location, stateInternal, "", "%s was not replaced", valueOf(n))
		}
	case *pg.A_Const:
		if mayNameRole(n.GetSval().GetSval()) {
			halt(n.Location, stateInternal, "", "a literal has no type")
		}
	}
}

func (c *checker) relation(n *pg.RangeVar, visible *cte) {
	if n.Schemaname == "" && visible.hides(n.Relname) {
		return
	}
	if n.Catalogname != "" && n.Catalogname != c.view.Database || c.final && (n.Catalogname != "" || n.Schemaname == "") {
		halt(n.Location, stateUnsupported, "leave the database's name out", "cross-database references are not implemented: %q", n.Catalogname)
	}
	name, class := c.view.resolve(n.Schemaname, n.Relname)
	becomes := relations[name]
	switch {
	case class != catalogRelation:
		halt(n.Location, stateNoTable, "", "relation %q does not exist", n.Relname)
	case becomes == refusedRelation && !isCatalog(name.Schema, name.Name):
		halt(n.Location, stateNoTable, "", "relation %q does not exist", n.Relname)
	case becomes == refusedRelation, c.final && becomes != readRelation:
		halt(n.Location, statePrivilege, "", "permission denied for view %s", name.Name)
	}
}

// call checks a function's name. SQL's own syntax, as EXTRACT(x FROM y), has its schema from the grammar.
func (c *checker) call(n *pg.FuncCall) {
	names := texts(n.Funcname)
	name := names[len(names)-1]
	switch {
	case len(names) == 2 && names[0] == "information_schema" && strings.HasPrefix(name, "_pg_"):
		if informationFunctions[name] {
			return
		}
	case len(names) == 2 && names[0] == "pg_catalog" && !(c.final && overlaid[name]), len(names) == 1 && (!c.final || overlaid[name]):
		if passes[name] || !c.final && isReplaced(name) {
			c.format(n, name)
			return
		}
		if c.final && describes[name] && ofListedClass(n) {
			return
		}
	}
	if !knownRefused[name] && (len(names) == 1 || names[0] != "pg_catalog") {
		halt(n.Location, stateNoFunction, "", "function %s does not exist, or is not supported in a query about catalogs",
			strings.Join(names, "."))
	}
	halt(n.Location, statePrivilege, "", "permission denied for function %s", strings.Join(names, "."))
}

// format refuses a width in the first argument of format(), with which a text of a gigabyte is one word.
func (c *checker) format(n *pg.FuncCall, name string) {
	if name != "format" {
		return
	}
	text, ok := "", false
	if len(n.Args) > 0 {
		text, ok = stringOf(n.Args[0])
	}
	rest := strings.NewReplacer("%s", "", "%I", "", "%L", "", "%%", "").Replace(text)
	if !ok || strings.Contains(rest, "%") || n.FuncVariadic {
		halt(n.Location, stateUnsupported, "write %s, %I or %L", "format() takes a constant format without widths")
	}
}

// cast checks a cast. NULL may have any type: relations without rows are made of such.
func (c *checker) cast(n *pg.TypeCast, visible *cte) {
	if !c.final || !n.Arg.GetAConst().GetIsnull() {
		c.node(n.TypeName.ProtoReflect(), visible)
	}
	if c.final && n.Arg.GetAConst() != nil {
		return // has its type
	}
	c.node(n.Arg.ProtoReflect(), visible)
}

func (c *checker) typeName(n *pg.TypeName) {
	names := texts(n.Names)
	name := names[len(names)-1]
	switch {
	case n.Setof || n.PctType:
	case len(names) == 1, len(names) == 2 && names[0] == "pg_catalog":
		if types[name] {
			return
		}
	case len(names) == 2 && names[0] == "information_schema" && informationTypes[name]:
		return
	}
	halt(n.Location, statePrivilege, "", "type %s is not supported in a query about catalogs", strings.Join(names, "."))
}

func (c *checker) operator(list []*pg.Node, at int32) {
	names := texts(list)
	if len(names) == 2 && names[0] == "pg_catalog" && !c.final {
		names = names[1:]
	}
	switch {
	case len(names) == 0:
		return
	case len(names) == 1 && (operators[names[0]] || strings.HasPrefix(strings.TrimPrefix(names[0], "NOT "), "BETWEEN")):
		return
	}
	halt(at, stateUnsupported, "", "operator %s is not supported in a query about catalogs", strings.Join(names, "."))
}

// stringOf is the text of a constant.
func stringOf(n *pg.Node) (string, bool) {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	c := n.GetAConst()
	if c == nil || c.Isnull || c.GetSval() == nil {
		return "", false
	}
	return c.GetSval().Sval, true
}

// holdsParameter reports whether a $n stands in a node.
func holdsParameter(n *pg.Node) bool {
	found := false
	var look func(m protoreflect.Message)
	look = func(m protoreflect.Message) {
		if _, ok := m.Interface().(*pg.ParamRef); ok {
			found = true
		}
		children(m, look)
	}
	look(n.ProtoReflect())
	return found
}

// isReplaced reports whether a function becomes a value.
func isReplaced(name string) bool {
	_, ok := replacements[name]
	return ok || describes[name]
}

// ofListedClass reports whether the first argument of a function that describes any object can only be one of [describedClasses], or NULL.
func ofListedClass(f *pg.FuncCall) bool {
	if len(f.Args) == 0 {
		return false
	}
	of := f.Args[0].GetCaseExpr()
	if of == nil || of.Defresult != nil {
		return false
	}
	for _, when := range of.Args {
		class := when.GetCaseWhen().GetResult().GetAConst().GetIval().GetIval()
		if !slices.Contains(strings.Fields(describedClasses), strconv.Itoa(int(class))) {
			return false
		}
	}
	return true
}
