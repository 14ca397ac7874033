// Package calendar has the ranges of times and intervals: what PostgreSQL's calendar holds, and what is added within it (Lemma 5a).
// It does not know columns and statements.
package calendar

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Day is one in microseconds, which timestamps are ranges of.
const Day = 86400_000000

// calendar is what stays within PostgreSQL's, with room.
var calendar = ranges.Of(-2_436_200*Day, 105_300_000*Day)

// Check refuses times, in microseconds since 1970, that may leave the calendar.
func Check(s ranges.Span) {
	if !s.Inside(calendar) {
		tree.Refuse("a time that may leave the calendar")
	}
}

// Instant reads "2024-02-29", "2024-02-29 12:30:00.5", years of more digits and " BC", in microseconds since 1970, UTC.
func Instant(s string) (micros int64, ok bool) {
	s, bc := strings.CutSuffix(s, " BC")
	date, clock, timed := strings.Cut(s, " ")
	f := strings.Split(date, "-")
	if len(f) != 3 || len(f[0]) < 4 || len(f[0]) > 6 {
		return 0, false
	}
	var n [3]int
	for i := range f {
		var err error
		if n[i], err = strconv.Atoi(f[i]); err != nil {
			return 0, false
		}
	}
	var of time.Time
	if timed {
		var err error
		if of, err = time.Parse("15:04:05.999999", clock); err != nil {
			return 0, false
		}
	}
	if bc {
		n[0] = 1 - n[0]
	}
	at := time.Date(n[0], time.Month(n[1]), n[2], of.Hour(), of.Minute(), of.Second(), of.Nanosecond(), time.UTC)
	if at.Year() != n[0] || int(at.Month()) != n[1] || at.Day() != n[2] || n[0] < -4700 || n[0] > 290000 {
		return 0, false
	}
	return at.UnixMicro(), true
}

// Date reads a date, in days since 1970.
func Date(s string) (days int64, ok bool) {
	micros, ok := Instant(s)
	return micros / Day, ok
}

// InUTC reads an instant with the zone +00.
func InUTC(s string) (micros int64, ok bool) {
	s, bc := strings.CutSuffix(s, " BC")
	if s, ok = strings.CutSuffix(s, "+00"); !ok {
		return 0, false
	}
	if bc {
		s += " BC"
	}
	return Instant(s)
}

// Interval reads "1 months 2 days 3 hours 4 minutes 5 microseconds", of which hours and minutes may be left out.
func Interval(s string) (parts [3]ranges.Span) {
	units := map[string]struct {
		part int
		size int64
	}{"months": {0, 1}, "days": {1, 1}, "hours": {2, 3600_000000}, "minutes": {2, 60_000000}, "microseconds": {2, 1}}
	sums := [3]*big.Int{new(big.Int), new(big.Int), new(big.Int)}
	f := strings.Fields(s)
	if len(f)%2 != 0 || len(f) > 10 {
		tree.Refuse("an interval written in another way")
	}
	for i := 0; i < len(f); i += 2 {
		u, known := units[f[i+1]]
		n, err := strconv.ParseInt(f[i], 10, 64)
		if !known || err != nil {
			tree.Refuse("an interval written in another way")
		}
		delete(units, f[i+1]) // none twice
		sums[u.part].Add(sums[u.part], new(big.Int).Mul(big.NewInt(n), big.NewInt(u.size)))
	}
	for i, sum := range sums {
		parts[i] = ranges.Point(new(big.Rat).SetInt(sum))
	}
	CheckParts(parts)
	return parts
}

// CheckParts refuses months, days and microseconds that may not fit into an interval.
func CheckParts(parts [3]ranges.Span) {
	if !parts[0].Inside(ranges.Int4) || !parts[1].Inside(ranges.Int4) || !parts[2].Inside(ranges.Int8) {
		tree.Refuse("an interval that may not fit")
	}
}

// Moved is a time plus or minus an interval, part by part.
func Moved(at ranges.Span, parts [3]ranges.Span, back bool) ranges.Span {
	if !at.Finite() {
		tree.Refuse("a time without bounds plus an interval")
	}
	CheckParts(parts)
	for i, size := range []ranges.Span{ranges.Of(28*Day, 31*Day), ranges.Of(Day, Day), ranges.Of(1, 1)} {
		by := parts[i]
		if back {
			by = by.Negated()
		}
		at = at.Plus(by.Times(size))
		Check(at)
	}
	return at
}

// Fields of extract, with their ranges; those of times of day exist for timestamps only.
var Fields = map[string]struct {
	Within ranges.Span
	OfDay  bool
	Digits int
}{
	"century": {}, "decade": {}, "millennium": {}, "year": {}, "isoyear": {},
	"quarter": {Within: ranges.Of(1, 4)}, "month": {Within: ranges.Of(1, 12)}, "week": {Within: ranges.Of(1, 53)},
	"day": {Within: ranges.Of(1, 31)},
	"doy": {Within: ranges.Of(1, 366)}, "dow": {Within: ranges.Of(0, 6)}, "isodow": {Within: ranges.Of(1, 7)},
	"hour": {Within: ranges.Of(0, 23), OfDay: true}, "minute": {Within: ranges.Of(0, 59), OfDay: true},
	"second": {Within: ranges.Of(0, 60), OfDay: true, Digits: 6}, "milliseconds": {Within: ranges.Of(0, 60_000), OfDay: true, Digits: 3},
	"microseconds": {Within: ranges.Of(0, 60_000_000), OfDay: true}, "epoch": {Digits: 6},
}

// Lengths are the units of date_trunc, in days at most.
var Lengths = map[string]int64{"microseconds": 1, "milliseconds": 1, "second": 1, "minute": 1, "hour": 1, "day": 1, "week": 7,
	"month": 31, "quarter": 92, "year": 366, "decade": 3660, "century": 36600, "millennium": 366000}

// Templates are those of to_char without what depends on locale or zone, and without text whose quotes or escapes are read in a way of
// its own.
var Templates = regexp.MustCompile(`^(?:(?:FM|fm)?(?:HH24|hh24|HH12|hh12|HH|hh|MI|mi|SS|ss|AM|PM|am|pm|I?YYY?Y?|i?yyy?y?|MONTH|Month|month|` +
	`MON|Mon|mon|MM|mm|DAY|Day|day|DY|Dy|dy|I?D(?:DD?)?|i?d(?:dd?)?|I?W|i?w|WW|ww|Q|q)|"[^"\\]*"|[ !#-/:-@\[\]^_\x60{-~])+$`)

// FourDigits are the years 1 to 9999, in microseconds.
var FourDigits = ranges.Of(-719_162*Day, 2_932_897*Day-1)

// PartOf is the range of a field of an interval.
func PartOf(field string, parts [3]ranges.Span) (ranges.Span, bool) {
	of := func(i int, size int64) ranges.Span {
		return parts[i].Times(ranges.Point(big.NewRat(1, size))).WithZero()
	}
	switch field {
	case "epoch": // a month has at most 31 days
		months := parts[0].Times(ranges.Point(big.NewRat(31*86400, 1))).WithZero()
		return months.Plus(parts[1].Times(ranges.Point(big.NewRat(86400, 1)))).Plus(parts[2].Times(ranges.Point(big.NewRat(1, 1000000)))), true
	case "year":
		return of(0, 12), true
	case "month":
		return ranges.Of(-11, 11), true
	case "day":
		return parts[1], true
	case "hour":
		return of(2, 3600_000000), true
	case "minute":
		return ranges.Of(-59, 59), true
	case "second":
		return ranges.Of(-60, 60), true
	}
	return ranges.Span{}, false
}
