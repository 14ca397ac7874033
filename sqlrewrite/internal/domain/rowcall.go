package domain

import (
	"math"
	"math/big"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// numbers are the arguments of a function of numbers, and the widest of their types.
func numbers(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) (all []algebra.Expr, t catalog.Type, err error) {
	t = catalog.Int2
	for i, arg := range args {
		x, err := Coerce(b, n.Args[i], arg, catalog.Numeric)
		if err != nil {
			return nil, t, err
		}
		if !x.Typ().IsNumber() {
			return nil, t, noFunction(b, n, x)
		}
		all, t = append(all, x), scalar.Wider(t, x.Typ())
	}
	return all, t, nil
}

// inFloat is the type in which PostgreSQL computes functions that exist for numeric and for double precision: of integers the latter.
func inFloat(t catalog.Type) catalog.Type {
	if t != catalog.Numeric {
		return catalog.Float8
	}
	return t
}

// realCall types a function of one number.
func realCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, t, err := numbers(b, n, args)
	return algebra.Call{Name: n.Name, Args: args, T: inFloat(t)}, err
}

func absoluteCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, t, err := numbers(b, n, args)
	return algebra.Call{Name: n.Name, Args: args, T: t}, err
}

// roundedCall types round and trunc, whose number of digits is a constant.
func roundedCall(b *algebra.Binder, f *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	if len(args) == 1 {
		return realCall(b, f, n, args)
	}
	args, _, err := numbers(b, n, args)
	if err != nil {
		return nil, err
	}
	if places, ok := WholeConstant(args[1]); !ok || places < -maxPlaces || places > maxPlaces {
		return nil, b.Unsupported(n.Args[1], "a number of digits that is not a constant from -40 to 40", "")
	}
	if scalar.IsFloat(args[0].Typ()) {
		return nil, b.Mismatch(n, "there is no function "+n.Name+"(double precision, integer)", "cast the value to numeric first")
	}
	return algebra.Call{Name: n.Name, Args: args, T: catalog.Numeric}, nil
}

// powerCall types power, whose exponent is a constant.
func powerCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, t, err := numbers(b, n, args)
	if err != nil {
		return nil, err
	}
	if k, ok := WholeConstant(args[1]); !ok || k < -maxPower || k > maxPower {
		return nil, b.Unsupported(n.Args[1], "a power that is not a whole number from -10 to 10", "multiply the value with itself, or use sqrt")
	}
	return algebra.Call{Name: "power", Args: args, T: inFloat(t)}, nil
}

// moduloCall makes mod the operator.
func moduloCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, _, err := numbers(b, n, args)
	if err != nil {
		return nil, err
	}
	return Arithmetic(b, &syntax.Binary{Pos: n.Pos, Op: syntax.Modulo, L: n.Args[0], R: n.Args[1]}, args[0], args[1])
}

func divCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, t, err := numbers(b, n, args)
	if err == nil && scalar.IsFloat(t) {
		err = noFunction(b, n, args[0])
	}
	return algebra.Call{Name: n.Name, Args: args, T: catalog.Numeric}, err
}

const (
	maxPower   = 10
	maxPlaces  = 40
	maxBuckets = MaxKeys
)

// WholeConstant is the value of an integer constant.
func WholeConstant(e algebra.Expr) (int, bool) {
	c, ok := e.(algebra.Constant)
	if !ok || c.Null || !c.T.IsInteger() {
		return 0, false
	}
	v, err := strconv.Atoi(c.Text)
	return v, err == nil
}

// bucketCall types width_bucket, whose limits must be constants: PostgreSQL raises an error for equal ones and for no buckets.
func bucketCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, _, err := numbers(b, n, args)
	if err != nil {
		return nil, err
	}
	var limits []*big.Rat
	for i := range 2 {
		c, ok := args[i+1].(algebra.Constant)
		v, number := scalar.ParseNumber(c.Text)
		if !ok || !number {
			return nil, b.Unsupported(n.Args[i+1], "a limit of width_bucket that is not a constant", "")
		}
		limits = append(limits, v)
	}
	if limits[0].Cmp(limits[1]) == 0 {
		return nil, b.Mismatch(n.Args[2], "the limits of width_bucket are equal", "")
	}
	if count, ok := WholeConstant(args[3]); !ok || count < 1 || count > maxBuckets {
		return nil, b.Unsupported(n.Args[3], "a number of buckets that is not a constant from 1 to 100000", "")
	}
	return algebra.Call{Name: n.Name, Args: args, T: catalog.Int4}, nil
}

// alternativesCall types coalesce, greatest and least.
func alternativesCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	args, t, err := Common(b, n.Args, args)
	return algebra.Call{Name: n.Name, Args: args, T: t}, err
}

func nullifCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	l, r, err := Unify(b, n, syntax.Eq, n.Args[0], n.Args[1], args[0], args[1])
	if err == nil && scalar.IsFloat(r.Typ()) && !scalar.IsFloat(l.Typ()) {
		err = b.Unsupported(n, "nullif of a "+scalar.TypeName(l.Typ())+" and a "+scalar.TypeName(r.Typ()), "cast the first to double precision")
	}
	if err != nil {
		return nil, err
	}
	return algebra.Call{Name: n.Name, Args: []algebra.Expr{l, r}, T: nullifType(l.Typ(), r.Typ())}, nil
}

// nullifType is the type of nullif: the first argument's, in the form in which the two are compared.
func nullifType(l, r catalog.Type) catalog.Type {
	if l.IsInteger() && r == catalog.Numeric {
		return r
	}
	return l
}

func safeNullif(c safeCall) (Operand, error) {
	e, l, r := c.call, c.args[0], c.args[1]
	if scalar.FamilyOf(e.T) == scalar.NumberFamily {
		_, both := carried(scalar.Wider(e.T, r.X.Typ()), l, r)
		if both[0].X.Typ() == l.X.Typ() {
			r = both[1]
		}
	}
	x := algebra.Call{Name: "nullif", Args: []algebra.Expr{l.X, r.X}, T: nullifType(l.X.Typ(), r.X.Typ())}
	return Operand{X: x, Range: l.Range, Printed: oneOfIntervals(l.Printed, []Operand{l}, l.Range, func(steady []algebra.Expr) algebra.Expr {
		return algebra.Call{Name: x.Name, Args: []algebra.Expr{steady[0], r.X}, T: x.T}
	})}, nil
}

func safeCoalesce(c safeCall) (Operand, error) {
	return oneOf(c, func(s, _ scalar.Range) (scalar.Range, bool) { return s, false })
}

// safeGreatest is at least each constant: these are never NULL, and NULLs are skipped.
func safeGreatest(c safeCall) (Operand, error) {
	return oneOf(c, func(s, o scalar.Range) (scalar.Range, bool) {
		if s.Lo.Cmp(o.Lo) <= 0 {
			s.Lo, s.OpenLo = o.Lo, false
			s.Hi = scalar.MaxRat(s.Hi, s.Lo)
		}
		return s, true
	})
}

func safeLeast(c safeCall) (Operand, error) {
	return oneOf(c, func(s, o scalar.Range) (scalar.Range, bool) {
		if s.Hi.Cmp(o.Hi) >= 0 {
			s.Hi, s.OpenHi = o.Hi, false
			s.Lo = scalar.MinRat(s.Lo, s.Hi)
		}
		return s, true
	})
}

// oneOf is coalesce, greatest and least, which skip NULLs; constant says what each constant makes of the range.
func oneOf(c safeCall, constant func(s, o scalar.Range) (scalar.Range, bool)) (Operand, error) {
	t, all, s, err := alternatives(c.Binder, c.at, c.call.T, c.args)
	if err != nil {
		return Operand{}, err
	}
	x := algebra.Call{Name: c.call.Name, T: t}
	narrowed := false
	for _, o := range all {
		x.Args = append(x.Args, o.X)
		if k, isConstant := o.X.(algebra.Constant); s != nil && isConstant && !k.Null {
			cut, narrows := constant(*s, *o.Range)
			s, narrowed = &cut, narrowed || narrows
		}
	}
	shown := shownByAll(all)
	shown.Kept = shown.Kept && !narrowed
	return Operand{X: x, Range: s, Printed: oneOfIntervals(shown, all, s, func(steady []algebra.Expr) algebra.Expr {
		return algebra.Call{Name: x.Name, Args: steady, T: t}
	})}, nil
}

func safeSign(c safeCall) (Operand, error) {
	x := c.args[0].In(c.call.T)
	return result(algebra.Call{Name: "sign", Args: []algebra.Expr{x.X}, T: c.call.T}, scalar.Between(-1, 1)), nil
}

func safeDiv(c safeCall) (Operand, error) {
	l, r := c.args[0].In(catalog.Numeric).guarded(), c.args[1].In(catalog.Numeric).guarded()
	least, _ := r.Least(new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(r.Scale)))
	s := l.Over(r.Range, least, false).Rounded(scalar.TowardZero, scalar.TowardZero)
	return result(algebra.Call{Name: "div", Args: []algebra.Expr{l.X, nonZero(r.X)}, T: catalog.Numeric}, s), nil
}

func safeAbsolute(c safeCall) (Operand, error) {
	t, x := c.call.T, c.args[0]
	s := *x.Range
	s.Lo, s.Hi, s.OpenLo, s.OpenHi = new(big.Rat), x.Reach(), false, x.OpenLo || x.OpenHi
	if x.Lo.Sign() > 0 {
		s.Lo, s.OpenLo = x.Lo, x.OpenLo
	}
	if t.IsInteger() {
		x = x.guarded().In(scalar.Wider(s.Carrier(t), x.X.Typ())) // the smallest integer has no opposite
	}
	call := algebra.Call{Name: "abs", Args: []algebra.Expr{x.X}, T: x.X.Typ()}
	return Operand{X: call, Range: &s, Printed: algebra.Printed{Stepped: x.Stepped}}, nil
}

// safeRounded is round, trunc, floor and ceil.
func safeRounded(c safeCall) (Operand, error) {
	e, x := c.call, c.args[0]
	if len(e.Args) == 2 {
		places, _ := WholeConstant(e.Args[1])
		x = x.In(catalog.Numeric)
		call := algebra.Call{Name: e.Name, Args: []algebra.Expr{x.X, e.Args[1]}, T: catalog.Numeric}
		return Operand{X: call, Range: x.ToGrid(places), Printed: algebra.Printed{Stepped: true}}, nil
	}
	x = x.In(map[bool]catalog.Type{true: catalog.Float8, false: e.T}[scalar.IsFloat(e.T)])
	lo, hi := scalar.Floor, scalar.Ceil
	switch e.Name {
	case "floor":
		hi = scalar.Floor
	case "ceil", "ceiling":
		lo = scalar.Ceil
	case "trunc":
		lo, hi = scalar.TowardZero, scalar.TowardZero
	}
	call := algebra.Call{Name: e.Name, Args: []algebra.Expr{x.X}, T: x.X.Typ()}
	return Operand{X: call, Range: x.Rounded(lo, hi), Printed: algebra.Printed{Stepped: true}}, nil
}

func safeBucket(c safeCall) (Operand, error) {
	b, n, e, args := c.Binder, c.at, c.call, c.args
	t := catalog.Float8
	if args[0].X.Typ() == catalog.Numeric || !scalar.IsFloat(args[0].X.Typ()) &&
		(e.Args[1].Typ() == catalog.Numeric || e.Args[2].Typ() == catalog.Numeric) {
		t = catalog.Numeric
	}
	count, _ := WholeConstant(e.Args[3])
	x, lo, hi := args[0].In(t).guarded(), args[1].In(t), args[2].In(t)
	for _, limit := range []Operand{lo, hi} {
		if err := tame(b, n, limit); err != nil {
			return Operand{}, err
		}
	}
	if lo.Lo.Cmp(hi.Lo) == 0 { // in double precision they may be
		return Operand{}, b.Mismatch(n, "the limits of width_bucket are equal", "")
	}
	// Buckets that the operand's bounds rule out. One more on either side, for the rounding of floats.
	bucket := func(v *big.Rat) *big.Rat {
		part := new(big.Rat).Quo(new(big.Rat).Sub(v, lo.Lo), new(big.Rat).Sub(hi.Lo, lo.Lo))
		return new(big.Rat).SetInt(scalar.Floor(part.Mul(part, scalar.Number(int64(count)))))
	}
	first, last := bucket(x.Lo), bucket(x.Hi)
	if first.Cmp(last) > 0 {
		first, last = last, first
	}
	slack := scalar.Number(int64(algebra.BoolIndex(t == catalog.Float8)))
	s := &scalar.Range{Lo: first.Add(first, scalar.One()).Sub(first, slack), Hi: last.Add(last, scalar.One()).Add(last, slack)}
	s = s.Meet(new(big.Rat), scalar.Number(int64(count)+1))
	return result(algebra.Call{Name: "width_bucket", Args: []algebra.Expr{x.X, lo.X, hi.X, e.Args[3]}, T: catalog.Int4}, s), nil
}

// The range of exp's argument that counts: beyond it results would leave what double precision holds.
const (
	leastExponent = -100
	mostExponent  = 650
)

// libmDigits are digits to which PostgreSQL's and Go's elementary functions agree, with much to spare.
const libmDigits = 12

// safeReal is a function in double precision whose operand was moved into its domain, and whose values have the range s. Numeric ones are
// computed in double precision all the same: numeric's own would take long (A32).
func safeReal(c safeCall, name string, x Operand, s *scalar.Range) (Operand, error) {
	o := result(algebra.Call{Name: name, Args: []algebra.Expr{x.guarded().X}, T: catalog.Float8}, s.Widened(libmDigits))
	return asWritten(c, o)
}

// asWritten is a value in double precision as the type that PostgreSQL gives the call.
func asWritten(c safeCall, o Operand) (Operand, error) {
	if !o.Tame(catalog.Float8) || c.call.T != catalog.Numeric {
		return o, nil
	}
	return toNumeric(c.Binder, c.at, o, nil)
}

// image is f at an end of a range, as Go computes it.
func image(f func(float64) float64, v *big.Rat) *big.Rat {
	arg, _ := v.Float64()
	return new(big.Rat).SetFloat64(f(arg))
}

// safeSqrt gives 0 for negative numbers.
func safeSqrt(c safeCall) (Operand, error) {
	x := c.args[0].In(catalog.Float8)
	s := &scalar.Range{OpenLo: x.OpenLo, OpenHi: x.OpenHi}
	if x.Lo.Sign() < 0 {
		x = Clamped(x, new(big.Rat), scalar.MaxRat(new(big.Rat), x.Hi))
	}
	s.Lo, s.Hi = image(math.Sqrt, x.Lo), image(math.Sqrt, x.Hi)
	s.Grain = scalar.GrainOf(smallest((x.Grain + 1) / 2))
	return safeReal(c, "sqrt", x, s)
}

// safeLogarithm gives NULL for zero and negative numbers.
func safeLogarithm(c safeCall) (Operand, error) {
	x := c.args[0].In(catalog.Float8)
	s := &scalar.Range{OpenHi: x.OpenHi}
	f, name := math.Log10, "log"
	if c.call.Name == "ln" {
		f, name = math.Log, "ln"
	}
	if x.Hi.Sign() <= 0 {
		return asWritten(c, constantOf(algebra.Constant{T: catalog.Float8, Null: true}, scalar.Between(0, 0)))
	}
	least, _ := x.Least(smallest(x.Grain))
	if x.Lo.Sign() <= 0 {
		x = Clamped(x, new(big.Rat), x.Hi)
		x.X = nonZero(x.X)
	}
	s.Lo, s.Hi = image(f, least), image(f, x.Hi)
	s.Grain = 2 * 53 // the logarithm of the float next to 1
	return safeReal(c, name, x, s)
}

func safeExp(c safeCall) (Operand, error) {
	x := c.args[0].In(catalog.Float8)
	s := &scalar.Range{OpenHi: x.OpenHi}
	x = Clamped(x, scalar.Number(leastExponent), scalar.Number(mostExponent))
	s.Lo, s.Hi = image(math.Exp, x.Lo), image(math.Exp, x.Hi)
	s.Grain = scalar.GrainOf(image(math.Exp, scalar.Number(leastExponent-1)))
	return safeReal(c, "exp", x, s)
}

// safePower is a whole power; a negative one divides by the positive one.
func safePower(c safeCall) (Operand, error) {
	x := c.args[0].In(catalog.Float8)
	k, _ := WholeConstant(c.call.Args[1])
	exponent := max(k, -k)
	s := scalar.Exactly(scalar.One())
	for range exponent {
		s = s.Times(x.Range)
	}
	if exponent%2 == 0 && s.Lo.Sign() < 0 {
		s.Lo, s.OpenLo = new(big.Rat), false
	}
	s.Scale, s.Grain = 0, exponent*x.Grain+54 // not rounded correctly
	o := result(algebra.Call{Name: "power", Args: []algebra.Expr{x.factor().X,
		algebra.Constant{T: catalog.Float8, Text: strconv.Itoa(exponent)}}, T: catalog.Float8}, s.Widened(libmDigits))
	if k < 0 && o.Tame(catalog.Float8) {
		o = safeFloat(syntax.Divide, constantOf(algebra.Constant{T: catalog.Float8, Text: "1"}, scalar.Exactly(scalar.One())), o)
	}
	return asWritten(c, o)
}
