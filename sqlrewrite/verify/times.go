package verify

import (
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Dates and times (Lemma 5a). The session's time zone is UTC.
//
//  1. PostgreSQL's calendar goes from 4714 BC to 294276 for timestamps; ranges here stay within 4701 BC to 290270, in days and
//     microseconds since
//     1970. *Example.* date_trunc('year', t) of any timestamp is refused, of one from 1900 on it is taken.
//  2. A sum of a timestamp and an interval adds the months first, then the days, then the microseconds, and each step must stay in the
//     calendar (B3); a month is 28 to 31 days. *Example.* t + 1 month of t in 1900 to 2024 lies 28 to 31 days later.
//  3. Intervals have three parts, whose sums and products must each fit (B2): 32 bits for months and days, 64 for microseconds.
//  4. A difference of two timestamps has no months, whole days and less than a day of microseconds.
//  5. to_char of a timestamp of the years 1 to 9999 is total for a constant template that is not empty, and depends on no locale without
//     TM (table 9.27): a word has at most nine letters. *Example.* to_char(t, 'YYYY-MM') is taken, to_char(t, 'TMMonth') is refused.

// The rules of + - * on dates, times and intervals.

func (d *Terms) daysBetween(op string, args ...*value) *value {
	v := d.apply(int4, op, args...)
	if v.within = args[0].within.Minus(args[1].within); !v.within.Inside(ranges.Int4) {
		refuse("a difference of dates that may be infinite")
	}
	return v
}

func (d *Terms) daysLater(op string, args ...*value) *value {
	at, days := args[0], args[1]
	v := d.apply(date, op, at, days)
	v.within = computations[op].within(at, days)
	if !v.within.Finite() {
		refuse("a date without bounds plus days")
	}
	calendar.Check(v.within.Times(ranges.Point(big.NewRat(calendar.Day, 1))))
	return v
}

func (d *Terms) timeBetween(op string, args ...*value) *value {
	v := d.apply(interval, op, args...)
	between := args[0].within.Minus(args[1].within)
	if !between.Finite() {
		refuse("a difference of times without bounds")
	}
	calendar.Check(args[0].within)
	calendar.Check(args[1].within)
	inDays := between.Times(ranges.Point(big.NewRat(1, calendar.Day)))
	v.parts = [3]ranges.Span{ranges.Point(ranges.Zero), inDays.Hull(ranges.Point(ranges.Zero)), ranges.Of(-calendar.Day, calendar.Day)}
	v.same = true // whole days, and less than a day of the same sign
	return v
}

func (d *Terms) timeMoved(op string, args ...*value) *value {
	v := d.apply(args[0].kind, op, args...)
	v.within = calendar.Moved(args[0].within, args[1].parts, op == "-")
	return v
}

func (d *Terms) intervals(op string, args ...*value) *value {
	v := d.apply(interval, op, args...)
	for i := range v.parts {
		if v.parts[i] = args[0].parts[i].Plus(args[1].parts[i]); op == "-" {
			v.parts[i] = args[0].parts[i].Minus(args[1].parts[i])
		}
	}
	calendar.CheckParts(v.parts)
	return v
}

// turned is a rule for the operands in the other order.
func turned(r rule) rule {
	return func(d *Terms, op string, args ...*value) *value { return r(d, op, args[1], args[0]) }
}

func (d *Terms) dateTrunc(name string, args ...*value) *value {
	length, known := calendar.Lengths[args[0].text]
	if !known {
		return nil
	}
	v := d.apply(args[1].kind, name, args...)
	if !args[1].within.Finite() {
		refuse("date_trunc of a time without bounds")
	}
	v.within = args[1].within.Plus(ranges.Of(-length*calendar.Day, 0))
	calendar.Check(v.within)
	return v
}

// extract is extract, which gives a numeric, or date_part, which gives a float.
func (d *Terms) extract(name string, args ...*value) *value {
	field, x := args[0].text, args[1]
	f, known := calendar.Fields[field]
	if !known {
		return nil
	}
	k := numeric
	if name == "date_part" {
		k = float8
	}
	v := d.apply(k, name, args...)
	switch {
	case x.kind == interval:
		if v.within, known = calendar.PartOf(field, x.parts); !known {
			return nil
		}
	case f.OfDay && x.kind == date || !x.within.Finite():
		refuse("%s of a time without bounds", name)
	case f.Within.Finite():
		v.within = f.Within
	default:
		v.within = yearly(field, x)
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
	v.nonzero = !v.within.Has(ranges.Zero)
	return v
}

// toChar is a time as a text.
func (d *Terms) toChar(name string, args ...*value) *value {
	const longest = 9 // September, Wednesday
	at, template := args[0], args[1].text
	if !at.within.Inside(calendar.FourDigits) {
		refuse("to_char of a time that may have a year of other than four digits")
	}
	if args[1].null || len(template) > 1000 || !calendar.Templates.MatchString(template) {
		refuse("to_char with a template that no rule covers")
	}
	v := d.apply(text, name, args...)
	v.chars = longest * len(template)
	return v
}

// makeInterval is make_interval(0, months, 0, days, hours, minutes, seconds): its parts are sums of these.
func (d *Terms) makeInterval(name string, args ...*value) *value {
	for i, a := range args {
		if n := a.number(); a.null && i < 6 || !a.within.Finite() || (i == 0 || i == 2) && (n == nil || n.Sign() != 0) {
			refuse("make_interval of other arguments")
		}
	}
	v := d.apply(interval, name, args...)
	size := func(i int, n int64) ranges.Span { return args[i].within.Times(ranges.Point(big.NewRat(n, 1))) }
	v.parts = [3]ranges.Span{args[1].within, args[3].within,
		size(4, 3600_000000).Plus(size(5, 60_000000)).Plus(size(6, 1000000)).Plus(ranges.Of(-1, 1))}
	calendar.CheckParts(v.parts)
	return v
}

// yearly is the range of a field that grows with time.
func yearly(field string, x *value) ranges.Span {
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
