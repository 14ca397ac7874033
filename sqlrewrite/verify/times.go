package verify

import (
	"math/big"
	"regexp"
	"strconv"

	"noisegate/sqlrewrite/verify/internal/ranges"
)

// Dates and times (Lemma 5a). The session's time zone is UTC.
//
//  1. PostgreSQL's calendar goes from 4714 BC to 294276 for timestamps; ranges here stay within 4701 BC to 290270, in days and microseconds since
//     1970. *Example.* date_trunc('year', t) of any timestamp is refused, of one from 1900 on it is taken.
//  2. A sum of a timestamp and an interval adds the months first, then the days, then the microseconds, and each step must stay in the calendar
//     (B3); a month is 28 to 31 days. *Example.* t + 1 month of t in 1900 to 2024 lies 28 to 31 days later.
//  3. Intervals have three parts, whose sums and products must each fit (B2): 32 bits for months and days, 64 for microseconds.
//  4. A difference of two timestamps has no months, whole days and less than a day of microseconds.
//  5. to_char of a timestamp of the years 1 to 9999 is total for a constant template that is not empty, and depends on no locale without
//     TM (table 9.27): a word has at most nine letters. *Example.* to_char(t, 'YYYY-MM') is taken, to_char(t, 'TMMonth') is refused.

const day = 86400_000000

var calendar = ranges.Of(-2_436_200*day, 105_300_000*day)

func inCalendar(s span) {
	if !s.Inside(calendar) {
		refuse("a time that may leave the calendar")
	}
}

// timeArithmetic is + - * on dates, times and intervals.
func (d *derivation) timeArithmetic(op string, l, r *value) *value {
	days := ranges.Point(big.NewRat(day, 1))
	if op == "+" && isInteger(l.kind) && r.kind == date {
		l, r = r, l
	}
	switch {
	case op == "-" && l.kind == date && r.kind == date:
		v := d.apply(int4, op, l, r)
		if v.within = l.within.Minus(r.within); !v.within.Inside(ranges.Int4) {
			refuse("a difference of dates that may be infinite")
		}
		return v
	case (op == "+" || op == "-") && l.kind == date && (r.kind == int4 || r.kind == int2):
		v := d.apply(date, op, l, r)
		v.within = l.within.Plus(r.within)
		if op == "-" {
			v.within = l.within.Minus(r.within)
		}
		if !v.within.Finite() {
			refuse("a date without bounds plus days")
		}
		inCalendar(v.within.Times(days))
		return v
	case op == "-" && isTime(l.kind) && l.kind == r.kind:
		v := d.apply(interval, op, l, r)
		between := l.within.Minus(r.within)
		if !between.Finite() {
			refuse("a difference of times without bounds")
		}
		inCalendar(l.within)
		inCalendar(r.within)
		v.parts = [3]span{ranges.Point(zero), between.Times(ranges.Point(big.NewRat(1, day))).Hull(ranges.Point(zero)), ranges.Of(-day, day)}
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
			if v.parts[i] = l.parts[i].Plus(r.parts[i]); op == "-" {
				v.parts[i] = l.parts[i].Minus(r.parts[i])
			}
		}
		fitParts(v.parts)
		return v
	}
	refuse("operator %s on these types of times", op)
	return nil
}

func fitParts(parts [3]span) {
	if !parts[0].Inside(ranges.Int4) || !parts[1].Inside(ranges.Int4) || !parts[2].Inside(ranges.Int8) {
		refuse("an interval that may not fit")
	}
}

// moved is a time plus or minus an interval, part by part.
func moved(at span, parts [3]span, back bool) span {
	if !at.Finite() {
		refuse("a time without bounds plus an interval")
	}
	fitParts(parts)
	for i, size := range []span{ranges.Of(28*day, 31*day), ranges.Of(day, day), ranges.Of(1, 1)} {
		by := parts[i]
		if back {
			by = by.Negated()
		}
		at = at.Plus(by.Times(size))
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
	"quarter": {within: ranges.Of(1, 4)}, "month": {within: ranges.Of(1, 12)}, "week": {within: ranges.Of(1, 53)}, "day": {within: ranges.Of(1, 31)},
	"doy": {within: ranges.Of(1, 366)}, "dow": {within: ranges.Of(0, 6)}, "isodow": {within: ranges.Of(1, 7)},
	"hour": {within: ranges.Of(0, 23), ofDay: true}, "minute": {within: ranges.Of(0, 59), ofDay: true},
	"second": {within: ranges.Of(0, 60), ofDay: true, digits: 6}, "milliseconds": {within: ranges.Of(0, 60_000), ofDay: true, digits: 3},
	"microseconds": {within: ranges.Of(0, 60_000_000), ofDay: true}, "epoch": {digits: 6},
}

// lengths are the units of date_trunc, in days at most.
var lengths = map[string]int64{"microseconds": 1, "milliseconds": 1, "second": 1, "minute": 1, "hour": 1, "day": 1, "week": 7, "month": 31, "quarter": 92,
	"year": 366, "decade": 3660, "century": 36600, "millennium": 366000}

func (d *derivation) temporal(name string, args []*value) *value {
	if name == "make_interval" {
		return d.makeInterval(args)
	}
	if name == "to_char" {
		return d.toChar(args)
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
		if !x.within.Finite() {
			refuse("date_trunc of a time without bounds")
		}
		v.within = x.within.Plus(ranges.Of(-length*day, 0))
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
			months := x.parts[0].Times(ranges.Point(big.NewRat(31*86400, 1))).WithZero()
			v.within = months.Plus(x.parts[1].Times(ranges.Point(big.NewRat(86400, 1)))).Plus(x.parts[2].Times(ranges.Point(big.NewRat(1, 1000000))))
		default:
			if !isTime(x.kind) || f.ofDay && x.kind == date || !x.within.Finite() {
				refuse("%s of a time without bounds", name)
			}
			v.within = f.within
			if !f.within.Finite() {
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
				v.grain = grainOf(ranges.Ten(-f.digits))
			}
			v.within = v.within.Mapped(floated)
		}
		v.nonzero = !v.within.Has(zero)
		return v
	}
	return nil
}

// templates are those of to_char without what depends on locale or zone, and without text whose quotes or escapes are read in a way of its own.
var templates = regexp.MustCompile(`^(?:(?:FM|fm)?(?:HH24|hh24|HH12|hh12|HH|hh|MI|mi|SS|ss|AM|PM|am|pm|I?YYY?Y?|i?yyy?y?|MONTH|Month|month|` +
	`MON|Mon|mon|MM|mm|DAY|Day|day|DY|Dy|dy|I?D(?:DD?)?|i?d(?:dd?)?|I?W|i?w|WW|ww|Q|q)|"[^"\\]*"|[ !#-/:-@\[\]^_\x60{-~])+$`)

// fourDigits are the years 1 to 9999, in microseconds.
var fourDigits = ranges.Of(-719_162*day, 2_932_897*day-1)

// toChar is a time as a text.
func (d *derivation) toChar(args []*value) *value {
	const longest = 9 // September, Wednesday
	if len(args) != 2 || args[0].kind != timestamp && args[0].kind != timestamptz || args[1].kind != text || !args[1].read() {
		return nil
	}
	at, template := args[0], args[1].text
	if !at.within.Inside(fourDigits) {
		refuse("to_char of a time that may have a year of other than four digits")
	}
	if args[1].null || len(template) > 1000 || !templates.MatchString(template) {
		refuse("to_char with a template that no rule covers")
	}
	v := d.apply(text, "to_char", args...)
	v.chars = longest * len(template)
	return v
}

// partOf is the range of a field of an interval.
func (d *derivation) partOf(field string, x *value) (span, bool) {
	of := func(i int, size int64) span { return x.parts[i].Times(ranges.Point(big.NewRat(1, size))).WithZero() }
	switch field {
	case "year":
		return of(0, 12), true
	case "month":
		return ranges.Of(-11, 11), true
	case "day":
		return x.parts[1], true
	case "hour":
		return of(2, 3600_000000), true
	case "minute":
		return ranges.Of(-59, 59), true
	case "second":
		return ranges.Of(-60, 60), true
	}
	return span{}, false
}

// makeInterval is make_interval(0, months, 0, days, hours, minutes, seconds): its parts are sums of these.
func (d *derivation) makeInterval(args []*value) *value {
	if len(args) != 7 || args[6].kind != float8 || !args[6].within.Finite() {
		refuse("make_interval of other arguments")
	}
	for i, a := range args[:6] {
		if n := a.number(); a.kind != int4 || a.null || !a.within.Finite() || (i == 0 || i == 2) && (n == nil || n.Sign() != 0) {
			refuse("make_interval of other arguments")
		}
	}
	v := d.apply(interval, "make_interval", args...)
	size := func(i int, n int64) span { return args[i].within.Times(ranges.Point(big.NewRat(n, 1))) }
	v.parts = [3]span{args[1].within, args[3].within, size(4, 3600_000000).Plus(size(5, 60_000000)).Plus(size(6, 1000000)).Plus(ranges.Of(-1, 1))}
	fitParts(v.parts)
	return v
}

// yearly is the range of a field that grows with time.
func yearly(field string, x *value) span {
	days := x.within
	if x.kind != date {
		days = days.Times(ranges.Point(big.NewRat(1, day)))
	}
	if field == "epoch" {
		return days.Times(ranges.Point(big.NewRat(86400, 1)))
	}
	years := days.Times(ranges.Point(big.NewRat(10000, 3652425))).Plus(ranges.Of(1968, 1972))
	part := map[string]int64{"year": 1, "isoyear": 1, "decade": 10, "century": 100, "millennium": 1000}[field]
	if part == 0 {
		refuse("field %s", strconv.Quote(field))
	}
	return years.Times(ranges.Point(big.NewRat(1, part))).Plus(ranges.Of(-2, 2))
}
