package answer

import (
	"slices"
	"strconv"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/bind"
	"noisegate/sqlrewrite/internal/plan"
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

// told reports whether each row of an answer over several blocks tells which released rows an output is computed from.
func told(p *plan.Plan, e algebra.Expr) bool {
	if holds(e, isAggregate) {
		return false
	}
	tellings := p.Tellings()
	for _, block := range p.Query.BlocksOf(e) {
		if tellings[block] == algebra.Untold {
			return false
		}
	}
	return true
}

// completeSeveral is [Complete] over several blocks: beside its outputs each row has the numbers of the released rows that it stems from,
// by block. Their noises are independent, so that the row has the intervals of one release with the numbers of all.
func completeSeveral(r *plan.Released, rows []PostRow, types []string) (*Answer, error) {
	p := r.Plan
	forms, tellings := p.Outputs, p.Tellings()
	if len(types) != len(forms)+len(tellings) {
		return nil, fault.Internal(plan.ErrShape)
	}
	a := &Answer{Notes: Notes(p)}
	shown := make([]bool, len(forms))
	for i, f := range forms {
		c := f.Column
		c.Type = types[i]
		a.Columns = append(a.Columns, c)
		shown[i] = c.Kind != plan.KeyColumn && shownWithIntervals(p, i)
	}
	joined := make([]plan.ReleasedRow, len(rows))
	for j, row := range rows {
		if len(row.Values) != len(types) {
			return nil, fault.Internal(plan.ErrShape)
		}
		numbers, err := numbersOf(row.Values[len(forms):], tellings)
		if err != nil {
			return nil, err
		}
		if joined[j], err = r.Joined(numbers); err != nil {
			return nil, err
		}
	}
	box := NewBox(p, joined...)
	for j, row := range rows {
		intervals := make([]*Interval, len(forms))
		for i, f := range forms {
			e := p.Query.Outputs[i].Expr
			if shown[i] && !row.Values[i].Null && present(p, e, joined[j]) {
				intervals[i] = box.interval(e, f, &place{row: j + 1}, a.Columns[i].Type)
			}
		}
		a.Rows = append(a.Rows, row.Values[:len(forms)])
		a.Intervals = append(a.Intervals, intervals)
	}
	a.Notes = append(a.Notes, unboundedNotes(p, a.Rows, a.Intervals)...)
	a.Notes = append(a.Notes, barNotes(p, a.Intervals, len(rows))...)
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
	a := &Answer{Notes: append(Notes(r.Plan), outerFailed), Columns: []plan.Column{{Name: "release", Type: "bigint", Kind: plan.PublicColumn}}}
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
