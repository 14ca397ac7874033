package algebra

import (
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Expr is a typed expression over the leaves of one scope: columns of a row below the aggregates ([Column]), group keys and
// released values above them ([KeyRef], [EstimatorRef]). Names are resolved, types agree, constants are checked. It is the only
// form of expression that is printed.
//
//nodes:1 Column, 2 KeyRef, 3 EstimatorRef, 4 Constant, 5 Not, 6 Negate, 7 Binary, 8 In, 9 Is, 10 Distinct, 11 Like, 12 Choice, 13 Cast
//nodes:14 Collate, 15 Call, 16 Computed, 17 Guard, 18 Exists, 19 InRows, 20 Aggregate, 21 Subquery, 22 Either, 27 Bought
type Expr interface {
	Typ() catalog.Type
}

// Column is a column of the row. Enums are compared and grouped as text.
type Column struct {
	Of *Field `node:"1"`
}

// KeyRef is a group key of the block, by its place in GROUP BY.
type KeyRef struct {
	Index int          `node:"1"`
	Name  string       `node:"2,same"`
	T     catalog.Type `node:"3"`
}

// EstimatorRef is a released value of the block: index points into BoundQuery.Estimators.
type EstimatorRef struct {
	Index  int          `node:"1"`
	T      catalog.Type `node:"2"`
	Chosen bool         `node:"3"` // not a noisy number but a selection: it has no interval
}

// Constant is a literal in the text form that PostgreSQL reads for its type.
type Constant struct {
	T    catalog.Type `node:"1"`
	Text string       `node:"2"`
	Null bool         `node:"3"`
}

// Bought is a value that is released before the statement runs, and that the statement takes as an argument. Nothing of a statement but
// that argument depends on it: it lies within bounds that the policy gives.
type Bought struct {
	At        int          `node:"1"` // which of [BoundQuery.Bought]
	T         catalog.Type `node:"2"`
	Label     string       `node:"3,same"`
	Within    *Bounds      `node:"4,-"`
	MayBeNull bool         `node:"5,-"` // as a mean of no rows is
}

// Not is NOT x.
type Not struct {
	X Expr `node:"1"`
}

// Negate is -x.
type Negate struct {
	X Expr         `node:"1"`
	T catalog.Type `node:"2,-"`
}

// Binary is x op y for every operator of [syntax.Operator] with two operands.
type Binary struct {
	Op   syntax.Operator `node:"1"`
	L, R Expr            `node:"2 3,by=operand:Op"`
	T    catalog.Type    `node:"4,-"`
}

// In is x [NOT] IN (list).
type In struct {
	X    Expr   `node:"1"`
	List []Expr `node:"2,by=compared"`
	Not  bool   `node:"3"`
}

// Is is x IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
type Is struct {
	X    Expr         `node:"1"`
	What syntax.Truth `node:"2"`
	Not  bool         `node:"3"`
}

// Distinct is x IS [NOT] DISTINCT FROM y.
type Distinct struct {
	L, R Expr `node:"1 2"`
	Not  bool `node:"3"`
}

// Like is x [NOT] [I]LIKE pattern, or x matches a regular expression, for a pattern that was checked.
type Like struct {
	X               Expr     `node:"1"`
	Pattern         Constant `node:"2"`
	Regex           bool     `node:"3"`
	CaseInsensitive bool     `node:"4"`
	Not             bool     `node:"5"`
}

// Choice is a searched CASE; otherwise is nil for NULL.
type Choice struct {
	Arms      []Arm        `node:"1"`
	Otherwise Expr         `node:"2,optional"`
	T         catalog.Type `node:"3,-"`
}

type Arm struct {
	Cond, Result Expr `node:"1 2"`
}

// Cast is x::t.
type Cast struct {
	X    Expr         `node:"1"`
	T    catalog.Type `node:"2"`
	Mods []int32      `node:"3"`
}

// Collate is a text under the collation of comparisons.
type Collate struct {
	X Expr `node:"1"`
}

// Call is a function of the allow-list.
type Call struct {
	Name string       `node:"1"`
	Args []Expr       `node:"2"`
	T    catalog.Type `node:"3,-"`
}

func (e Column) Typ() catalog.Type   { return e.Of.Type }
func (e Computed) Typ() catalog.Type { return e.Written.Typ() }
func (e Guard) Typ() catalog.Type    { return e.Clamped.Typ() }
func (Collate) Typ() catalog.Type    { return catalog.Text }
func (Not) Typ() catalog.Type        { return catalog.Bool }
func (In) Typ() catalog.Type         { return catalog.Bool }
func (Is) Typ() catalog.Type         { return catalog.Bool }
func (Distinct) Typ() catalog.Type   { return catalog.Bool }
func (Like) Typ() catalog.Type       { return catalog.Bool }
func (Exists) Typ() catalog.Type     { return catalog.Bool }
func (InRows) Typ() catalog.Type     { return catalog.Bool }

// Has reports whether an expression, or a part of it, is something.
func Has(e Expr, is func(Expr) bool) bool {
	return e != nil && (is(e) || slices.ContainsFunc(Children(e), func(x Expr) bool { return Has(x, is) }))
}

// Parts gives an expression and all that it is computed from, each before its operands.
func Parts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	all := []Expr{e}
	for _, x := range Children(e) {
		all = append(all, Parts(x)...)
	}
	return all
}

// Conjuncts splits a condition at its outermost ANDs.
func Conjuncts(e syntax.Expr) []syntax.Expr {
	if e == nil {
		return nil
	}
	if and, ok := e.(*syntax.Binary); ok && and.Op == syntax.And {
		return append(Conjuncts(and.L), Conjuncts(and.R)...)
	}
	return []syntax.Expr{e}
}

// OneText reports whether equal values of a column always have one text. Else the text that a group shows would be that of one of
// its rows (1.0 or 1.00, 0 or -0, 1 day or 24:00:00).
func OneText(e Expr) bool {
	_, fixed := Scale(e)
	return !scalar.IsFloat(e.Typ()) && e.Typ() != scalar.IntervalType && (e.Typ() != catalog.Numeric || fixed)
}

// BoundConjuncts splits a condition at its outermost ANDs.
func BoundConjuncts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	if and, ok := e.(Binary); ok && and.Op == syntax.And {
		return append(BoundConjuncts(and.L), BoundConjuncts(and.R)...)
	}
	return []Expr{e}
}

// Subquery is a query inside an expression above the release block: EXISTS, IN, or a value.
type Subquery struct {
	Kind  subKind      `node:"1"`
	X     []Expr       `node:"2"` // IN only
	Query *Query       `node:"3,plain"`
	T     catalog.Type `node:"4,-"`
}

type subKind int

const (
	ScalarSub subKind = iota
	ExistsSub
	InSub
)

// Either is what an output of a set operation stems from. A row of UNION ALL that has the number of a released row of a block is of the
// side that carries this block.
type Either struct {
	L, R        Expr         `node:"1 2"`
	Left, Right []int        `node:"3 4,encoded"` // the blocks that each side carries; none but for UNION ALL
	T           catalog.Type `node:"5,-"`
}

// AsExists is IN as EXISTS: they are the same where IN is not NULL.
func (e InRows) AsExists() Exists {
	where := BoundConjuncts(e.Where)
	for i, x := range e.X {
		where = append(where, Binary{Op: syntax.Eq, L: Column{Of: e.Outputs[i]}, R: x, T: catalog.Bool})
	}
	return Exists{Of: e.Of, From: e.From, Where: All(where)}
}

// MayBeNull are the places at which IN compares what may be NULL: what links the rows of one unit is there (linkedRows).
func (e InRows) MayBeNull() []int {
	var places []int
	for i, x := range e.X {
		y := e.Outputs[i]
		there := slices.ContainsFunc(BoundConjuncts(e.Where), func(c Expr) bool {
			t, ok := c.(Is)
			return ok && t.What == syntax.IsNull && t.Not && PlainField(t.X) == y
		})
		sure := HasValue(x) || there && y.Identity() && PlainField(x) != nil
		if !sure || !there && !y.NotNull() {
			places = append(places, i)
		}
	}
	return places
}

// HasValue reports whether an expression is plainly NULL on no row that counts: a column that is not, a constant, coalesce with one of
// these.
func HasValue(x Expr) bool {
	return hasValue(x, func(f *Field) bool { return f.NotNull() || f.Present() })
}

// IsSolid reports whether an expression is plainly NULL on no row at all, also on those that conditions are yet to leave out.
func IsSolid(x Expr) bool { return hasValue(x, (*Field).NotNull) }

func hasValue(x Expr, there func(*Field) bool) bool {
	of := func(x Expr) bool { return hasValue(x, there) }
	switch x := x.(type) {
	case Column:
		return there(x.Of)
	case Constant:
		return !x.Null
	case Cast:
		return of(x.X)
	case Call:
		return x.Name == "coalesce" && slices.ContainsFunc(x.Args, of)
	case Computed:
		return of(x.ErrorFree)
	}
	return false
}

// NeverNull reports whether IN is TRUE or FALSE on each row that counts.
func (e InRows) NeverNull() bool { return len(e.MayBeNull()) == 0 }

// Literal gives a constant the type that PostgreSQL gives it: integers the smallest that holds them, decimals numeric, strings
// and NULL none until something beside them has one.
func (b *Binder) Literal(n *syntax.Literal) (Constant, error) {
	switch n.Kind {
	case syntax.NullLiteral:
		return Constant{Null: true}, nil
	case syntax.BoolLiteral:
		return Constant{T: catalog.Bool, Text: n.Text}, nil
	case syntax.StringLiteral:
		return Constant{Text: n.Text}, nil
	case syntax.IntegerLiteral, syntax.DecimalLiteral:
		v, ok := scalar.ParseNumber(n.Text)
		if !ok {
			return Constant{}, b.Mismatch(n, "the number "+fault.Quote(n.Text)+" is out of range", "")
		}
		return NumberConstant(v, n.Kind == syntax.DecimalLiteral), nil
	default:
		return Constant{}, b.Unsupported(n, "this literal", "")
	}
}

// NumberConstant is v in PostgreSQL's canonical spelling, as an integer type unless decimal is set.
func NumberConstant(v *big.Rat, decimal bool) Constant {
	switch {
	case !decimal && v.IsInt() && scalar.FitsInt(v.Num(), 32):
		return Constant{T: catalog.Int4, Text: v.Num().String()}
	case !decimal && v.IsInt() && scalar.FitsInt(v.Num(), 64):
		return Constant{T: catalog.Int8, Text: v.Num().String()}
	default:
		return Constant{T: catalog.Numeric, Text: scalar.DecimalText(v)}
	}
}

// IntegerText reads a whole number, as the integer type that holds it or numeric.
func IntegerText(text string) (canonical string, t catalog.Type, ok bool) {
	v, ok := scalar.ParseNumber(text)
	if !ok || !v.IsInt() || strings.ContainsAny(text, ".eE") {
		return "", catalog.Int8, false
	}
	c := NumberConstant(v, false)
	return c.Text, c.T, true
}

// An operation that can raise an error is partial. Its operands are printed through their proven ranges: were a proof wrong, or a function
// of PostgreSQL's, then the value would be wrong, and there would be no error. Ranges that an operand's type guarantees, and those of what
// is clamped already, are not clamped again. docs/sql/error-free.md lists the form of each operation.

// Guard is an operand of a partial operation. A question's identity does not have the clamp: it changes no value of a right computation.
type Guard struct {
	X       Expr `node:"1,written"`
	Clamped Expr `node:"2,hidden"`
}

func Unguarded(x Expr) Expr {
	if g, ok := x.(Guard); ok {
		return g.X
	}
	return x
}

// ReadsOnly reports whether an expression is computed from the rows of one item, without queries of its own.
func ReadsOnly(e Expr, n FromItem) bool {
	switch e := e.(type) {
	case nil:
		return true
	case Column:
		return Holds(n, e.Of)
	case Exists, InRows, Aggregate:
		return false
	}
	return !slices.ContainsFunc(Children(e), func(c Expr) bool { return !ReadsOnly(c, n) })
}

// FreeFields are the fields that a condition on the rows of some items reads of rows around them.
func FreeFields(e Expr, inside ...FromItem) []*Field {
	var all []*Field
	add := func(more []*Field) {
		for _, f := range more {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	query := func(from FromItem, where Expr) {
		within := append(slices.Clone(inside), from)
		for _, c := range append(conditionsIn(from), where) {
			add(FreeFields(c, within...))
		}
	}
	switch e := e.(type) {
	case nil:
		return nil
	case Column:
		if !slices.ContainsFunc(inside, func(n FromItem) bool { return Holds(n, e.Of) }) {
			add([]*Field{e.Of})
		}
	case Exists:
		query(e.From, e.Where)
	case InRows:
		query(e.From, e.Where)
	}
	for _, c := range Children(e) {
		add(FreeFields(c, inside...))
	}
	return all
}

// ReadsAround reports whether a condition of a join in an item reads rows around the item.
func ReadsAround(n FromItem) bool {
	return slices.ContainsFunc(conditionsIn(n), func(c Expr) bool { return len(FreeFields(c, n)) > 0 })
}

// conditionsIn are those of the joins in an item.
func conditionsIn(n FromItem) []Expr {
	switch n := n.(type) {
	case *RowCap:
		return conditionsIn(n.Of)
	case *Joined:
		all := append(conditionsIn(n.Left), conditionsIn(n.Right)...)
		if n.On != nil {
			all = append(all, n.On)
		}
		return all
	}
	return nil
}

// IsEquality recognises x = y between an expression of one item's rows and one of others'.
func IsEquality(e Expr, n FromItem) (inner, outer Expr, ok bool) {
	eq, isBinary := e.(Binary)
	if !isBinary || eq.Op != syntax.Eq {
		return nil, nil, false
	}
	for _, side := range [][2]Expr{{eq.L, eq.R}, {eq.R, eq.L}} {
		if ReadsOnly(side[0], n) && !IsConstant(side[0]) && !reads(side[1], n) {
			return side[0], side[1], true
		}
	}
	return nil, nil, false
}

func IsConstant(e Expr) bool {
	switch e := e.(type) {
	case Column, Exists, InRows, Aggregate:
		return false
	default:
		return !slices.ContainsFunc(Children(e), func(c Expr) bool { return !IsConstant(c) })
	}
}

// reads reports whether an expression looks at a row of the item.
func reads(e Expr, n FromItem) bool {
	switch e := e.(type) {
	case Column:
		return Holds(n, e.Of)
	case Exists:
		return true
	case InRows:
		return true
	}
	return slices.ContainsFunc(Children(e), func(c Expr) bool { return reads(c, n) })
}

// An interval has months, days and microseconds. PostgreSQL adds each of them by itself, and to a time the months first, then the days,
// then the rest: an interval that is short as a length can still leave the calendar on the way, or overflow. So each part has limits of its
// own, at each step.
//
// Intervals come from constants and from differences of times. What is printed is one of these forms, which raise no error:
//
//	$1::interval                                          a constant
//	(t1 - t2)                                             of times within their ranges
//	interval_larger(interval_smaller((t1 - t2), hi), lo)  the same as an operand: it has no months, and its days and microseconds have one
//	                                                      sign
//	make_interval(0, months, 0, days, hours, mins, secs)  a sum: fields of its terms, each clamped, added as numbers and clamped again
//	CASE, coalesce, greatest, least, nullif               of these
type Interval struct {
	Terms  []Term // what it is the sum of
	Steady Expr   // it as an operand: each part is within its range by what is printed
}

// Term is an interval in a sum.
type Term struct {
	X        Expr // steady
	Within   *scalar.Parts
	Negative bool
}

// Signed are the ranges of what a term adds.
func (t Term) Signed() *scalar.Parts {
	if t.Negative {
		return t.Within.Each((*scalar.Range).Negated)
	}
	return t.Within
}

// Exists is EXISTS (SELECT FROM from WHERE where). Its rows are public, or those of the unit of the row that it is a condition of.
type Exists struct {
	Of    *Relation `node:"3,-"`
	From  FromItem  `node:"1"`     // a [*RowCap]
	Where Expr      `node:"2,own"` // nil: none
}

// InRows is (x, ...) IN (SELECT outputs FROM from WHERE where), for rows like those of [Exists].
type InRows struct {
	X       []Expr    `node:"1"`
	Outputs []*Field  `node:"3"`
	Of      *Relation `node:"5,-"`
	From    FromItem  `node:"2"`
	Where   Expr      `node:"4,own"` // nil: none
}

func IsComparison(op syntax.Operator) bool {
	return slices.Contains([]syntax.Operator{syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge}, op)
}

// Below the aggregates an error that a row's values raise is itself data (A29). So every operation there is bound twice: as it was written,
// and in an error-free form, which raises no error whatever the row holds. What makes a form error-free is proven from the value ranges of
// its operands, and its own value range is derived beside it; docs/sql/error-free.md has the proofs. Nothing relies on conditions elsewhere
// in the query: PostgreSQL may evaluate in any order.

// Computed is an operation over the columns of a row.
type Computed struct {
	Written   Expr          `node:"1,written,own"` // as the analyst wrote it, for people and to tell whether two are the same
	ErrorFree Expr          `node:"2"`             // what is printed; its type is the one that carries the value
	Within    *scalar.Range `node:"3,-"`           // nil: neither a number nor a time
	Printed   `node:"4,-"`
}

// WrittenAs is an expression as the analyst wrote it.
func WrittenAs(e Expr) Expr {
	if c, ok := e.(Computed); ok {
		return c.Written
	}
	return e
}

// CarrierOf is the type in which PostgreSQL computes an expression.
func CarrierOf(e Expr) catalog.Type {
	if c, ok := e.(Computed); ok {
		return c.ErrorFree.Typ()
	}
	return e.Typ()
}

// Printed is what the text of an error-free form shows of its values by itself, without a proof about the operations in it: by its type, or
// by a clamp around it, or because it is one of several values that all show it.
type Printed struct {
	Kept     bool      // no value is outside the value range
	Stepped  bool      // no value has more digits after the point, or is nearer to zero, than scale and grain say
	Interval *Interval // of an interval: its parts
}

// Operator is the operator that a like is.
func (e Like) Operator() string {
	if e.Regex {
		return []string{"", "!"}[BoolIndex(e.Not)] + []string{"~", "~*"}[BoolIndex(e.CaseInsensitive)]
	}
	return []string{"", "NOT "}[BoolIndex(e.Not)] + []string{"LIKE", "ILIKE"}[BoolIndex(e.CaseInsensitive)]
}
