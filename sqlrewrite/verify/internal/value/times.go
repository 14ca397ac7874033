package value

import (
	"math/big"
	"slices"
	"strconv"

	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
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
//  5. age of two timestamps has as many months as fit between them, none shorter than 28 days, less than 31 days and less than a day. It
//     fails on infinite ones only, which are refused with all that have no bounds. *Example.* age(a, b) of a and b in 1900 to 2000 has
//     at most 1,305 months.
//  6. to_char of a timestamp of the years 1 to 9999 is total for a constant template that is not empty, and depends on no locale without
//     TM (table 9.27): a word has at most nine letters. *Example.* to_char(t, 'YYYY-MM') is taken, to_char(t, 'TMMonth') is refused.
//  7. date_bin of a length without months, above 0, does not fail where time and origin are in the calendar, and lies at the time or before
//     it, by the length at most (TestBinsBeginBefore). *Example.* date_bin('7 days', t, '2024-01-07') of t from 1900 on is taken.
//  8. timezone of a zone whose file the transaction has read does not fail where the time is in the calendar, and moves it by 16 hours at
//     most, by the zone's offset (TestZonesMoveLittle). It takes as long for each time, but for steps of a search among a few hundred
//     changes of clocks. Of another zone the first row that is reached would read the file, or raise an error. *Example.* With the zone
//     Asia/Tokyo, timezone('Asia/Tokyo', t) of t from 1900 on is taken, timezone('Asia/Kolkata', t) is refused.

// The rules of + - * on dates, times and intervals.

func (d *Terms) daysBetween(op string, args ...*Value) *Value {
	v := d.Apply(Int4, op, args...)
	if v.Within = args[0].Within.Minus(args[1].Within); !v.Within.Inside(ranges.Int4) {
		refuse("a difference of dates that may be infinite")
	}
	return v
}

func (d *Terms) daysLater(op string, args ...*Value) *Value {
	at, days := args[0], args[1]
	v := d.Apply(Date, op, at, days)
	v.Within = computations[op].within(at, days)
	if !v.Within.Finite() {
		refuse("a date without bounds plus days")
	}
	calendar.Check(v.Within.Times(ranges.Point(big.NewRat(calendar.Day, 1))))
	return v
}

func (d *Terms) timeBetween(op string, args ...*Value) *Value {
	v := d.Apply(Interval, op, args...)
	between := args[0].Within.Minus(args[1].Within)
	if !between.Finite() {
		refuse("a difference of times without bounds")
	}
	calendar.Check(args[0].Within)
	calendar.Check(args[1].Within)
	inDays := between.Times(ranges.Point(big.NewRat(1, calendar.Day)))
	v.parts = [3]ranges.Span{ranges.Point(ranges.Zero), inDays.Hull(ranges.Point(ranges.Zero)), ranges.Of(-calendar.Day, calendar.Day)}
	v.Same = true // whole days, and less than a day of the same sign
	return v
}

// age gives months, less than a month of days, and less than a day.
func (d *Terms) age(name string, args ...*Value) *Value {
	v := d.Apply(Interval, name, args...)
	between := args[0].Within.Minus(args[1].Within)
	if !between.Finite() {
		refuse("age of times without bounds")
	}
	calendar.Check(args[0].Within)
	calendar.Check(args[1].Within)
	months := between.Times(ranges.Point(big.NewRat(1, 28*calendar.Day))).WithZero()
	v.parts = [3]ranges.Span{months, ranges.Of(-31, 31), ranges.Of(-calendar.Day, calendar.Day)}
	calendar.CheckParts(v.parts)
	return v
}

func (d *Terms) timeMoved(op string, args ...*Value) *Value {
	v := d.Apply(args[0].Kind, op, args...)
	v.Within = calendar.Moved(args[0].Within, args[1].parts, op == "-")
	return v
}

func (d *Terms) intervals(op string, args ...*Value) *Value {
	v := d.Apply(Interval, op, args...)
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
	return func(d *Terms, op string, args ...*Value) *Value { return r(d, op, args[1], args[0]) }
}

func (d *Terms) dateTrunc(name string, args ...*Value) *Value {
	length, known := calendar.Lengths[args[0].text]
	if !known {
		return nil
	}
	v := d.Apply(args[1].Kind, name, args...)
	if !args[1].Within.Finite() {
		refuse("date_trunc of a time without bounds")
	}
	v.Within = args[1].Within.Plus(ranges.Of(-length*calendar.Day, 0))
	calendar.Check(v.Within)
	return v
}

// dateBin gives the begin of a bin in which a time is, or of the one before. It fails on a bin of months, or of no length.
func (d *Terms) dateBin(name string, args ...*Value) *Value {
	size, x, origin := args[0].parts, args[1].Within, args[2].Within
	v := d.Apply(args[1].Kind, name, args...)
	if !x.Finite() || !origin.Finite() {
		refuse("date_bin of times without bounds")
	}
	calendar.CheckParts(size)
	length := size[1].Times(ranges.Point(big.NewRat(calendar.Day, 1))).Plus(size[2])
	if !size[0].Inside(ranges.Of(0, 0)) || !length.Inside(ranges.Of(1, 366_000*calendar.Day)) {
		refuse("date_bin into bins of months, or of no length")
	}
	calendar.Check(origin)
	calendar.Check(x)
	v.Within = x.Minus(length.WithZero())
	calendar.Check(v.Within)
	return v
}

// inZone is what a zone's clocks show at a moment, or when they show a time.
func (d *Terms) inZone(name string, args ...*Value) *Value {
	zone, x := args[0].text, args[1]
	if args[0].Null || !slices.Contains(d.Zones, zone) || !tree.IsZone(zone) {
		refuse("a time zone whose file may not have been read")
	}
	k := Timestamp
	if x.Kind == k {
		k = Timestamptz
	}
	v := d.Apply(k, name, args...)
	if !x.Within.Finite() {
		refuse("a time without bounds in another zone")
	}
	calendar.Check(x.Within)
	const farthest = calendar.Day / 24 * 16
	v.Within = x.Within.Plus(ranges.Of(-farthest, farthest))
	calendar.Check(v.Within)
	return v
}

// extract is extract, which gives a numeric, or date_part, which gives a float.
func (d *Terms) extract(name string, args ...*Value) *Value {
	field, x := args[0].text, args[1]
	f, known := calendar.Fields[field]
	if !known {
		return nil
	}
	k := Numeric
	if name == "date_part" {
		k = Float8
	}
	v := d.Apply(k, name, args...)
	switch {
	case x.Kind == Interval:
		if v.Within, known = calendar.PartOf(field, x.parts); !known {
			return nil
		}
	case f.OfDay && x.Kind == Date || !x.Within.Finite():
		refuse("%s of a time without bounds", name)
	case f.Within.Finite():
		v.Within = f.Within
	default:
		v.Within = yearly(field, x)
	}
	v.Digits = f.Digits
	if k == Numeric {
		v.Scale, v.Same = f.Digits, true
		if field == "epoch" && x.Kind == Date {
			v.Digits, v.Scale = 0, 0
		}
	} else {
		v.Grain, v.Same, v.Digits = 0, false, -1
		if f.Digits > 0 {
			v.Grain = GrainOf(ranges.Ten(-f.Digits))
		}
		v.Within = v.Within.Mapped(Floated)
	}
	v.Nonzero = !v.Within.Has(ranges.Zero)
	return v
}

// toChar is a time as a text.
func (d *Terms) toChar(name string, args ...*Value) *Value {
	const longest = 9 // September, Wednesday
	at, template := args[0], args[1].text
	if !at.Within.Inside(calendar.FourDigits) {
		refuse("to_char of a time that may have a year of other than four digits")
	}
	if args[1].Null || len(template) > 1000 || !calendar.Templates.MatchString(template) {
		refuse("to_char with a template that no rule covers")
	}
	v := d.Apply(Text, name, args...)
	v.Chars = longest * len(template)
	return v
}

// makeInterval is make_interval(0, months, 0, days, hours, minutes, seconds): its parts are sums of these.
func (d *Terms) makeInterval(name string, args ...*Value) *Value {
	for i, a := range args {
		if n := a.Number(); a.Null && i < 6 || !a.Within.Finite() || (i == 0 || i == 2) && (n == nil || n.Sign() != 0) {
			refuse("make_interval of other arguments")
		}
	}
	v := d.Apply(Interval, name, args...)
	size := func(i int, n int64) ranges.Span { return args[i].Within.Times(ranges.Point(big.NewRat(n, 1))) }
	v.parts = [3]ranges.Span{args[1].Within, args[3].Within,
		size(4, 3600_000000).Plus(size(5, 60_000000)).Plus(size(6, 1000000)).Plus(ranges.Of(-1, 1))}
	calendar.CheckParts(v.parts)
	return v
}

// yearly is the range of a field that grows with time.
func yearly(field string, x *Value) ranges.Span {
	days := x.Within
	if x.Kind != Date {
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
