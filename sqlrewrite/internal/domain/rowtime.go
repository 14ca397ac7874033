package sqlrewrite

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// intervalType is the type of differences of times; it exists below the aggregates only.
const intervalType catalog.Type = "interval"

const (
	microsecond = int64(1)
	secondUnit  = 1_000_000 * microsecond
	dayUnit     = 86_400 * secondUnit
)

// The times that count in computations: beyond them, infinities included, a column without bounds counts as the nearest of these.
func timeRange() (first, last time.Time) {
	return time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
}

// inUnit is a time in the unit of bounds of type t: days for dates, else microseconds.
func inUnit(at time.Time, t catalog.Type) *big.Rat {
	if t == catalog.Date {
		return number(floorDiv(at.Unix(), 86_400))
	}
	return number(at.UnixMicro())
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// atTime is the time of a value in the unit of type t.
func atTime(v *big.Rat, t catalog.Type) time.Time {
	whole := floor(v).Int64()
	if t == catalog.Date {
		return time.Unix(whole*86_400, 0).UTC()
	}
	return time.UnixMicro(whole).UTC()
}

// timeOf is the text of a time as PostgreSQL writes it.
func timeOf(v *big.Rat, t catalog.Type) string {
	at, era := atTime(v, t), ""
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

// instant reads the canonical text of a time constant.
func instant(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05.999999", "2006-01-02 15:04:05.999999Z07"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// timeLeaf clamps a column of times.
func timeLeaf(o operand, f *field) operand {
	first, last := timeRange()
	o.lo, o.hi = inUnit(first, f.Type), inUnit(last, f.Type)
	if f.Bounds != nil {
		return bounded(o, new(big.Rat).SetInt(ceil(f.Bounds.Lo)), new(big.Rat).SetInt(floor(f.Bounds.Hi)))
	}
	o = clamped(o, o.lo, o.hi)
	o.openLo, o.openHi = true, true
	return o
}

// calendar are the times that a computation may reach: far inside those that PostgreSQL has.
func inCalendar(s *extent, t catalog.Type) bool {
	first := inUnit(time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC), t)
	last := inUnit(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), t)
	return first.Cmp(s.lo) <= 0 && s.hi.Cmp(last) <= 0
}

// toTime casts between dates and times, in UTC.
func toTime(o operand, t catalog.Type) operand {
	from, s := o.x.typ(), *o.extent
	day := number(dayUnit)
	switch {
	case from == catalog.Date && t != catalog.Date:
		s.lo, s.hi = new(big.Rat).Mul(s.lo, day), new(big.Rat).Mul(s.hi, day)
	case from != catalog.Date && t == catalog.Date:
		s.lo = new(big.Rat).SetInt(floor(new(big.Rat).Quo(s.lo, day)))
		s.hi = new(big.Rat).SetInt(floor(new(big.Rat).Quo(s.hi, day)))
	}
	if from == t {
		return o
	}
	o = o.guarded()
	// Midnights are exact; what has a time zone is where the session's is.
	return operand{x: o.as(t), extent: &s, printed: printed{kept: from == catalog.Date && t == catalog.Timestamp}}
}

// timeArithmetic types + and - with a date, time or interval; ok is false when there is none.
func timeArithmetic(op syntax.Operator, l, r catalog.Type) (t catalog.Type, ok bool) {
	isInterval := func(t catalog.Type) bool { return t == intervalType }
	switch {
	case op == syntax.Subtract && l == catalog.Date && r == catalog.Date:
		return catalog.Int4, true
	case op == syntax.Subtract && l.IsTime() && r.IsTime():
		return intervalType, true
	case (op == syntax.Add || op == syntax.Subtract) && l == catalog.Date && (r == catalog.Int4 || r == catalog.Int2):
		return catalog.Date, true
	case op == syntax.Add && r == catalog.Date && (l == catalog.Int4 || l == catalog.Int2):
		return catalog.Date, true
	case (op == syntax.Add || op == syntax.Subtract) && isInterval(l) && isInterval(r):
		return intervalType, true
	case (op == syntax.Add || op == syntax.Subtract) && l.IsTime() && isInterval(r), op == syntax.Add && isInterval(l) && r.IsTime():
		t = l
		if isInterval(l) {
			t = r
		}
		if t == catalog.Date {
			t = catalog.Timestamp
		}
		return t, true
	default:
		return unknownType, false
	}
}

// maxDays is how many days may be added to a date: more count as so many.
const maxDays = 1_000_000

// timeTotal is the total form of arithmetic with dates, times and intervals.
func (b *binder) timeTotal(n syntax.Expr, op syntax.Operator, t catalog.Type, l, r operand) (operand, error) {
	lt, rt := l.x.typ(), r.x.typ()
	switch {
	case lt.IsTime() && rt.IsTime() && t == intervalType: // one of them is not a date: both as times
		other := lt
		if other == catalog.Date || rt == catalog.Timestamptz {
			other = rt
		}
		l, r = toTime(l, other).guarded(), toTime(r, other).guarded()
		return difference(binary{op: op, l: l.x, r: r.x, t: t}, l.plus(r.negated())), nil
	case t == intervalType:
		return b.sumOfIntervals(n, binary{op: op, l: l.x, r: r.x, t: t}, l, r)
	case t == catalog.Timestamp || t == catalog.Timestamptz:
		return b.moved(n, op, t, l, r)
	case t == catalog.Date: // date and days
		l, r = days(l), days(r)
	default: // the days between dates
		l, r = l.guarded(), r.guarded()
	}
	s := l.plus(r.extent)
	if op == syntax.Subtract {
		s = l.plus(r.negated())
	}
	if t.IsTime() && !inCalendar(s, t) {
		return operand{}, b.tooFar(n)
	}
	return result(binary{op: op, l: l.x, r: r.x, t: t}, s), nil
}

// days is a number of days for a date, or the date.
func days(o operand) operand {
	if o.x.typ() == catalog.Date {
		return o.guarded()
	}
	limit := number(maxDays)
	if o.reach().Cmp(limit) > 0 {
		o = clamped(o, new(big.Rat).Neg(limit), limit)
	}
	return o.guarded().in(catalog.Int4)
}

// intervalText reads an interval: units as PostgreSQL names them, or hours:minutes:seconds. The canonical text has months, days and
// microseconds, of which PostgreSQL's intervals are made.
func intervalText(text string) (canonical string, ok bool) {
	months, days, micros, ok := parseInterval(text)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%d months %d days %d microseconds", months, days, micros), true
}

// shortFields is an interval's canonical text without a number beyond 32 bits: PostgreSQL 14 refuses one in any of an interval's fields.
func shortFields(canonical string) string {
	var months, days, micros int64
	if n, err := fmt.Sscanf(canonical, "%d months %d days %d microseconds", &months, &days, &micros); n != 3 || err != nil || micros == int64(int32(micros)) {
		return canonical
	}
	const hour, minute = 3600 * secondUnit, 60 * secondUnit
	return fmt.Sprintf("%d months %d days %d hours %d minutes %d microseconds", months, days, micros/hour, micros%hour/minute, micros%minute)
}

// maxInterval bounds an interval constant, in days.
const maxInterval = 400_000

var intervalUnits = map[string]struct{ months, days, micros int64 }{
	"microsecond": {0, 0, 1}, "millisecond": {0, 0, 1000}, "second": {0, 0, secondUnit}, "sec": {0, 0, secondUnit},
	"minute": {0, 0, 60 * secondUnit}, "min": {0, 0, 60 * secondUnit}, "hour": {0, 0, 3600 * secondUnit},
	"day": {0, 1, 0}, "week": {0, 7, 0}, "month": {1, 0, 0}, "mon": {1, 0, 0}, "year": {12, 0, 0},
}

func parseInterval(text string) (months, days, micros int64, ok bool) {
	words := strings.Fields(strings.ToLower(text))
	far := func(v, limit int64) bool { return v > limit || v < -limit }
	for i := 0; i < len(words); i++ {
		if clock := strings.Split(words[i], ":"); len(clock) > 1 && len(clock) <= 3 {
			unit := 3600 * secondUnit
			for _, part := range clock {
				v, err := strconv.ParseUint(part, 10, 16)
				if err != nil {
					return 0, 0, 0, false
				}
				micros += int64(v) * unit
				unit /= 60
			}
			continue
		}
		v, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || i+1 == len(words) {
			return 0, 0, 0, false
		}
		i++
		unit, known := intervalUnits[words[i]]
		if !known {
			unit, known = intervalUnits[strings.TrimSuffix(words[i], "s")]
		}
		if limit := maxInterval * dayUnit / max(1, unit.micros); !known || far(v, limit) || unit.micros == 0 && far(v, maxInterval) {
			return 0, 0, 0, false
		}
		months, days, micros = months+v*unit.months, days+v*unit.days, micros+v*unit.micros
	}
	if len(words) == 0 || far(months, maxInterval/31) || far(days, maxInterval) || far(micros, maxInterval*dayUnit) {
		return 0, 0, 0, false
	}
	return months, days, micros, true
}

// timeField is a part of a date or time that EXTRACT gives.
type timeField struct {
	name    string
	lo, hi  int64
	clock   bool // dates do not have it
	scale   int  // digits after the point
	ofSpans bool // intervals have it too
}

func timeFields() []timeField {
	return []timeField{
		{name: "year"}, {name: "isoyear"}, {name: "decade"}, {name: "century"}, {name: "millennium"},
		{name: "quarter", lo: 1, hi: 4}, {name: "month", lo: 1, hi: 12}, {name: "week", lo: 1, hi: 53},
		{name: "day", lo: 1, hi: 31}, {name: "dow", lo: 0, hi: 6}, {name: "isodow", lo: 1, hi: 7}, {name: "doy", lo: 1, hi: 366},
		{name: "hour", lo: 0, hi: 23, clock: true}, {name: "minute", lo: 0, hi: 59, clock: true},
		{name: "second", lo: 0, hi: 60, clock: true, scale: 6}, {name: "epoch", scale: 6, ofSpans: true},
	}
}

// truncations are the units of date_trunc, in the order of their lengths.
func truncations() []string {
	return []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}
}

// timeCall types extract, date_part and date_trunc. Their field must be a constant: PostgreSQL raises an error for an unknown one.
func (b *binder) timeCall(n *syntax.Call, args []expr) (expr, error) {
	if len(args) != 2 {
		return nil, b.arity(n, "two arguments")
	}
	unit, ok := args[0].(constant)
	if !ok || unit.null || unit.t != unknownType && unit.t != catalog.Text {
		return nil, b.unsupported(n.Args[0], "a field of a time that is not a constant", "write extract(month FROM x)")
	}
	name := strings.ToLower(unit.text)
	field := constant{t: catalog.Text, text: name}
	x, err := b.coerce(n.Args[1], args[1], catalog.Timestamp)
	if err != nil {
		return nil, err
	}
	if !x.typ().IsTime() && x.typ() != intervalType {
		return nil, b.noFunction(n, x)
	}
	if n.Name == "date_trunc" {
		if !slices.Contains(truncations(), name) || x.typ() == intervalType {
			return nil, b.unsupported(n.Args[0], "date_trunc to this unit", "the units are "+strings.Join(truncations(), ", "))
		}
		t := x.typ()
		if t == catalog.Date {
			t = catalog.Timestamptz // as in PostgreSQL
		}
		return call{name: n.Name, args: []expr{field, x}, t: t}, nil
	}
	i := slices.IndexFunc(timeFields(), func(f timeField) bool { return f.name == name })
	if i < 0 {
		return nil, b.unsupported(n.Args[0], "this field of a time", "")
	}
	switch f := timeFields()[i]; {
	case f.clock && x.typ() == catalog.Date, !f.ofSpans && x.typ() == intervalType:
		return nil, b.mismatch(n, "values of type "+typeName(x.typ())+" have no "+name, "")
	}
	t := catalog.Numeric
	if n.Name == "date_part" {
		t = catalog.Float8
	}
	return call{name: n.Name, args: []expr{field, x}, t: t}, nil
}

// timeCallTotal is the total form of extract, date_part and date_trunc.
func (b *binder) timeCallTotal(n syntax.Expr, e call) (operand, error) {
	x, err := b.operandOf(n, e.args[1])
	if err != nil {
		return operand{}, err
	}
	unit := e.args[0].(constant).text
	if e.name == "date_trunc" {
		x = toTime(x, e.t).guarded()
		s := *x.extent
		s.lo, s.hi = inUnit(truncated(atTime(s.lo, e.t), unit), e.t), inUnit(truncated(atTime(s.hi, e.t), unit), e.t)
		return result(call{name: e.name, args: []expr{e.args[0], x.x}, t: e.t}, &s), nil
	}
	x = x.guarded()
	s := fieldExtent(unit, x)
	if e.t == catalog.Float8 {
		s = s.inFloats()
		s.scale, s.grain = 0, grainOf(big.NewRat(1, 1_000_000)) // microseconds at least
	}
	return result(call{name: e.name, args: []expr{e.args[0], x.x}, t: e.t}, s), nil
}

// fieldExtent is the extent of a field of a time.
func fieldExtent(name string, x operand) *extent {
	i := slices.IndexFunc(timeFields(), func(f timeField) bool { return f.name == name })
	f := timeFields()[i]
	if f.hi > 0 {
		s := between(f.lo, f.hi)
		s.scale = f.scale
		return s
	}
	s := *x.extent
	s.scale, s.grain = f.scale, 0
	if name == "epoch" {
		per := number(secondUnit)
		if x.x.typ() == catalog.Date {
			per = new(big.Rat).SetFrac64(1, 86_400)
		}
		s.lo, s.hi, s.parts = new(big.Rat).Quo(s.lo, per), new(big.Rat).Quo(s.hi, per), nil
		return &s
	}
	year := func(v *big.Rat) int64 {
		y := int64(atTime(v, x.x.typ()).Year())
		return y
	}
	per := map[string]int64{"year": 1, "isoyear": 1, "decade": 10, "century": 100, "millennium": 1000}[name]
	// One more on either side: ISO years, centuries that begin with their second year, and no year 0.
	s.lo, s.hi = number(floorDiv(year(s.lo), per)), number(floorDiv(year(s.hi), per))
	if per != 1 && per != 10 || name == "isoyear" || s.lo.Sign() <= 0 {
		s.lo, s.hi = s.lo.Sub(s.lo, one()), s.hi.Add(s.hi, one())
	}
	return &s
}

// truncated is date_trunc.
func truncated(at time.Time, unit string) time.Time {
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
	default:
		panic("sqlrewrite: unit of date_trunc that was not checked")
	}
}
