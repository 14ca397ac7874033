package domain

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// The expressions of this file are taken over released values and group keys only (bind.blockScope). They run after the noise, so
// errors in them say nothing about rows; but by then the query is paid for, so types are checked here.

// Arithmetic types x op y.
func Arithmetic(b *algebra.Binder, n *syntax.Binary, l, r algebra.Expr) (algebra.Expr, error) {
	want := r.Typ()
	if want == scalar.UnknownType {
		want = l.Typ()
	}
	if n.Op == syntax.Concat {
		want = catalog.Text
	}
	l, err := Coerce(b, n.L, l, want)
	if err != nil {
		return nil, err
	}
	if r, err = Coerce(b, n.R, r, want); err != nil {
		return nil, err
	}
	if err := arithmeticZone(b, n, l, r); err != nil {
		return nil, err
	}
	if n.Op == syntax.Concat {
		if scalar.FamilyOf(l.Typ()) != scalar.TextFamily && scalar.FamilyOf(r.Typ()) != scalar.TextFamily {
			return nil, b.NoOperator(n, n.Op, l, r)
		}
		return algebra.Binary{Op: n.Op, L: asText(l), R: asText(r), T: catalog.Text}, nil
	}
	if t, ok := timeArithmetic(n.Op, l.Typ(), r.Typ()); ok {
		return algebra.Binary{Op: n.Op, L: l, R: r, T: t}, nil
	}
	t := scalar.Wider(l.Typ(), r.Typ())
	if !l.Typ().IsNumber() || !r.Typ().IsNumber() || n.Op == syntax.Modulo && scalar.IsFloat(t) {
		return nil, b.NoOperator(n, n.Op, l, r)
	}
	return algebra.Binary{Op: n.Op, L: l, R: r, T: t}, nil
}

func asText(e algebra.Expr) algebra.Expr {
	if e.Typ() == catalog.Text {
		return e
	}
	return algebra.Cast{X: e, T: catalog.Text}
}

func noFunction(b *algebra.Binder, n *syntax.Call, x algebra.Expr) error {
	return b.Mismatch(n, "there is no function "+n.Name+"("+scalar.TypeName(x.Typ())+")", "")
}

// ComputedOf is an operation whose error-free form is an operand.
func ComputedOf(written algebra.Expr, o Operand) algebra.Computed {
	return algebra.Computed{Written: written, ErrorFree: o.X, Within: o.Range, Printed: o.Printed}
}

// Operand is an operand of an error-free form: an expression without errors, and what is proven of it.
type Operand struct {
	X algebra.Expr
	*scalar.Range
	algebra.Printed
}

// exact is what a constant shows.
func exact() algebra.Printed { return algebra.Printed{Kept: true, Stepped: true} }

// shownByAll is what values show of which each is one of several operands'.
func shownByAll(all []Operand) algebra.Printed {
	p := exact()
	for _, o := range all {
		p.Kept, p.Stepped = p.Kept && o.Kept, p.Stepped && o.Stepped
	}
	return p
}

// ErrorFree gives an operation that was just bound its error-free form. Above the aggregates it stays as it is.
func ErrorFree(b *algebra.Binder, s Scope, n syntax.Expr, e algebra.Expr) (algebra.Expr, error) {
	if s.Computes() {
		return e, nil
	}
	o, err := errorFreeOf(b, n, e)
	if err != nil {
		return nil, err
	}
	if err := tame(b, n, o); err != nil {
		return nil, err
	}
	return ComputedOf(e, o), nil
}

// tame refuses values that PostgreSQL's arithmetic does not hold, or whose value ranges say nothing any more.
func tame(b *algebra.Binder, n syntax.Expr, o Operand) error {
	switch {
	case o.Range == nil || o.Tame(o.X.Typ()):
		return nil
	case o.X.Typ() == scalar.IntervalType:
		return b.Unsupported(n, "an interval this long", "")
	default:
		them := fieldNames(o.X)
		if them == "" {
			them = "them"
		}
		return b.Unsupported(n, "a computation with numbers this large or this small", "make the numbers smaller: cast or round "+them+" first")
	}
}

// fieldNames are the fields that an expression reads, for words.
func fieldNames(e algebra.Expr) string {
	var names []string
	for _, f := range algebra.FreeFields(e) {
		if name := f.Text(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func errorFreeOf(b *algebra.Binder, n syntax.Expr, e algebra.Expr) (Operand, error) {
	switch e := e.(type) {
	case algebra.Negate:
		return safeBinary(b, n, syntax.Subtract, e.T, algebra.Constant{T: catalog.Int4, Text: "0"}, e.X)
	case algebra.Binary:
		return safeBinary(b, n, e.Op, e.T, e.L, e.R)
	case algebra.Choice:
		return safeChoice(b, n, e)
	case algebra.Cast:
		return safeCast(b, n, e)
	case algebra.Call:
		return safeFormOf(b, n, e)
	default:
		panic("sqlrewrite: operation without an error-free form")
	}
}

// OperandOf is an expression as an operand: columns of numbers and times clamped to their bounds, or to what their type can hold.
func OperandOf(b *algebra.Binder, n syntax.Expr, e algebra.Expr) (Operand, error) {
	switch e := e.(type) {
	case algebra.Computed:
		return Operand{X: e.ErrorFree, Range: e.Within, Printed: e.Printed}, nil
	case algebra.Constant:
		return constantOperand(b, n, e)
	case algebra.Bought:
		return clampedBought(e), nil
	case algebra.Cast: // to text, which binding adds
		return safeCast(b, n, e)
	case algebra.Column:
		switch t := e.Of.Type; {
		case t.IsNumber() || t.IsTime():
			return clampedColumn(e.Of), nil
		case t.IsText():
			return result(cut(e), nil), nil
		}
	}
	if t := e.Typ(); t.IsNumber() || t.IsTime() || t == scalar.IntervalType {
		return Operand{}, b.Unsupported(n, "a computation with this value here", "compute with it in an outer query")
	}
	return result(e, nil), nil // conditions, uuids
}

// result is what an operation gives: of its range nothing is shown but by proof.
func result(x algebra.Expr, s *scalar.Range) Operand { return Operand{X: x, Range: s} }

// constantOperand is exact: its value range is a point.
func constantOperand(b *algebra.Binder, n syntax.Expr, c algebra.Constant) (Operand, error) {
	switch {
	case c.T == scalar.IntervalType:
		return intervalConstant(c), nil
	case c.Null && (c.T.IsNumber() || c.T.IsTime()):
		return constantOf(c, scalar.Between(0, 0)), nil
	case c.Null:
	case c.T.IsNumber():
		v, ok := scalar.ParseNumber(c.Text)
		if !ok {
			return Operand{}, b.Unsupported(n, "a computation with NaN or Infinity", "")
		}
		if scalar.IsFloat(c.T) {
			v = scalar.AsFloat(v)
		}
		s := scalar.Exactly(v)
		s.Scale, _ = v.FloatPrec()
		if scalar.IsFloat(c.T) && v.Sign() != 0 {
			s.Grain = scalar.GrainOf(new(big.Rat).Abs(v))
		}
		o := constantOf(c, s)
		return o, tame(b, n, o)
	case c.T.IsTime():
		v, ok := scalar.Instant(c.Text)
		if !ok {
			return Operand{}, b.Unsupported(n, "a computation with this time", "")
		}
		return constantOf(c, scalar.Exactly(scalar.InUnit(v, c.T))), nil
	}
	return result(c, nil), nil
}

func constantOf(c algebra.Constant, s *scalar.Range) Operand {
	return Operand{X: c, Range: s, Printed: exact()}
}

// as is the operand in another type that holds all its values: integers in wider ones, in numeric and in floats.
func (o Operand) as(t catalog.Type) algebra.Expr {
	if o.X.Typ() == t {
		return o.X
	}
	if c, ok := o.X.(algebra.Constant); ok && t.IsNumber() && c.T.IsNumber() && (c.T.IsInteger() || !t.IsInteger()) {
		c.T = t
		return c
	}
	return algebra.Cast{X: o.X, T: t}
}

// mostFloat is the number of digits of the largest numeric that counts in double precision.
const mostFloat = 299

// In is the operand in another type.
func (o Operand) In(t catalog.Type) Operand {
	if o.X.Typ() == t {
		return o
	}
	if limit := new(big.Rat).SetInt(scalar.Power10(mostFloat)); scalar.IsFloat(t) && o.Reach().Cmp(limit) > 0 { // a column of more digits
		o = Clamped(o, new(big.Rat).Neg(limit), limit)
	}
	s := *o.Range
	switch from := o.X.Typ(); {
	case scalar.IsFloat(t) && from == catalog.Numeric:
		if s.Scale > 0 {
			s.Grain = scalar.GrainOf(new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(s.Scale)))
		}
		_, isConstant := o.X.(algebra.Constant)
		return Operand{X: o.toFloat(), Range: s.InFloats(), Printed: algebra.Printed{Kept: isConstant, Stepped: true}}
	case scalar.IsFloat(t):
		return Operand{X: o.as(t), Range: s.InFloats(), Printed: o.Printed}
	case t.IsInteger() && (!from.IsInteger() || scalar.IntegerBits(t) < scalar.IntegerBits(from)): // whole numbers
		o = o.guarded()
		return Operand{X: o.as(t), Range: &s, Printed: algebra.Printed{Kept: true, Stepped: true}}
	default:
		return Operand{X: o.as(t), Range: &s, Printed: o.Printed}
	}
}

// carried brings operands to one type: the carrier of t that holds all of them.
func carried(t catalog.Type, all ...Operand) (catalog.Type, []Operand) {
	switch {
	case scalar.IsFloat(t):
		t = catalog.Float8
	case t.IsInteger():
		for _, o := range all {
			t = scalar.Wider(t, o.X.Typ())
		}
	}
	out := make([]Operand, len(all))
	for i, o := range all {
		if out[i] = o; t.IsNumber() {
			out[i] = o.In(t)
		}
	}
	return t, out
}

// safeBinary is the error-free form of l op r.
func safeBinary(b *algebra.Binder, n syntax.Expr, op syntax.Operator, t catalog.Type, le, re algebra.Expr) (Operand, error) {
	l, err := OperandOf(b, n, le)
	if err != nil {
		return Operand{}, err
	}
	r, err := OperandOf(b, n, re)
	if err != nil {
		return Operand{}, err
	}
	switch {
	case op == syntax.Concat:
		return result(algebra.Binary{Op: op, L: l.X, R: r.X, T: catalog.Text}, nil), nil
	case t.IsInteger() && l.X.Typ().IsNumber() && r.X.Typ().IsNumber():
		return safeInteger(op, t, l, r), nil
	case t == catalog.Numeric:
		return safeNumeric(op, l.In(t), r.In(t)), nil
	case scalar.IsFloat(t):
		return safeFloat(op, l.In(catalog.Float8), r.In(catalog.Float8)), nil
	default:
		return safeTime(b, n, op, t, l, r)
	}
}

// safeInteger computes in the smallest integer type that holds operands and result, and in numeric where none does. Its values are
// those of whole numbers without limit: PostgreSQL's, where PostgreSQL raises no error.
func safeInteger(op syntax.Operator, t catalog.Type, l, r Operand) Operand {
	var s *scalar.Range
	switch op {
	case syntax.Add:
		s = l.Plus(r.Range)
	case syntax.Subtract:
		s = l.Plus(r.Negated())
	case syntax.Multiply:
		s = l.Times(r.Range)
	case syntax.Divide:
		least, _ := r.Least(scalar.One()) // a whole number that is not zero is at least 1
		s = l.Over(r.Range, least, false).Rounded(scalar.TowardZero, scalar.TowardZero)
	case syntax.Modulo:
		s = remainder(l.Range, r.Range, scalar.One())
	default:
		panic("sqlrewrite: arithmetic without an error-free form")
	}
	within := *s
	within.Scale, within.Grain = 0, 0
	carrier, both := carried(s.Carrier(t), l.guarded(), r.guarded())
	var x algebra.Expr
	switch {
	case op == syntax.Divide && carrier == catalog.Numeric: // numeric's / has digits after the point
		x = algebra.Call{Name: "div", Args: []algebra.Expr{both[0].X, nonZero(both[1].X)}, T: carrier}
	default:
		x = algebra.Binary{Op: op, L: both[0].X, R: both[1].X, T: carrier}
	}
	return result(x, &within).In(within.Carrier(t))
}

// remainder is the value range of l % r, which has the sign of l and is smaller than r by at least unit.
func remainder(l, r *scalar.Range, unit *big.Rat) *scalar.Range {
	top, open := l.Reach(), !l.Bounded()
	if limit := new(big.Rat).Sub(r.Reach(), unit); limit.Cmp(top) < 0 {
		top, open = limit, !r.Bounded()
	}
	if top.Sign() < 0 {
		top = new(big.Rat) // r is zero: NULL
	}
	s := &scalar.Range{Lo: new(big.Rat), Hi: new(big.Rat), Scale: max(l.Scale, r.Scale)}
	if l.Lo.Sign() < 0 {
		s.Lo, s.OpenLo = new(big.Rat).Neg(top), open
	}
	if l.Hi.Sign() > 0 {
		s.Hi, s.OpenHi = top, open
	}
	return s
}

// nonZero is a divisor with NULL in place of zero.
func nonZero(x algebra.Expr) algebra.Expr {
	return algebra.Call{Name: "nullif", Args: []algebra.Expr{x, algebra.Constant{T: x.Typ(), Text: "0"}}, T: x.Typ()}
}

// quotientDigits: PostgreSQL's quotients of numerics have at least 16 significant digits.
const quotientDigits = 15

// safeNumeric computes in numeric, which is exact but for quotients.
func safeNumeric(op syntax.Operator, l, r Operand) Operand {
	l, r = l.guarded(), r.guarded()
	var s *scalar.Range
	switch op {
	case syntax.Add:
		s = l.Plus(r.Range)
	case syntax.Subtract:
		s = l.Plus(r.Negated())
	case syntax.Multiply:
		s = l.Times(r.Range)
	case syntax.Divide:
		least, _ := r.Least(new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(r.Scale)))
		s = l.Over(r.Range, least, false).Widened(quotientDigits)
		// PostgreSQL keeps as many digits as 16 significant ones of the smallest quotient need, in groups of four.
		s.Scale = max(l.Scale, r.Scale, 24+l.Scale+len(scalar.Floor(r.Reach()).String()))
	case syntax.Modulo:
		s = remainder(l.Range, r.Range, new(big.Rat))
	default:
		panic("sqlrewrite: arithmetic without an error-free form")
	}
	return result(algebra.Binary{Op: op, L: l.X, R: r.X, T: catalog.Numeric}, s)
}

// safeFloat computes in double precision. The grain keeps results that are not zero away from underflow: sums and products of whole
// multiples are whole multiples, and rounding to 53 bits keeps them so.
func safeFloat(op syntax.Operator, l, r Operand) Operand {
	var s *scalar.Range
	switch op {
	case syntax.Add:
		l, r = l.guarded(), r.guarded()
		s = l.Plus(r.Range)
	case syntax.Subtract:
		l, r = l.guarded(), r.guarded()
		s = l.Plus(r.Negated())
	case syntax.Multiply:
		l, r = l.factor(), r.factor()
		s = l.Times(r.Range)
	case syntax.Divide:
		l, r = l.factor(), r.factor()
		least, open := r.Least(smallest(r.Grain))
		s = l.Over(r.Range, least, open)
		s.Grain = 0
		if top := r.Reach(); top.Sign() > 0 {
			from, _ := l.Least(smallest(l.Grain))
			s.Grain = scalar.GrainOf(new(big.Rat).Quo(from, top))
		}
	default:
		panic("sqlrewrite: arithmetic without an error-free form")
	}
	s.Scale = 0
	return result(algebra.Binary{Op: op, L: l.X, R: r.X, T: catalog.Float8}, s.InFloats())
}

// smallest is 2^-grain.
func smallest(grain int) *big.Rat {
	return new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(grain)))
}

// safeChoice is CASE: its results in one type.
func safeChoice(b *algebra.Binder, n syntax.Expr, e algebra.Choice) (Operand, error) {
	var results []algebra.Expr
	for _, a := range e.Arms {
		results = append(results, a.Result)
	}
	if e.Otherwise != nil {
		results = append(results, e.Otherwise)
	}
	operands := make([]Operand, len(results))
	for i, x := range results {
		o, err := OperandOf(b, n, x)
		if err != nil {
			return Operand{}, err
		}
		operands[i] = o
	}
	t, all, s, err := alternatives(b, n, e.T, operands)
	if err != nil {
		return Operand{}, err
	}
	total := algebra.Choice{T: t}
	for i, a := range e.Arms {
		total.Arms = append(total.Arms, algebra.Arm{Cond: a.Cond, Result: all[i].X})
	}
	if e.Otherwise != nil {
		total.Otherwise = all[len(all)-1].X
	}
	return Operand{X: total, Range: s, Printed: oneOfIntervals(shownByAll(all), all, s, func(steady []algebra.Expr) algebra.Expr {
		return with(total, steady)
	})}, nil
}

func with(e algebra.Choice, results []algebra.Expr) algebra.Expr {
	other := algebra.Choice{T: e.T}
	for i, a := range e.Arms {
		other.Arms = append(other.Arms, algebra.Arm{Cond: a.Cond, Result: results[i]})
	}
	if e.Otherwise != nil {
		other.Otherwise = results[len(results)-1]
	}
	return other
}

// alternatives are expressions of which one is the value: in one type, and within the hull of their value ranges.
func alternatives(b *algebra.Binder, n syntax.Expr, t catalog.Type, all []Operand) (catalog.Type, []Operand, *scalar.Range, error) {
	if t.IsTime() && slices.ContainsFunc(all, func(o Operand) bool { return o.X.Typ() != t }) {
		return t, nil, nil, b.Unsupported(n, "a choice between values of several time types", "cast them to one type")
	}
	t, all = carried(t, all...)
	var s *scalar.Range
	for _, o := range all {
		switch c, isConstant := o.X.(algebra.Constant); {
		case o.Range == nil || isConstant && c.Null:
		case s == nil:
			s = o.Range
		default:
			s = s.Hull(o.Range)
		}
	}
	if s == nil && (t.IsNumber() || t.IsTime()) {
		s = scalar.Between(0, 0) // always NULL
	}
	if s == nil && t == scalar.IntervalType {
		s = intervalConstant(algebra.Constant{T: t, Null: true}).Range
	}
	return t, all, s, nil
}

// safeCast casts. Numbers beyond what the target holds are clamped to it: there PostgreSQL would raise an error.
func safeCast(b *algebra.Binder, n syntax.Expr, e algebra.Cast) (Operand, error) {
	o, err := OperandOf(b, n, e.X)
	if err != nil {
		return Operand{}, err
	}
	from := e.X.Typ()
	switch {
	case e.T == catalog.Text && scalar.FamilyOf(from) == scalar.TextFamily:
		return result(collatedText(o.X), nil), nil
	case e.T == catalog.Text && (from.IsInteger() || from == catalog.Bool || from == catalog.UUID || from == catalog.Date):
		return result(algebra.Cast{X: o.X, T: catalog.Text}, nil), nil
	case e.T == catalog.Text && from == catalog.Numeric && isWhole(o): // it has the text of a whole number
		return result(algebra.Cast{X: toInteger(o, catalog.Int8).X, T: catalog.Text}, nil), nil
	case from == catalog.Bool && e.T.IsInteger():
		return result(algebra.Cast{X: algebra.Cast{X: o.X, T: catalog.Int4}, T: e.T}, scalar.Between(0, 1)), nil
	case from == e.T && len(e.Mods) == 0:
		return o, nil
	case from.IsNumber() && e.T.IsInteger():
		return toInteger(o, e.T), nil
	case from.IsNumber() && e.T == catalog.Numeric:
		return toNumeric(b, n, o, e.Mods)
	case from.IsNumber() && scalar.IsFloat(e.T):
		return o.In(catalog.Float8), nil
	case from.IsTime() && e.T.IsTime():
		return toTime(o, e.T), nil
	default:
		return Operand{}, b.Unsupported(n, "a cast of a row's "+scalar.TypeName(from)+" to "+scalar.TypeName(e.T), insteadOfCast(from, e.T))
	}
}

// insteadOfCast is the hint for a cast that is refused.
func insteadOfCast(from, to catalog.Type) string {
	switch {
	case to == catalog.Text && from.IsNumber():
		return "write x::integer::text: whole numbers alone are texts"
	case to == catalog.Text && from.IsTime():
		return "write to_char(x, 'YYYY-MM-DD HH24:MI:SS')"
	default:
		return "a value that is not of that form would fail"
	}
}

// isWhole reports whether a numeric has no digits after the point, and is one of bigint.
func isWhole(o Operand) bool {
	lowest, highest := scalar.IntegerRange(catalog.Int8)
	return o.Range != nil && o.Scale == 0 && o.Lo.Cmp(lowest) >= 0 && o.Hi.Cmp(highest) <= 0
}

func toInteger(o Operand, t catalog.Type) Operand {
	lowest, highest := scalar.IntegerRange(t)
	if scalar.IsFloat(o.X.Typ()) { // the ends of bigint are not floats: the nearest ones inside
		lowest, highest = scalar.AsFloat(lowest), scalar.AsFloat(highest)
		if t == catalog.Int8 {
			highest = new(big.Rat).Sub(highest, scalar.Number(1<<10))
		}
	}
	if o.Lo.Cmp(lowest) < 0 || o.Hi.Cmp(highest) > 0 {
		o = Clamped(o, lowest, highest)
	}
	// Rounding is monotone and keeps whole numbers.
	o = o.guarded()
	return Operand{X: o.as(t), Range: o.Rounded(scalar.Floor, scalar.Ceil), Printed: exact()}
}

func toNumeric(b *algebra.Binder, n syntax.Expr, o Operand, mods []int32) (Operand, error) {
	if scalar.IsFloat(o.X.Typ()) {
		s := o.Widened(quotientDigits - 1) // 15 significant digits
		s.Scale = len(scalar.Floor(new(big.Rat).Inv(smallest(o.Grain))).String()) + quotientDigits
		o = result(o.as(catalog.Numeric), s)
	}
	o = o.In(catalog.Numeric)
	if len(mods) == 0 {
		return o, nil
	}
	precision, digits := int(mods[0]), 0
	if len(mods) > 1 {
		digits = int(mods[1])
	}
	if len(mods) > 2 || precision < 1 || precision > 100 || digits < 0 || digits > precision {
		return Operand{}, b.Unsupported(n, "this precision of numeric", "write numeric(p, s) with s <= p <= 100")
	}
	unit := new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(digits))
	top := new(big.Rat).SetInt(scalar.Power10(precision - digits))
	top.Sub(top, unit)
	if o.Reach().Cmp(top) > 0 {
		o = Clamped(o, new(big.Rat).Neg(top), top)
	}
	o = o.guarded()
	s := o.ToGrid(digits)
	return Operand{X: algebra.Cast{X: o.X, T: catalog.Numeric, Mods: mods}, Range: s, Printed: algebra.Printed{Stepped: true}}, nil
}

// clampFunctions are the functions behind max and min of a type. They keep NULL, which GREATEST and LEAST do not; NaN sorts above
// every number, so that the smaller of NaN and a bound is the bound; and they name their operand once.
func clampFunctions(t catalog.Type) (smaller, larger string) {
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8:
		name := "int" + strconv.Itoa(int(scalar.IntegerBits(t)/8))
		return name + "smaller", name + "larger"
	case catalog.Float8:
		return "float8smaller", "float8larger"
	case catalog.Timestamp:
		return "timestamp_smaller", "timestamp_larger"
	case catalog.Timestamptz:
		return "timestamptz_smaller", "timestamptz_larger"
	case catalog.Numeric, catalog.Date:
		return string(t) + "_smaller", string(t) + "_larger"
	default:
		panic("sqlrewrite: type without a clamp")
	}
}

// Clamped keeps an operand within [lo, hi], values of its type.
func Clamped(o Operand, lo, hi *big.Rat) Operand {
	t := o.X.Typ()
	smaller, larger := clampFunctions(t)
	x := algebra.Call{Name: smaller, Args: []algebra.Expr{o.X, ValueOf(hi, t)}, T: t}
	x = algebra.Call{Name: larger, Args: []algebra.Expr{x, ValueOf(lo, t)}, T: t}
	return Operand{X: x, Range: o.Meet(lo, hi), Printed: algebra.Printed{Kept: true, Stepped: o.Stepped}}
}

// ValueOf is a number or time as a constant of type t.
func ValueOf(v *big.Rat, t catalog.Type) algebra.Constant {
	switch {
	case scalar.IsFloat(t):
		f, _ := v.Float64()
		return algebra.Constant{T: t, Text: scalar.FormatFloat(f, 64)}
	case t.IsTime():
		return algebra.Constant{T: t, Text: scalar.TimeOf(v, t)}
	default:
		return algebra.Constant{T: t, Text: scalar.DecimalText(v)}
	}
}

// The ends of what an undeclared column counts as in computations, and the digits after the point that count.
const (
	freeDigits  = 40  // numeric without fixed digits: 40 before the point,
	FreeScale   = 20  // 20 after it
	floatDigits = 100 // double precision: up to 10^100
	tinyBits    = 100 // floats nearer to zero than 2^-100 count as zero
)

// clampedColumn is a column of numbers or times as an operand. Beyond its bounds a value counts as the bound, NaN and Infinity as the upper
// one.
func clampedColumn(f *algebra.Field) Operand {
	o := Operand{X: algebra.Column{Of: f}, Range: &scalar.Range{OpenLo: true, OpenHi: true}, Printed: exact()}
	switch {
	case f.Type.IsInteger():
		o.Lo, o.Hi = scalar.IntegerRange(f.Type)
		if f.Bounds == nil {
			return o
		}
		lo, hi := new(big.Rat).SetInt(scalar.Ceil(f.Bounds.Lo)), new(big.Rat).SetInt(scalar.Floor(f.Bounds.Hi))
		return bounded(o, lo, hi)
	case f.Type == catalog.Numeric:
		return numericLeaf(o, f)
	case scalar.IsFloat(f.Type):
		return floatLeaf(o, f)
	default:
		return timeLeaf(o, f)
	}
}

// clampedBought is a value that was released before, as an operand: as a column with the bounds that it lies within.
func clampedBought(e algebra.Bought) Operand {
	if scalar.IsFloat(e.T) { // a decimal number has digits after the point that are bounded
		e.T = catalog.Numeric
	}
	f := &algebra.Field{Column: &catalog.Column{Type: e.T, TypMod: -1, NotNull: !e.MayBeNull,
		Bounds: &catalog.Bounds{Lo: e.Within.Lo, Hi: e.Within.Hi}}}
	o := clampedColumn(f)
	var bought func(algebra.Expr) algebra.Expr
	bought = func(x algebra.Expr) algebra.Expr {
		if algebra.PlainField(x) == f {
			return e
		}
		return algebra.Map(x, bought)
	}
	o.X = bought(o.X)
	return o
}

// bounded clamps a leaf to a policy's bounds.
func bounded(o Operand, lo, hi *big.Rat) Operand {
	o = Clamped(o, lo, hi)
	o.OpenLo, o.OpenHi = false, false
	return o
}

func numericLeaf(o Operand, f *algebra.Field) Operand {
	digits, fixed := algebra.Scale(o.X)
	top := scalar.Power10(freeDigits)
	if fixed {
		top = scalar.Power10(int(f.TypMod-4)>>16 - digits)
	}
	o.Lo, o.Hi = new(big.Rat).SetInt(new(big.Int).Neg(top)), new(big.Rat).SetInt(top)
	if f.Bounds != nil {
		o = bounded(o, f.Bounds.Lo, f.Bounds.Hi)
	} else {
		o = Clamped(o, o.Lo, o.Hi) // NaN, which every numeric column can hold
		o.OpenLo, o.OpenHi = true, true
	}
	if fixed {
		prec, _ := o.Lo.FloatPrec()
		other, _ := o.Hi.FloatPrec()
		o.Scale = max(digits, prec, other)
		return o
	}
	s := o.ToGrid(FreeScale)
	return Operand{X: algebra.Call{Name: "round", Args: []algebra.Expr{o.X, algebra.Constant{T: catalog.Int4, Text: strconv.Itoa(FreeScale)}},
		T: catalog.Numeric}, Range: s, Printed: exact()}
}

func floatLeaf(o Operand, f *algebra.Field) Operand {
	if f.Type == catalog.Float4 {
		o.X = algebra.Cast{X: o.X, T: catalog.Float8}
	}
	least := smallest(tinyBits)
	top := new(big.Rat).SetInt(scalar.Power10(floatDigits))
	lo, hi := new(big.Rat).Neg(top), top
	if f.Bounds != nil {
		lo, hi = awayFromZero(f.Bounds.Lo, least, -1), awayFromZero(f.Bounds.Hi, least, 1)
	}
	lo, hi = scalar.AsFloat(lo), scalar.AsFloat(hi)
	raw := o.X
	o.Lo, o.Hi = lo, hi
	o = Clamped(o, lo, hi)
	o.OpenLo, o.OpenHi = f.Bounds == nil, f.Bounds == nil
	o.Grain = tinyBits + 52
	if lo.Cmp(least) < 0 && hi.Cmp(new(big.Rat).Neg(least)) > 0 {
		tiny := algebra.Binary{Op: syntax.And, T: catalog.Bool,
			L: algebra.Binary{Op: syntax.Gt, L: raw, R: ValueOf(new(big.Rat).Neg(least), catalog.Float8), T: catalog.Bool},
			R: algebra.Binary{Op: syntax.Lt, L: raw, R: ValueOf(least, catalog.Float8), T: catalog.Bool}}
		o.X = algebra.Choice{T: catalog.Float8, Otherwise: o.X, Arms: []algebra.Arm{
			{Cond: tiny, Result: algebra.Constant{T: catalog.Float8, Text: "0"}}}}
		s := o.Hull(scalar.Between(0, 0))
		o.Range = s
	}
	return o
}

// awayFromZero widens a bound nearer to zero than least: to zero or to least, whichever lies outward (side -1: below).
func awayFromZero(v, least *big.Rat, side int) *big.Rat {
	if v.Sign() == 0 || new(big.Rat).Abs(v).Cmp(least) >= 0 {
		return v
	}
	if v.Sign() == side {
		return new(big.Rat).Mul(least, scalar.Number(int64(side)))
	}
	return new(big.Rat)
}

// maxText is how many characters of a column's text count in computations: no function takes longer on a longer text (A32).
const maxText = 200

// cut is a column of texts as an operand.
func cut(c algebra.Column) algebra.Expr {
	if n := int(c.Of.TypMod) - 4; c.Of.Type == catalog.Enum || n > 0 && n <= maxText {
		return collatedText(c)
	}
	return algebra.Call{Name: `"left"`, Args: []algebra.Expr{collatedText(c), algebra.Constant{T: catalog.Int4, Text: strconv.Itoa(maxText)}}, T: catalog.Text}
}

// collatedText is x as text under the collation of comparisons: a column's own may conflict with another's.
func collatedText(x algebra.Expr) algebra.Expr {
	if x.Typ() != catalog.Text && x.Typ() != catalog.Enum {
		x = algebra.Cast{X: x, T: catalog.Text}
	}
	return algebra.Collate{X: x}
}
