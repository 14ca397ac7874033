package gen

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// buying puts a comparison with an aggregate of rows of units into a condition of a query. Where that is no condition on the rows of a
// release block, the query is refused.
func (w *Writer) buying(sql string, from Origin) string {
	pick := func(all []string) string { return all[w.Rand.IntN(len(all))] }
	column, inner := pick(from.place.names.numbers), pick([]string{"n2", "n4", "n8", "nn", "money", "free", "f8", "odd"})
	aggregate := pick([]string{"avg(%)", "min(%)", "max(%)", "sum(%)", "count(%)", "count(*)", "median(%)"})
	if w.Rand.IntN(6) == 0 {
		column, inner, aggregate = pick(from.place.names.days), "day", pick([]string{"min(%)", "max(%)"})
	}
	value := "(SELECT " + strings.ReplaceAll(aggregate, "%", inner) + " FROM " +
		pick([]string{"people", "events", "orders", "items", "cards"}) +
		pick([]string{"", " WHERE k_num = 2", " WHERE nn > 4"}) + ")"
	if inner != "day" {
		value = pick([]string{"", "", "0.5 * ", "3 - ", "-"}) + value
	}
	places := strings.Split(sql, " WHERE ")
	if len(places) == 1 {
		return sql
	}
	at := 1 + w.Rand.IntN(len(places)-1)
	places[at] = column + pick([]string{" > ", " <= ", " = ", " IS DISTINCT FROM "}) + value + pick([]string{" AND ", " OR "}) + places[at]
	return strings.Join(places, " WHERE ")
}

// boughtBlock is the plan of a block that takes a value of another one; nil: the plan has none.
func boughtBlock(p *plan.Plan) *plan.Plan {
	blocks := p.Different()
	at := slices.IndexFunc(blocks, func(block *plan.Plan) bool { return len(block.Query.Bought) > 0 })
	if at < 0 {
		return nil
	}
	return blocks[at]
}

// arbitrary gives a statement random values for those that would be released before it.
func arbitrary(r *rand.Rand, s sqlprint.Statement) sqlprint.Statement {
	if len(s.Awaited) == 0 {
		return s
	}
	var values []*string
	for _, a := range s.Awaited {
		for len(values) <= a.At {
			values = append(values, nil)
		}
		if a.Exists {
			continue
		}
		width := new(big.Rat).Sub(a.Within.Hi, a.Within.Lo)
		v := new(big.Rat).Add(a.Within.Lo, width.Mul(width, big.NewRat(r.Int64N(1001), 1000)))
		text := scalar.FormatNumber(v, a.T, 3)
		switch {
		case a.T.IsTime():
			text = scalar.TimeOf(new(big.Rat).SetInt(scalar.Floor(v)), a.T)
		case a.T.IsInteger():
			text = scalar.Floor(v).String()
		}
		values[a.At] = &text
	}
	if len(values) > 0 && slices.ContainsFunc(s.Awaited, func(a sqlprint.Awaited) bool { return a.Exists }) && r.IntN(8) == 0 {
		values[0] = nil
	}
	with, err := s.WithBought(values)
	if err != nil {
		panic(err)
	}
	return with
}
