package answer

import (
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
)

// notesOfSeveral are those of each block, and of what is computed from them.
func notesOfSeveral(p *plan.Plan, add func(code, format string, args ...any)) {
	for _, block := range p.Several.Plans {
		if block.Query.Part != algebra.NoPart { // what it says of bounds is not of the answer's
			continue
		}
		for _, n := range Notes(block) {
			add(n.Code, "%s", n.Text)
		}
	}
	biasNotes(p, add)
	intervalNotes(p, add)
}

// shownOver reports whether rows of an answer over several blocks have intervals of an expression.
func shownOver(p *plan.Plan, e algebra.Expr) bool {
	return HasInterval(p, e) && told(p, e, p.Tellings())
}

// told reports whether each row of an answer over several blocks tells which released rows an expression is computed from; of a set
// operation, each row of one side.
func told(p *plan.Plan, e algebra.Expr, tellings []algebra.Telling) bool {
	switch e := e.(type) {
	case algebra.Aggregate:
		return false
	case algebra.Either:
		return len(e.Left) > 0 && told(p, e.L, tellings) || len(e.Right) > 0 && told(p, e.R, tellings)
	case algebra.KeyRef, algebra.EstimatorRef:
		return !slices.ContainsFunc(p.Query.BlocksOf(e), func(block int) bool { return tellings[block] == algebra.Untold })
	default:
		return !slices.ContainsFunc(algebra.Children(e), func(x algebra.Expr) bool { return !told(p, x, tellings) })
	}
}

// side is an output in the rows of one side of each set operation that it stems from.
type side struct {
	of    algebra.Output
	form  plan.OutputForm
	shown bool // with intervals
}

// sides are the outputs of an answer in rows with numbers of the same blocks.
type sides map[string][]side

// of are the outputs in a row with these numbers of released rows.
func (s sides) of(p *plan.Plan, numbers []int) []side {
	var key strings.Builder
	for _, number := range numbers {
		key.WriteByte("01"[algebra.BoolIndex(number > 0)])
	}
	all, known := s[key.String()]
	if known {
		return all
	}
	for i, f := range p.Outputs {
		one := side{of: p.Query.Outputs[i], form: f}
		if algebra.Has(one.of.Expr, isEither) {
			one.of.Expr = sideOf(one.of.Expr, numbers)
			one.form = outputForm(p, one.of, 0)
		}
		one.shown = f.Column.Kind != plan.KeyColumn && shownOver(p, one.of.Expr)
		all = append(all, one)
	}
	s[key.String()] = all
	return all
}

func isEither(e algebra.Expr) bool { _, is := e.(algebra.Either); return is }

// sideOf is an expression in a row with these numbers of released rows; what stems from no known side is left as it is.
func sideOf(e algebra.Expr, numbers []int) algebra.Expr {
	has := func(block int) bool { return numbers[block] > 0 }
	if e, ok := e.(algebra.Either); ok {
		switch {
		case slices.ContainsFunc(e.Left, has):
			return sideOf(e.L, numbers)
		case slices.ContainsFunc(e.Right, has):
			return sideOf(e.R, numbers)
		}
		e.Left, e.Right = nil, nil // no interval
		return e
	}
	return algebra.Map(e, func(x algebra.Expr) algebra.Expr { return sideOf(x, numbers) })
}

// completeSeveral is [Complete] over several blocks: beside its outputs each row has the numbers of the released rows that it stems from,
// by block. Their noises are independent, so that the row has the intervals of one release with the numbers of all.
func completeSeveral(r *plan.Released, rows []PostRow, types []string) (*Answer, error) {
	p := r.Plan
	forms, tellings := p.Outputs, p.Tellings()
	if len(types) != len(forms)+len(tellings) {
		return nil, fault.Internal(plan.ErrShape)
	}
	a := &Answer{Notes: append(boughtFirst(r), Notes(p)...)}
	for i, f := range forms {
		c := f.Column
		c.Type = types[i]
		a.Columns = append(a.Columns, c)
	}
	numbers := make([][]int, len(rows))
	joined := make([]plan.ReleasedRow, len(rows))
	for j, row := range rows {
		if len(row.Values) != len(types) {
			return nil, fault.Internal(plan.ErrShape)
		}
		var err error
		if numbers[j], err = numbersOf(row.Values[len(forms):], tellings); err != nil {
			return nil, err
		}
		if joined[j], err = r.Joined(numbers[j]); err != nil {
			return nil, err
		}
	}
	groups := len(r.Blocks[0].Rows)
	box, known, lost, judged := NewBox(p, joined...), make(sides), make([]int, len(forms)), newJudge(p, forms, groups, joined)
	for j, row := range rows {
		intervals := make([]*Interval, len(forms))
		for i, s := range known.of(p, numbers[j]) {
			if s.shown && !row.Values[i].Null && present(p, s.of.Expr, joined[j]) {
				in := func(b *Box) *Interval { return b.interval(s.of.Expr, s.form, &place{row: j + 1}, a.Columns[i].Type) }
				intervals[i] = in(box)
				lost[i] += algebra.BoolIndex(intervals[i] == nil)
				judged.value(i, row.Values[i].Text, intervals[i], in)
			}
		}
		judged.row()
		a.Rows = append(a.Rows, row.Values[:len(forms)])
		a.Intervals = append(a.Intervals, intervals)
	}
	a.Useful = judged.result()
	a.Notes = append(a.Notes, unboundedNotes(p, len(rows), lost)...)
	a.Notes = append(a.Notes, barNotes(p, a.Intervals, len(rows))...)
	if ranked(p).Private() {
		a.Notes = append(a.Notes, rankNotes(p, groups)...)
	}
	a.Notes = append(a.Notes, hiddenNotes(r.Blocks...)...)
	return a, a.report(r)
}

// numbersOf are the released rows that a row of the answer stems from, by block, counted from 1; 0 where that is not told.
func numbersOf(values []catalog.Key, tellings []algebra.Telling) ([]int, error) {
	numbers := make([]int, len(tellings))
	for i, told := range tellings {
		switch {
		case told == algebra.OnlyRow:
			numbers[i] = 1
		case told == algebra.ByRow && !values[i].Null:
			number, err := strconv.Atoi(values[i].Text)
			if err != nil || number < 1 {
				return nil, fault.Internal(plan.ErrShape)
			}
			numbers[i] = number
		}
	}
	return numbers, nil
}

// present reports whether a row has all numbers that an expression is computed from.
func present(p *plan.Plan, e algebra.Expr, row plan.ReleasedRow) bool {
	for release := range bind.ReleasesOf(p.Query, e) {
		if row.Noisy[release] == nil {
			return false
		}
	}
	return true
}

// plainSeveral is [Plain] of several blocks: the rows of each under its own columns, and which one they are of.
func plainSeveral(r *plan.Released) *Answer {
	a := &Answer{Notes: append(append(boughtFirst(r), Notes(r.Plan)...), outerFailed),
		Columns: []plan.Column{{Name: "release", Type: "bigint", Kind: plan.PublicColumn}}}
	blocks := make([]*Answer, len(r.Blocks))
	for i, block := range r.Blocks {
		blocks[i] = Plain(block)
		a.Columns = append(a.Columns, blocks[i].Columns...)
	}
	first := 1
	for i, one := range blocks {
		for _, row := range one.Rows {
			values := slices.Repeat([]catalog.Key{{Null: true}}, len(a.Columns))
			values[0] = catalog.Key{Text: strconv.Itoa(i + 1)}
			copy(values[first:], row)
			a.Rows = append(a.Rows, values)
			a.Intervals = append(a.Intervals, make([]*Interval, len(values)))
		}
		first += len(one.Columns)
	}
	return a
}
