package verify

import (
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
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

// timeArithmetic is + - * on dates, times and intervals.
func (d *derivation) timeArithmetic(op string, l, r *value) *value {
	days := ranges.Point(big.NewRat(calendar.Day, 1))
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
		calendar.Check(v.within.Times(days))
		return v
	case op == "-" && isTime(l.kind) && l.kind == r.kind:
		v := d.apply(interval, op, l, r)
		between := l.within.Minus(r.within)
		if !between.Finite() {
			refuse("a difference of times without bounds")
		}
		calendar.Check(l.within)
		calendar.Check(r.within)
		inDays := between.Times(ranges.Point(big.NewRat(1, calendar.Day)))
		v.parts = [3]span{ranges.Point(zero), inDays.Hull(ranges.Point(zero)), ranges.Of(-calendar.Day, calendar.Day)}
		v.same = true // whole days, and less than a day of the same sign
		return v
	case (op == "+" || op == "-") && (l.kind == timestamp || l.kind == timestamptz) && r.kind == interval:
		v := d.apply(l.kind, op, l, r)
		v.within = calendar.Moved(l.within, r.parts, op == "-")
		return v
	case op == "+" && l.kind == interval && (r.kind == timestamp || r.kind == timestamptz):
		v := d.apply(r.kind, op, l, r)
		v.within = calendar.Moved(r.within, l.parts, false)
		return v
	case (op == "+" || op == "-") && l.kind == interval && r.kind == interval:
		v := d.apply(interval, op, l, r)
		for i := range v.parts {
			if v.parts[i] = l.parts[i].Plus(r.parts[i]); op == "-" {
				v.parts[i] = l.parts[i].Minus(r.parts[i])
			}
		}
		calendar.CheckParts(v.parts)
		return v
	}
	refuse("operator %s on these types of times", op)
	return nil
}

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
		length, known := calendar.Lengths[field]
		if !known || x.kind != timestamp && x.kind != timestamptz {
			return nil
		}
		v := d.apply(x.kind, name, args...)
		if !x.within.Finite() {
			refuse("date_trunc of a time without bounds")
		}
		v.within = x.within.Plus(ranges.Of(-length*calendar.Day, 0))
		calendar.Check(v.within)
		return v
	case "extract", "date_part":
		k := numeric
		if name == "date_part" {
			k = float8
		}
		v := d.apply(k, name, args...)
		f, known := calendar.Fields[field]
		if !known {
			return nil
		}
		switch x.kind {
		case interval:
			if field != "epoch" {
				of, known := calendar.PartOf(field, x.parts)
				if !known {
					return nil
				}
				v.within = of
				break
			}
			months := x.parts[0].Times(ranges.Point(big.NewRat(31*86400, 1))).WithZero()
			v.within = months.Plus(x.parts[1].Times(ranges.Point(big.NewRat(86400, 1)))).Plus(x.parts[2].Times(ranges.Point(big.NewRat(1, 1000000))))
		default:
			if !isTime(x.kind) || f.OfDay && x.kind == date || !x.within.Finite() {
				refuse("%s of a time without bounds", name)
			}
			v.within = f.Within
			if !f.Within.Finite() {
				v.within = yearly(field, x)
			}
		}
		v.digits = f.Digits
		if k == numeric {
			v.scale, v.same = f.Digits, true
			if field == "epoch" && x.kind == date {
				v.digits, v.scale = 0, 0
			}
		} else {
			v.grain, v.same, v.digits = 0, false, -1
			if f.Digits > 0 {
				v.grain = grainOf(ranges.Ten(-f.Digits))
			}
			v.within = v.within.Mapped(floated)
		}
		v.nonzero = !v.within.Has(zero)
		return v
	}
	return nil
}

// toChar is a time as a text.
func (d *derivation) toChar(args []*value) *value {
	const longest = 9 // September, Wednesday
	if len(args) != 2 || args[0].kind != timestamp && args[0].kind != timestamptz || args[1].kind != text || !args[1].read() {
		return nil
	}
	at, template := args[0], args[1].text
	if !at.within.Inside(calendar.FourDigits) {
		refuse("to_char of a time that may have a year of other than four digits")
	}
	if args[1].null || len(template) > 1000 || !calendar.Templates.MatchString(template) {
		refuse("to_char with a template that no rule covers")
	}
	v := d.apply(text, "to_char", args...)
	v.chars = longest * len(template)
	return v
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
	calendar.CheckParts(v.parts)
	return v
}

// yearly is the range of a field that grows with time.
func yearly(field string, x *value) span {
	days := x.within
	if x.kind != date {
		days = days.Times(ranges.Point(big.NewRat(1, calendar.Day)))
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
