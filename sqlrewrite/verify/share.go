package verify

import (
	"math/big"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// share bounds what values of a partition of rows add up to.
type share struct {
	most      *big.Rat // of all of a partition together, in absolute value
	partition []int
	x         int   // only over rows where this is not NULL; -1: over all
	of        []int // the parts of the rows
	base      int   // the value whose multiples it bounds
}

// scaled is the share of a multiple.
func (h *share) scaled(by *big.Rat) *share {
	if h == nil {
		return nil
	}
	c := *h
	c.most = new(big.Rat).Mul(h.most, new(big.Rat).Abs(by))
	return &c
}

// or bounds values that are each within one of two shares.
func (h *share) or(other *share) *share {
	if h == nil || other == nil || h.base != other.base {
		return nil
	}
	if h.most.Cmp(other.most) < 0 {
		return other
	}
	return h
}

// windowRun is a window's sum.
type windowRun struct {
	upto      bool
	n         int   // what it adds up
	partition []int // of rows
	x         int   // of Lemma 5; -1: of Lemma 2b
	of        int   // the query
	parts     []int // of its rows
}

// placing is row_number or dense_rank.
type placing struct {
	dense     bool
	partition []int
	order     []int
	of        []int // the parts of the rows that are numbered
	rows      []int // the columns of these, of one part
}

// factor is an operand of a product, with the range that it has there.
type factor struct {
	id     int
	within ranges.Span
}

// cutting is the CASE of Lemma 2 that a value is.
type cutting struct {
	of      *tally // what is cut
	counter int
	limit   *big.Rat
}

// counts reports whether a value is a whole number that is never negative nor NULL, within a share.
func (v *value) counts() bool {
	return v.split != nil && v.kind.isInteger() && v.within.Finite() && v.within.Lo.Sign() >= 0 && len(v.nulls) == 0
}

// multiple is the share of a product with a constant.
func multiple(op string, l, r *value) *share {
	switch {
	case op != "*":
		return nil
	case l.split != nil && r.number() != nil && !r.kind.isFloat():
		return l.split.scaled(r.number())
	case r.split != nil && l.number() != nil && !l.kind.isFloat():
		return r.split.scaled(l.number())
	default:
		return nil
	}
}

// clampedBy is the share of smaller(x, end) or larger(x, end): split of all of the value, and above of what is positive of it.
func clampedBy(larger bool, x, end *value) (split, above *share) {
	h := end.split
	switch {
	case h == nil || !end.within.Finite() || !x.within.Finite():
		return nil, nil
	case !larger && end.within.Lo.Sign() >= 0:
		if x.within.Lo.Sign() >= 0 {
			split = h
		}
		return split, h
	case larger && end.within.Hi.Sign() <= 0 && x.within.Hi.Sign() <= 0:
		return h, nil
	case larger && end.within.Hi.Sign() <= 0:
		return h.or(x.above), nil
	default:
		return nil, nil
	}
}
