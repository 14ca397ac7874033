package sqlprint

import (
	"math/big"
	"slices"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/verify"
)

// Awaited is an argument of a statement that is released before the statement runs: a value, or whether there is one.
type Awaited struct {
	Arg    int // from 1
	At     int // which of [algebra.BoundQuery.Bought]
	T      catalog.Type
	Within *algebra.Bounds
	Exists bool // the argument says whether the value is not NULL
}

// roundedTo is the most digits after the point that a bound is written with.
const roundedTo = 20

// bought prints a value that is released before the statement runs. It is proven for any value of its type.
func (p *Printer) bought(e algebra.Bought) {
	if p.inline {
		p.write(e.Label)
		return
	}
	value := p.awaits(Awaited{At: e.At, T: e.T, Within: e.Within})
	if e.MayBeNull {
		value = "CASE WHEN " + p.awaits(Awaited{At: e.At, T: catalog.Bool, Within: e.Within, Exists: true}) + " THEN " + value + " END"
	}
	p.write("(", value, ")")
}

// awaits is a parameter for an argument that is still to come, with its cast.
func (p *Printer) awaits(a Awaited) string {
	args := p.args
	at := slices.IndexFunc(args.awaited, func(b Awaited) bool { return a.At == b.At && a.T == b.T && a.Exists == b.Exists })
	if at < 0 {
		a.Arg = args.add(verify.Any{})
		at, args.awaited = len(args.awaited), append(args.awaited, a)
	}
	return "$" + strconv.Itoa(args.awaited[at].Arg) + "::" + sqlType(a.T)
}

// WithBought is the statement with the values that were released before it, by their places; nil is NULL. It is proven for any values, as
// the text moves those beyond the bounds to these wherever it computes with them. It is an internal error where a value is missing.
func (s Statement) WithBought(values []*string) (Statement, error) {
	s.Args, s.Bought = slices.Clone(s.Args), nil
	for _, a := range s.Awaited {
		if a.At >= len(values) {
			return Statement{}, fault.Internal(errUnbought)
		}
		value := values[a.At]
		switch {
		case a.Exists:
			s.Args[a.Arg-1] = strconv.FormatBool(value != nil)
		case value != nil:
			s.Args[a.Arg-1] = *value
		default: // which is not looked at
			s.Args[a.Arg-1] = textOf(a.Within.Lo, a.T)
		}
	}
	s.Awaited = nil
	return s, nil
}

// AtEnds is the statement with the lower bounds of all values that are released before it.
func (s Statement) AtEnds() Statement {
	s.Args, s.Bought = slices.Clone(s.Args), nil
	for _, a := range s.Awaited {
		if s.Args[a.Arg-1] = "true"; !a.Exists {
			s.Args[a.Arg-1] = textOf(a.Within.Lo, a.T)
		}
	}
	s.Awaited = nil
	return s
}

// textOf writes a bound as a value of a type, of fractions the beginning.
func textOf(v *big.Rat, t catalog.Type) string {
	if t.IsTime() {
		return scalar.TimeOf(v, t)
	}
	if digits, exact := v.FloatPrec(); exact {
		return v.FloatString(digits)
	}
	return v.FloatString(roundedTo)
}
