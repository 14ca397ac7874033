package stability

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

func sizesOf(list []algebra.Expr) []domain.Size {
	sizes := make([]domain.Size, len(list))
	for i, e := range list {
		sizes[i] = SizeOf(e)
	}
	return sizes
}

// SizeOf is how large the value of an expression can be.
func SizeOf(e algebra.Expr) domain.Size {
	switch t := algebra.CarrierOf(e); {
	case t.IsText() || t == scalar.UnknownType:
		size := domain.Size{Bytes: LongestText(e)}
		switch e := e.(type) {
		case algebra.Constant:
			size.Text = &e.Text
		case algebra.Column, algebra.Aggregate:
		default:
			size.Letters = domain.MaxLetters(e)
		}
		return size
	case t == catalog.Numeric:
		return numericSize(e)
	default:
		return domain.Size{}
	}
}

// Digits of a numeric column whose type fixes none, and of what double precision gives, before and after the point.
const (
	freeWhole, freeScale   = 40, 20
	floatWhole, floatScale = 100, 60
)

// numericSize are the digits that an expression's form gives a numeric: columns are clamped and rounded below all arithmetic.
func numericSize(e algebra.Expr) domain.Size {
	switch e := e.(type) {
	case algebra.Constant:
		return constantDigits(e.Text)
	case algebra.Computed:
		size := numericSize(e.ErrorFree)
		if e.Within != nil {
			size.Whole = min(size.Whole, wholeDigits(e.Within.Reach()))
		}
		return size
	case algebra.Column:
		if digits, fixed := algebra.Scale(e); fixed {
			return domain.Size{Whole: max(0, int64(e.Of.TypMod-4)>>16-int64(digits)), Scale: int64(digits)}
		}
		return domain.Size{Whole: freeWhole, Scale: freeScale}
	case algebra.Guard:
		return numericSize(e.Clamped)
	case algebra.Negate:
		return numericSize(e.X)
	case algebra.Binary:
		return arithmeticSize(e.Op, numericSize(e.L), numericSize(e.R))
	case algebra.Cast:
		return castDigits(e)
	case algebra.Choice:
		var size domain.Size
		for _, a := range e.Arms {
			size = larger(size, numericSize(a.Result))
		}
		if e.Otherwise != nil {
			size = larger(size, numericSize(e.Otherwise))
		}
		return size
	case algebra.Call:
		return callDigits(e)
	default:
		return domain.Size{Whole: freeWhole, Scale: freeScale}
	}
}

func larger(a, b domain.Size) domain.Size {
	return domain.Size{Whole: max(a.Whole, b.Whole), Scale: max(a.Scale, b.Scale)}
}

func wholeDigits(v *big.Rat) int64 { return int64(len(scalar.Floor(new(big.Rat).Abs(v)).Text(10))) }

func constantDigits(text string) domain.Size {
	v, ok := scalar.ParseNumber(text)
	if !ok {
		return domain.Size{Whole: 1}
	}
	scale, _ := v.FloatPrec()
	return domain.Size{Whole: wholeDigits(v), Scale: int64(scale)}
}

func arithmeticSize(op syntax.Operator, l, r domain.Size) domain.Size {
	switch op {
	case syntax.Multiply:
		return domain.Size{Whole: l.Whole + r.Whole, Scale: l.Scale + r.Scale}
	case syntax.Divide:
		return domain.Quotient(l, r)
	case syntax.Modulo:
		return domain.Size{Whole: r.Whole, Scale: max(l.Scale, r.Scale)}
	default:
		sum := larger(l, r)
		sum.Whole++
		return sum
	}
}

func castDigits(e algebra.Cast) domain.Size {
	switch from := algebra.CarrierOf(e.X); {
	case len(e.Mods) > 0:
		digits := int64(0)
		if len(e.Mods) > 1 {
			digits = int64(e.Mods[1])
		}
		return domain.Size{Whole: int64(e.Mods[0]) - digits, Scale: digits}
	case from.IsInteger():
		_, most := scalar.IntegerRange(from)
		return domain.Size{Whole: wholeDigits(most)}
	case scalar.IsFloat(from):
		return domain.Size{Whole: floatWhole, Scale: floatScale}
	default:
		return numericSize(e.X)
	}
}

func callDigits(e algebra.Call) domain.Size {
	var size domain.Size
	for _, x := range e.Args {
		if algebra.CarrierOf(x) == catalog.Numeric {
			size = larger(size, numericSize(x))
		}
	}
	switch e.Name {
	case "nullif", "trim_scale", "numeric_smaller":
		return numericSize(e.Args[0])
	case "numeric_larger": // a clamp: both ends are constants
		inner, ok := e.Args[0].(algebra.Call)
		if !ok || inner.Name != "numeric_smaller" {
			return size
		}
		lo, hi := numericSize(e.Args[1]), numericSize(inner.Args[1])
		return domain.Size{Whole: max(lo.Whole, hi.Whole), Scale: max(size.Scale, hi.Scale)}
	case "round", "trunc":
		size.Whole++
		size.Scale = 0
		if len(e.Args) > 1 {
			places, _ := domain.WholeConstant(e.Args[1])
			size.Scale = max(0, int64(places))
		}
		return size
	case "floor", "ceil", "ceiling":
		return domain.Size{Whole: size.Whole + 1}
	case "sign":
		return domain.Size{Whole: 1}
	case "div":
		return domain.Size{Whole: numericSize(e.Args[0]).Whole + numericSize(e.Args[1]).Scale + 1}
	default:
		return size
	}
}
