package gateway

import (
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite"
)

// A column's digits leave two significant digits of its narrowest interval, and none where nothing is known of it.
func TestDigits(t *testing.T) {
	iv := func(lo, hi string) []*sqlrewrite.Interval { return []*sqlrewrite.Interval{{Lo: lo, Hi: hi}} }
	for _, c := range []struct {
		kind      catalog.Type
		half      *big.Rat
		intervals [][]*sqlrewrite.Interval
		want      int // -1: none
	}{
		{catalog.Int8, big.NewRat(6, 1), nil, 0},
		{catalog.Numeric, big.NewRat(6, 1), nil, 1},
		{catalog.Numeric, big.NewRat(60, 1), nil, 0},
		{catalog.Numeric, big.NewRat(5, 100), nil, 3},
		{catalog.Float8, nil, [][]*sqlrewrite.Interval{iv("0.1", "0.3"), {nil}, iv("38.91", "38.93")}, 3},
		{catalog.Float8, nil, [][]*sqlrewrite.Interval{iv("5", "5")}, -1},
		{catalog.Float8, nil, [][]*sqlrewrite.Interval{{nil}}, -1},
		{catalog.Float8, big.NewRat(1, 1e15), nil, maxPlaces},
		{catalog.Date, nil, [][]*sqlrewrite.Interval{iv("2024-01-01", "2024-02-01")}, -1},
	} {
		a := &sqlrewrite.Answer{Columns: []sqlrewrite.Column{{Type: string(c.kind), HalfWidth: c.half}}, Intervals: c.intervals}
		got := -1
		if digits := digitsOf(a, 0); digits != nil {
			got = *digits
		}
		if got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
