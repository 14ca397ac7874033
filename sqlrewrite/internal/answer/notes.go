package answer

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// Notes are what the numbers do not say: functions of query and policy alone.
func Notes(p *plan.Plan) []algebra.Note {
	var notes []algebra.Note
	add := func(code, format string, args ...any) {
		n := algebra.Note{Code: code, Text: fmt.Sprintf(format, args...)}
		if slices.Contains(notes, n) {
			return
		}
		notes = append(notes, n)
	}
	if p.Several != nil {
		notesOfSeveral(p, add)
		return notes
	}
	if p.Reused != "" {
		add("reused", "%s", p.Reused)
	}
	unit := p.Query.Source.UnitName()
	for _, r := range p.Releases {
		if r.Statistic.Kind == algebra.CountDistinct && p.Bounding.Kind != stability.Flat {
			add("bounded-values", "at most %d different values of one %s count in a group, chosen at random", p.Bounding.MaxValues, unit)
		}
		if r.Selection != nil {
			selectionNotes(p, r, add)
		}
		g := r.Statistic.Grid
		if g == nil {
			continue
		}
		add("clamped", "%s: values are clamped to [%s, %s]; intervals do not include this clamping%s", sqlprint.Describe(g.X),
			g.Label(g.Lo), g.Label(g.Hi), narrower(p.Query, r.Statistic))
		if g.Derived {
			add("derived-step", "%s: values are rounded to steps of %s, derived from the bounds", sqlprint.Describe(g.X), g.StepLabel())
		}
	}
	for _, f := range clampedColumns(p.Query) {
		add("clamped", "%s: values are clamped to [%s, %s] where the query computes with them", f.Name,
			domain.ValueOf(f.Bounds.Lo, f.Type).Text, domain.ValueOf(f.Bounds.Hi, f.Type).Text)
	}
	if p.NeedsData() && p.Bounding.Kind != stability.Flat {
		boundedNotes(p, unit, add)
	}
	preparedNotes(p, unit, add)
	if p.NeedsData() {
		for _, n := range p.Query.Source.Notes {
			add(n.Code, "%s", n.Text)
		}
	}
	biasNotes(p, add)
	keyNotes(p, add)
	intervalNotes(p, add)
	return notes
}

// boundedNotes say how much of one unit counts.
func boundedNotes(p *plan.Plan, unit string, add func(code, format string, args ...any)) {
	if !p.Query.Source.Owner().NotNull() {
		add("null-units", "rows where %s is NULL are left out", unit)
	}
	clamped := clampedSums(p)
	switch {
	case !bindsRows(p) || len(clamped) == len(p.Releases):
	case p.Bounding.MaxRows == 1:
		add("bounded-rows", "a %s with several rows in a group counts once", unit)
	default:
		add("bounded-rows", "a %s with more than %d rows in a group counts as %d of them", unit, p.Bounding.MaxRows, p.Bounding.MaxRows)
	}
	for _, r := range clamped {
		least, most := stability.UnitSum(p.Bounding, r.Statistic)
		add("bounded-sum", "%s: the sum of one %s in a group is clamped to [%s, %s]", sqlprint.ShownStatistic(r.Statistic), unit,
			r.Statistic.Grid.Label(least), r.Statistic.Grid.Label(most))
	}
	if p.Bounding.MaxTotal > 0 && bindsRows(p) {
		add("bounded-total", "a %s with more than %d rows in these groups together counts as %d of them, in each group its share", unit,
			p.Bounding.MaxTotal, p.Bounding.MaxTotal)
	}
	if p.Bounding.Kind == stability.KeptKeys {
		add("bounded-groups", "each %s counts in at most %d groups, chosen at random", unit, p.Bounding.MaxGroups)
	}
}

// preparedNotes say what a prepared copy leaves out.
func preparedNotes(p *plan.Plan, unit string, add func(code, format string, args ...any)) {
	if most := p.Bounding.MostRank; p.NeedsData() && most > 0 && bindsRows(p) {
		add("prepared", "a %s with more than %d rows in the prepared table counts with %d of them in all, chosen at random when it was prepared",
			unit, most, most)
	}
	if fan := p.Query.Fan; p.NeedsData() && p.Bounding.MostRank > 0 && fan.Cmp(big.NewInt(1)) > 0 {
		add("prepared-join", "each row in the prepared table is joined with at most %s rows of public tables, and noise is made for as many", fan)
	}
	if b := p.Bounding; p.NeedsData() && b.Set != nil {
		add("prepared-ranks", "a %s counts in at most %d groups by (%s), chosen at random when the table was prepared, with at most %d rows "+
			"in each", unit, b.SetGroups, strings.Join(b.Set.Keys, ", "), b.SetRows)
	}
}

// narrower is a hint for what has wider bounds than its values. A difference of times has those of the whole time that the policy declares,
// and so has its noise; a mean or sum of an interval has its own, with a note of where it was bound.
func narrower(q *algebra.BoundQuery, s algebra.Statistic) string {
	written := algebra.WrittenAs(s.Grid.X)
	if s.Grid.Lo.Sign() < 0 && neverNegative(written) {
		return "; it is never below 0: greatest(0, x) has less noise"
	}
	if c, ok := written.(algebra.Call); ok && (c.Name == "least" || c.Name == "greatest") ||
		slices.ContainsFunc(q.Source.Notes, func(n algebra.Note) bool { return n.Code == "seconds" }) {
		return ""
	}
	times := 0
	for _, f := range domain.ColumnsOf(written) {
		if f.Type.IsTime() {
			times++
		}
	}
	if times < 2 {
		return ""
	}
	return "; narrower limits of your own have less noise: least(greatest(x, 0), 30) counts from none to 30"
}

// neverNegative reports whether an expression is greatest(...) - least(...) of the same operands.
func neverNegative(e algebra.Expr) bool {
	d, ok := e.(algebra.Binary)
	if !ok || d.Op != syntax.Subtract {
		return false
	}
	most, isGreatest := algebra.WrittenAs(d.L).(algebra.Call)
	least, isLeast := algebra.WrittenAs(d.R).(algebra.Call)
	return isGreatest && isLeast && most.Name == "greatest" && least.Name == "least" && slices.EqualFunc(most.Args, least.Args, algebra.Same)
}

// intervalNotes say which outputs have no interval, and how far noise reaches.
func intervalNotes(p *plan.Plan, add func(code, format string, args ...any)) {
	for i, f := range p.Outputs {
		if f.Column.Kind != plan.KeyColumn && !shownWithIntervals(p, i) && (f.Column.Kind == plan.DerivedColumn || !p.Query.KeepsRows()) &&
			!certain(p.Query.Outputs[i].Expr) {
			add("no-interval", "%s: there is no interval for this expression", f.Column.Name)
		}
	}
	for _, n := range rankNotes(p, 0) { // of public keys
		add(n.Code, "%s", n.Text)
	}
}

// certain reports whether an output is the same whatever was released: a constant, another one on each side of a set operation, or which
// keys the groups of a row have.
func certain(e algebra.Expr) bool {
	switch e := e.(type) {
	case algebra.Constant:
		return true
	case algebra.Aggregate:
		return e.Name == syntax.Grouping
	case algebra.Either, algebra.Cast, algebra.Collate, algebra.Binary:
		return !slices.ContainsFunc(algebra.Children(e), func(x algebra.Expr) bool { return !certain(x) })
	default:
		return false
	}
}

// selectionNotes say how exact a selection is, and what it shows where there is nothing to select from.
func selectionNotes(p *plan.Plan, r plan.Release, add func(code, format string, args ...any)) {
	add("selected", "%s", selectedText(p, r))
	if r.Selection.Top == nil {
		add("empty-groups", "%s: a group without rows shows a value too", sqlprint.ShownStatistic(r.Statistic))
	}
}

// selectedText says how far a selection may be off, which is known in rows and not in values.
func selectedText(p *plan.Plan, r plan.Release) string {
	name, off := sqlprint.ShownStatistic(r.Statistic), RankError(p, r)
	sure := fmt.Sprintf("with a probability of %s", percent(p.Options.Confidence))
	const unknown = ". There is no interval: how far apart the values of these rows are depends on the data"
	switch {
	case r.Selection.Top != nil:
		return fmt.Sprintf("%s: groups are chosen one after another, at random but the larger the likelier; %s none that is left out is more "+
			"than %s ahead of one that is shown",
			name, sure, scalar.DecimalOrFraction(off))
	case r.Statistic.Kind == algebra.ChooseMode:
		return fmt.Sprintf("%s: %s the most frequent value has at most %s rows more than the value shown", name, sure, scalar.Ceil(off))
	case r.Statistic.Rank.IsInt():
		offset := new(big.Rat).Abs(r.Selection.Offset)
		side, extreme, beyond := "below", "largest", "larger"
		if r.Statistic.Rank.Sign() == 0 {
			side, extreme, beyond = "above", "smallest", "smaller"
		}
		return fmt.Sprintf("%s: the value shown is taken %s rows %s the %s, on purpose: the very %s would be one person's value; %s at most "+
			"%s rows have a %s one%s",
			name, scalar.Ceil(offset), side, extreme, extreme, sure, scalar.Ceil(new(big.Rat).Add(offset, off)), beyond, unknown)
	default:
		return fmt.Sprintf("%s: %s the value shown is at most %s rows away from the exact one, counted in the order of the values%s", name, sure,
			scalar.Ceil(off), unknown)
	}
}

func percent(level mechanisms.Confidence) string {
	return strconv.FormatFloat(100*float64(level), 'g', 10, 64) + " %"
}

// clampedSums are the sums of which each unit's part is clamped.
func clampedSums(p *plan.Plan) []plan.Release {
	var all []plan.Release
	for i, r := range p.Releases {
		if r.Selection == nil && p.Query.ClampsUnits(i) {
			all = append(all, r)
		}
	}
	return all
}

// bindsRows reports whether max_rows can change a release: counting units or their values cannot.
func bindsRows(p *plan.Plan) bool {
	for _, r := range p.Releases {
		if r.Statistic.Kind != algebra.CountUnits && r.Statistic.Kind != algebra.CountDistinct {
			return true
		}
	}
	return false
}

// clampedColumns are the columns that a computed key, a condition or a count of different values reads no further than the policy's bounds.
// What is clamped before it is summed, and a key that is a column and nothing else, have notes of their own.
func clampedColumns(q *algebra.BoundQuery) []*algebra.Field {
	if q.Source == nil {
		return nil
	}
	computing := *q
	computing.Keys = slices.DeleteFunc(slices.Clone(q.Keys), func(k algebra.GroupKey) bool {
		return algebra.PlainField(algebra.WrittenAs(k.X)) != nil
	})
	computing.Statistics = slices.Clone(q.Statistics)
	for i, s := range computing.Statistics {
		if s.Kind != algebra.CountDistinct {
			computing.Statistics[i].X, computing.Statistics[i].Y = nil, nil
		}
	}
	return clampedIn(func(w *sqlprint.PreconditionWalk) { w.Query(&computing) })
}

// clampedIn are the columns that error-free forms clamp to the policy's bounds: the operands of the smaller of two values, a function that
// no analyst writes.
func clampedIn(walk func(*sqlprint.PreconditionWalk)) (all []*algebra.Field) {
	w := sqlprint.NewPreconditionWalk()
	w.Visit = func(x algebra.Expr) {
		c, ok := x.(algebra.Call)
		if !ok || !strings.HasSuffix(c.Name, "smaller") {
			return
		}
		of := c.Args[0]
		if cast, ok := of.(algebra.Cast); ok {
			of = cast.X // real, as double precision
		}
		if f := algebra.PlainField(of); f != nil && f.Table != "" && f.Bounds != nil && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	walk(w)
	return all
}

// hiddenNotes say of releases with private keys that show no group which groups there can be: a group that is larger is shown with the
// confidence asked for.
func hiddenNotes(releases ...*plan.Released) (notes []algebra.Note) {
	for _, r := range releases {
		if !r.Plan.Query.Private() || len(r.Rows) > 0 {
			continue
		}
		whose := "people"
		if r.Plan.Bounding.Kind == stability.KeptKeys {
			whose += " that count in it"
		}
		notes = append(notes, algebra.Note{Code: "hidden-groups", Text: fmt.Sprintf("no group clearly has more than %d %s; smaller ones are "+
			"hidden, not absent", r.Plan.ShownFrom(float64(r.Plan.Options.Confidence))-1, whose)})
	}
	return notes
}

// keyNotes says which groups appear.
func keyNotes(p *plan.Plan, add func(code, format string, args ...any)) {
	if p.Query.Private() {
		add("private-groups", "small groups may be missing; which ones is partly chance, so that a missing group says nothing about a person")
		for _, r := range p.Releases {
			if r.Shown != nil {
				add("shown-counts", "%s: a group is shown if this number is above %d, so that numbers near it are too high on average; "+
					"intervals include that", sqlprint.ShownStatistic(r.Statistic), r.Shown.Threshold())
			}
		}
		return
	}
	for _, k := range p.Query.Keys {
		some := ""
		if len(k.Domain) < k.Declared {
			some = " that WHERE allows"
		}
		if f := algebra.PlainField(k.X); f == nil && algebra.PlainField(algebra.WrittenAs(k.X)) != nil {
			w := algebra.BoundsOf(k.X)
			add("clamped-keys", "%s: every value from %s to %s%s appears; rows with a value beyond count there", k.Name,
				domain.ValueOf(w.Lo, k.X.Typ()).Text, domain.ValueOf(w.Hi, k.X.Typ()).Text, some)
			continue
		}
		if len(clampedIn(func(w *sqlprint.PreconditionWalk) { w.Exprs(k.X) })) > 0 { // which note "clamped" names
			add("public-groups", "%s: every key%s appears that values within the bounds give", k.Name, some)
			continue
		}
		if k.X.Typ() != catalog.Bool || !sqlprint.NeverNull(k.X) {
			add("public-groups", "%s: every declared key%s appears; rows with other keys are left out", k.Name, some)
		}
	}
}
