package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// expr is a typed expression over the leaves of one scope: columns of a row below the aggregates ([column]), group keys and
// released values above them ([keyRef], [valueRef]). Names are resolved, types agree, constants are checked. It is the only
// form of expression that is printed.
type expr interface {
	typ() catalog.Type
}

// unknownType is the type of a string or NULL constant that nothing has given a type yet.
const unknownType catalog.Type = ""

// column is a column of the row. Enums are compared and grouped as text.
type column struct{ of *field }

// keyRef is a group key of the block, by its place in GROUP BY.
type keyRef struct {
	index int
	name  string
	t     catalog.Type
}

// valueRef is a released value of the block: index points into boundQuery.values.
type valueRef struct {
	index  int
	t      catalog.Type
	chosen bool // not a noisy number but a selection: it has no interval
}

// constant is a literal in the text form that PostgreSQL reads for its type.
type constant struct {
	t    catalog.Type
	text string
	null bool
}

// not is NOT x.
type not struct{ x expr }

// negate is -x.
type negate struct {
	x expr
	t catalog.Type
}

// binary is x op y for every operator of [syntax.Operator] with two operands.
type binary struct {
	op   syntax.Operator
	l, r expr
	t    catalog.Type
}

// in is x [NOT] IN (list).
type in struct {
	x    expr
	list []expr
	not  bool
}

// is is x IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
type is struct {
	x    expr
	what syntax.Truth
	not  bool
}

// distinct is x IS [NOT] DISTINCT FROM y.
type distinct struct {
	l, r expr
	not  bool
}

// like is x [NOT] [I]LIKE pattern, or x matches a regular expression, for a pattern that was checked.
type like struct {
	x               expr
	pattern         constant
	regex           bool
	caseInsensitive bool
	not             bool
}

// choice is a searched CASE; otherwise is nil for NULL.
type choice struct {
	arms      []arm
	otherwise expr
	t         catalog.Type
}

type arm struct{ cond, result expr }

// cast is x::t.
type cast struct {
	x    expr
	t    catalog.Type
	mods []int32
}

// collate is a text under the collation of comparisons.
type collate struct{ x expr }

// call is a function of the allow-list.
type call struct {
	name string
	args []expr
	t    catalog.Type
}

func (e column) typ() catalog.Type   { return e.of.Type }
func (e keyRef) typ() catalog.Type   { return e.t }
func (e valueRef) typ() catalog.Type { return e.t }
func (e constant) typ() catalog.Type { return e.t }
func (not) typ() catalog.Type        { return catalog.Bool }
func (e negate) typ() catalog.Type   { return e.t }
func (e binary) typ() catalog.Type   { return e.t }
func (in) typ() catalog.Type         { return catalog.Bool }
func (is) typ() catalog.Type         { return catalog.Bool }
func (distinct) typ() catalog.Type   { return catalog.Bool }
func (like) typ() catalog.Type       { return catalog.Bool }
func (e choice) typ() catalog.Type   { return e.t }
func (e cast) typ() catalog.Type     { return e.t }
func (e call) typ() catalog.Type     { return e.t }
func (e collate) typ() catalog.Type  { return catalog.Text }
func (e computed) typ() catalog.Type { return e.written.typ() }

// children are the direct operands of an expression.
func children(e expr) []expr {
	switch e := e.(type) {
	case column, keyRef, valueRef, constant:
		return nil
	case not:
		return []expr{e.x}
	case negate:
		return []expr{e.x}
	case binary:
		return []expr{e.l, e.r}
	case in:
		return append([]expr{e.x}, e.list...)
	case is:
		return []expr{e.x}
	case distinct:
		return []expr{e.l, e.r}
	case like:
		return []expr{e.x, e.pattern}
	case choice:
		var all []expr
		for _, a := range e.arms {
			all = append(all, a.cond, a.result)
		}
		if e.otherwise != nil {
			all = append(all, e.otherwise)
		}
		return all
	case cast:
		return []expr{e.x}
	case call:
		return e.args
	case collate:
		return []expr{e.x}
	case computed:
		return []expr{e.total}
	case guard:
		return []expr{e.x}
	case exists:
		return nil // what is inside is rows of their own
	case inRows:
		return e.x
	case unitAggregate:
		return e.children()
	case aggregateCall:
		return e.children()
	case windowCall:
		return e.children()
	case layerSub:
		return e.x
	case either:
		return []expr{e.l, e.r}
	default:
		panic("sqlrewrite: expression without a case in children")
	}
}

// family groups the types whose values compare with each other.
type family int

const (
	unknownFamily family = iota
	numberFamily
	textFamily
	boolFamily
	timeFamily
	uuidFamily
	intervalFamily
)

func familyOf(t catalog.Type) family {
	switch {
	case t.IsNumber():
		return numberFamily
	case t.IsText():
		return textFamily
	case t == catalog.Bool:
		return boolFamily
	case t.IsTime():
		return timeFamily
	case t == catalog.UUID:
		return uuidFamily
	case t == intervalType:
		return intervalFamily
	default:
		return unknownFamily
	}
}

// isFloat reports whether values of t are floating-point numbers.
func isFloat(t catalog.Type) bool { return t == catalog.Float4 || t == catalog.Float8 }

// wider is the type that PostgreSQL gives to arithmetic over two number types.
func wider(a, b catalog.Type) catalog.Type {
	rank := func(t catalog.Type) int {
		switch t {
		case catalog.Int2:
			return 0
		case catalog.Int4:
			return 1
		case catalog.Int8:
			return 2
		case catalog.Numeric:
			return 3
		case catalog.Float4:
			return 4
		default:
			return 5
		}
	}
	if isFloat(a) != isFloat(b) {
		return catalog.Float8
	}
	if rank(a) >= rank(b) {
		return a
	}
	return b
}
