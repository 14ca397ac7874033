package gateway

import (
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite"
)

// A column's digits leave two significant digits of its narrowest interval, are no more than its numbers have, and none where nothing is
// known of it.
func TestDigits(t *testing.T) {
	iv := func(lo, hi string) []*sqlrewrite.Interval { return []*sqlrewrite.Interval{{Lo: lo, Hi: hi}} }
	for _, c := range []struct {
		kind      catalog.Type
		half      *big.Rat
		intervals [][]*sqlrewrite.Interval
		value     string
		want      int // -1: none
	}{
		{catalog.Int8, big.NewRat(6, 1), nil, "17", 0},
		{catalog.Numeric, big.NewRat(6, 1), nil, "17.25", 1},
		{catalog.Numeric, big.NewRat(6, 1), nil, "17", 0},
		{catalog.Numeric, big.NewRat(60, 1), nil, "17.25", 0},
		{catalog.Numeric, big.NewRat(5, 100), nil, "17.25000", 3},
		{catalog.Numeric, big.NewRat(5, 100), nil, "1725e-2", 2},
		{catalog.Float8, big.NewRat(1, 1e6), nil, "1.7e-05", 6},
		{catalog.Float8, big.NewRat(1, 1e6), nil, "1.7e+05", 0},
		{catalog.Float8, nil, [][]*sqlrewrite.Interval{iv("0.1", "0.3"), {nil}, iv("38.911", "38.93")}, "", 3},
		{catalog.Float8, nil, [][]*sqlrewrite.Interval{iv("5", "5")}, "5.5", -1},
		{catalog.Numeric, nil, [][]*sqlrewrite.Interval{iv("13.4", "13.5"), iv("0", "0.2")}, "13", 1},
		{catalog.Float8, nil, [][]*sqlrewrite.Interval{{nil}}, "5.5", -1},
		{catalog.Float8, big.NewRat(1, 1e15), nil, "0.1234567890123456789", maxPlaces},
		{catalog.Date, nil, [][]*sqlrewrite.Interval{iv("2024-01-01", "2024-02-01")}, "2024-01-15", -1},
	} {
		a := &sqlrewrite.Answer{Columns: []sqlrewrite.Column{{Type: string(c.kind), HalfWidth: c.half}},
			Rows: [][]catalog.Key{{{Text: c.value}}}, Intervals: c.intervals}
		got := -1
		if digits := digitsOf(a, 0); digits != nil {
			got = *digits
		}
		if got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
