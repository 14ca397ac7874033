package verify

import (
	"math/big"
	"strconv"
)

// Dates and times. PostgreSQL's calendar goes from 4714 BC to 294276 for timestamps; ranges here stay within 4701 BC to 290270, in days and
// microseconds since 1970. A sum of a timestamp and an interval adds the months first, then the days, then the microseconds, and each step
// must stay in the calendar (B3); a month is 28 to 31 days. Intervals have three parts, whose sums and products must each fit (B2): 32
// bits for months and days, 64 for microseconds.
//
// A difference of two timestamps has no months, whole days and less than a day of microseconds. The session's time zone is UTC.

const day = 86400_000000

var calendar = spanOf(-2_436_200*day, 105_300_000*day)

func inCalendar(s span) {
	if !s.inside(calendar) {
		refuse("a time that may leave the calendar")
	}
}

// timeArithmetic is + - * on dates, times and intervals.
func (d *derivation) timeArithmetic(op string, l, r *value) *value {
	days := point(big.NewRat(day, 1))
	if op == "+" && isInteger(l.kind) && r.kind == date {
		l, r = r, l
	}
	switch {
	case op == "-" && l.kind == date && r.kind == date:
		v := d.apply(int4, op, l, r)
		if v.within = l.within.minus(r.within); !v.within.inside(whole32) {
			refuse("a difference of dates that may be infinite")
		}
		return v
	case (op == "+" || op == "-") && l.kind == date && (r.kind == int4 || r.kind == int2):
		v := d.apply(date, op, l, r)
		v.within = l.within.plus(r.within)
		if op == "-" {
			v.within = l.within.minus(r.within)
		}
		if !v.within.finite() {
			refuse("a date without bounds plus days")
		}
		inCalendar(v.within.times(days))
		return v
	case op == "-" && isTime(l.kind) && l.kind == r.kind:
		v := d.apply(interval, op, l, r)
		between := l.within.minus(r.within)
		if !between.finite() {
			refuse("a difference of times without bounds")
		}
		inCalendar(l.within)
		inCalendar(r.within)
		v.parts = [3]span{point(zero), between.times(point(big.NewRat(1, day))).hull(point(zero)), spanOf(-day, day)}
		v.same = true // whole days, and less than a day of the same sign
		return v
	case (op == "+" || op == "-") && (l.kind == timestamp || l.kind == timestamptz) && r.kind == interval:
		v := d.apply(l.kind, op, l, r)
		v.within = moved(l.within, r.parts, op == "-")
		return v
	case op == "+" && l.kind == interval && (r.kind == timestamp || r.kind == timestamptz):
		v := d.apply(r.kind, op, l, r)
		v.within = moved(r.within, l.parts, false)
		return v
	case (op == "+" || op == "-") && l.kind == interval && r.kind == interval:
		v := d.apply(interval, op, l, r)
		for i := range v.parts {
			if v.parts[i] = l.parts[i].plus(r.parts[i]); op == "-" {
				v.parts[i] = l.parts[i].minus(r.parts[i])
			}
		}
		fitParts(v.parts)
		return v
	}
	refuse("operator %s on these types of times", op)
	return nil
}

func fitParts(parts [3]span) {
	if !parts[0].inside(whole32) || !parts[1].inside(whole32) || !parts[2].inside(whole64) {
		refuse("an interval that may not fit")
	}
}

// moved is a time plus or minus an interval, part by part.
func moved(at span, parts [3]span, back bool) span {
	if !at.finite() {
		refuse("a time without bounds plus an interval")
	}
	fitParts(parts)
	for i, size := range []span{spanOf(28*day, 31*day), spanOf(day, day), spanOf(1, 1)} {
		by := parts[i]
		if back {
			by = by.negated()
		}
		at = at.plus(by.times(size))
		inCalendar(at)
	}
	return at
}

// fields of extract, with their ranges; those of times of day exist for timestamps only.
var fields = map[string]struct {
	within span
	ofDay  bool
	digits int
}{
	"century": {}, "decade": {}, "millennium": {}, "year": {}, "isoyear": {},
	"quarter": {within: spanOf(1, 4)}, "month": {within: spanOf(1, 12)}, "week": {within: spanOf(1, 53)}, "day": {within: spanOf(1, 31)},
	"doy": {within: spanOf(1, 366)}, "dow": {within: spanOf(0, 6)}, "isodow": {within: spanOf(1, 7)},
	"hour": {within: spanOf(0, 23), ofDay: true}, "minute": {within: spanOf(0, 59), ofDay: true},
	"second": {within: spanOf(0, 60), ofDay: true, digits: 6}, "milliseconds": {within: spanOf(0, 60_000), ofDay: true, digits: 3},
	"microseconds": {within: spanOf(0, 60_000_000), ofDay: true}, "epoch": {digits: 6},
}

// lengths are the units of date_trunc, in days at most.
var lengths = map[string]int64{"microseconds": 1, "milliseconds": 1, "second": 1, "minute": 1, "hour": 1, "day": 1, "week": 7, "month": 31, "quarter": 92,
	"year": 366, "decade": 3660, "century": 36600, "millennium": 366000}

func (d *derivation) temporal(name string, args []*value) *value {
	if name == "make_interval" {
		return d.makeInterval(args)
	}
	if len(args) != 2 || args[0].kind != text || !args[0].read() {
		return nil
	}
	field, x := args[0].text, args[1]
	switch name {
	case "date_trunc":
		length, known := lengths[field]
		if !known || x.kind != timestamp && x.kind != timestamptz {
			return nil
		}
		v := d.apply(x.kind, name, args...)
		if !x.within.finite() {
			refuse("date_trunc of a time without bounds")
		}
		v.within = x.within.plus(spanOf(-length*day, 0))
		inCalendar(v.within)
		return v
	case "extract", "date_part":
		k := numeric
		if name == "date_part" {
			k = float8
		}
		v := d.apply(k, name, args...)
		f, known := fields[field]
		if !known {
			return nil
		}
		switch x.kind {
		case interval:
			if field != "epoch" {
				of, known := d.partOf(field, x)
				if !known {
					return nil
				}
				v.within = of
				break
			}
			months := x.parts[0].times(point(big.NewRat(31*86400, 1))).withZero()
			v.within = months.plus(x.parts[1].times(point(big.NewRat(86400, 1)))).plus(x.parts[2].times(point(big.NewRat(1, 1000000))))
		default:
			if !isTime(x.kind) || f.ofDay && x.kind == date || !x.within.finite() {
				refuse("%s of a time without bounds", name)
			}
			v.within = f.within
			if !f.within.finite() {
				v.within = yearly(field, x)
			}
		}
		v.digits = f.digits
		if k == numeric {
			v.scale, v.same = f.digits, true
			if field == "epoch" && x.kind == date {
				v.digits, v.scale = 0, 0
			}
		} else {
			v.grain, v.same, v.digits = 0, false, -1
			if f.digits > 0 {
				v.grain = grainOf(ten(-f.digits))
			}
			v.within = v.within.mapped(floated)
		}
		v.nonzero = !v.within.has(zero)
		return v
	}
	return nil
}

// partOf is the range of a field of an interval.
func (d *derivation) partOf(field string, x *value) (span, bool) {
	of := func(i int, size int64) span { return x.parts[i].times(point(big.NewRat(1, size))).withZero() }
	switch field {
	case "year":
		return of(0, 12), true
	case "month":
		return spanOf(-11, 11), true
	case "day":
		return x.parts[1], true
	case "hour":
		return of(2, 3600_000000), true
	case "minute":
		return spanOf(-59, 59), true
	case "second":
		return spanOf(-60, 60), true
	}
	return span{}, false
}

// makeInterval is make_interval(0, months, 0, days, hours, minutes, seconds): its parts are sums of these.
func (d *derivation) makeInterval(args []*value) *value {
	if len(args) != 7 || args[6].kind != float8 || !args[6].within.finite() {
		refuse("make_interval of other arguments")
	}
	for i, a := range args[:6] {
		if n := a.number(); a.kind != int4 || a.null || !a.within.finite() || (i == 0 || i == 2) && (n == nil || n.Sign() != 0) {
			refuse("make_interval of other arguments")
		}
	}
	v := d.apply(interval, "make_interval", args...)
	size := func(i int, n int64) span { return args[i].within.times(point(big.NewRat(n, 1))) }
	v.parts = [3]span{args[1].within, args[3].within, size(4, 3600_000000).plus(size(5, 60_000000)).plus(size(6, 1000000)).plus(spanOf(-1, 1))}
	fitParts(v.parts)
	return v
}

// yearly is the range of a field that grows with time.
func yearly(field string, x *value) span {
	days := x.within
	if x.kind != date {
		days = days.times(point(big.NewRat(1, day)))
	}
	if field == "epoch" {
		return days.times(point(big.NewRat(86400, 1)))
	}
	years := days.times(point(big.NewRat(10000, 3652425))).plus(spanOf(1968, 1972))
	part := map[string]int64{"year": 1, "isoyear": 1, "decade": 10, "century": 100, "millennium": 1000}[field]
	if part == 0 {
		refuse("field %s", strconv.Quote(field))
	}
	return years.times(point(big.NewRat(1, part))).plus(spanOf(-2, 2))
}
