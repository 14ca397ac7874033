package value

import (
	"math/big"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// share bounds what values of a partition of rows add up to.
type Share struct {
	Most      *big.Rat // of all of a partition together, in absolute value
	Partition []int
	Over      int   // only over rows where this is not NULL; -1: over all
	Of        []int // the parts of the rows
	Base      int   // the value whose multiples it bounds
}

// scaled is the share of a multiple.
func (h *Share) Scaled(by *big.Rat) *Share {
	if h == nil {
		return nil
	}
	c := *h
	c.Most = new(big.Rat).Mul(h.Most, new(big.Rat).Abs(by))
	return &c
}

// or bounds values that are each within one of two shares.
func (h *Share) or(other *Share) *Share {
	if h == nil || other == nil || h.Base != other.Base {
		return nil
	}
	if h.Most.Cmp(other.Most) < 0 {
		return other
	}
	return h
}

// windowRun is a window's sum.
type WindowSum struct {
	Upto      bool
	Added     int   // what it adds up
	Partition []int // of rows
	Over      int   // of Lemma 5; -1: of Lemma 2b
	Of        int   // the query
	Parts     []int // of its rows
}

// placing is row_number or dense_rank.
type Place struct {
	Dense     bool
	Partition []int
	Order     []int
	Of        []int // the parts of the rows that are numbered
	Rows      []int // the columns of these, of one part
}

// factor is an operand of a product, with the range that it has there.
type Factor struct {
	ID     int
	Within ranges.Span
}

// cutting is the CASE of Lemma 2 that a value is.
type Cutting struct {
	Of      *Tally // what is cut
	Counter int
	Limit   *big.Rat
}

// counts reports whether a value is a whole number that is never negative nor NULL, within a share.
func (v *Value) Counts() bool {
	return v.Split != nil && v.Kind.IsInteger() && v.Within.Finite() && v.Within.Lo.Sign() >= 0 && len(v.Nulls) == 0
}

// multiple is the share of a product with a constant.
func multiple(op string, l, r *Value) *Share {
	switch {
	case op != "*":
		return nil
	case l.Split != nil && r.Number() != nil && !r.Kind.IsFloat():
		return l.Split.Scaled(r.Number())
	case r.Split != nil && l.Number() != nil && !l.Kind.IsFloat():
		return r.Split.Scaled(l.Number())
	default:
		return nil
	}
}

// clampedBy is the share of smaller(x, end) or larger(x, end): split of all of the value, and above of what is positive of it.
func clampedBy(larger bool, x, end *Value) (split, above *Share) {
	h := end.Split
	switch {
	case h == nil || !end.Within.Finite() || !x.Within.Finite():
		return nil, nil
	case !larger && end.Within.Lo.Sign() >= 0:
		if x.Within.Lo.Sign() >= 0 {
			split = h
		}
		return split, h
	case larger && end.Within.Hi.Sign() <= 0 && x.Within.Hi.Sign() <= 0:
		return h, nil
	case larger && end.Within.Hi.Sign() <= 0:
		return h.or(x.above), nil
	default:
		return nil, nil
	}
}
