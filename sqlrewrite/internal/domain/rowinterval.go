package sqlrewrite

import (
	"fmt"
	"math/big"
	"time"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// An interval has months, days and microseconds. PostgreSQL adds each of them by itself, and to a time the months first, then the days, then the rest: an
// interval that is short as a length can still leave the calendar on the way, or overflow. So each part has limits of its own, at each step.
//
// Intervals come from constants and from differences of times. What is printed is one of these forms, which raise no error:
//
//	$1::interval                                          a constant
//	(t1 - t2)                                             of times within their ranges
//	interval_larger(interval_smaller((t1 - t2), hi), lo)  the same as an operand: it has no months, and its days and microseconds have one sign
//	make_interval(0, months, 0, days, hours, mins, secs)  a sum: fields of its terms, each clamped, added as numbers and clamped again
//	CASE, coalesce, greatest, least, nullif               of these
type interval struct {
	terms  []term // what it is the sum of
	steady expr   // it as an operand: each part is within its range by what is printed
}

// term is an interval in a sum.
type term struct {
	x        expr // steady
	within   *parts
	negative bool
}

// parts are the ranges of an interval's parts.
type parts struct{ months, days, micros extent }

// The limits of an interval's parts: far inside those of PostgreSQL, and far beyond those of its times.
func partLimits() *parts {
	return &parts{months: *between(-1<<22, 1<<22), days: *between(-1<<28, 1<<28), micros: *between(-1<<62, 1<<62)}
}

func (p *parts) each(f func(s *extent) *extent) *parts {
	return &parts{months: *f(&p.months), days: *f(&p.days), micros: *f(&p.micros)}
}

func (p *parts) with(o *parts, f func(s, o *extent) *extent) *parts {
	if p == nil || o == nil {
		return nil
	}
	return &parts{months: *f(&p.months, &o.months), days: *f(&p.days, &o.days), micros: *f(&p.micros, &o.micros)}
}

// tame reports whether every part is within its limits.
func (p *parts) tame() bool {
	ok := true
	p.with(partLimits(), func(s, limit *extent) *extent {
		ok = ok && limit.holds(s.lo) && limit.holds(s.hi)
		return s
	})
	return ok
}

// intervalConstant is a constant as an operand: a month has 28 to 31 days.
func intervalConstant(c constant) operand {
	months, days, micros := int64(0), int64(0), int64(0)
	if !c.null {
		var ok bool
		if months, days, micros, ok = parseInterval(c.text); !ok {
			panic("sqlrewrite: interval constant that was not checked")
		}
	}
	rest := days*dayUnit + micros
	short, long := months*28*dayUnit, months*31*dayUnit
	s := between(min(short, long)+rest, max(short, long)+rest)
	s.parts = &parts{months: *between(months, months), days: *between(days, days), micros: *between(micros, micros)}
	o := constantOf(c, s)
	o.interval = &interval{steady: c, terms: []term{{x: c, within: s.parts}}}
	return o
}

// difference is t1 - t2, of times whose difference is within s.
func difference(x expr, s *extent) operand {
	day := number(dayUnit)
	lo, hi := floor(new(big.Rat).Quo(s.lo, day)), ceil(new(big.Rat).Quo(s.hi, day))
	s.parts = &parts{months: *between(0, 0), days: extent{lo: new(big.Rat).SetInt(lo), hi: new(big.Rat).SetInt(hi)}, micros: *between(-dayUnit, dayUnit)}
	end := func(days *big.Int) constant {
		return constant{t: intervalType, text: fmt.Sprintf("0 months %s days 0 microseconds", days)}
	}
	steady := call{name: "interval_smaller", args: []expr{x, end(hi)}, t: intervalType}
	steady = call{name: "interval_larger", args: []expr{steady, end(lo)}, t: intervalType}
	o := result(x, s)
	o.interval = &interval{steady: guard{x: x, clamped: steady}}
	o.interval.terms = []term{{x: o.interval.steady, within: s.parts}}
	return o
}

// oneOfIntervals is what an operand shows that is one of several: of intervals, it with the steady forms of these.
func oneOfIntervals(shown printed, all []operand, s *extent, of func(steady []expr) expr) printed {
	var steady []expr
	for _, o := range all {
		if o.interval == nil {
			return shown
		}
		steady = append(steady, o.interval.steady)
	}
	if s == nil || s.parts == nil {
		return shown
	}
	x := of(steady)
	shown.interval = &interval{steady: x, terms: []term{{x: x, within: s.parts}}}
	return shown
}

// sumOfIntervals is l + r or l - r. Its identity is that operation.
func (b *binder) sumOfIntervals(n syntax.Expr, written binary, l, r operand) (operand, error) {
	s := l.plus(r.extent)
	terms := append([]term(nil), l.interval.terms...)
	for _, t := range r.interval.terms {
		t.negative = t.negative != (written.op == syntax.Subtract)
		terms = plusTerm(terms, t)
	}
	if written.op == syntax.Subtract {
		s = l.plus(r.negated())
	}
	if !s.parts.tame() {
		return operand{}, b.unsupported(n, "an interval this long", "")
	}
	if len(terms) > maxTerms {
		return operand{}, b.unsupported(n, "a sum of this many intervals", "add the constants up")
	}
	x := guard{x: written, clamped: made(terms)}
	o := result(x, s)
	o.interval = &interval{terms: terms, steady: x}
	return o, nil
}

// plusTerm adds a term to a sum, and a constant to the one that is there.
func plusTerm(terms []term, t term) []term {
	c, ok := t.x.(constant)
	if !ok || c.null {
		return append(terms, t)
	}
	for i, known := range terms {
		if k, ok := known.x.(constant); ok && !k.null {
			within := known.signed().with(t.signed(), (*extent).plus)
			x := constant{t: intervalType, text: intervalOf(within.months.lo, within.days.lo, within.micros.lo)}
			terms[i] = term{x: x, within: within}
			return terms
		}
	}
	return append(terms, t)
}

// signed are the ranges of what a term adds.
func (t term) signed() *parts {
	if t.negative {
		return t.within.each((*extent).negated)
	}
	return t.within
}

// intervalOf is the text of a constant.
func intervalOf(months, days, micros *big.Rat) string {
	return fmt.Sprintf("%s months %s days %s microseconds", months.Num(), days.Num(), micros.Num())
}

// maxTerms bounds a sum of intervals once its constants are added up: each of them is named up to six times.
const maxTerms = 8

// made is a sum of intervals, field by field.
func made(terms []term) expr {
	months0, days0, micros0 := new(big.Rat), new(big.Rat), new(big.Rat)
	var rest []term
	for _, t := range terms {
		c, ok := t.x.(constant)
		switch {
		case !ok:
			rest = append(rest, t)
		case c.null:
			return constant{t: intervalType, null: true}
		default:
			of := t.signed()
			months0, days0, micros0 = of.months.lo, of.days.lo, of.micros.lo
		}
	}
	if len(rest) == 0 {
		return constant{t: intervalType, text: intervalOf(months0, days0, micros0)}
	}
	return makeInterval(rest, months0, days0, micros0.Num().Int64(), 0)
}

// levelled is an interval as long as another, of which equal ones are identical: months count as 30 days each, which is what they are in a comparison, and
// no part of a day is more than one.
func levelled(e expr) expr {
	t := term{x: e, within: partLimits()}
	if c, ok := e.(computed); ok && c.interval != nil {
		t = term{x: c.interval.steady, within: c.within.parts}
	}
	return call{name: "justify_hours", args: []expr{makeInterval([]term{t}, new(big.Rat), new(big.Rat), 0, 30)}, t: intervalType}
}

// makeInterval is the sum of terms and of a constant, field by field; where monthDays is not 0, months are so many days.
func makeInterval(terms []term, months, days *big.Rat, micros, monthDays int64) expr {
	const hour, minute = 3600 * secondUnit, 60 * secondUnit
	years := func(p *parts) *extent {
		return p.months.each(func(v *big.Rat) *big.Int { return towardZero(new(big.Rat).Quo(v, number(12))) })
	}
	rest := func(p *parts) *extent { return within(&p.months, 11) }
	hours := func(p *parts) *extent {
		return p.micros.each(func(v *big.Rat) *big.Int { return towardZero(new(big.Rat).Quo(v, number(hour))) })
	}
	secs := func(p *parts) *extent {
		s := within(&p.micros, 60)
		s.scale = 6
		return s
	}
	byDays := []intervalField{{"day", func(p *parts) *extent { return &p.days }, 1}}
	byMonths := []intervalField{{"year", years, 12}, {"month", rest, 1}}
	if monthDays > 0 {
		byDays, byMonths = append(byDays, intervalField{"year", years, 12 * monthDays}, intervalField{"month", rest, monthDays}), nil
	}
	whole := func(sum *big.Rat, fields ...intervalField) expr {
		return bare(toInteger(fieldSum(terms, sum, fields...), catalog.Int4).x)
	}
	zero := constant{t: catalog.Int4, text: "0"}
	return call{name: "make_interval", t: intervalType, args: []expr{zero, whole(months, byMonths...), zero, whole(days, byDays...),
		whole(number(micros/hour), intervalField{"hour", hours, 1}),
		whole(number(micros%hour/minute), intervalField{"minute", func(p *parts) *extent { return within(&p.micros, 59) }, 1}),
		fieldSum(terms, big.NewRat(micros%minute, secondUnit), intervalField{"second", secs, 1}).in(catalog.Float8).guarded().x}}
}

// each maps both ends.
func (s *extent) each(f func(*big.Rat) *big.Int) *extent {
	return &extent{lo: new(big.Rat).SetInt(f(s.lo)), hi: new(big.Rat).SetInt(f(s.hi))}
}

// within is the range of a remainder of values in s: up to most, of their signs.
func within(s *extent, most int64) *extent {
	r := between(0, 0)
	if s.lo.Sign() < 0 {
		r.lo = number(-most)
	}
	if s.hi.Sign() > 0 {
		r.hi = number(most)
	}
	return r
}

// intervalField is a field that EXTRACT gives of an interval, and how often it counts.
type intervalField struct {
	name  string
	of    func(*parts) *extent
	times int64
}

// fieldSum is the sum of fields of all terms and of a constant, in numeric. Fields that are always zero are left out.
func fieldSum(terms []term, sum *big.Rat, fields ...intervalField) operand {
	total := constantOf(valueOf(sum, catalog.Numeric), exactly(sum))
	total.scale = 6
	for _, t := range terms {
		for _, f := range fields {
			s := *f.of(t.within)
			if s.lo.Sign() == 0 && s.hi.Sign() == 0 && f.name != "second" { // which shows whether the term is NULL
				continue
			}
			x := result(call{name: "extract", args: []expr{constant{t: catalog.Text, text: f.name}, t.x}, t: catalog.Numeric}, &s)
			if f.times != 1 {
				times := number(f.times)
				x = numericTotal(syntax.Multiply, x, constantOf(valueOf(times, catalog.Numeric), exactly(times)))
			}
			op := syntax.Add
			if t.negative {
				op = syntax.Subtract
			}
			total = numericTotal(op, total, x)
		}
	}
	return total
}

// moved is a time with an interval added or taken away.
func (b *binder) moved(n syntax.Expr, op syntax.Operator, t catalog.Type, l, r operand) (operand, error) {
	at, by := l, r
	if l.x.typ() == intervalType {
		at, by = r, l
	}
	at = toTime(at, t)
	at = at.guarded()
	move := by.extent
	if op == syntax.Subtract {
		move = by.negated()
	}
	// On the way months count first, then days.
	day := number(dayUnit)
	steps := at.extent
	months := ofCorners(&move.parts.months, between(28*dayUnit, 31*dayUnit), func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) })
	days := ofCorners(&move.parts.days, exactly(day), func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) })
	for _, s := range []*extent{months, days, &move.parts.micros} {
		steps = steps.plus(s)
		if !inPostgres(steps, t) {
			return operand{}, b.tooFar(n)
		}
	}
	s := at.plus(move)
	s.parts = nil
	if !inCalendar(s, t) {
		return operand{}, b.tooFar(n)
	}
	if l.x.typ() == intervalType {
		return result(binary{op: op, l: by.interval.steady, r: at.x, t: t}, s), nil
	}
	return result(binary{op: op, l: at.x, r: by.interval.steady, t: t}, s), nil
}

func (b *binder) tooFar(n syntax.Expr) error { return b.unsupported(n, "a time this far from now", "") }

// inPostgres are the times that PostgreSQL has, with some to spare.
func inPostgres(s *extent, t catalog.Type) bool {
	first := inUnit(time.Date(-4700, 1, 1, 0, 0, 0, 0, time.UTC), t)
	last := inUnit(time.Date(290_000, 1, 1, 0, 0, 0, 0, time.UTC), t)
	return first.Cmp(s.lo) <= 0 && s.hi.Cmp(last) <= 0
}
