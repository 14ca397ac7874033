package sqlrewrite

import (
	"math/big"
	"strconv"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// Below the aggregates an error that a row's values raise is itself data (A29). So every operation there is bound twice: as it was written,
// and in a total form, which raises no error whatever the row holds. What makes a form total is proven from the extents of its operands,
// and its own extent is derived beside it; docs/sql.md, section 5, has the proofs. Nothing relies on conditions elsewhere in the
// query: PostgreSQL may evaluate in any order.

// computed is an operation over the columns of a row.
type computed struct {
	written expr    // as the analyst wrote it, for people and to tell whether two are the same
	total   expr    // what is printed; its type is the one that carries the value
	within  *extent // nil: neither a number nor a time
	printed
}

// computedOf is an operation whose total form is an operand.
func computedOf(written expr, o operand) computed {
	return computed{written: written, total: o.x, within: o.extent, printed: o.printed}
}

// writtenAs is an expression as the analyst wrote it.
func writtenAs(e expr) expr {
	if c, ok := e.(computed); ok {
		return c.written
	}
	return e
}

// carrierOf is the type in which PostgreSQL computes an expression.
func carrierOf(e expr) catalog.Type {
	if c, ok := e.(computed); ok {
		return c.total.typ()
	}
	return e.typ()
}

// operand is an operand of a total form: an expression without errors, and what is proven of it.
type operand struct {
	x expr
	*extent
	printed
}

// printed is what the text of a total form shows of its values by itself, without a proof about the operations in it: by its type, or by a clamp
// around it, or because it is one of several values that all show it.
type printed struct {
	kept     bool      // no value is outside the extent
	stepped  bool      // no value has more digits after the point, or is nearer to zero, than scale and grain say
	interval *interval // of an interval: its parts
}

// exact is what a constant shows.
func exact() printed { return printed{kept: true, stepped: true} }

// shownByAll is what values show of which each is one of several operands'.
func shownByAll(all []operand) printed {
	p := exact()
	for _, o := range all {
		p.kept, p.stepped = p.kept && o.kept, p.stepped && o.stepped
	}
	return p
}

// total gives an operation that was just bound its total form. Above the aggregates it stays as it is.
func (b *binder) total(s scope, n syntax.Expr, e expr) (expr, error) {
	if s.computes() {
		return e, nil
	}
	o, err := b.totalOf(n, e)
	if err != nil {
		return nil, err
	}
	if err := b.tame(n, o); err != nil {
		return nil, err
	}
	return computedOf(e, o), nil
}

// tame refuses values that PostgreSQL's arithmetic does not hold, or whose extents say nothing any more.
func (b *binder) tame(n syntax.Expr, o operand) error {
	switch {
	case o.extent == nil || o.tame(o.x.typ()):
		return nil
	case o.x.typ() == intervalType:
		return b.unsupported(n, "an interval this long", "")
	default:
		return b.unsupported(n, "a computation with numbers this large or this small", "make the numbers smaller: cast or round them first")
	}
}

func (b *binder) totalOf(n syntax.Expr, e expr) (operand, error) {
	switch e := e.(type) {
	case negate:
		return b.binaryTotal(n, syntax.Subtract, e.t, constant{t: catalog.Int4, text: "0"}, e.x)
	case binary:
		return b.binaryTotal(n, e.op, e.t, e.l, e.r)
	case choice:
		return b.choiceTotal(n, e)
	case cast:
		return b.castTotal(n, e)
	case call:
		return b.callTotal(n, e)
	default:
		panic("sqlrewrite: operation without a total form")
	}
}

// operandOf is an expression as an operand: columns of numbers and times clamped to their bounds, or to what their type can hold.
func (b *binder) operandOf(n syntax.Expr, e expr) (operand, error) {
	switch e := e.(type) {
	case computed:
		return operand{x: e.total, extent: e.within, printed: e.printed}, nil
	case constant:
		return b.constantOperand(n, e)
	case cast: // to text, which binding adds
		return b.castTotal(n, e)
	case column:
		switch t := e.of.Type; {
		case t.IsNumber() || t.IsTime():
			return clampedColumn(e.of), nil
		case t.IsText():
			return result(cut(e), nil), nil
		}
	}
	if t := e.typ(); t.IsNumber() || t.IsTime() || t == intervalType {
		return operand{}, b.unsupported(n, "a computation with this value here", "compute with it in an outer query")
	}
	return result(e, nil), nil // conditions, uuids
}

// result is what an operation gives: of its range nothing is shown but by proof.
func result(x expr, s *extent) operand { return operand{x: x, extent: s} }

// constantOperand is exact: its extent is a point.
func (b *binder) constantOperand(n syntax.Expr, c constant) (operand, error) {
	switch {
	case c.t == intervalType:
		return intervalConstant(c), nil
	case c.null && (c.t.IsNumber() || c.t.IsTime()):
		return constantOf(c, between(0, 0)), nil
	case c.null:
	case c.t.IsNumber():
		v, ok := parseNumber(c.text)
		if !ok {
			return operand{}, b.unsupported(n, "a computation with NaN or Infinity", "")
		}
		s := exactly(v)
		s.scale, _ = v.FloatPrec()
		if isFloat(c.t) && v.Sign() != 0 {
			s.grain = grainOf(new(big.Rat).Abs(v))
		}
		o := constantOf(c, s)
		return o, b.tame(n, o)
	case c.t.IsTime():
		v, ok := instant(c.text)
		if !ok {
			return operand{}, b.unsupported(n, "a computation with this time", "")
		}
		return constantOf(c, exactly(inUnit(v, c.t))), nil
	}
	return result(c, nil), nil
}

// constantOf is a constant as an operand.
func constantOf(c constant, s *extent) operand { return operand{x: c, extent: s, printed: exact()} }

// as is the operand in another type that holds all its values: integers in wider ones, in numeric and in floats.
func (o operand) as(t catalog.Type) expr {
	if o.x.typ() == t {
		return o.x
	}
	if c, ok := o.x.(constant); ok && t.IsNumber() && c.t.IsNumber() && (c.t.IsInteger() || !t.IsInteger()) {
		c.t = t
		return c
	}
	return cast{x: o.x, t: t}
}

// mostFloat is the number of digits of the largest numeric that counts in double precision.
const mostFloat = 299

// in is the operand in another type.
func (o operand) in(t catalog.Type) operand {
	if o.x.typ() == t {
		return o
	}
	if limit := new(big.Rat).SetInt(power10(mostFloat)); isFloat(t) && o.reach().Cmp(limit) > 0 { // a column of more digits
		o = clamped(o, new(big.Rat).Neg(limit), limit)
	}
	s := *o.extent
	switch from := o.x.typ(); {
	case isFloat(t) && from == catalog.Numeric:
		if s.scale > 0 {
			s.grain = grainOf(new(big.Rat).SetFrac(big.NewInt(1), power10(s.scale)))
		}
		_, isConstant := o.x.(constant)
		return operand{x: o.toFloat(), extent: s.inFloats(), printed: printed{kept: isConstant, stepped: true}}
	case isFloat(t):
		return operand{x: o.as(t), extent: s.inFloats(), printed: o.printed}
	case t.IsInteger() && (!from.IsInteger() || integerBits(t) < integerBits(from)): // whole numbers
		o = o.guarded()
		return operand{x: o.as(t), extent: &s, printed: printed{kept: true, stepped: true}}
	default:
		return operand{x: o.as(t), extent: &s, printed: o.printed}
	}
}

// carried brings operands to one type: the carrier of t that holds all of them.
func carried(t catalog.Type, all ...operand) (catalog.Type, []operand) {
	switch {
	case isFloat(t):
		t = catalog.Float8
	case t.IsInteger():
		for _, o := range all {
			t = wider(t, o.x.typ())
		}
	}
	out := make([]operand, len(all))
	for i, o := range all {
		if out[i] = o; t.IsNumber() {
			out[i] = o.in(t)
		}
	}
	return t, out
}

// binaryTotal is the total form of l op r.
func (b *binder) binaryTotal(n syntax.Expr, op syntax.Operator, t catalog.Type, le, re expr) (operand, error) {
	l, err := b.operandOf(n, le)
	if err != nil {
		return operand{}, err
	}
	r, err := b.operandOf(n, re)
	if err != nil {
		return operand{}, err
	}
	switch {
	case op == syntax.Concat:
		return result(binary{op: op, l: l.x, r: r.x, t: catalog.Text}, nil), nil
	case t.IsInteger() && l.x.typ().IsNumber() && r.x.typ().IsNumber():
		return integerTotal(op, t, l, r), nil
	case t == catalog.Numeric:
		return numericTotal(op, l.in(t), r.in(t)), nil
	case isFloat(t):
		return floatTotal(op, l.in(catalog.Float8), r.in(catalog.Float8)), nil
	default:
		return b.timeTotal(n, op, t, l, r)
	}
}

// integerTotal computes in the smallest integer type that holds operands and result, and in numeric where none does. Its values are
// those of whole numbers without limit: PostgreSQL's, where PostgreSQL raises no error.
func integerTotal(op syntax.Operator, t catalog.Type, l, r operand) operand {
	var s *extent
	switch op {
	case syntax.Add:
		s = l.plus(r.extent)
	case syntax.Subtract:
		s = l.plus(r.negated())
	case syntax.Multiply:
		s = l.times(r.extent)
	case syntax.Divide:
		least, _ := r.least(one()) // a whole number that is not zero is at least 1
		s = l.over(r.extent, least, false).rounded(towardZero, towardZero)
	case syntax.Modulo:
		s = remainder(l.extent, r.extent, one())
	default:
		panic("sqlrewrite: arithmetic without a total form")
	}
	within := *s
	within.scale, within.grain = 0, 0
	carrier, both := carried(s.carrier(t), l.guarded(), r.guarded())
	var x expr
	switch {
	case op == syntax.Divide && carrier == catalog.Numeric: // numeric's / has digits after the point
		x = call{name: "div", args: []expr{both[0].x, nonZero(both[1].x)}, t: carrier}
	default:
		x = binary{op: op, l: both[0].x, r: both[1].x, t: carrier}
	}
	return result(x, &within).in(within.carrier(t))
}

// remainder is the extent of l % r, which has the sign of l and is smaller than r by at least unit.
func remainder(l, r *extent, unit *big.Rat) *extent {
	top, open := l.reach(), !l.bounded()
	if limit := new(big.Rat).Sub(r.reach(), unit); limit.Cmp(top) < 0 {
		top, open = limit, !r.bounded()
	}
	if top.Sign() < 0 {
		top = new(big.Rat) // r is zero: NULL
	}
	s := &extent{lo: new(big.Rat), hi: new(big.Rat), scale: max(l.scale, r.scale)}
	if l.lo.Sign() < 0 {
		s.lo, s.openLo = new(big.Rat).Neg(top), open
	}
	if l.hi.Sign() > 0 {
		s.hi, s.openHi = top, open
	}
	return s
}

// nonZero is a divisor with NULL in the place of zero.
func nonZero(x expr) expr {
	return call{name: "nullif", args: []expr{x, constant{t: x.typ(), text: "0"}}, t: x.typ()}
}

// quotientDigits: PostgreSQL's quotients of numerics have at least 16 significant digits.
const quotientDigits = 15

// numericTotal computes in numeric, which is exact but for quotients.
func numericTotal(op syntax.Operator, l, r operand) operand {
	l, r = l.guarded(), r.guarded()
	var s *extent
	switch op {
	case syntax.Add:
		s = l.plus(r.extent)
	case syntax.Subtract:
		s = l.plus(r.negated())
	case syntax.Multiply:
		s = l.times(r.extent)
	case syntax.Divide:
		least, _ := r.least(new(big.Rat).SetFrac(big.NewInt(1), power10(r.scale)))
		s = l.over(r.extent, least, false).widened(quotientDigits)
		// PostgreSQL keeps as many digits as 16 significant ones of the smallest quotient need, in groups of four.
		s.scale = max(l.scale, r.scale, 24+l.scale+len(floor(r.reach()).String()))
	case syntax.Modulo:
		s = remainder(l.extent, r.extent, new(big.Rat))
	default:
		panic("sqlrewrite: arithmetic without a total form")
	}
	return result(binary{op: op, l: l.x, r: r.x, t: catalog.Numeric}, s)
}

// floatTotal computes in double precision. The grain keeps results that are not zero away from underflow: sums and products of whole
// multiples are whole multiples, and rounding to 53 bits keeps them so.
func floatTotal(op syntax.Operator, l, r operand) operand {
	var s *extent
	switch op {
	case syntax.Add:
		l, r = l.guarded(), r.guarded()
		s = l.plus(r.extent)
	case syntax.Subtract:
		l, r = l.guarded(), r.guarded()
		s = l.plus(r.negated())
	case syntax.Multiply:
		l, r = l.factor(), r.factor()
		s = l.times(r.extent)
	case syntax.Divide:
		l, r = l.factor(), r.factor()
		least, open := r.least(smallest(r.grain))
		s = l.over(r.extent, least, open)
		s.grain = 0
		if top := r.reach(); top.Sign() > 0 {
			from, _ := l.least(smallest(l.grain))
			s.grain = grainOf(new(big.Rat).Quo(from, top))
		}
	default:
		panic("sqlrewrite: arithmetic without a total form")
	}
	s.scale = 0
	return result(binary{op: op, l: l.x, r: r.x, t: catalog.Float8}, s.inFloats())
}

// smallest is 2^-grain.
func smallest(grain int) *big.Rat {
	return new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(grain)))
}

// choiceTotal is CASE: its results in one type.
func (b *binder) choiceTotal(n syntax.Expr, e choice) (operand, error) {
	var results []expr
	for _, a := range e.arms {
		results = append(results, a.result)
	}
	if e.otherwise != nil {
		results = append(results, e.otherwise)
	}
	t, all, s, err := b.alternatives(n, e.t, results)
	if err != nil {
		return operand{}, err
	}
	total := choice{t: t}
	for i, a := range e.arms {
		total.arms = append(total.arms, arm{cond: a.cond, result: all[i].x})
	}
	if e.otherwise != nil {
		total.otherwise = all[len(all)-1].x
	}
	return operand{x: total, extent: s, printed: oneOfIntervals(shownByAll(all), all, s, func(steady []expr) expr {
		return total.with(steady)
	})}, nil
}

// with is the choice with other results.
func (e choice) with(results []expr) expr {
	other := choice{t: e.t}
	for i, a := range e.arms {
		other.arms = append(other.arms, arm{cond: a.cond, result: results[i]})
	}
	if e.otherwise != nil {
		other.otherwise = results[len(results)-1]
	}
	return other
}

// alternatives are expressions of which one is the value: in one type, and within the hull of their extents.
func (b *binder) alternatives(n syntax.Expr, t catalog.Type, exprs []expr) (catalog.Type, []operand, *extent, error) {
	all := make([]operand, len(exprs))
	for i, e := range exprs {
		o, err := b.operandOf(n, e)
		if err != nil {
			return t, nil, nil, err
		}
		if t.IsTime() && o.x.typ() != t {
			return t, nil, nil, b.unsupported(n, "a choice between values of several time types", "cast them to one type")
		}
		all[i] = o
	}
	t, all = carried(t, all...)
	var s *extent
	for _, o := range all {
		switch c, isConstant := o.x.(constant); {
		case o.extent == nil || isConstant && c.null:
		case s == nil:
			s = o.extent
		default:
			s = s.hull(o.extent)
		}
	}
	if s == nil && (t.IsNumber() || t.IsTime()) {
		s = between(0, 0) // always NULL
	}
	if s == nil && t == intervalType {
		s = intervalConstant(constant{t: t, null: true}).extent
	}
	return t, all, s, nil
}

// castTotal casts. Numbers beyond what the target holds are clamped to it: there PostgreSQL would raise an error.
func (b *binder) castTotal(n syntax.Expr, e cast) (operand, error) {
	o, err := b.operandOf(n, e.x)
	if err != nil {
		return operand{}, err
	}
	from := e.x.typ()
	switch {
	case e.t == catalog.Text && familyOf(from) == textFamily:
		return result(collatedText(o.x), nil), nil
	case e.t == catalog.Text && (from.IsInteger() || from == catalog.Bool || from == catalog.UUID || from == catalog.Date):
		return result(cast{x: o.x, t: catalog.Text}, nil), nil
	case from == catalog.Bool && e.t.IsInteger():
		return result(cast{x: cast{x: o.x, t: catalog.Int4}, t: e.t}, between(0, 1)), nil
	case from == e.t && len(e.mods) == 0:
		return o, nil
	case from.IsNumber() && e.t.IsInteger():
		return toInteger(o, e.t), nil
	case from.IsNumber() && e.t == catalog.Numeric:
		return b.toNumeric(n, o, e.mods)
	case from.IsNumber() && isFloat(e.t):
		return o.in(catalog.Float8), nil
	case from.IsTime() && e.t.IsTime():
		return toTime(o, e.t), nil
	default:
		return operand{}, b.unsupported(n, "a cast of a row's "+typeName(from)+" to "+typeName(e.t), "a value that is not of that form would fail")
	}
}

func toInteger(o operand, t catalog.Type) operand {
	lowest, highest := integerRange(t)
	if isFloat(o.x.typ()) { // the ends of bigint are not floats: the nearest ones inside
		lowest, highest = asFloat(lowest), asFloat(highest)
		if t == catalog.Int8 {
			highest = new(big.Rat).Sub(highest, number(1<<10))
		}
	}
	if o.lo.Cmp(lowest) < 0 || o.hi.Cmp(highest) > 0 {
		o = clamped(o, lowest, highest)
	}
	// Rounding is monotone and keeps whole numbers.
	o = o.guarded()
	return operand{x: o.as(t), extent: o.rounded(floor, ceil), printed: exact()}
}

func (b *binder) toNumeric(n syntax.Expr, o operand, mods []int32) (operand, error) {
	if isFloat(o.x.typ()) {
		s := o.widened(quotientDigits - 1) // 15 significant digits
		s.scale = len(floor(new(big.Rat).Inv(smallest(o.grain))).String()) + quotientDigits
		o = result(o.as(catalog.Numeric), s)
	}
	o = o.in(catalog.Numeric)
	if len(mods) == 0 {
		return o, nil
	}
	precision, digits := int(mods[0]), 0
	if len(mods) > 1 {
		digits = int(mods[1])
	}
	if len(mods) > 2 || precision < 1 || precision > 100 || digits < 0 || digits > precision {
		return operand{}, b.unsupported(n, "this precision of numeric", "write numeric(p, s) with s <= p <= 100")
	}
	unit := new(big.Rat).SetFrac(big.NewInt(1), power10(digits))
	top := new(big.Rat).SetInt(power10(precision - digits))
	top.Sub(top, unit)
	if o.reach().Cmp(top) > 0 {
		o = clamped(o, new(big.Rat).Neg(top), top)
	}
	o = o.guarded()
	s := o.toGrid(digits)
	return operand{x: cast{x: o.x, t: catalog.Numeric, mods: mods}, extent: s, printed: printed{stepped: true}}, nil
}

// toGrid is the extent after rounding to digits after the point.
func (s *extent) toGrid(digits int) *extent {
	factor := new(big.Rat).SetInt(power10(max(digits, 0)))
	if digits < 0 {
		factor = new(big.Rat).SetFrac(big.NewInt(1), power10(-digits))
	}
	r := *s
	r.lo = new(big.Rat).SetInt(floor(new(big.Rat).Mul(s.lo, factor)))
	r.hi = new(big.Rat).SetInt(ceil(new(big.Rat).Mul(s.hi, factor)))
	r.lo.Quo(r.lo, factor)
	r.hi.Quo(r.hi, factor)
	r.scale, r.grain = max(digits, 0), 0
	return &r
}

// clampFunctions are the functions behind max and min of a type. They keep NULL, which GREATEST and LEAST do not; NaN sorts above
// every number, so that the smaller of NaN and a bound is the bound; and they name their operand once.
func clampFunctions(t catalog.Type) (smaller, larger string) {
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8:
		name := "int" + strconv.Itoa(int(integerBits(t)/8))
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

// clamped keeps an operand within [lo, hi], values of its type.
func clamped(o operand, lo, hi *big.Rat) operand {
	t := o.x.typ()
	smaller, larger := clampFunctions(t)
	x := call{name: smaller, args: []expr{o.x, valueOf(hi, t)}, t: t}
	x = call{name: larger, args: []expr{x, valueOf(lo, t)}, t: t}
	return operand{x: x, extent: o.meet(lo, hi), printed: printed{kept: true, stepped: o.stepped}}
}

// valueOf is a number or time as a constant of type t.
func valueOf(v *big.Rat, t catalog.Type) constant {
	switch {
	case isFloat(t):
		f, _ := v.Float64()
		return constant{t: t, text: formatFloat(f, 64)}
	case t.IsTime():
		return constant{t: t, text: timeOf(v, t)}
	default:
		return constant{t: t, text: decimalText(v)}
	}
}

// The ends of what an undeclared column counts as in computations, and the digits after the point that count.
const (
	freeDigits  = 40  // numeric without fixed digits: 40 before the point,
	freeScale   = 20  // 20 after it
	floatDigits = 100 // double precision: up to 10^100
	tinyBits    = 100 // floats nearer to zero than 2^-100 count as zero
)

// clampedColumn is a column of numbers or times as an operand. Beyond its bounds a value counts as the bound, NaN and Infinity as the upper one.
func clampedColumn(f *field) operand {
	o := operand{x: column{of: f}, extent: &extent{openLo: true, openHi: true}, printed: exact()}
	switch {
	case f.Type.IsInteger():
		o.lo, o.hi = integerRange(f.Type)
		if f.Bounds == nil {
			return o
		}
		lo, hi := new(big.Rat).SetInt(ceil(f.Bounds.Lo)), new(big.Rat).SetInt(floor(f.Bounds.Hi))
		return bounded(o, lo, hi)
	case f.Type == catalog.Numeric:
		return numericLeaf(o, f)
	case isFloat(f.Type):
		return floatLeaf(o, f)
	default:
		return timeLeaf(o, f)
	}
}

// bounded clamps a leaf to a policy's bounds.
func bounded(o operand, lo, hi *big.Rat) operand {
	o = clamped(o, lo, hi)
	o.openLo, o.openHi = false, false
	return o
}

func numericLeaf(o operand, f *field) operand {
	digits, fixed := scale(o.x)
	top := power10(freeDigits)
	if fixed {
		top = power10(int(f.TypMod-4)>>16 - digits)
	}
	o.lo, o.hi = new(big.Rat).SetInt(new(big.Int).Neg(top)), new(big.Rat).SetInt(top)
	if f.Bounds != nil {
		o = bounded(o, f.Bounds.Lo, f.Bounds.Hi)
	} else {
		o = clamped(o, o.lo, o.hi) // NaN, which every numeric column can hold
		o.openLo, o.openHi = true, true
	}
	if fixed {
		prec, _ := o.lo.FloatPrec()
		other, _ := o.hi.FloatPrec()
		o.scale = max(digits, prec, other)
		return o
	}
	s := o.toGrid(freeScale)
	return operand{x: call{name: "round", args: []expr{o.x, constant{t: catalog.Int4, text: strconv.Itoa(freeScale)}}, t: catalog.Numeric}, extent: s, printed: exact()}
}

func floatLeaf(o operand, f *field) operand {
	if f.Type == catalog.Float4 {
		o.x = cast{x: o.x, t: catalog.Float8}
	}
	least := smallest(tinyBits)
	top := new(big.Rat).SetInt(power10(floatDigits))
	lo, hi := new(big.Rat).Neg(top), top
	if f.Bounds != nil {
		lo, hi = awayFromZero(f.Bounds.Lo, least, -1), awayFromZero(f.Bounds.Hi, least, 1)
	}
	lo, hi = asFloat(lo), asFloat(hi)
	raw := o.x
	o.lo, o.hi = lo, hi
	o = clamped(o, lo, hi)
	o.openLo, o.openHi = f.Bounds == nil, f.Bounds == nil
	o.grain = tinyBits + 52
	if lo.Cmp(least) < 0 && hi.Cmp(new(big.Rat).Neg(least)) > 0 {
		tiny := binary{op: syntax.And, t: catalog.Bool,
			l: binary{op: syntax.Gt, l: raw, r: valueOf(new(big.Rat).Neg(least), catalog.Float8), t: catalog.Bool},
			r: binary{op: syntax.Lt, l: raw, r: valueOf(least, catalog.Float8), t: catalog.Bool}}
		o.x = choice{t: catalog.Float8, otherwise: o.x, arms: []arm{{cond: tiny, result: constant{t: catalog.Float8, text: "0"}}}}
		s := o.hull(between(0, 0))
		o.extent = s
	}
	return o
}

// awayFromZero widens a bound nearer to zero than least: to zero or to least, whichever lies outward (side -1: below).
func awayFromZero(v, least *big.Rat, side int) *big.Rat {
	if v.Sign() == 0 || new(big.Rat).Abs(v).Cmp(least) >= 0 {
		return v
	}
	if v.Sign() == side {
		return new(big.Rat).Mul(least, number(int64(side)))
	}
	return new(big.Rat)
}

// maxText is how many characters of a column's text count in computations: no function takes longer on a longer text (A32).
const maxText = 200

// cut is a column of texts as an operand.
func cut(c column) expr {
	if n := int(c.of.TypMod) - 4; c.of.Type == catalog.Enum || n > 0 && n <= maxText {
		return collatedText(c)
	}
	return call{name: `"left"`, args: []expr{collatedText(c), constant{t: catalog.Int4, text: strconv.Itoa(maxText)}}, t: catalog.Text}
}

// collatedText is x as text under the collation of comparisons: a column's own may conflict with another's.
func collatedText(x expr) expr {
	if x.typ() != catalog.Text && x.typ() != catalog.Enum {
		x = cast{x: x, t: catalog.Text}
	}
	return collate{x}
}
