package sqlrewrite

import (
	"math"
	"math/big"
	"strconv"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// rowCall binds a function over the columns of a row: its types, then its total form.
func (b *binder) rowCall(s scope, n *syntax.Call) (expr, error) {
	if n.Star || n.Distinct || n.Filter != nil || len(n.OrderBy)+len(n.Within) > 0 {
		return nil, b.mismatch(n, n.Name+" is not an aggregate", "")
	}
	args := make([]expr, len(n.Args))
	for i, arg := range n.Args {
		e, err := b.expression(s, arg)
		if err != nil {
			return nil, err
		}
		args[i] = e
	}
	e, err := b.typedCall(n, args)
	if err != nil {
		return nil, err
	}
	return b.total(s, n, e)
}

// typedCall gives a call the types that PostgreSQL gives it.
func (b *binder) typedCall(n *syntax.Call, args []expr) (expr, error) {
	switch n.Name {
	case "coalesce", "greatest", "least":
		if len(args) == 0 {
			return nil, b.arity(n, "at least one argument")
		}
		args, t, err := b.common(n.Args, args)
		return call{name: n.Name, args: args, t: t}, err
	case "nullif":
		if len(args) != 2 {
			return nil, b.arity(n, "two arguments")
		}
		l, r, err := b.unify(n, syntax.Eq, n.Args[0], n.Args[1], args[0], args[1])
		if err == nil && isFloat(r.typ()) && !isFloat(l.typ()) {
			err = b.unsupported(n, "nullif of a "+typeName(l.typ())+" and a "+typeName(r.typ()), "cast the first to double precision")
		}
		if err != nil {
			return nil, err
		}
		return call{name: n.Name, args: []expr{l, r}, t: nullifType(l.typ(), r.typ())}, nil
	case "abs", "sign", "round", "trunc", "floor", "ceil", "ceiling", "sqrt", "ln", "log", "log10", "exp", "power", "pow", "mod", "div", "width_bucket":
		return b.mathCall(n, args)
	case "extract", "date_part", "date_trunc":
		return b.timeCall(n, args)
	default:
		return b.textCall(n, args)
	}
}

// mathCall types a function of numbers.
func (b *binder) mathCall(n *syntax.Call, args []expr) (expr, error) {
	if err := b.arguments(n, args, mathArity(n.Name)); err != nil {
		return nil, err
	}
	t := catalog.Int2
	for i, arg := range args {
		x, err := b.coerce(n.Args[i], arg, catalog.Numeric)
		if err != nil {
			return nil, err
		}
		if !x.typ().IsNumber() {
			return nil, b.noFunction(n, x)
		}
		args[i] = x
		if i == 0 || n.Name != "round" && n.Name != "trunc" {
			t = wider(t, x.typ())
		}
	}
	inFloat := t
	if t != catalog.Numeric {
		inFloat = catalog.Float8 // of integers too
	}
	switch n.Name {
	case "mod":
		return b.arithmetic(&syntax.Binary{Pos: n.Pos, Op: syntax.Modulo, L: n.Args[0], R: n.Args[1]}, args[0], args[1])
	case "abs":
		return call{name: n.Name, args: args, t: t}, nil
	case "div":
		if isFloat(t) {
			return nil, b.noFunction(n, args[0])
		}
		return call{name: n.Name, args: args, t: catalog.Numeric}, nil
	case "width_bucket":
		return b.bucketCall(n, args, inFloat)
	case "power", "pow":
		if k, ok := wholeConstant(args[1]); !ok || k < -maxPower || k > maxPower {
			return nil, b.unsupported(n.Args[1], "a power that is not a whole number from -10 to 10", "multiply the value with itself, or use sqrt")
		}
		return call{name: "power", args: args, t: inFloat}, nil
	}
	if len(args) == 2 {
		if places, ok := wholeConstant(args[1]); !ok || places < -maxPlaces || places > maxPlaces {
			return nil, b.unsupported(n.Args[1], "a number of digits that is not a constant from -40 to 40", "")
		}
		if isFloat(t) {
			return nil, b.mismatch(n, "there is no function "+n.Name+"(double precision, integer)", "cast the value to numeric first")
		}
		return call{name: n.Name, args: args, t: catalog.Numeric}, nil
	}
	return call{name: n.Name, args: args, t: inFloat}, nil
}

// arity is how many arguments a function takes.
type arity struct {
	least, most int
	text        string
}

func mathArity(name string) arity {
	switch name {
	case "round", "trunc":
		return arity{1, 2, "one or two arguments"}
	case "power", "pow", "mod", "div":
		return arity{2, 2, "two arguments"}
	case "width_bucket":
		return arity{4, 4, "four arguments: value, low, high, number of buckets"}
	default:
		return arity{1, 1, "one argument"}
	}
}

func (b *binder) arguments(n *syntax.Call, args []expr, want arity) error {
	if len(args) < want.least || len(args) > want.most {
		return b.arity(n, want.text)
	}
	return nil
}

const (
	maxPower   = 10
	maxPlaces  = 40
	maxBuckets = maxKeys
)

// wholeConstant is the value of an integer constant.
func wholeConstant(e expr) (int, bool) {
	c, ok := e.(constant)
	if !ok || c.null || !c.t.IsInteger() {
		return 0, false
	}
	v, err := strconv.Atoi(c.text)
	return v, err == nil
}

// bucketCall types width_bucket, whose limits must be constants: PostgreSQL raises an error for equal ones and for no buckets.
func (b *binder) bucketCall(n *syntax.Call, args []expr, t catalog.Type) (expr, error) {
	var limits []*big.Rat
	for i := range 2 {
		c, ok := args[i+1].(constant)
		v, number := parseNumber(c.text)
		if !ok || !number {
			return nil, b.unsupported(n.Args[i+1], "a limit of width_bucket that is not a constant", "")
		}
		limits = append(limits, v)
	}
	if limits[0].Cmp(limits[1]) == 0 {
		return nil, b.mismatch(n.Args[2], "the limits of width_bucket are equal", "")
	}
	if count, ok := wholeConstant(args[3]); !ok || count < 1 || count > maxBuckets {
		return nil, b.unsupported(n.Args[3], "a number of buckets that is not a constant from 1 to 100000", "")
	}
	return call{name: n.Name, args: args, t: catalog.Int4}, nil
}

// callTotal is the total form of a function.
func (b *binder) callTotal(n syntax.Expr, e call) (operand, error) {
	switch e.name {
	case "coalesce", "greatest", "least":
		return b.oneOf(n, e)
	case "extract", "date_part", "date_trunc":
		return b.timeCallTotal(n, e)
	}
	args := make([]operand, len(e.args))
	for i, arg := range e.args {
		o, err := b.operandOf(n, arg)
		if err != nil {
			return operand{}, err
		}
		args[i] = o
	}
	if e.name == "nullif" {
		return nullifTotal(e, args[0], args[1]), nil
	}
	if e.args[0].typ().IsNumber() {
		return b.mathTotal(n, e, args)
	}
	return textTotal(e, args), nil
}

// nullifType is the type of nullif: the first argument's, in the form in which the two are compared.
func nullifType(l, r catalog.Type) catalog.Type {
	if l.IsInteger() && r == catalog.Numeric {
		return r
	}
	return l
}

func nullifTotal(e call, l, r operand) operand {
	if familyOf(e.t) == numberFamily {
		_, both := carried(wider(e.t, r.x.typ()), l, r)
		if both[0].x.typ() == l.x.typ() {
			r = both[1]
		}
	}
	x := call{name: "nullif", args: []expr{l.x, r.x}, t: nullifType(l.x.typ(), r.x.typ())}
	return operand{x: x, extent: l.extent, printed: oneOfIntervals(l.printed, []operand{l}, l.extent, func(steady []expr) expr {
		return call{name: x.name, args: []expr{steady[0], r.x}, t: x.t}
	})}
}

// oneOf is coalesce, greatest and least, which skip NULLs.
func (b *binder) oneOf(n syntax.Expr, e call) (operand, error) {
	t, all, s, err := b.alternatives(n, e.t, e.args)
	if err != nil {
		return operand{}, err
	}
	x := call{name: e.name, t: t}
	narrowed := false
	for _, o := range all {
		x.args = append(x.args, o.x)
		c, isConstant := o.x.(constant)
		if s == nil || !isConstant || c.null || e.name == "coalesce" {
			continue
		}
		// A constant is never NULL: the greatest is at least that, the least at most.
		cut := *s
		switch {
		case e.name == "greatest" && cut.lo.Cmp(o.lo) <= 0:
			cut.lo, cut.openLo = o.lo, false
			if cut.hi.Cmp(cut.lo) < 0 {
				cut.hi = cut.lo
			}
		case e.name == "least" && cut.hi.Cmp(o.hi) >= 0:
			cut.hi, cut.openHi = o.hi, false
			if cut.lo.Cmp(cut.hi) > 0 {
				cut.lo = cut.hi
			}
		}
		s = &cut
		narrowed = true
	}
	shown := shownByAll(all)
	shown.kept = shown.kept && !narrowed
	return operand{x: x, extent: s, printed: oneOfIntervals(shown, all, s, func(steady []expr) expr {
		return call{name: x.name, args: steady, t: t}
	})}, nil
}

// mathTotal is the total form of a function of numbers.
func (b *binder) mathTotal(n syntax.Expr, e call, args []operand) (operand, error) {
	x := args[0]
	switch e.name {
	case "abs":
		return absolute(e.t, x), nil
	case "sign":
		x = x.in(e.t)
		return result(call{name: "sign", args: []expr{x.x}, t: e.t}, between(-1, 1)), nil
	case "div":
		l, r := args[0].in(catalog.Numeric).guarded(), args[1].in(catalog.Numeric).guarded()
		least, _ := r.least(new(big.Rat).SetFrac(big.NewInt(1), power10(r.scale)))
		s := l.over(r.extent, least, false).rounded(towardZero, towardZero)
		return result(call{name: "div", args: []expr{l.x, nonZero(r.x)}, t: catalog.Numeric}, s), nil
	case "round", "trunc", "floor", "ceil", "ceiling":
		return roundedTotal(e, x), nil
	case "width_bucket":
		return b.bucketTotal(n, e, args)
	default:
		o := realTotal(e, x.in(catalog.Float8))
		if !o.tame(catalog.Float8) || e.t != catalog.Numeric {
			return o, nil
		}
		return b.toNumeric(n, o, nil) // in double precision all the same: numeric's own would take long (A32)
	}
}

func absolute(t catalog.Type, x operand) operand {
	s := *x.extent
	s.lo, s.hi, s.openLo, s.openHi = new(big.Rat), x.reach(), false, x.openLo || x.openHi
	if x.lo.Sign() > 0 {
		s.lo, s.openLo = x.lo, x.openLo
	}
	if t.IsInteger() {
		x = x.guarded().in(wider(s.carrier(t), x.x.typ())) // the smallest integer has no opposite
	}
	return operand{x: call{name: "abs", args: []expr{x.x}, t: x.x.typ()}, extent: &s, printed: printed{stepped: x.stepped}}
}

// roundedTotal is round, trunc, floor and ceil.
func roundedTotal(e call, x operand) operand {
	if len(e.args) == 2 {
		places, _ := wholeConstant(e.args[1])
		x = x.in(catalog.Numeric)
		return operand{x: call{name: e.name, args: []expr{x.x, e.args[1]}, t: catalog.Numeric}, extent: x.toGrid(places), printed: printed{stepped: true}}
	}
	x = x.in(map[bool]catalog.Type{true: catalog.Float8, false: e.t}[isFloat(e.t)])
	lo, hi := floor, ceil
	switch e.name {
	case "floor":
		hi = floor
	case "ceil", "ceiling":
		lo = ceil
	case "trunc":
		lo, hi = towardZero, towardZero
	}
	return operand{x: call{name: e.name, args: []expr{x.x}, t: x.x.typ()}, extent: x.rounded(lo, hi), printed: printed{stepped: true}}
}

func (b *binder) bucketTotal(n syntax.Expr, e call, args []operand) (operand, error) {
	t := catalog.Float8
	if args[0].x.typ() == catalog.Numeric || !isFloat(args[0].x.typ()) && (e.args[1].typ() == catalog.Numeric || e.args[2].typ() == catalog.Numeric) {
		t = catalog.Numeric
	}
	count, _ := wholeConstant(e.args[3])
	x, lo, hi := args[0].in(t).guarded(), args[1].in(t), args[2].in(t)
	for _, limit := range []operand{lo, hi} {
		if err := b.tame(n, limit); err != nil {
			return operand{}, err
		}
	}
	if lo.lo.Cmp(hi.lo) == 0 { // in double precision they may be
		return operand{}, b.mismatch(n, "the limits of width_bucket are equal", "")
	}
	// Buckets that the operand's bounds rule out. One more on either side, for the rounding of floats.
	bucket := func(v *big.Rat) *big.Rat {
		part := new(big.Rat).Quo(new(big.Rat).Sub(v, lo.lo), new(big.Rat).Sub(hi.lo, lo.lo))
		return new(big.Rat).SetInt(floor(part.Mul(part, number(int64(count)))))
	}
	first, last := bucket(x.lo), bucket(x.hi)
	if first.Cmp(last) > 0 {
		first, last = last, first
	}
	slack := number(int64(boolIndex(t == catalog.Float8)))
	s := &extent{lo: first.Add(first, one()).Sub(first, slack), hi: last.Add(last, one()).Add(last, slack)}
	s = s.meet(new(big.Rat), number(int64(count)+1))
	return result(call{name: "width_bucket", args: []expr{x.x, lo.x, hi.x, e.args[3]}, t: catalog.Int4}, s), nil
}

// The range of exp's argument that counts: beyond it results would leave what double precision holds.
const (
	leastExponent = -100
	mostExponent  = 650
)

// libmDigits are digits to which PostgreSQL's and Go's elementary functions agree, with much to spare.
const libmDigits = 12

// realTotal is a function of double precision. Arguments outside its domain are moved into it or give NULL.
func realTotal(e call, x operand) operand {
	of := func(f func(float64) float64, v *big.Rat) *big.Rat {
		arg, _ := v.Float64()
		return new(big.Rat).SetFloat64(f(arg))
	}
	s := &extent{openLo: x.openLo, openHi: x.openHi}
	name := e.name
	switch e.name {
	case "sqrt": // of negative numbers: 0
		if x.lo.Sign() < 0 {
			x = clamped(x, new(big.Rat), maxRat(new(big.Rat), x.hi))
		}
		s.lo, s.hi = of(math.Sqrt, x.lo), of(math.Sqrt, x.hi)
		s.grain = grainOf(smallest((x.grain + 1) / 2))
	case "ln", "log", "log10": // of zero and negative numbers: NULL
		f := math.Log
		if name != "ln" {
			f, name = math.Log10, "log"
		}
		if x.hi.Sign() <= 0 {
			return constantOf(constant{t: catalog.Float8, null: true}, between(0, 0))
		}
		least, _ := x.least(smallest(x.grain))
		if x.lo.Sign() <= 0 {
			x = clamped(x, new(big.Rat), x.hi)
			x.x = nonZero(x.x)
		}
		s.lo, s.hi, s.openLo = of(f, least), of(f, x.hi), false
		s.grain = 2 * 53 // the logarithm of the float next to 1
	case "exp":
		x = clamped(x, number(leastExponent), number(mostExponent))
		s.lo, s.hi = of(math.Exp, x.lo), of(math.Exp, x.hi)
		s.openLo = false
		s.grain = grainOf(of(math.Exp, number(leastExponent-1)))
	case "power":
		return powerTotal(e, x)
	default:
		panic("sqlrewrite: function without a total form")
	}
	return result(call{name: name, args: []expr{x.guarded().x}, t: catalog.Float8}, s.widened(libmDigits))
}

// powerTotal is a whole power; a negative one divides by the positive one.
func powerTotal(e call, x operand) operand {
	k, _ := wholeConstant(e.args[1])
	exponent := max(k, -k)
	s := exactly(one())
	for range exponent {
		s = s.times(x.extent)
	}
	if exponent%2 == 0 && s.lo.Sign() < 0 {
		s.lo, s.openLo = new(big.Rat), false
	}
	s.scale, s.grain = 0, exponent*x.grain+54 // not rounded correctly
	o := result(call{name: "power", args: []expr{x.factor().x, constant{t: catalog.Float8, text: strconv.Itoa(exponent)}}, t: catalog.Float8}, s.widened(libmDigits))
	if k < 0 && o.tame(catalog.Float8) {
		return floatTotal(syntax.Divide, constantOf(constant{t: catalog.Float8, text: "1"}, exactly(one())), o)
	}
	return o
}
