package value

import (
	"math/big"
)

// Shares are the rules of Lemma 2b (3) for values, and the sums of windows that Lemmas 2b and 5 start from.

// Scaled gives the share of a multiple.
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

// multiple gives the share of a product with a constant.
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

// clampedBy gives the shares of smaller(x, end) or larger(x, end): split for the whole value, above for its positive part.
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
