package bind

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// Bounds without a step have a grid wherever they lie and however close together: those of a quotient of one value differ by its rounding.
func TestBoundsWithoutAStepHaveAGrid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3)) // reproducible on purpose
	for range 5000 {
		end := new(big.Rat).SetFrac64(r.Int64N(1<<r.IntN(50)+1)-r.Int64N(1<<20), r.Int64N(1000)+1)
		span := new(big.Rat).SetFrac(big.NewInt(r.Int64N(1000)), new(big.Int).Exp(big.NewInt(10), big.NewInt(r.Int64N(30)), nil))
		within := &algebra.Bounds{Lo: end, Hi: new(big.Rat).Add(end, span)}
		for _, kind := range []catalog.Type{catalog.Numeric, catalog.Float8} {
			x := algebra.Column{Of: &algebra.Field{Column: &catalog.Column{Name: "x", Type: kind, TypMod: -1}}}
			g, err := gridWith(x, within, nil, fault.Position{})
			if err != nil {
				t.Fatalf("%s from %s, %s wide: %v", kind, end.FloatString(30), span.FloatString(30), err)
			}
			if off := new(big.Rat).Sub(g.Value(g.Lo), end); off.Abs(off).Cmp(g.Step) >= 0 || g.Lo.Cmp(g.Hi) > 0 {
				t.Fatalf("%s from %s, %s wide: the grid begins at %s", kind, end.FloatString(30), span.FloatString(30), g.Value(g.Lo))
			}
		}
	}
}
