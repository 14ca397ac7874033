package ranges

import (
	"math/big"
	"testing"
)

// Every quotient and remainder of numbers of two ranges lies in the range that is said, for all ranges of small numbers; and a range whose
// ends are not known says nothing.
func TestQuotientsAndRemaindersLieInTheirRanges(t *testing.T) {
	const most = 4
	spans := []Span{{}, {Lo: big.NewRat(1, 1)}, {Hi: big.NewRat(-1, 1)}}
	for lo := int64(-most); lo <= most; lo++ {
		for hi := lo; hi <= most; hi++ {
			spans = append(spans, Of(lo, hi))
		}
	}
	zero, one := new(big.Rat), big.NewRat(1, 1)
	tried := 0
	for _, s := range spans {
		for _, u := range spans {
			over, unknown, whole, part := s.Over(u, one), s.Over(u, nil), s.Modulo(u, true), s.Modulo(u, false)
			for a := int64(-most); a <= most; a++ {
				for b := int64(-most); b <= most; b++ {
					if b == 0 || !s.Has(big.NewRat(a, 1)) || !u.Has(big.NewRat(b, 1)) {
						continue
					}
					tried++
					quotient, remainder := big.NewRat(a, b), big.NewRat(a%b, 1)
					if !over.Has(quotient) || !unknown.Has(quotient) || !whole.Has(remainder) || !part.Has(remainder) {
						t.Fatalf("%d and %d of %v and %v: %v, %v, %v, %v", a, b, s, u, over, unknown, whole, part)
					}
				}
			}
			if !s.Finite() && (over != Span{} || whole != Span{}) {
				t.Fatalf("%v by %v is known", s, u)
			}
			if u.Finite() && u.Has(zero) && unknown != (Span{}) {
				t.Fatalf("%v by %v, which may be near 0, is known", s, u)
			}
		}
	}
	if tried < 10_000 {
		t.Fatalf("%d pairs were tried", tried)
	}
}
