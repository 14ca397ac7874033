package domain

import (
	"math"
	"math/big"
	"strconv"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// MathCall types a function of numbers.
func MathCall(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	if err := arguments(b, n, args, mathArity(n.Name)); err != nil {
		return nil, err
	}
	t := catalog.Int2
	for i, arg := range args {
		x, err := Coerce(b, n.Args[i], arg, catalog.Numeric)
		if err != nil {
			return nil, err
		}
		if !x.Typ().IsNumber() {
			return nil, noFunction(b, n, x)
		}
		args[i] = x
		if i == 0 || n.Name != "round" && n.Name != "trunc" {
			t = scalar.Wider(t, x.Typ())
		}
	}
	inFloat := t
	if t != catalog.Numeric {
		inFloat = catalog.Float8 // of integers too
	}
	switch n.Name {
	case "mod":
		return Arithmetic(b, &syntax.Binary{Pos: n.Pos, Op: syntax.Modulo, L: n.Args[0], R: n.Args[1]}, args[0], args[1])
	case "abs":
		return algebra.Call{Name: n.Name, Args: args, T: t}, nil
	case "div":
		if scalar.IsFloat(t) {
			return nil, noFunction(b, n, args[0])
		}
		return algebra.Call{Name: n.Name, Args: args, T: catalog.Numeric}, nil
	case "width_bucket":
		return bucketCall(b, n, args, inFloat)
	case "power", "pow":
		if k, ok := WholeConstant(args[1]); !ok || k < -maxPower || k > maxPower {
			return nil, b.Unsupported(n.Args[1], "a power that is not a whole number from -10 to 10", "multiply the value with itself, or use sqrt")
		}
		return algebra.Call{Name: "power", Args: args, T: inFloat}, nil
	}
	if len(args) == 2 {
		if places, ok := WholeConstant(args[1]); !ok || places < -maxPlaces || places > maxPlaces {
			return nil, b.Unsupported(n.Args[1], "a number of digits that is not a constant from -40 to 40", "")
		}
		if scalar.IsFloat(t) {
			return nil, b.Mismatch(n, "there is no function "+n.Name+"(double precision, integer)", "cast the value to numeric first")
		}
		return algebra.Call{Name: n.Name, Args: args, T: catalog.Numeric}, nil
	}
	return algebra.Call{Name: n.Name, Args: args, T: inFloat}, nil
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

func arguments(b *algebra.Binder, n *syntax.Call, args []algebra.Expr, want arity) error {
	if len(args) < want.least || len(args) > want.most {
		return Arity(b, n, want.text)
	}
	return nil
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
func bucketCall(b *algebra.Binder, n *syntax.Call, args []algebra.Expr, t catalog.Type) (algebra.Expr, error) {
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

// callTotal is the total form of a function.
func callTotal(b *algebra.Binder, n syntax.Expr, e algebra.Call) (Operand, error) {
	switch e.Name {
	case "coalesce", "greatest", "least":
		return oneOf(b, n, e)
	case "extract", "date_part", "date_trunc":
		return timeCallTotal(b, n, e)
	}
	args := make([]Operand, len(e.Args))
	for i, arg := range e.Args {
		o, err := OperandOf(b, n, arg)
		if err != nil {
			return Operand{}, err
		}
		args[i] = o
	}
	if e.Name == "nullif" {
		return nullifTotal(e, args[0], args[1]), nil
	}
	if e.Args[0].Typ().IsNumber() {
		return mathTotal(b, n, e, args)
	}
	return textTotal(e, args), nil
}

// NullifType is the type of nullif: the first argument's, in the form in which the two are compared.
func NullifType(l, r catalog.Type) catalog.Type {
	if l.IsInteger() && r == catalog.Numeric {
		return r
	}
	return l
}

func nullifTotal(e algebra.Call, l, r Operand) Operand {
	if scalar.FamilyOf(e.T) == scalar.NumberFamily {
		_, both := carried(scalar.Wider(e.T, r.X.Typ()), l, r)
		if both[0].X.Typ() == l.X.Typ() {
			r = both[1]
		}
	}
	x := algebra.Call{Name: "nullif", Args: []algebra.Expr{l.X, r.X}, T: NullifType(l.X.Typ(), r.X.Typ())}
	return Operand{X: x, Extent: l.Extent, Printed: oneOfIntervals(l.Printed, []Operand{l}, l.Extent, func(steady []algebra.Expr) algebra.Expr {
		return algebra.Call{Name: x.Name, Args: []algebra.Expr{steady[0], r.X}, T: x.T}
	})}
}

// oneOf is coalesce, greatest and least, which skip NULLs.
func oneOf(b *algebra.Binder, n syntax.Expr, e algebra.Call) (Operand, error) {
	t, all, s, err := alternatives(b, n, e.T, e.Args)
	if err != nil {
		return Operand{}, err
	}
	x := algebra.Call{Name: e.Name, T: t}
	narrowed := false
	for _, o := range all {
		x.Args = append(x.Args, o.X)
		c, isConstant := o.X.(algebra.Constant)
		if s == nil || !isConstant || c.Null || e.Name == "coalesce" {
			continue
		}
		// A constant is never NULL: the greatest is at least that, the least at most.
		cut := *s
		switch {
		case e.Name == "greatest" && cut.Lo.Cmp(o.Lo) <= 0:
			cut.Lo, cut.OpenLo = o.Lo, false
			if cut.Hi.Cmp(cut.Lo) < 0 {
				cut.Hi = cut.Lo
			}
		case e.Name == "least" && cut.Hi.Cmp(o.Hi) >= 0:
			cut.Hi, cut.OpenHi = o.Hi, false
			if cut.Lo.Cmp(cut.Hi) > 0 {
				cut.Lo = cut.Hi
			}
		}
		s = &cut
		narrowed = true
	}
	shown := shownByAll(all)
	shown.Kept = shown.Kept && !narrowed
	return Operand{X: x, Extent: s, Printed: oneOfIntervals(shown, all, s, func(steady []algebra.Expr) algebra.Expr {
		return algebra.Call{Name: x.Name, Args: steady, T: t}
	})}, nil
}

// mathTotal is the total form of a function of numbers.
func mathTotal(b *algebra.Binder, n syntax.Expr, e algebra.Call, args []Operand) (Operand, error) {
	x := args[0]
	switch e.Name {
	case "abs":
		return absolute(e.T, x), nil
	case "sign":
		x = x.In(e.T)
		return result(algebra.Call{Name: "sign", Args: []algebra.Expr{x.X}, T: e.T}, scalar.Between(-1, 1)), nil
	case "div":
		l, r := args[0].In(catalog.Numeric).guarded(), args[1].In(catalog.Numeric).guarded()
		least, _ := r.Least(new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(r.Scale)))
		s := l.Over(r.Extent, least, false).Rounded(scalar.TowardZero, scalar.TowardZero)
		return result(algebra.Call{Name: "div", Args: []algebra.Expr{l.X, nonZero(r.X)}, T: catalog.Numeric}, s), nil
	case "round", "trunc", "floor", "ceil", "ceiling":
		return roundedTotal(e, x), nil
	case "width_bucket":
		return bucketTotal(b, n, e, args)
	default:
		o := realTotal(e, x.In(catalog.Float8))
		if !o.Tame(catalog.Float8) || e.T != catalog.Numeric {
			return o, nil
		}
		return toNumeric(b, n, o, nil) // in double precision all the same: numeric's own would take long (A32)
	}
}

func absolute(t catalog.Type, x Operand) Operand {
	s := *x.Extent
	s.Lo, s.Hi, s.OpenLo, s.OpenHi = new(big.Rat), x.Reach(), false, x.OpenLo || x.OpenHi
	if x.Lo.Sign() > 0 {
		s.Lo, s.OpenLo = x.Lo, x.OpenLo
	}
	if t.IsInteger() {
		x = x.guarded().In(scalar.Wider(s.Carrier(t), x.X.Typ())) // the smallest integer has no opposite
	}
	return Operand{X: algebra.Call{Name: "abs", Args: []algebra.Expr{x.X}, T: x.X.Typ()}, Extent: &s, Printed: algebra.Printed{Stepped: x.Stepped}}
}

// roundedTotal is round, trunc, floor and ceil.
func roundedTotal(e algebra.Call, x Operand) Operand {
	if len(e.Args) == 2 {
		places, _ := WholeConstant(e.Args[1])
		x = x.In(catalog.Numeric)
		return Operand{X: algebra.Call{Name: e.Name, Args: []algebra.Expr{x.X, e.Args[1]}, T: catalog.Numeric}, Extent: x.ToGrid(places), Printed: algebra.Printed{Stepped: true}}
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
	return Operand{X: algebra.Call{Name: e.Name, Args: []algebra.Expr{x.X}, T: x.X.Typ()}, Extent: x.Rounded(lo, hi), Printed: algebra.Printed{Stepped: true}}
}

func bucketTotal(b *algebra.Binder, n syntax.Expr, e algebra.Call, args []Operand) (Operand, error) {
	t := catalog.Float8
	if args[0].X.Typ() == catalog.Numeric || !scalar.IsFloat(args[0].X.Typ()) && (e.Args[1].Typ() == catalog.Numeric || e.Args[2].Typ() == catalog.Numeric) {
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
	s := &scalar.Extent{Lo: first.Add(first, scalar.One()).Sub(first, slack), Hi: last.Add(last, scalar.One()).Add(last, slack)}
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

// realTotal is a function of double precision. Arguments outside its domain are moved into it or give NULL.
func realTotal(e algebra.Call, x Operand) Operand {
	of := func(f func(float64) float64, v *big.Rat) *big.Rat {
		arg, _ := v.Float64()
		return new(big.Rat).SetFloat64(f(arg))
	}
	s := &scalar.Extent{OpenLo: x.OpenLo, OpenHi: x.OpenHi}
	name := e.Name
	switch e.Name {
	case "sqrt": // of negative numbers: 0
		if x.Lo.Sign() < 0 {
			x = Clamped(x, new(big.Rat), scalar.MaxRat(new(big.Rat), x.Hi))
		}
		s.Lo, s.Hi = of(math.Sqrt, x.Lo), of(math.Sqrt, x.Hi)
		s.Grain = scalar.GrainOf(smallest((x.Grain + 1) / 2))
	case "ln", "log", "log10": // of zero and negative numbers: NULL
		f := math.Log
		if name != "ln" {
			f, name = math.Log10, "log"
		}
		if x.Hi.Sign() <= 0 {
			return constantOf(algebra.Constant{T: catalog.Float8, Null: true}, scalar.Between(0, 0))
		}
		least, _ := x.Least(smallest(x.Grain))
		if x.Lo.Sign() <= 0 {
			x = Clamped(x, new(big.Rat), x.Hi)
			x.X = nonZero(x.X)
		}
		s.Lo, s.Hi, s.OpenLo = of(f, least), of(f, x.Hi), false
		s.Grain = 2 * 53 // the logarithm of the float next to 1
	case "exp":
		x = Clamped(x, scalar.Number(leastExponent), scalar.Number(mostExponent))
		s.Lo, s.Hi = of(math.Exp, x.Lo), of(math.Exp, x.Hi)
		s.OpenLo = false
		s.Grain = scalar.GrainOf(of(math.Exp, scalar.Number(leastExponent-1)))
	case "power":
		return powerTotal(e, x)
	default:
		panic("sqlrewrite: function without a total form")
	}
	return result(algebra.Call{Name: name, Args: []algebra.Expr{x.guarded().X}, T: catalog.Float8}, s.Widened(libmDigits))
}

// powerTotal is a whole power; a negative one divides by the positive one.
func powerTotal(e algebra.Call, x Operand) Operand {
	k, _ := WholeConstant(e.Args[1])
	exponent := max(k, -k)
	s := scalar.Exactly(scalar.One())
	for range exponent {
		s = s.Times(x.Extent)
	}
	if exponent%2 == 0 && s.Lo.Sign() < 0 {
		s.Lo, s.OpenLo = new(big.Rat), false
	}
	s.Scale, s.Grain = 0, exponent*x.Grain+54 // not rounded correctly
	o := result(algebra.Call{Name: "power", Args: []algebra.Expr{x.factor().X, algebra.Constant{T: catalog.Float8, Text: strconv.Itoa(exponent)}}, T: catalog.Float8}, s.Widened(libmDigits))
	if k < 0 && o.Tame(catalog.Float8) {
		return floatTotal(syntax.Divide, constantOf(algebra.Constant{T: catalog.Float8, Text: "1"}, scalar.Exactly(scalar.One())), o)
	}
	return o
}
