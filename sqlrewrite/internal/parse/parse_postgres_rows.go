package parse

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/syntax"
)

// Rows of values and arrays of constants are written out: (a, b) = (c, d) is a = c AND b = d, x = ANY (array) is x IN (its elements),
// with the same NULLs.

// comparedRows converts = and <> between rows; ok is false where neither side is one.
func (c *converter) comparedRows(at syntax.Pos, op syntax.Operator, left, right *pg.Node) (e syntax.Expr, ok bool) {
	if left.GetRowExpr() == nil && right.GetRowExpr() == nil {
		return nil, false
	}
	if op != syntax.Eq && op != syntax.Ne {
		return c.refuse(at, "rows that are compared by "+string(op), "compare column by column"), true
	}
	if e = c.equalRows(at, c.tuple(left), c.tuple(right)); op == syntax.Ne {
		e = &syntax.Unary{Pos: at, Op: syntax.Not, X: e}
	}
	return e, true
}

func (c *converter) equalRows(at syntax.Pos, l, r []syntax.Expr) syntax.Expr {
	if len(l) != len(r) {
		return c.refuse(at, "a comparison of rows of different lengths", "give both sides as many values")
	}
	equal := make([]syntax.Expr, len(l))
	for i := range l {
		equal[i] = &syntax.Binary{Pos: at, Op: syntax.Eq, L: l[i], R: r[i]}
	}
	return balanced(at, syntax.And, equal)
}

// rowIn converts (a, b) [NOT] IN ((1, 2), ...).
func (c *converter) rowIn(at syntax.Pos, not bool, left *pg.Node, list []*pg.Node) syntax.Expr {
	x := c.tuple(left)
	if len(x)*len(list) > maxInList {
		c.tooComplex(at, fmt.Sprintf("an IN list has more than %d values", maxInList))
		return nil
	}
	either := make([]syntax.Expr, len(list))
	for i, item := range list {
		either[i] = c.equalRows(at, x, c.tuple(item))
	}
	e := balanced(at, syntax.Or, either)
	if not {
		e = &syntax.Unary{Pos: at, Op: syntax.Not, X: e}
	}
	return e
}

// ofArray converts x = ANY (array) and x <> ALL (array), of an array whose elements stand in the text.
func (c *converter) ofArray(at syntax.Pos, kind pg.A_Expr_Kind, op string, left, right *pg.Node) syntax.Expr {
	const hint = "write x IN (1, 2, 3)"
	not := kind == pg.A_Expr_Kind_AEXPR_OP_ALL && op == string(syntax.Ne)
	if !not && (kind != pg.A_Expr_Kind_AEXPR_OP_ANY || op != string(syntax.Eq)) {
		return c.refuse(at, "this operator with ANY or ALL", "write one comparison for each value, with OR between them for ANY, and AND for ALL")
	}
	items, ok := c.elements(right)
	switch {
	case c.refusal != nil:
		return nil
	case !ok || len(items) == 0:
		return c.refuse(at, "ANY or ALL of what is no array of constants", hint)
	case len(items) > maxInList:
		c.tooComplex(at, fmt.Sprintf("an array has more than %d values", maxInList))
		return nil
	}
	return &syntax.In{Pos: at, Not: not, X: c.expr(left), List: items}
}

// elements are those of ARRAY[...], of '{...}' and of either cast to an array; ok is false for other expressions.
func (c *converter) elements(n *pg.Node) (items []syntax.Expr, ok bool) {
	if cast := n.GetTypeCast(); cast != nil && len(cast.GetTypeName().GetArrayBounds()) == 1 {
		name := cast.TypeName.Names
		schema, element := c.qualified(name, syntax.Pos(cast.Location))
		items, ok = c.elements(cast.Arg)
		if !ok || schema != "" && schema != "pg_catalog" || len(cast.TypeName.Typmods) > 0 || cast.TypeName.Setof || cast.TypeName.PctType {
			return nil, false
		}
		for i, item := range items {
			if literal, isLiteral := item.(*syntax.Literal); !isLiteral || literal.Kind != syntax.NullLiteral {
				items[i] = &syntax.Cast{Pos: item.At(), X: item, Type: element}
			}
		}
		return items, true
	}
	if array := n.GetAArrayExpr(); array != nil {
		return c.exprs(array.Elements), true
	}
	text, isText := n.GetAConst().GetVal().(*pg.A_Const_Sval)
	if !isText {
		return nil, false
	}
	at := syntax.Pos(n.GetAConst().Location)
	texts, ok := ArrayTexts(text.Sval.Sval)
	for _, t := range texts {
		literal := &syntax.Literal{Pos: at, Kind: syntax.StringLiteral}
		if t == nil {
			literal.Kind = syntax.NullLiteral
		} else {
			literal.Text = *t
		}
		items = append(items, literal)
	}
	return items, ok
}

// ArrayTexts reads PostgreSQL's text of an array of one dimension, {1, "a, b", NULL}; nil is NULL. ok is false for other texts.
func ArrayTexts(text string) (all []*string, ok bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") || len(text) < 2 {
		return nil, false
	}
	rest := strings.TrimSpace(text[1 : len(text)-1])
	for rest != "" {
		var item strings.Builder
		quoted := rest[0] == '"'
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(rest) && (quoted && rest[i] != '"' || !quoted && rest[i] != ','); i++ {
			switch b := rest[i]; {
			case b == '\\' && i+1 < len(rest):
				i++
			case b == '\\' || !quoted && strings.IndexByte(`{}"`, b) >= 0:
				return nil, false
			}
			item.WriteByte(rest[i])
		}
		value := item.String()
		if !quoted {
			value = strings.TrimSpace(value)
		} else {
			if i == len(rest) {
				return nil, false
			}
			i++
		}
		switch {
		case !quoted && value == "":
			return nil, false
		case !quoted && strings.EqualFold(value, "null"):
			all = append(all, nil)
		default:
			all = append(all, &value)
		}
		rest = strings.TrimLeft(rest[i:], " \t\n\r\v\f")
		if rest == "" {
			break
		}
		if rest[0] != ',' || strings.TrimSpace(rest[1:]) == "" {
			return nil, false
		}
		rest = strings.TrimSpace(rest[1:])
	}
	return all, true
}
