package parse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// expr converts an expression. An absent one stays absent (nil).
func (c *converter) expr(node *pg.Node) syntax.Expr {
	if !c.enter(node) {
		return nil
	}
	defer c.leave()
	switch n := node.Node.(type) {
	case *pg.Node_ColumnRef:
		return c.column(n.ColumnRef)
	case *pg.Node_AConst:
		return c.constant(n.AConst)
	case *pg.Node_AExpr:
		return c.operation(n.AExpr)
	case *pg.Node_BoolExpr:
		return c.logic(n.BoolExpr)
	case *pg.Node_NullTest:
		return c.nullTest(n.NullTest)
	case *pg.Node_BooleanTest:
		return c.booleanTest(n.BooleanTest)
	case *pg.Node_CaseExpr:
		return c.caseExpr(n.CaseExpr)
	case *pg.Node_TypeCast:
		return c.cast(n.TypeCast)
	case *pg.Node_FuncCall:
		return c.call(n.FuncCall)
	case *pg.Node_CoalesceExpr:
		call := &syntax.Call{Pos: syntax.Pos(take(&n.CoalesceExpr.Location)), Name: "coalesce", Args: c.exprs(take(&n.CoalesceExpr.Args))}
		c.spent(n.CoalesceExpr, call.Pos)
		return call
	case *pg.Node_MinMaxExpr:
		return c.minMax(n.MinMaxExpr)
	case *pg.Node_GroupingFunc:
		call := &syntax.Call{Pos: syntax.Pos(take(&n.GroupingFunc.Location)), Name: syntax.Grouping, Args: c.exprs(take(&n.GroupingFunc.Args))}
		c.spent(n.GroupingFunc, call.Pos)
		return call
	case *pg.Node_SubLink:
		return c.subLink(n.SubLink)
	case *pg.Node_SqlvalueFunction:
		return c.sessionValue(n.SqlvalueFunction)
	case *pg.Node_AArrayExpr:
		array := &syntax.Array{Pos: syntax.Pos(take(&n.AArrayExpr.Location)), Items: c.exprs(take(&n.AArrayExpr.Elements))}
		c.spent(n.AArrayExpr, array.Pos)
		return array
	default:
		c.unknown(node)
		return nil
	}
}

func (c *converter) exprs(nodes []*pg.Node) []syntax.Expr {
	var list []syntax.Expr
	for _, node := range nodes {
		list = append(list, c.expr(node))
	}
	return list
}

func (c *converter) column(n *pg.ColumnRef) syntax.Expr {
	at := syntax.Pos(take(&n.Location))
	if endsInStar(n) {
		return c.refuse(at, "* in an expression (a whole row)", "name the columns, or write count(*)")
	}
	fields, schema := take(&n.Fields), ""
	if len(fields) == 3 {
		schema, fields = c.name(fields[0]), fields[1:]
	}
	qualifier, name := c.qualified(fields, at)
	if slices.Contains(scalar.SystemColumns, name) {
		return c.refuse(at, "the system column "+fault.Quote(name), "only columns of the policy exist")
	}
	c.spent(n, at)
	return &syntax.Column{Pos: at, Schema: schema, Qualifier: qualifier, Name: name}
}

// star converts * and t.* where the select list may hold them.
func (c *converter) star(n *pg.ColumnRef) syntax.Expr {
	at := syntax.Pos(take(&n.Location))
	fields := take(&n.Fields)
	qualifier := ""
	switch names := fields[:len(fields)-1]; len(names) {
	case 0:
	case 1:
		qualifier = c.name(names[0])
	default:
		return c.refuse(at, "schema.table.*", "give the table an alias and write alias.*")
	}
	c.spent(n, at)
	return &syntax.Star{Pos: at, Qualifier: qualifier}
}

func endsInStar(n *pg.ColumnRef) bool {
	return len(n.Fields) > 0 && n.Fields[len(n.Fields)-1].GetAStar() != nil
}

// qualified splits a name of one or two parts.
func (c *converter) qualified(fields []*pg.Node, at syntax.Pos) (qualifier, name string) {
	switch len(fields) {
	case 1:
		return "", c.name(fields[0])
	case 2:
		return c.name(fields[0]), c.name(fields[1])
	default:
		c.refuse(at, "a name of more than two parts", "give the table an alias and write alias.column")
		return "", ""
	}
}

func (c *converter) constant(n *pg.A_Const) syntax.Expr {
	at := syntax.Pos(take(&n.Location))
	null, value := take(&n.Isnull), take(&n.Val)
	c.spent(n, at)
	if null && value == nil {
		return &syntax.Literal{Pos: at, Kind: syntax.NullLiteral}
	} else if null {
		return c.refuse(at, "this constant", "")
	}
	switch v := value.(type) {
	case *pg.A_Const_Ival:
		return c.number(at, strconv.FormatInt(int64(v.Ival.Ival), 10))
	case *pg.A_Const_Fval:
		return c.number(at, v.Fval.Fval)
	case *pg.A_Const_Boolval:
		return &syntax.Literal{Pos: at, Kind: syntax.BoolLiteral, Text: strconv.FormatBool(v.Boolval.Boolval)}
	case *pg.A_Const_Sval:
		if !strings.HasPrefix(strings.TrimLeft(c.text[max(0, at):], "Ee"), "'") { // E'it\'s' is read by the parser
			return c.refuse(at, "a string with a prefix or in dollar quotes", "write it in plain quotes: 'text', a quote inside doubled")
		}
		return &syntax.Literal{Pos: at, Kind: syntax.StringLiteral, Text: v.Sval.Sval}
	case *pg.A_Const_Bsval:
		return c.refuse(at, "a bit string", "")
	default:
		return c.refuse(at, "this constant", "")
	}
}

// operation converts the node that PostgreSQL's grammar uses for everything with an operator inside.
func (c *converter) operation(n *pg.A_Expr) syntax.Expr {
	at := syntax.Pos(take(&n.Location))
	kind := take(&n.Kind)
	op := c.operator(take(&n.Name), at)
	left, right := take(&n.Lexpr), take(&n.Rexpr)
	c.spent(n, at)
	switch kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if e, ok := c.comparedRows(at, syntax.Operator(op), left, right); ok {
			return e
		}
		return c.plainOperation(at, op, left, right)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		not := kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT
		return &syntax.IsDistinct{Pos: at, Not: not, L: c.expr(left), R: c.expr(right)}
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		return &syntax.Call{Pos: at, Name: "nullif", Args: []syntax.Expr{c.expr(left), c.expr(right)}}
	case pg.A_Expr_Kind_AEXPR_IN:
		list := right.GetList().GetItems()
		if len(list) > maxInList {
			c.tooComplex(at, fmt.Sprintf("an IN list has more than %d values", maxInList))
			return nil
		}
		if left.GetRowExpr() != nil {
			return c.rowIn(at, op == "<>", left, list)
		}
		return &syntax.In{Pos: at, Not: op == "<>", X: c.expr(left), List: c.exprs(list)}
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		insensitive := kind == pg.A_Expr_Kind_AEXPR_ILIKE
		return &syntax.Like{Pos: at, Not: op[0] == '!', CaseInsensitive: insensitive, X: c.expr(left), Pattern: c.likePattern(at, right)}
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		bounds := right.GetList().GetItems()
		if len(bounds) != 2 {
			return c.refuse(at, op, "")
		}
		return &syntax.Between{
			Pos:       at,
			Not:       kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM,
			Symmetric: kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM,
			X:         c.expr(left), Lo: c.expr(bounds[0]), Hi: c.expr(bounds[1]),
		}
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return c.ofArray(at, kind, op, left, right)
	case pg.A_Expr_Kind_AEXPR_SIMILAR:
		return c.similar(at, op, left, right)
	default:
		return c.refuse(at, kind.String(), "")
	}
}

// operator reads an operator's name; a schema before it is refused.
func (c *converter) operator(names []*pg.Node, at syntax.Pos) string {
	if len(names) != 1 {
		c.refuse(at, "OPERATOR(schema.name)", "write the operator alone")
		return ""
	}
	return c.name(names[0])
}

// binaryOperators are the operators between two operands; + and - also stand before one.
var binaryOperators = []syntax.Operator{
	syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge,
	syntax.Add, syntax.Subtract, syntax.Multiply, syntax.Divide, syntax.Modulo, syntax.Power, syntax.Concat,
}

func (c *converter) plainOperation(at syntax.Pos, name string, left, right *pg.Node) syntax.Expr {
	op := syntax.Operator(name)
	switch {
	case left == nil && (op == syntax.Add || op == syntax.Subtract):
		return &syntax.Unary{Pos: at, Op: op, X: c.expr(right)}
	case left != nil && slices.Contains(binaryOperators, op):
		e := timesInterval(&syntax.Binary{Pos: at, Op: op, L: c.expr(left), R: c.expr(right)})
		if sum, ok := e.(*syntax.Binary); ok {
			return c.movedMoment(sum)
		}
		return e
	case left != nil && strings.TrimLeft(name, "!") == "~" || strings.TrimLeft(name, "!") == "~*":
		return &syntax.Like{Pos: at, Language: syntax.RegexPattern, Not: name[0] == '!', CaseInsensitive: strings.HasSuffix(name, "*"),
			X: c.expr(left), Pattern: constantPattern(c.expr(right))}
	case left != nil && (strings.TrimLeft(name, "!") == "~~" || strings.TrimLeft(name, "!") == "~~*"): // as PostgreSQL prints LIKE
		return &syntax.Like{Pos: at, Not: name[0] == '!', CaseInsensitive: strings.HasSuffix(name, "*"), X: c.expr(left),
			Pattern: c.likePattern(at, right)}
	case strings.Contains(name, "~"):
		return c.refuse(at, "the operator "+name, "write LIKE or ILIKE")
	default:
		return c.refuse(at, "the operator "+name, "the operators are = <> < <= > >= + - * / % ^ and ||")
	}
}

// likePattern converts the pattern of LIKE, which the parser has wrapped in a function where ESCAPE follows.
func (c *converter) likePattern(at syntax.Pos, n *pg.Node) syntax.Expr {
	call := n.GetFuncCall()
	if !isFunction(call, "pg_catalog", "like_escape") || len(call.Args) != 2 || call.Funcformat != pg.CoercionForm_COERCE_EXPLICIT_CALL {
		return constantPattern(c.expr(n))
	}
	args := c.exprs(take(&call.Args))
	call.Funcname, call.Funcformat, call.Location = nil, 0, 0
	c.spent(call, at)
	return c.escaped(at, constantPattern(args[0]), args[1])
}

// similar converts SIMILAR TO, whose pattern the parser has wrapped in a function.
func (c *converter) similar(at syntax.Pos, op string, left, right *pg.Node) syntax.Expr {
	call := right.GetFuncCall()
	if !isFunction(call, "pg_catalog", "similar_to_escape") || len(call.Args) != 1 {
		return c.refuse(at, "SIMILAR TO ... ESCAPE", "the escape character is the backslash")
	}
	return &syntax.Like{Pos: at, Language: syntax.SimilarPattern, Not: op[0] == '!', X: c.expr(left),
		Pattern: constantPattern(c.expr(call.Args[0]))}
}

func (c *converter) logic(n *pg.BoolExpr) syntax.Expr {
	at := syntax.Pos(take(&n.Location))
	kind, args := take(&n.Boolop), c.exprs(take(&n.Args))
	c.spent(n, at)
	switch {
	case kind == pg.BoolExprType_AND_EXPR && len(args) > 1:
		return balanced(at, syntax.And, args)
	case kind == pg.BoolExprType_OR_EXPR && len(args) > 1:
		return balanced(at, syntax.Or, args)
	case kind == pg.BoolExprType_NOT_EXPR && len(args) == 1:
		return &syntax.Unary{Pos: at, Op: syntax.Not, X: args[0]}
	default:
		return c.refuse(at, kind.String(), "")
	}
}

func (c *converter) nullTest(n *pg.NullTest) syntax.Expr {
	is := &syntax.Is{Pos: syntax.Pos(take(&n.Location)), What: syntax.IsNull}
	switch kind := take(&n.Nulltesttype); kind {
	case pg.NullTestType_IS_NULL:
	case pg.NullTestType_IS_NOT_NULL:
		is.Not = true
	default:
		return c.refuse(is.Pos, kind.String(), "")
	}
	is.X = c.expr(take(&n.Arg))
	c.spent(n, is.Pos)
	return is
}

func (c *converter) booleanTest(n *pg.BooleanTest) syntax.Expr {
	is := &syntax.Is{Pos: syntax.Pos(take(&n.Location))}
	switch kind := take(&n.Booltesttype); kind {
	case pg.BoolTestType_IS_TRUE, pg.BoolTestType_IS_NOT_TRUE:
		is.What, is.Not = syntax.IsTrue, kind == pg.BoolTestType_IS_NOT_TRUE
	case pg.BoolTestType_IS_FALSE, pg.BoolTestType_IS_NOT_FALSE:
		is.What, is.Not = syntax.IsFalse, kind == pg.BoolTestType_IS_NOT_FALSE
	case pg.BoolTestType_IS_UNKNOWN, pg.BoolTestType_IS_NOT_UNKNOWN:
		is.What, is.Not = syntax.IsUnknown, kind == pg.BoolTestType_IS_NOT_UNKNOWN
	default:
		return c.refuse(is.Pos, kind.String(), "")
	}
	is.X = c.expr(take(&n.Arg))
	c.spent(n, is.Pos)
	return is
}

func (c *converter) caseExpr(n *pg.CaseExpr) syntax.Expr {
	e := &syntax.Case{Pos: syntax.Pos(take(&n.Location)), Operand: c.expr(take(&n.Arg))}
	for _, node := range take(&n.Args) {
		arm, ok := node.Node.(*pg.Node_CaseWhen)
		if !ok {
			c.unknown(node)
			return nil
		}
		w := arm.CaseWhen
		e.Whens = append(e.Whens, syntax.When{Cond: c.expr(take(&w.Expr)), Result: c.expr(take(&w.Result))})
		c.spent(w, syntax.Pos(take(&w.Location)))
	}
	e.Else = c.expr(take(&n.Defresult))
	c.spent(n, e.Pos)
	return e
}

func (c *converter) minMax(n *pg.MinMaxExpr) syntax.Expr {
	call := &syntax.Call{Pos: syntax.Pos(take(&n.Location))}
	switch op := take(&n.Op); op {
	case pg.MinMaxOp_IS_GREATEST:
		call.Name = "greatest"
	case pg.MinMaxOp_IS_LEAST:
		call.Name = "least"
	default:
		return c.refuse(call.Pos, op.String(), "")
	}
	call.Args = c.exprs(take(&n.Args))
	c.spent(n, call.Pos)
	return call
}

func (c *converter) cast(n *pg.TypeCast) syntax.Expr {
	at, typeName := syntax.Pos(take(&n.Location)), take(&n.TypeName)
	typeAt := syntax.Pos(take(&typeName.Location))
	if at < 0 { // DATE '2024-01-31' has no place of its own
		at = typeAt
	}
	cast := &syntax.Cast{Pos: at}
	switch {
	case typeName.Setof || typeName.PctType || len(typeName.ArrayBounds) > 0:
		return c.refuse(typeAt, "a cast to an array or a set", "")
	case typeAt >= 0 && strings.HasPrefix(c.text[typeAt+1:], "'"): // N'text', which is a cast to the parser
		return c.refuse(typeAt, "a string with a prefix", "write it in plain quotes: 'text'")
	}
	names := take(&typeName.Names)
	var schema string
	if schema, cast.Type = c.qualified(names, typeAt); schema != "" && schema != "pg_catalog" {
		return c.refuse(typeAt, "a type outside pg_catalog", "cast to a built-in type")
	}
	cast.Mods = c.typeMods(typeAt, take(&typeName.Typmods))
	typeName.Typemod = 0 // -1: none but the list above
	c.spent(typeName, typeAt)
	cast.X = c.expr(take(&n.Arg))
	c.spent(n, at)
	c.constantText(cast)
	if l, ok := cast.X.(*syntax.Literal); ok && cast.Type == "bpchar" && cast.Mods == nil && l.Kind == syntax.StringLiteral &&
		!strings.HasSuffix(l.Text, " ") { // as PostgreSQL prints a constant beside a column of type character
		return l
	}
	if cast.Type == "interval" && cast.Mods != nil && c.refusal == nil {
		c.intervalField(typeAt, cast)
	}
	return c.castMoment(cast)
}

// typeMods converts the modifiers of a type: numeric(10, 2).
func (c *converter) typeMods(at syntax.Pos, nodes []*pg.Node) (mods []int32) {
	for _, mod := range nodes {
		literal, ok := c.expr(mod).(*syntax.Literal)
		if !ok || literal.Kind != syntax.IntegerLiteral {
			c.refuse(at, "this type modifier", "write whole numbers: numeric(10, 2)")
			return nil
		}
		value, err := strconv.ParseInt(literal.Text, 10, 32)
		if err != nil {
			c.refuse(at, "a type modifier this large", "")
			return nil
		}
		mods = append(mods, int32(value))
	}
	return mods
}

// specialFunctions are the functions whose arguments SQL writes with words (substring(x FROM 1 FOR 2), x AT TIME ZONE 'Asia/Tokyo') and
// which mean the same as the plain call of that name.
var specialFunctions = []string{"extract", "substring", "position", "overlay", "btrim", "ltrim", "rtrim", "timezone"}

// nodeFunctions are calls to the grammar when written plainly; in quotes they name functions that do not exist.
var nodeFunctions = []string{"coalesce", "nullif", "greatest", "least"}

func (c *converter) call(n *pg.FuncCall) syntax.Expr {
	call := &syntax.Call{Pos: syntax.Pos(take(&n.Location))}
	call.Schema, call.Name = c.qualified(take(&n.Funcname), call.Pos)
	args := take(&n.Args)
	switch form := take(&n.Funcformat); {
	case n.FuncVariadic:
		return c.refuse(call.Pos, "VARIADIC", "write the arguments one by one")
	case form == pg.CoercionForm_COERCE_EXPLICIT_CALL:
		if slices.Contains(nodeFunctions, call.Name) {
			c.refusal = fault.UnknownFunction(scalar.Position(c.text, call.Pos), call.Name, nil).WithHint("write it without quotes and schema")
			return nil
		}
	case form == pg.CoercionForm_COERCE_SQL_SYNTAX && slices.Contains(specialFunctions, call.Name):
		call.Schema = ""
		if call.Name == "extract" && len(args) == 2 {
			call.Args = append(call.Args, c.extractField(take(&args[0])))
			args = args[1:]
		}
	default:
		return c.refuse(call.Pos, "the syntax of "+call.Name, "")
	}
	call.Star, call.Distinct = take(&n.AggStar), take(&n.AggDistinct)
	if len(args) == 1 && args[0].GetRowExpr() != nil && call.Name == "count" && call.Distinct {
		call.Args = []syntax.Expr{rowText(call.Pos, c.tuple(args[0]), true)}
	} else {
		call.Args = append(call.Args, c.exprs(args)...)
	}
	switch order := c.orderBy(take(&n.AggOrder)); {
	case !n.AggWithinGroup:
		call.OrderBy = order
	case len(order) > 0:
		n.AggWithinGroup = false
		call.Within = order
	}
	call.Filter = c.expr(take(&n.AggFilter))
	if over := take(&n.Over); over != nil {
		call.Over = c.window(over)
	}
	c.spent(n, call.Pos)
	return c.callOfMoment(call)
}

// extractField converts the field of EXTRACT(field FROM x), a bare word that the grammar turns into a string.
func (c *converter) extractField(node *pg.Node) syntax.Expr {
	field, ok := node.GetAConst().GetVal().(*pg.A_Const_Sval)
	if !ok || node.GetAConst().Isnull {
		c.unknown(node)
		return nil
	}
	return &syntax.Literal{Pos: syntax.Pos(node.GetAConst().Location), Kind: syntax.StringLiteral, Text: field.Sval.Sval}
}

func isFunction(n *pg.FuncCall, schema, name string) bool {
	names := n.GetFuncname()
	return len(names) == 2 && names[0].GetString_().GetSval() == schema && names[1].GetString_().GetSval() == name
}

// unknown refuses a node that the closed tree has no room for, by its name in SQL.
func (c *converter) unknown(node *pg.Node) {
	at := locate(node)
	switch n := node.Node.(type) {
	case *pg.Node_RangeFunction, *pg.Node_RangeTableFunc, *pg.Node_JsonTable:
		c.refuse(at, "a function in FROM", "read from a table")
	case *pg.Node_RangeTableSample:
		c.refuse(at, "TABLESAMPLE", "read the whole table: sampling does not make an answer cheaper")
	case *pg.Node_GroupingSet:
		c.refuse(at, "GROUPING SETS, ROLLUP, CUBE or an empty group in this place", "name groups in GROUP BY")
	case *pg.Node_ParamRef:
		c.refuse(at, "a parameter without a value", "send its value in the member params, or write it into the text")
	case *pg.Node_RowExpr:
		c.refuse(at, "a row of several values in parentheses", "write the columns one by one")
	case *pg.Node_AIndirection:
		c.refuse(at, "a subscript or field of a value", "")
	case *pg.Node_CollateClause:
		c.refuse(at, "COLLATE", "texts are compared as the column is declared")
	case *pg.Node_NamedArgExpr:
		c.refuse(at, "an argument by name", "write the arguments in order")
	case *pg.Node_SetToDefault:
		c.refuse(at, "DEFAULT", "")
	default:
		switch kind := strings.TrimPrefix(fmt.Sprintf("%T", n), "*pg_query.Node_"); {
		case strings.HasPrefix(kind, "Json"):
			c.refuse(at, "JSON", "")
		case strings.HasPrefix(kind, "Xml"):
			c.refuse(at, "XML", "")
		default:
			c.refuse(at, "this construct ("+kind+")", "")
		}
	}
}
