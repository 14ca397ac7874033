package scalar

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"noisegate.example/catalog"
)

// IntervalType is the type of differences of times; it exists below the aggregates only.
const IntervalType catalog.Type = "interval"

const (
	microsecond = int64(1)
	SecondUnit  = 1_000_000 * microsecond
	DayUnit     = 86_400 * SecondUnit
)

// The times that count in computations: beyond them, infinities included, a column without bounds counts as the nearest of these.
func TimeRange() (first, last time.Time) {
	return time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
}

// InUnit is a time in the unit of bounds of type t: days for dates, else microseconds.
func InUnit(at time.Time, t catalog.Type) *big.Rat {
	if t == catalog.Date {
		return Number(FloorDiv(at.Unix(), 86_400))
	}
	return Number(at.UnixMicro())
}

func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// AtTime is the time of a value in the unit of type t.
func AtTime(v *big.Rat, t catalog.Type) time.Time {
	whole := Floor(v).Int64()
	if t == catalog.Date {
		return time.Unix(whole*86_400, 0).UTC()
	}
	return time.UnixMicro(whole).UTC()
}

// TimeOf is the text of a time as PostgreSQL writes it.
func TimeOf(v *big.Rat, t catalog.Type) string {
	at, era := AtTime(v, t), ""
	year := at.Year()
	if year < 1 { // 1 BC comes before year 1
		year, era = 1-year, " BC"
	}
	text := fmt.Sprintf("%04d", year)
	switch t {
	case catalog.Date:
		return text + at.Format("-01-02") + era
	case catalog.Timestamp:
		return text + at.Format("-01-02 15:04:05.999999") + era
	default:
		return text + at.Format("-01-02 15:04:05.999999") + "+00" + era
	}
}

// Instant reads the canonical text of a time constant.
func Instant(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05.999999", "2006-01-02 15:04:05.999999Z07"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// IntervalText reads an interval: units as PostgreSQL names them, or hours:minutes:seconds. The canonical text has months, days and
// microseconds, of which PostgreSQL's intervals are made.
func IntervalText(text string) (canonical string, ok bool) {
	months, days, micros, ok := ParseInterval(text)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%d months %d days %d microseconds", months, days, micros), true
}

// ShortFields is an interval's canonical text without a number beyond 32 bits: PostgreSQL 14 refuses one in any of an interval's fields.
func ShortFields(canonical string) string {
	var months, days, micros int64
	if n, err := fmt.Sscanf(canonical, "%d months %d days %d microseconds", &months, &days, &micros); n != 3 || err != nil ||
		micros == int64(int32(micros)) {
		return canonical
	}
	const hour, minute = 3600 * SecondUnit, 60 * SecondUnit
	return fmt.Sprintf("%d months %d days %d hours %d minutes %d microseconds", months, days, micros/hour, micros%hour/minute, micros%minute)
}

// maxInterval bounds an interval constant, in days.
const maxInterval = 400_000

var intervalUnits = map[string]struct{ months, days, micros int64 }{
	"microsecond": {0, 0, 1}, "millisecond": {0, 0, 1000}, "second": {0, 0, SecondUnit}, "sec": {0, 0, SecondUnit},
	"minute": {0, 0, 60 * SecondUnit}, "min": {0, 0, 60 * SecondUnit}, "hour": {0, 0, 3600 * SecondUnit},
	"day": {0, 1, 0}, "week": {0, 7, 0}, "month": {1, 0, 0}, "mon": {1, 0, 0}, "year": {12, 0, 0},
}

// ParseInterval reads an interval; ok is false for a text that is none, or that is too long.
func ParseInterval(text string) (months, days, micros int64, ok bool) {
	months, days, micros, is, within := readInterval(text)
	return months, days, micros, is && within
}

// readInterval says whether a text is an interval, and whether it is one that counts.
func readInterval(text string) (months, days, micros int64, is, within bool) {
	words := strings.Fields(strings.ToLower(text))
	far := func(v, limit int64) bool { return v > limit || v < -limit }
	within = true
	for i := 0; i < len(words); i++ {
		if clock := strings.Split(words[i], ":"); len(clock) > 1 && len(clock) <= 3 {
			unit := 3600 * SecondUnit
			for _, part := range clock {
				v, err := strconv.ParseUint(part, 10, 16)
				if err != nil && !errors.Is(err, strconv.ErrRange) {
					return 0, 0, 0, false, false
				}
				within = within && err == nil
				micros += int64(v) * unit
				unit /= 60
			}
			continue
		}
		v, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || i+1 == len(words) {
			return 0, 0, 0, false, false
		}
		i++
		unit, known := intervalUnits[words[i]]
		if !known {
			unit, known = intervalUnits[strings.TrimSuffix(words[i], "s")]
		}
		if !known {
			return 0, 0, 0, false, false
		}
		if limit := maxInterval * DayUnit / max(1, unit.micros); far(v, limit) || unit.micros == 0 && far(v, maxInterval) {
			within = false
			continue
		}
		months, days, micros = months+v*unit.months, days+v*unit.days, micros+v*unit.micros
	}
	within = within && !far(months, maxInterval/31) && !far(days, maxInterval) && !far(micros, maxInterval*DayUnit)
	return months, days, micros, len(words) > 0, within
}

// TimeField is a part of a date or time that EXTRACT gives.
type TimeField struct {
	Name    string
	Lo, Hi  int64
	Clock   bool // dates do not have it
	Scale   int  // digits after the point
	OfSpans bool // intervals have it too
}

func TimeFields() []TimeField {
	return []TimeField{
		{Name: "year", OfSpans: true}, {Name: "isoyear"}, {Name: "decade"}, {Name: "century"}, {Name: "millennium"},
		{Name: "quarter", Lo: 1, Hi: 4}, {Name: "month", Lo: 1, Hi: 12, OfSpans: true}, {Name: "week", Lo: 1, Hi: 53},
		{Name: "day", Lo: 1, Hi: 31, OfSpans: true}, {Name: "dow", Lo: 0, Hi: 6}, {Name: "isodow", Lo: 1, Hi: 7}, {Name: "doy", Lo: 1, Hi: 366},
		{Name: "hour", Lo: 0, Hi: 23, Clock: true, OfSpans: true}, {Name: "minute", Lo: 0, Hi: 59, Clock: true, OfSpans: true},
		{Name: "second", Lo: 0, Hi: 60, Clock: true, Scale: 6, OfSpans: true}, {Name: "epoch", Scale: 6, OfSpans: true},
	}
}

// Truncations are the units of date_trunc, in the order of their lengths.
func Truncations() []string {
	return []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium"}
}

// Truncated is date_trunc.
func Truncated(at time.Time, unit string) time.Time {
	y, m, d := at.Date()
	switch unit {
	case "second":
		return at.Truncate(time.Second)
	case "minute":
		return at.Truncate(time.Minute)
	case "hour":
		return at.Truncate(time.Hour)
	case "day":
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case "week":
		return time.Date(y, m, d-(int(at.Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	case "month":
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case "quarter":
		return time.Date(y, (m-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
	case "year":
		return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
	case "decade": // the 2020s begin with 2020, the 21st century with 2001
		return time.Date(int(10*FloorDiv(int64(y), 10)), 1, 1, 0, 0, 0, 0, time.UTC)
	case "century":
		return time.Date(int(100*FloorDiv(int64(y-1), 100))+1, 1, 1, 0, 0, 0, 0, time.UTC)
	case "millennium":
		return time.Date(int(1000*FloorDiv(int64(y-1), 1000))+1, 1, 1, 0, 0, 0, 0, time.UTC)
	default:
		panic("sqlrewrite: unit of date_trunc that was not checked")
	}
}
