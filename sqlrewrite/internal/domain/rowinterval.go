package domain

import (
	"fmt"
	"math/big"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// intervalConstant is a constant as an operand: a month has 28 to 31 days.
func intervalConstant(c algebra.Constant) Operand {
	months, days, micros := int64(0), int64(0), int64(0)
	if !c.Null {
		var ok bool
		if months, days, micros, ok = scalar.ParseInterval(c.Text); !ok {
			panic("sqlrewrite: interval constant that was not checked")
		}
	}
	rest := days*scalar.DayUnit + micros
	short, long := months*28*scalar.DayUnit, months*31*scalar.DayUnit
	s := scalar.Between(min(short, long)+rest, max(short, long)+rest)
	s.Parts = &scalar.Parts{Months: *scalar.Between(months, months), Days: *scalar.Between(days, days),
		Micros: *scalar.Between(micros, micros)}
	o := constantOf(c, s)
	o.Interval = &algebra.Interval{Steady: c, Terms: []algebra.Term{{X: c, Within: s.Parts}}}
	return o
}

// difference is t1 - t2, of times whose difference is within s.
func difference(x algebra.Expr, s *scalar.Range) Operand {
	day := scalar.Number(scalar.DayUnit)
	lo, hi := scalar.Floor(new(big.Rat).Quo(s.Lo, day)), scalar.Ceil(new(big.Rat).Quo(s.Hi, day))
	s.Parts = &scalar.Parts{Months: *scalar.Between(0, 0), Days: scalar.Range{Lo: new(big.Rat).SetInt(lo), Hi: new(big.Rat).SetInt(hi)},
		Micros: *scalar.Between(-scalar.DayUnit, scalar.DayUnit)}
	end := func(days *big.Int) algebra.Constant {
		return algebra.Constant{T: scalar.IntervalType, Text: fmt.Sprintf("0 months %s days 0 microseconds", days)}
	}
	steady := algebra.Call{Name: "interval_smaller", Args: []algebra.Expr{x, end(hi)}, T: scalar.IntervalType}
	steady = algebra.Call{Name: "interval_larger", Args: []algebra.Expr{steady, end(lo)}, T: scalar.IntervalType}
	o := result(x, s)
	o.Interval = &algebra.Interval{Steady: algebra.Guard{X: x, Clamped: steady}}
	o.Interval.Terms = []algebra.Term{{X: o.Interval.Steady, Within: s.Parts}}
	return o
}

// oneOfIntervals is what an operand shows that is one of several: of intervals, it with the steady forms of these.
func oneOfIntervals(shown algebra.Printed, all []Operand, s *scalar.Range, of func(steady []algebra.Expr) algebra.Expr) algebra.Printed {
	var steady []algebra.Expr
	for _, o := range all {
		if o.Interval == nil {
			return shown
		}
		steady = append(steady, o.Interval.Steady)
	}
	if s == nil || s.Parts == nil {
		return shown
	}
	x := of(steady)
	shown.Interval = &algebra.Interval{Steady: x, Terms: []algebra.Term{{X: x, Within: s.Parts}}}
	return shown
}

// sumOfIntervals is l + r or l - r. Its identity is that operation.
func sumOfIntervals(b *algebra.Binder, n syntax.Expr, written algebra.Binary, l, r Operand) (Operand, error) {
	s := l.Plus(r.Range)
	terms := append([]algebra.Term(nil), l.Interval.Terms...)
	for _, t := range r.Interval.Terms {
		t.Negative = t.Negative != (written.Op == syntax.Subtract)
		terms = plusTerm(terms, t)
	}
	if written.Op == syntax.Subtract {
		s = l.Plus(r.Negated())
	}
	if !s.Parts.Tame() {
		return Operand{}, b.Unsupported(n, "an interval this long", "")
	}
	if len(terms) > maxTerms {
		return Operand{}, b.Unsupported(n, "a sum of this many intervals", "add the constants up")
	}
	x := algebra.Guard{X: written, Clamped: made(terms)}
	o := result(x, s)
	o.Interval = &algebra.Interval{Terms: terms, Steady: x}
	return o, nil
}

// plusTerm adds a term to a sum, and a constant to the one that is there.
func plusTerm(terms []algebra.Term, t algebra.Term) []algebra.Term {
	c, ok := t.X.(algebra.Constant)
	if !ok || c.Null {
		return append(terms, t)
	}
	for i, known := range terms {
		if k, ok := known.X.(algebra.Constant); ok && !k.Null {
			within := known.Signed().With(t.Signed(), (*scalar.Range).Plus)
			x := algebra.Constant{T: scalar.IntervalType, Text: intervalOf(within.Months.Lo, within.Days.Lo, within.Micros.Lo)}
			terms[i] = algebra.Term{X: x, Within: within}
			return terms
		}
	}
	return append(terms, t)
}

// intervalOf is the text of a constant.
func intervalOf(months, days, micros *big.Rat) string {
	return fmt.Sprintf("%s months %s days %s microseconds", months.Num(), days.Num(), micros.Num())
}

// maxTerms bounds a sum of intervals once its constants are added up: each of them is named up to six times.
const maxTerms = 8

// made is a sum of intervals, field by field.
func made(terms []algebra.Term) algebra.Expr {
	months0, days0, micros0 := new(big.Rat), new(big.Rat), new(big.Rat)
	var rest []algebra.Term
	for _, t := range terms {
		c, ok := t.X.(algebra.Constant)
		switch {
		case !ok:
			rest = append(rest, t)
		case c.Null:
			return algebra.Constant{T: scalar.IntervalType, Null: true}
		default:
			of := t.Signed()
			months0, days0, micros0 = of.Months.Lo, of.Days.Lo, of.Micros.Lo
		}
	}
	if len(rest) == 0 {
		return algebra.Constant{T: scalar.IntervalType, Text: intervalOf(months0, days0, micros0)}
	}
	return makeInterval(rest, months0, days0, micros0.Num().Int64(), 0)
}

// Levelled is an interval as long as another, of which equal ones are identical: months count as 30 days each, which is what they are in a
// comparison, and no part of a day is more than one.
func Levelled(e algebra.Expr) algebra.Expr {
	t := algebra.Term{X: e, Within: scalar.PartLimits()}
	if c, ok := e.(algebra.Computed); ok && c.Interval != nil {
		t = algebra.Term{X: c.Interval.Steady, Within: c.Within.Parts}
	}
	return algebra.Call{Name: "justify_hours", Args: []algebra.Expr{makeInterval([]algebra.Term{t}, new(big.Rat), new(big.Rat), 0, 30)},
		T: scalar.IntervalType}
}

// makeInterval is the sum of terms and of a constant, field by field; where monthDays is not 0, months are so many days.
func makeInterval(terms []algebra.Term, months, days *big.Rat, micros, monthDays int64) algebra.Expr {
	const hour, minute = 3600 * scalar.SecondUnit, 60 * scalar.SecondUnit
	byDays := []intervalField{{"day", 1}}
	byMonths := []intervalField{{"year", 12}, {"month", 1}}
	if monthDays > 0 {
		byDays, byMonths = append(byDays, intervalField{"year", 12 * monthDays}, intervalField{"month", monthDays}), nil
	}
	whole := func(sum *big.Rat, fields ...intervalField) algebra.Expr {
		return bare(toInteger(fieldSum(terms, sum, fields...), catalog.Int4).X)
	}
	zero := algebra.Constant{T: catalog.Int4, Text: "0"}
	return algebra.Call{Name: "make_interval", T: scalar.IntervalType, Args: []algebra.Expr{zero, whole(months, byMonths...), zero,
		whole(days, byDays...),
		whole(scalar.Number(micros/hour), intervalField{"hour", 1}),
		whole(scalar.Number(micros%hour/minute), intervalField{"minute", 1}),
		fieldSum(terms, big.NewRat(micros%minute, scalar.SecondUnit), intervalField{"second", 1}).In(catalog.Float8).guarded().X}}
}

// within is the range of a remainder of values in s: up to most, of their signs.
func within(s *scalar.Range, most int64) *scalar.Range {
	r := scalar.Between(0, 0)
	if s.Lo.Sign() < 0 {
		r.Lo = scalar.Number(-most)
	}
	if s.Hi.Sign() > 0 {
		r.Hi = scalar.Number(most)
	}
	return r
}

// partOf is the range of a field that EXTRACT gives of an interval. The smaller fields of months and of microseconds have the sign of
// these, and are what whole years, hours and minutes leave.
func partOf(name string, p *scalar.Parts) *scalar.Range {
	each := func(s *scalar.Range, unit int64) *scalar.Range {
		return s.Each(func(v *big.Rat) *big.Int { return scalar.TowardZero(new(big.Rat).Quo(v, scalar.Number(unit))) })
	}
	switch name {
	case "year":
		return each(&p.Months, 12)
	case "month":
		return within(&p.Months, 11)
	case "day":
		return &p.Days
	case "hour":
		return each(&p.Micros, 3600*scalar.SecondUnit)
	case "minute":
		return within(&p.Micros, 59)
	case "second":
		s := within(&p.Micros, 60)
		s.Scale = 6
		return s
	default:
		panic("sqlrewrite: field of an interval without a range")
	}
}

// intervalField is a field that EXTRACT gives of an interval, and how often it counts.
type intervalField struct {
	name  string
	times int64
}

// fieldSum is the sum of fields of all terms and of a constant, in numeric. Fields that are always zero are left out.
func fieldSum(terms []algebra.Term, sum *big.Rat, fields ...intervalField) Operand {
	total := constantOf(ValueOf(sum, catalog.Numeric), scalar.Exactly(sum))
	total.Scale = 6
	for _, t := range terms {
		for _, f := range fields {
			s := *partOf(f.name, t.Within)
			if s.Lo.Sign() == 0 && s.Hi.Sign() == 0 && f.name != "second" { // which shows whether the term is NULL
				continue
			}
			x := result(algebra.Call{Name: "extract", Args: []algebra.Expr{algebra.Constant{T: catalog.Text, Text: f.name}, t.X},
				T: catalog.Numeric}, &s)
			if f.times != 1 {
				times := scalar.Number(f.times)
				x = safeNumeric(syntax.Multiply, x, constantOf(ValueOf(times, catalog.Numeric), scalar.Exactly(times)))
			}
			op := syntax.Add
			if t.Negative {
				op = syntax.Subtract
			}
			total = safeNumeric(op, total, x)
		}
	}
	return total
}

// moved is a time with an interval added or taken away.
func moved(b *algebra.Binder, n syntax.Expr, op syntax.Operator, t catalog.Type, l, r Operand) (Operand, error) {
	at, by := l, r
	if l.X.Typ() == scalar.IntervalType {
		at, by = r, l
	}
	at = toTime(at, t)
	at = at.guarded()
	move := by.Range
	if op == syntax.Subtract {
		move = by.Negated()
	}
	// On the way months count first, then days.
	day := scalar.Number(scalar.DayUnit)
	steps := at.Range
	months := scalar.OfCorners(&move.Parts.Months, scalar.Between(28*scalar.DayUnit, 31*scalar.DayUnit),
		func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) })
	days := scalar.OfCorners(&move.Parts.Days, scalar.Exactly(day), func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) })
	for _, s := range []*scalar.Range{months, days, &move.Parts.Micros} {
		steps = steps.Plus(s)
		if !inPostgres(steps, t) {
			return Operand{}, tooFar(b, n)
		}
	}
	s := at.Plus(move)
	s.Parts = nil
	if !inCalendar(s, t) {
		return Operand{}, tooFar(b, n)
	}
	if l.X.Typ() == scalar.IntervalType {
		return result(algebra.Binary{Op: op, L: by.Interval.Steady, R: at.X, T: t}, s), nil
	}
	return result(algebra.Binary{Op: op, L: at.X, R: by.Interval.Steady, T: t}, s), nil
}

func tooFar(b *algebra.Binder, n syntax.Expr) error {
	return b.Unsupported(n, "a time this far from now", "")
}

// inPostgres are the times that PostgreSQL has, with some to spare.
func inPostgres(s *scalar.Range, t catalog.Type) bool {
	first := scalar.InUnit(time.Date(-4700, 1, 1, 0, 0, 0, 0, time.UTC), t)
	last := scalar.InUnit(time.Date(290_000, 1, 1, 0, 0, 0, 0, time.UTC), t)
	return first.Cmp(s.Lo) <= 0 && s.Hi.Cmp(last) <= 0
}

// safeAge is age(a, b): months, days and a part of a day, all of one sign.
func safeAge(c safeCall) (Operand, error) {
	t := catalog.Timestamp
	if c.args[0].X.Typ() == catalog.Timestamptz || c.args[1].X.Typ() == catalog.Timestamptz {
		t = catalog.Timestamptz
	}
	l, r := toTime(c.args[0], t).guarded(), toTime(c.args[1], t).guarded()
	between := l.Plus(r.Negated())
	p := &scalar.Parts{Months: *scalar.Between(0, 0), Days: *scalar.Between(0, 0), Micros: *scalar.Between(0, 0)}
	if between.Hi.Sign() > 0 {
		p.Months.Hi, p.Days.Hi, p.Micros.Hi = monthsWithin(between.Hi), scalar.Number(31), scalar.Number(scalar.DayUnit)
	}
	if between.Lo.Sign() < 0 {
		p.Months.Lo = new(big.Rat).Neg(monthsWithin(new(big.Rat).Neg(between.Lo)))
		p.Days.Lo, p.Micros.Lo = scalar.Number(-31), scalar.Number(-scalar.DayUnit)
	}
	day := scalar.Number(scalar.DayUnit)
	length := func(months, days, micros *big.Rat) *big.Rat { // a month has at most 31 days
		all := new(big.Rat).Mul(months, scalar.Number(31))
		return all.Add(all.Mul(all.Add(all, days), day), micros)
	}
	s := &scalar.Range{Lo: length(p.Months.Lo, p.Days.Lo, p.Micros.Lo), Hi: length(p.Months.Hi, p.Days.Hi, p.Micros.Hi),
		OpenLo: between.OpenLo, OpenHi: between.OpenHi, Parts: p}
	x := algebra.Call{Name: c.call.Name, Args: []algebra.Expr{l.X, r.X}, T: c.call.T}
	o, term := result(x, s), algebra.Term{X: x, Within: p}
	made := makeInterval([]algebra.Term{term}, new(big.Rat), new(big.Rat), 0, 0)
	o.Interval = &algebra.Interval{Steady: algebra.Guard{X: x, Clamped: made}, Terms: []algebra.Term{term}}
	return o, nil
}

// monthsWithin is how many whole months a time of some microseconds holds at most. 400 years have 146,097 days, and n months are at most 4
// days shorter than the n-th part of them.
func monthsWithin(micros *big.Rat) *big.Rat {
	days := new(big.Rat).Quo(micros, scalar.Number(scalar.DayUnit))
	months := days.Mul(days.Add(days, scalar.Number(4)), big.NewRat(12*400, 146_097))
	return new(big.Rat).SetInt(scalar.Floor(months))
}
