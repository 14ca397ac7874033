package answer

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// place is a row of the answer: which released row it stems from, 0 for none, and which ones its aggregates are over. PostgreSQL says both,
// beside the values: so partitions, orders and frames mean what they mean there.
type place struct {
	row   int
	cells map[int]catalog.Key // by the number of the aggregate: a released row, or an array of them
}

// absent reports whether a window function finds no row to give a value of.
func (at *place) absent(e algebra.Aggregate) bool {
	c, known := at.cells[e.Cells]
	return known && algebra.Picks(e.Name) && c.Null && len(e.Args) < 3
}

// aggregate is the form of an aggregate, or of a window, over released rows.
func (w follower) aggregate(e algebra.Aggregate) (plan.Fraction, bool) {
	if e.Cells == 0 || len(e.Args) == 0 || algebra.HasAggregate(e.Args[0]) {
		return plan.Fraction{}, false
	}
	one, ok := follower{p: w.p}.fraction(e.Args[0])
	if !ok {
		return plan.Fraction{}, false
	}
	runs := [][2]int{{-e.Cells, -e.Cells}}
	if w.at != nil {
		if runs, ok = w.at.runs(e); !ok {
			return plan.Fraction{}, false
		}
	}
	switch {
	case algebra.Picks(e.Name) && len(runs) == 1:
		return one.InRow(runs[0][0]), true
	case algebra.Picks(e.Name) && len(e.Args) == 3:
		return w.fraction(e.Args[2])
	case algebra.Picks(e.Name) || len(runs) == 0 || algebra.Has(e.Args[0], isCall): // it is NULL, or does not count rows with NULL
		return plan.Fraction{}, false
	}
	sum, ok := one.OverRows(runs)
	if e.Name == "avg" {
		rows := int64(0)
		for _, run := range runs {
			rows += int64(run[1] - run[0] + 1)
		}
		sum = sum.Scaled(big.NewRat(1, rows))
	}
	return sum, ok
}

func isCall(e algebra.Expr) bool { _, is := e.(algebra.Call); return is }

// runs are the released rows of an aggregate, as runs without a gap, in order; ok is false where PostgreSQL did not say.
func (at *place) runs(e algebra.Aggregate) (runs [][2]int, ok bool) {
	c, ok := at.cells[e.Cells]
	if !ok || c.Null {
		return nil, ok
	}
	var rows []int
	for text := range strings.SplitSeq(strings.Trim(c.Text, "{}"), ",") {
		row, err := strconv.Atoi(text)
		if err != nil || row < 1 {
			return nil, false
		}
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		switch last := len(runs) - 1; {
		case last < 0 || row > runs[last][1]+1:
			runs = append(runs, [2]int{row, row})
		case row == runs[last][1]:
			return nil, false // twice: the noise of one row is not that of two
		default:
			runs[last][1] = row
		}
	}
	return runs, true
}

// sums are the sums of the noisy numbers of a release over the first rows, by release.
type sums map[int][]*big.Int

// of is the sum over cells.
func (s sums) of(rows []plan.ReleasedRow, c plan.Cells) *big.Int {
	if c.From == c.To {
		return rows[c.From-1].Noisy[c.Release]
	}
	if s[c.Release] == nil {
		upTo := []*big.Int{new(big.Int)}
		for _, row := range rows {
			upTo = append(upTo, new(big.Int).Add(upTo[len(upTo)-1], row.Noisy[c.Release]))
		}
		s[c.Release] = upTo
	}
	return new(big.Int).Sub(s[c.Release][c.To], s[c.Release][c.From-1])
}

// formKey tells fractions apart that have other noise: two with one key have intervals of one width for equal values.
func formKey(f plan.Fraction) string {
	noises := plan.NoisesOf(f)
	slices.SortStableFunc(noises, func(a, b plan.Noises) int {
		return cmp.Or(cmp.Compare(a.Release, b.Release), a.Over.Cmp(b.Over), a.Under.Cmp(b.Under))
	})
	var b strings.Builder
	if f.Under.IsConstant() {
		b.WriteString(f.Under.Constant.RatString() + " ")
	}
	for _, n := range noises {
		for _, text := range []string{strconv.Itoa(n.Release), strconv.Itoa(n.Times), n.Over.RatString(), n.Under.RatString()} {
			b.WriteString(text + " ")
		}
	}
	return b.String()
}

// followed is the interval of an output that is computed from aggregates over released rows, in one row of the answer; nil where there is
// none. What is one fraction of noisy numbers has that fraction's interval; else each of n fractions has one at the level 1-(1-level)/n,
// and the rest of the output carries them on by interval arithmetic.
func (b *Box) followed(e algebra.Expr, at *place, row plan.ReleasedRow) *scalar.Span {
	w := follower{p: b.plan, at: at}
	c := &plan.Ratio{}
	if context, ok := w.contextOf(e, c); ok {
		if b.Inner = b.fractionIn(c.Of, 1); b.Inner == nil {
			return nil
		}
		return b.Eval(context, 1, row)
	}
	b.at = at
	defer func() { b.at = nil }()
	return b.Eval(e, max(w.parts(e), 1), row)
}

// parts counts the fractions and the other values that an expression is computed from.
func (w follower) parts(e algebra.Expr) int {
	if _, ok := w.fraction(e); ok {
		return algebra.BoolIndex(len(bind.ReleasesOf(w.p.Query, e)) > 0)
	}
	if v, ok := e.(algebra.EstimatorRef); ok {
		return len(w.p.Query.Estimators[v.Index].Of)
	}
	n := 0
	for _, child := range algebra.Children(e) {
		n += w.parts(child)
	}
	return n
}
