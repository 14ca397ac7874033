package parse

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	mysql "github.com/xwb1989/sqlparser"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// expr converts an expression. An absent one stays absent (nil).
func (c *mySQLConverter) expr(node mysql.Expr) syntax.Expr {
	if node == nil || !c.enter() {
		return nil
	}
	defer c.leave()
	switch n := node.(type) {
	case *mysql.ParenExpr:
		return c.expr(n.Expr)
	case *mysql.ColName:
		return c.column(n)
	case *mysql.SQLVal:
		return c.constant(n)
	case *mysql.NullVal:
		at, _ := c.claim("null")
		return &syntax.Literal{Pos: at, Kind: syntax.NullLiteral}
	case mysql.BoolVal:
		text := strconv.FormatBool(bool(n))
		at, _ := c.claim(text)
		return &syntax.Literal{Pos: at, Kind: syntax.BoolLiteral, Text: text}
	case *mysql.AndExpr, *mysql.OrExpr:
		return c.chain(n)
	case *mysql.NotExpr:
		return &syntax.Unary{Pos: c.here(), Op: syntax.Not, X: c.expr(n.Expr)}
	case *mysql.ComparisonExpr:
		return c.comparison(n)
	case *mysql.RangeCond:
		return c.between(n)
	case *mysql.IsExpr:
		return c.is(n)
	case *mysql.BinaryExpr:
		return c.binary(n)
	case *mysql.UnaryExpr:
		return c.unary(n)
	case *mysql.CaseExpr:
		return c.caseExpr(n)
	case *mysql.ConvertExpr:
		return c.cast(n)
	case *mysql.FuncExpr:
		return c.call(n)
	case *mysql.SubstrExpr:
		return c.substring(n)
	case *mysql.ExistsExpr:
		return c.exists(n)
	case *mysql.Subquery:
		return c.scalar(n)
	default:
		c.unknown(node)
		return nil
	}
}

func (c *mySQLConverter) column(n *mysql.ColName) syntax.Expr {
	column := &syntax.Column{}
	qualifier, name := take(&n.Qualifier), take(&n.Name)
	if !qualifier.Qualifier.IsEmpty() {
		return c.refuse(c.here(), "a name of more than two parts", "give the table an alias and write alias.column")
	}
	if !qualifier.IsEmpty() {
		_, column.Qualifier = c.claim(qualifier.Name.String())
	}
	column.Pos, column.Name = c.claim(name.String())
	if slices.Contains(scalar.SystemColumns, column.Name) {
		return c.refuse(column.Pos, "the system column "+fault.Quote(column.Name), "only columns of the policy exist")
	}
	if strings.HasPrefix(column.Name, "@") {
		return c.refuse(column.Pos, "a variable", "write the value itself")
	}
	c.spent(n, column.Pos)
	return column
}

func (c *mySQLConverter) constant(n *mysql.SQLVal) syntax.Expr {
	text := string(n.Val)
	at, _ := c.claim(strings.TrimPrefix(text, "-"))
	switch n.Type {
	case mysql.StrVal:
		return &syntax.Literal{Pos: at, Kind: syntax.StringLiteral, Text: text}
	case mysql.IntVal, mysql.FloatVal:
		return c.number(at, text)
	case mysql.ValArg:
		return c.refuse(at, "a parameter", "write the value itself")
	default: // hexadecimal and bit strings are text or numbers by what stands around them
		return c.refuse(at, "a number in this form", "write it in decimal: 255, 0.5, 1e3")
	}
}

// chain converts a chain of ANDs or of ORs without recursing along it.
func (c *mySQLConverter) chain(node mysql.Expr) syntax.Expr {
	op := syntax.And
	if _, or := node.(*mysql.OrExpr); or {
		op = syntax.Or
	}
	var links []mysql.Expr
	for node != nil {
		and, isAnd := node.(*mysql.AndExpr)
		or, isOr := node.(*mysql.OrExpr)
		switch {
		case isAnd && op == syntax.And:
			links, node = append(links, and.Right), and.Left
		case isOr && op == syntax.Or:
			links, node = append(links, or.Right), or.Left
		default:
			links, node = append(links, node), nil
		}
	}
	slices.Reverse(links)
	at := c.here()
	args := make([]syntax.Expr, len(links))
	for i, link := range links {
		args[i] = c.expr(link)
	}
	return balanced(at, op, args)
}

var mysqlComparisons = map[string]syntax.Operator{
	mysql.EqualStr: syntax.Eq, mysql.NotEqualStr: syntax.Ne, mysql.LessThanStr: syntax.Lt, mysql.LessEqualStr: syntax.Le,
	mysql.GreaterThanStr: syntax.Gt, mysql.GreaterEqualStr: syntax.Ge,
}

func (c *mySQLConverter) comparison(n *mysql.ComparisonExpr) syntax.Expr {
	at, operator := c.here(), take(&n.Operator)
	if operator == mysql.InStr || operator == mysql.NotInStr {
		return c.in(n, at, operator == mysql.NotInStr)
	}
	left, right, escape := c.expr(take(&n.Left)), take(&n.Right), mysql.Expr(nil)
	if operator == mysql.LikeStr || operator == mysql.NotLikeStr {
		escape = take(&n.Escape)
	}
	c.spent(n, at)
	switch operator {
	case mysql.LikeStr, mysql.NotLikeStr:
		like := &syntax.Like{Pos: at, Not: operator == mysql.NotLikeStr, X: left, Pattern: constantPattern(c.expr(right))}
		if escape != nil {
			like.Pattern = c.escaped(at, like.Pattern, c.expr(escape))
		}
		return like
	case mysql.RegexpStr, mysql.NotRegexpStr: // which is not case-sensitive under MySQL's collations, as its LIKE is not
		return &syntax.Like{Pos: at, Language: syntax.RegexPattern, Not: operator == mysql.NotRegexpStr, X: left,
			Pattern: constantPattern(c.expr(right))}
	case mysql.NullSafeEqualStr:
		return &syntax.IsDistinct{Pos: at, Not: true, L: left, R: c.expr(right)}
	}
	if op, ok := mysqlComparisons[operator]; ok {
		return &syntax.Binary{Pos: at, Op: op, L: left, R: c.expr(right)}
	}
	return c.refuse(at, "the operator "+strings.ToUpper(operator), "write LIKE")
}

func (c *mySQLConverter) inList(at syntax.Pos, not bool, x syntax.Expr, right mysql.Expr) syntax.Expr {
	list, ok := right.(mysql.ValTuple)
	if !ok {
		c.unknown(right)
		return nil
	}
	if len(list) > maxInList {
		c.tooComplex(at, "an IN list has more than "+strconv.Itoa(maxInList)+" values")
		return nil
	}
	in := &syntax.In{Pos: at, Not: not, X: x}
	for _, value := range list {
		in.List = append(in.List, c.expr(value))
	}
	return in
}

func (c *mySQLConverter) between(n *mysql.RangeCond) syntax.Expr {
	b := &syntax.Between{Pos: c.here()}
	switch operator := take(&n.Operator); operator {
	case mysql.BetweenStr:
	case mysql.NotBetweenStr:
		b.Not = true
	default:
		return c.refuse(b.Pos, operator, "")
	}
	b.X, b.Lo, b.Hi = c.expr(take(&n.Left)), c.expr(take(&n.From)), c.expr(take(&n.To))
	c.spent(n, b.Pos)
	return b
}

func (c *mySQLConverter) is(n *mysql.IsExpr) syntax.Expr {
	is := &syntax.Is{Pos: c.here()}
	switch operator := take(&n.Operator); operator {
	case mysql.IsNullStr, mysql.IsNotNullStr:
		is.What, is.Not = syntax.IsNull, operator == mysql.IsNotNullStr
	case mysql.IsTrueStr, mysql.IsNotTrueStr:
		is.What, is.Not = syntax.IsTrue, operator == mysql.IsNotTrueStr
	case mysql.IsFalseStr, mysql.IsNotFalseStr:
		is.What, is.Not = syntax.IsFalse, operator == mysql.IsNotFalseStr
	default:
		return c.refuse(is.Pos, operator, "")
	}
	is.X = c.expr(take(&n.Expr))
	c.spent(n, is.Pos)
	return is
}

func (c *mySQLConverter) binary(n *mysql.BinaryExpr) syntax.Expr {
	at, operator := c.here(), take(&n.Operator)
	left, right := c.expr(take(&n.Left)), c.expr(take(&n.Right))
	c.spent(n, at)
	left, right = asNumber(left), asNumber(right)
	switch operator {
	case mysql.PlusStr, mysql.MinusStr, mysql.MultStr, mysql.ModStr:
		return &syntax.Binary{Pos: at, Op: syntax.Operator(operator), L: left, R: right}
	case mysql.DivStr: // of whole numbers too, MySQL's quotient is a decimal
		return &syntax.Binary{Pos: at, Op: syntax.Divide, L: &syntax.Cast{Pos: at, X: left, Type: "numeric"}, R: right}
	case mysql.IntDivStr:
		return &syntax.Cast{Pos: at, Type: "int8", X: &syntax.Call{Pos: at, Name: "div", Args: []syntax.Expr{left, right}}}
	default:
		return c.refuse(at, "the operator "+operator, "the operators are = <> < <= > >= <=> + - * / and %")
	}
}

func (c *mySQLConverter) unary(n *mysql.UnaryExpr) syntax.Expr {
	u := &syntax.Unary{Pos: c.here()}
	switch operator := take(&n.Operator); operator {
	case mysql.UMinusStr:
		u.Op = syntax.Subtract
	case mysql.UPlusStr:
		u.Op = syntax.Add
	case mysql.BangStr:
		u.Op = syntax.Not
	default:
		return c.refuse(u.Pos, "the operator "+strings.TrimSpace(operator), "")
	}
	u.X = c.expr(take(&n.Expr))
	c.spent(n, u.Pos)
	return u
}

func (c *mySQLConverter) caseExpr(n *mysql.CaseExpr) syntax.Expr {
	e := &syntax.Case{Pos: c.here(), Operand: c.expr(take(&n.Expr))}
	for _, w := range take(&n.Whens) {
		e.Whens = append(e.Whens, syntax.When{Cond: c.expr(take(&w.Cond)), Result: c.expr(take(&w.Val))})
		c.spent(w, e.Pos)
	}
	e.Else = c.expr(take(&n.Else))
	c.spent(n, e.Pos)
	return e
}

// cast converts CAST and CONVERT to types that both databases have.
func (c *mySQLConverter) cast(n *mysql.ConvertExpr) syntax.Expr {
	cast := &syntax.Cast{Pos: c.here(), X: c.expr(take(&n.Expr))}
	to := take(&n.Type)
	c.spent(n, cast.Pos)
	kind, length, scale := strings.ToLower(take(&to.Type)), take(&to.Length), take(&to.Scale)
	switch {
	case kind == "signed":
		cast.Type = "int8"
	case kind == "decimal" && length == nil:
		cast.Type, cast.Mods = "numeric", []int32{10, 0}
	case kind == "decimal":
		cast.Type, cast.Mods = "numeric", c.modifiers(length, scale)
	case kind == "char" && length == nil && to.Charset == "":
		cast.Type = "text"
	case kind == "char" && to.Charset == "":
		cast.Type, cast.Mods = "varchar", c.modifiers(length)
	case kind == "date":
		cast.Type = "date"
	case kind == "datetime" && length == nil:
		cast.Type = "timestamp"
	default:
		return c.refuse(cast.Pos, "a cast to this type", "cast to SIGNED, DECIMAL(p, s), CHAR, DATE or DATETIME")
	}
	to.Operator = "" // says only what a charset would be called
	c.spent(to, cast.Pos)
	return cast
}

func (c *mySQLConverter) modifiers(values ...*mysql.SQLVal) []int32 {
	var mods []int32
	for _, value := range values {
		if value == nil {
			mods = append(mods, 0)
			continue
		}
		mod, err := strconv.ParseInt(string(value.Val), 10, 32)
		if err != nil {
			c.refuse(c.here(), "this length of a type", "")
		}
		mods = append(mods, int32(mod))
	}
	return mods
}

// mysqlFunctions are the functions that mean in MySQL what the named one means in PostgreSQL. The list is closed because
// the same name often means something else: variance, greatest, concat, length, log ...
var mysqlFunctions = map[string]string{
	"count": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max",
	"variance": "var_pop", "var_pop": "var_pop", "var_samp": "var_samp",
	"std": "stddev_pop", "stddev": "stddev_pop", "stddev_pop": "stddev_pop", "stddev_samp": "stddev_samp",
	"abs": "abs", "ceil": "ceil", "ceiling": "ceil", "floor": "floor", "round": "round",
	"coalesce": "coalesce", "ifnull": "coalesce", "nullif": "nullif",
	"lower": "lower", "lcase": "lower", "upper": "upper", "ucase": "upper",
	"char_length": "char_length", "character_length": "char_length", "ltrim": "ltrim", "rtrim": "rtrim",
	"sqrt": "sqrt", "ln": "ln", "log10": "log10", "exp": "exp", "sign": "sign", "pow": "power", "power": "power",
}

// mysqlTimeParts are the functions that give a part of a date or time, with what is added to EXTRACT's number.
var mysqlTimeParts = map[string]struct {
	field string
	plus  int
}{
	"year": {"year", 0}, "quarter": {"quarter", 0}, "month": {"month", 0}, "day": {"day", 0}, "dayofmonth": {"day", 0},
	"dayofyear": {"doy", 0}, "dayofweek": {"dow", 1}, "weekday": {"isodow", -1}, "hour": {"hour", 0}, "minute": {"minute", 0},
}

// mysqlForms are the functions that PostgreSQL writes in another form, or takes with other arguments.
var mysqlForms = []string{"if", "mod", "concat", "date", "left", "right", "field"}

// mysqlTexts are functions that write a date or time as text. PostgreSQL's date_trunc and extract are values instead.
var mysqlTexts = map[string]string{
	"date_format": "write YEAR(x), MONTH(x), DAY(x), HOUR(x) or DATE(x)", "time_format": "write HOUR(x) or MINUTE(x)",
	"monthname": "write MONTH(x)", "dayname": "write DAYOFWEEK(x)",
}

func (c *mySQLConverter) call(n *mysql.FuncExpr) syntax.Expr {
	written := strings.ToLower(n.Name.String())
	at, _ := c.claim(written)
	if !n.Qualifier.IsEmpty() {
		return c.refuse(at, "a schema before a function", "write the function alone")
	}
	if hint, text := mysqlTexts[written]; text {
		return c.refuse(at, strings.ToUpper(written), hint)
	}
	call := &syntax.Call{Pos: at, Name: mysqlFunctions[written], Distinct: take(&n.Distinct)}
	if _, part := mysqlTimeParts[written]; call.Name == "" && !part && !slices.Contains(mysqlForms, written) {
		if c.refusal == nil {
			known := slices.AppendSeq(slices.AppendSeq(slices.Clone(mysqlForms), maps.Keys(mysqlFunctions)), maps.Keys(mysqlTimeParts))
			c.refusal = fault.UnknownFunction(scalar.Position(c.text, at), written, known)
		}
		return nil
	}
	arguments := take(&n.Exprs)
	for _, argument := range arguments {
		switch a := argument.(type) {
		case *mysql.AliasedExpr:
			call.Args = append(call.Args, c.expr(take(&a.Expr)))
			c.spent(a, at)
		case *mysql.StarExpr:
			if call.Star = len(arguments) == 1 && a.TableName.IsEmpty(); !call.Star {
				return c.refuse(at, "* in an expression (a whole row)", "name the columns, or write count(*)")
			}
			c.next += len("(*)")
		default:
			c.unknown(argument)
		}
	}
	n.Name = mysql.ColIdent{}
	c.spent(n, at)
	switch {
	case call.Name == "count" && call.Distinct && len(call.Args) > 1: // of rows of values without NULL
		call.Args = []syntax.Expr{rowText(at, call.Args, false)}
	case call.Name == "sum" || call.Name == "avg":
		for i, x := range call.Args {
			call.Args[i] = asNumber(x)
		}
	}
	if call.Name != "" {
		return call
	}
	return c.form(written, call)
}

// asNumber is a condition as the number that it is to MySQL, 1, 0 or NULL; other expressions stay.
func asNumber(e syntax.Expr) syntax.Expr {
	switch n := e.(type) {
	case *syntax.Binary:
		switch n.Op {
		case syntax.And, syntax.Or, syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
		default:
			return e
		}
	case *syntax.Unary:
		if n.Op != syntax.Not {
			return e
		}
	case *syntax.In, *syntax.InQuery, *syntax.Exists, *syntax.Between, *syntax.Is, *syntax.IsDistinct, *syntax.Like:
	default:
		return e
	}
	return &syntax.Cast{Pos: e.At(), X: e, Type: "int4"}
}

// substring converts SUBSTRING and SUBSTR. From a place before the first, or of a negative length, the two databases cut differently.
func (c *mySQLConverter) substring(n *mysql.SubstrExpr) syntax.Expr {
	at := c.here()
	c.next = 1 + slices.IndexFunc(c.words, func(w mysqlWord) bool { return w.start == at }) // its own name
	call := &syntax.Call{Pos: at, Name: "substring", Args: []syntax.Expr{c.column(take(&n.Name)), c.expr(take(&n.From))}}
	if to := c.expr(take(&n.To)); to != nil {
		call.Args = append(call.Args, to)
	}
	c.spent(n, at)
	if c.refusal == nil && (!countLiteral(call.Args[1], 1) || len(call.Args) == 3 && !countLiteral(call.Args[2], 0)) {
		return c.refuse(at, "SUBSTRING with a place or a length that is no constant, or from the end", "write SUBSTRING(x, 1, 3), or RIGHT(x, 3)")
	}
	return call
}

// countLiteral reports whether an expression is a whole constant of at least least.
func countLiteral(e syntax.Expr, least int) bool {
	literal, ok := e.(*syntax.Literal)
	if !ok || literal.Kind != syntax.IntegerLiteral {
		return false
	}
	v, err := strconv.Atoi(literal.Text)
	return err == nil && v >= least
}

// form writes IF, MOD, CONCAT, DATE, LEFT, RIGHT, FIELD and the parts of times as PostgreSQL does. CONCAT of a NULL is NULL in MySQL, as
// || has it; LEFT of a negative length is nothing.
func (c *mySQLConverter) form(name string, call *syntax.Call) syntax.Expr {
	args := call.Args
	switch {
	case call.Star || call.Distinct:
	case name == "date" && len(args) == 1:
		return &syntax.Cast{Pos: call.Pos, X: args[0], Type: "date"}
	case mysqlTimeParts[name].field != "" && len(args) == 1:
		part := mysqlTimeParts[name]
		field := &syntax.Literal{Pos: call.Pos, Kind: syntax.StringLiteral, Text: part.field}
		var x syntax.Expr = &syntax.Cast{Pos: call.Pos, Type: "int4", X: &syntax.Call{Pos: call.Pos, Name: "extract",
			Args: []syntax.Expr{field, args[0]}}}
		switch {
		case part.plus > 0:
			x = &syntax.Binary{Pos: call.Pos, Op: syntax.Add, L: x, R: wholeLiteral(call.Pos, part.plus)}
		case part.plus < 0:
			x = &syntax.Binary{Pos: call.Pos, Op: syntax.Subtract, L: x, R: wholeLiteral(call.Pos, -part.plus)}
		}
		return x
	case (name == "left" || name == "right") && len(args) == 2 && countLiteral(args[1], 0):
		call.Name = name
		return call
	case name == "if" && len(args) == 3:
		return &syntax.Case{Pos: call.Pos, Whens: []syntax.When{{Cond: args[0], Result: args[1]}}, Else: args[2]}
	case name == "field" && len(args) >= 2: // the place of the first among the others, or 0
		place := &syntax.Case{Pos: call.Pos, Operand: args[0], Else: wholeLiteral(call.Pos, 0)}
		for i, other := range args[1:] {
			place.Whens = append(place.Whens, syntax.When{Cond: other, Result: wholeLiteral(call.Pos, i+1)})
		}
		return place
	case name == "mod" && len(args) == 2:
		return &syntax.Binary{Pos: call.Pos, Op: syntax.Modulo, L: args[0], R: args[1]}
	case name == "concat" && len(args) >= 2:
		return balanced(call.Pos, syntax.Concat, args)
	}
	return c.refuse(call.Pos, strings.ToUpper(name)+" with these arguments", "")
}

// wholeLiteral is a constant of the converter's own.
func wholeLiteral(at syntax.Pos, v int) syntax.Expr {
	return &syntax.Literal{Pos: at, Kind: syntax.IntegerLiteral, Text: strconv.Itoa(v)}
}
