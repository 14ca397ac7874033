package domain

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// timeLeaf clamps a column of times.
func timeLeaf(o Operand, f *algebra.Field) Operand {
	first, last := scalar.TimeRange()
	o.Lo, o.Hi = scalar.InUnit(first, f.Type), scalar.InUnit(last, f.Type)
	if f.Bounds != nil {
		return bounded(o, new(big.Rat).SetInt(scalar.Ceil(f.Bounds.Lo)), new(big.Rat).SetInt(scalar.Floor(f.Bounds.Hi)))
	}
	o = Clamped(o, o.Lo, o.Hi)
	o.OpenLo, o.OpenHi = true, true
	return o
}

// calendar are the times that a computation may reach: far inside those that PostgreSQL has.
func inCalendar(s *scalar.Range, t catalog.Type) bool {
	first := scalar.InUnit(time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC), t)
	last := scalar.InUnit(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), t)
	return first.Cmp(s.Lo) <= 0 && s.Hi.Cmp(last) <= 0
}

// toTime casts between dates and times, in UTC.
func toTime(o Operand, t catalog.Type) Operand {
	from, s := o.X.Typ(), *o.Range
	day := scalar.Number(scalar.DayUnit)
	switch {
	case from == catalog.Date && t != catalog.Date:
		s.Lo, s.Hi = new(big.Rat).Mul(s.Lo, day), new(big.Rat).Mul(s.Hi, day)
	case from != catalog.Date && t == catalog.Date:
		s.Lo = new(big.Rat).SetInt(scalar.Floor(new(big.Rat).Quo(s.Lo, day)))
		s.Hi = new(big.Rat).SetInt(scalar.Floor(new(big.Rat).Quo(s.Hi, day)))
	}
	if from == t {
		return o
	}
	o = o.guarded()
	// Midnights are exact; what has a time zone is where the session's is.
	return Operand{X: o.as(t), Range: &s, Printed: algebra.Printed{Kept: from == catalog.Date && t == catalog.Timestamp}}
}

// timeArithmetic types + and - with a date, time or interval; ok is false when there is none.
func timeArithmetic(op syntax.Operator, l, r catalog.Type) (t catalog.Type, ok bool) {
	if op == syntax.Add && r.IsTime() && !l.IsTime() {
		l, r = r, l
	}
	switch {
	case op != syntax.Add && op != syntax.Subtract:
		return scalar.UnknownType, false
	case op == syntax.Subtract && l == catalog.Date && r == catalog.Date:
		return catalog.Int4, true
	case op == syntax.Subtract && l.IsTime() && r.IsTime(), l == scalar.IntervalType && r == scalar.IntervalType:
		return scalar.IntervalType, true
	case l == catalog.Date && (r == catalog.Int4 || r == catalog.Int2):
		return catalog.Date, true
	case l == catalog.Date && r == scalar.IntervalType:
		return catalog.Timestamp, true
	case l.IsTime() && r == scalar.IntervalType:
		return l, true
	default:
		return scalar.UnknownType, false
	}
}

// maxDays is how many days may be added to a date: more count as so many.
const maxDays = 1_000_000

// safeTime is the error-free form of arithmetic with dates, times and intervals.
func safeTime(b *algebra.Binder, n syntax.Expr, op syntax.Operator, t catalog.Type, l, r Operand) (Operand, error) {
	lt, rt := l.X.Typ(), r.X.Typ()
	switch {
	case lt.IsTime() && rt.IsTime() && t == scalar.IntervalType: // one of them is not a date: both as times
		other := lt
		if other == catalog.Date || rt == catalog.Timestamptz {
			other = rt
		}
		l, r = toTime(l, other).guarded(), toTime(r, other).guarded()
		return difference(algebra.Binary{Op: op, L: l.X, R: r.X, T: t}, l.Plus(r.Negated())), nil
	case t == scalar.IntervalType:
		return sumOfIntervals(b, n, algebra.Binary{Op: op, L: l.X, R: r.X, T: t}, l, r)
	case t == catalog.Timestamp || t == catalog.Timestamptz:
		return moved(b, n, op, t, l, r)
	case t == catalog.Date: // date and days
		l, r = days(l), days(r)
	default: // the days between dates
		l, r = l.guarded(), r.guarded()
	}
	s := l.Plus(r.Range)
	if op == syntax.Subtract {
		s = l.Plus(r.Negated())
	}
	if t.IsTime() && !inCalendar(s, t) {
		return Operand{}, tooFar(b, n)
	}
	return result(algebra.Binary{Op: op, L: l.X, R: r.X, T: t}, s), nil
}

// days is a number of days for a date, or the date.
func days(o Operand) Operand {
	if o.X.Typ() == catalog.Date {
		return o.guarded()
	}
	limit := scalar.Number(maxDays)
	if o.Reach().Cmp(limit) > 0 {
		o = Clamped(o, new(big.Rat).Neg(limit), limit)
	}
	return o.guarded().In(catalog.Int4)
}

// timeArguments are those of a function of a field of a time, which must be a constant: PostgreSQL raises an error for an unknown one.
func timeArguments(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) (field algebra.Constant, x algebra.Expr, err error) {
	unit, ok := args[0].(algebra.Constant)
	if !ok || unit.Null || unit.T != scalar.UnknownType && unit.T != catalog.Text {
		return field, nil, b.Unsupported(n.Args[0], "a field of a time that is not a constant", "write extract(month FROM x)")
	}
	if x, err = Coerce(b, n.Args[1], args[1], catalog.Timestamp); err != nil {
		return field, nil, err
	}
	if !x.Typ().IsTime() && x.Typ() != scalar.IntervalType {
		return field, nil, noFunction(b, n, x)
	}
	return algebra.Constant{T: catalog.Text, Text: strings.ToLower(unit.Text)}, x, nil
}

// truncationCall types date_trunc.
func truncationCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	field, x, err := timeArguments(b, n, args)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(scalar.Truncations(), field.Text) || x.Typ() == scalar.IntervalType {
		return nil, b.Unsupported(n.Args[0], "date_trunc to this unit", "the units are "+strings.Join(scalar.Truncations(), ", "))
	}
	t := x.Typ()
	if t == catalog.Date {
		t = catalog.Timestamptz // as in PostgreSQL
	}
	return algebra.Call{Name: n.Name, Args: []algebra.Expr{field, x}, T: t}, nil
}

// longestBin is a bin's length in days, at most.
const longestBin = 366_000

// binCall types date_bin(length, x, origin), whose length and origin must be constants: PostgreSQL raises an error for a length of months,
// and for one that is not positive.
func binCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	length, err := Coerce(b, n.Args[0], args[0], scalar.IntervalType)
	if err != nil {
		return nil, err
	}
	c, ok := length.(algebra.Constant)
	if !ok || c.T != scalar.IntervalType || binOf(c) == nil {
		return nil, b.Unsupported(n.Args[0], "date_bin into these bins",
			"write a constant of days, hours, minutes and seconds: date_bin('7 days', x, '2024-01-01'); for months there is date_trunc")
	}
	t := catalog.Timestamptz // of dates, too, as in PostgreSQL
	if args[1].Typ() == catalog.Timestamp || args[1].Typ() == catalog.Date && args[2].Typ() == catalog.Timestamp {
		t = catalog.Timestamp
	}
	if args[1].Typ() == catalog.Date && t == catalog.Timestamptz {
		if err := refuseZone(b, n, "date_bin of a date, which PostgreSQL reads as a timestamp with time zone,"); err != nil {
			return nil, err
		}
	}
	x, err := Coerce(b, n.Args[1], args[1], t)
	if err != nil {
		return nil, err
	}
	origin, err := Coerce(b, n.Args[2], args[2], t)
	if err != nil {
		return nil, err
	}
	if !x.Typ().IsTime() {
		return nil, noFunction(b, n, x)
	}
	from, ok := origin.(algebra.Constant)
	if !ok || from.Null || from.T != t {
		return nil, b.Unsupported(n.Args[2], "date_bin from this origin", "write a constant of the column's type")
	}
	if at, err := constantOperand(b, n.Args[2], from); err != nil || !inCalendar(at.Range, t) {
		return nil, tooFar(b, n.Args[2])
	}
	return algebra.Call{Name: n.Name, Args: []algebra.Expr{c, x, from}, T: t}, nil
}

// binOf is the length of a bin, in microseconds; nil: it is not one of date_bin.
func binOf(c algebra.Constant) *big.Rat {
	months, days, micros, ok := scalar.ParseInterval(c.Text)
	if !ok || c.Null || months != 0 {
		return nil
	}
	day := scalar.Number(scalar.DayUnit)
	length := new(big.Rat).Mul(scalar.Number(days), day)
	length.Add(length, scalar.Number(micros))
	if length.Sign() <= 0 || length.Cmp(day.Mul(day, scalar.Number(longestBin))) > 0 {
		return nil
	}
	return length
}

// zoneCall types timezone(zone, x), which is x AT TIME ZONE zone: what a clock in the zone shows at a moment, or the moment at which it
// shows a time. Of UTC it is a cast, as sessions are in UTC.
func zoneCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	c, isConstant := args[0].(algebra.Constant)
	name, known := scalar.Zone(c.Text)
	if !isConstant || c.Null || !known || c.T != scalar.UnknownType && c.T != catalog.Text {
		return nil, b.Unsupported(n.Args[0], "this time zone",
			"write a constant name of an area and a city, such as 'America/New_York', or 'UTC'; of an offset, x + interval '2 hours'")
	}
	x := args[1]
	t := catalog.Timestamp
	switch x.Typ() {
	case catalog.Timestamp:
		t = catalog.Timestamptz
	case catalog.Timestamptz:
	default:
		return nil, b.Unsupported(n.Args[1], "AT TIME ZONE of this value", "name a timestamp column, or write x::timestamptz AT TIME ZONE 'UTC'")
	}
	if name == scalar.UTC {
		return algebra.Cast{X: x, T: t}, nil
	}
	return algebra.Call{Name: n.Name, Args: []algebra.Expr{algebra.Constant{T: catalog.Text, Text: name}, x}, T: t}, nil
}

// farthest is how far the clocks of a zone are from UTC at most, in microseconds: less than 16 hours since there are zones.
const farthest = 16 * 3600 * scalar.SecondUnit

// safeZone is the error-free form of timezone: it fails for no time that stays in the calendar.
func safeZone(c safeCall) (Operand, error) {
	e, x := c.call, c.args[1].guarded()
	s := *x.Range
	s.Lo, s.Hi = new(big.Rat).Sub(s.Lo, scalar.Number(farthest)), new(big.Rat).Add(s.Hi, scalar.Number(farthest))
	if !inCalendar(&s, e.T) {
		return Operand{}, tooFar(c.Binder, c.at)
	}
	return result(algebra.Call{Name: e.Name, Args: []algebra.Expr{e.Args[0], x.X}, T: e.T}, &s), nil
}

// dateCall makes date(x) the cast.
func dateCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	x, err := Coerce(b, n.Args[0], args[0], catalog.Date)
	if err != nil {
		return nil, err
	}
	if !x.Typ().IsTime() {
		return nil, noFunction(b, n, x)
	}
	if c, isConstant := x.(algebra.Constant); isConstant && c.T == catalog.Date {
		return c, nil
	}
	return algebra.Cast{X: x, T: catalog.Date}, nil
}

// fieldCall types extract and date_part.
func fieldCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	field, x, err := timeArguments(b, n, args)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(scalar.TimeFields(), func(f scalar.TimeField) bool { return f.Name == field.Text })
	if i < 0 {
		return nil, b.Unsupported(n.Args[0], "this field of a time", "")
	}
	switch f := scalar.TimeFields()[i]; {
	case f.Clock && x.Typ() == catalog.Date, !f.OfSpans && x.Typ() == scalar.IntervalType:
		return nil, b.Mismatch(n, "values of type "+scalar.TypeName(x.Typ())+" have no "+field.Text, "")
	}
	t := catalog.Numeric
	if n.Name == "date_part" {
		t = catalog.Float8
	}
	return algebra.Call{Name: n.Name, Args: []algebra.Expr{field, x}, T: t}, nil
}

func safeTruncation(c safeCall) (Operand, error) {
	e, unit := c.call, c.call.Args[0].(algebra.Constant).Text
	x := toTime(c.args[1], e.T).guarded()
	s := *x.Range
	start := func(v *big.Rat) *big.Rat { return scalar.InUnit(scalar.Truncated(scalar.AtTime(v, e.T), unit), e.T) }
	s.Lo, s.Hi = start(s.Lo), start(s.Hi)
	return result(algebra.Call{Name: e.Name, Args: []algebra.Expr{e.Args[0], x.X}, T: e.T}, &s), nil
}

// safeBin is the error-free form of date_bin. A bin begins less than its length before a time that lies in it; the range reaches to the
// whole length before.
func safeBin(c safeCall) (Operand, error) {
	e, x := c.call, toTime(c.args[1], c.call.T).guarded()
	s := *x.Range
	s.Lo = new(big.Rat).Sub(s.Lo, binOf(e.Args[0].(algebra.Constant)))
	if !inCalendar(&s, e.T) {
		return Operand{}, tooFar(c.Binder, c.at)
	}
	return result(algebra.Call{Name: e.Name, Args: []algebra.Expr{e.Args[0], x.X, e.Args[2]}, T: e.T}, &s), nil
}

func safeField(c safeCall) (Operand, error) {
	e, x := c.call, c.args[1].guarded()
	s := fieldRange(e.Args[0].(algebra.Constant).Text, x)
	if e.T == catalog.Float8 {
		s = s.InFloats()
		s.Scale, s.Grain = 0, scalar.GrainOf(big.NewRat(1, 1_000_000)) // microseconds at least
	}
	return result(algebra.Call{Name: e.Name, Args: []algebra.Expr{e.Args[0], x.X}, T: e.T}, s), nil
}

func fieldRange(name string, x Operand) *scalar.Range {
	i := slices.IndexFunc(scalar.TimeFields(), func(f scalar.TimeField) bool { return f.Name == name })
	f := scalar.TimeFields()[i]
	if x.X.Typ() == scalar.IntervalType && name != "epoch" {
		s := *partOf(name, x.Parts)
		return &s
	}
	if f.Hi > 0 {
		s := scalar.Between(f.Lo, f.Hi)
		s.Scale = f.Scale
		return s
	}
	s := *x.Range
	s.Scale, s.Grain = f.Scale, 0
	if name == "epoch" {
		per := scalar.Number(scalar.SecondUnit)
		if x.X.Typ() == catalog.Date {
			per = new(big.Rat).SetFrac64(1, 86_400)
		}
		s.Lo, s.Hi, s.Parts = new(big.Rat).Quo(s.Lo, per), new(big.Rat).Quo(s.Hi, per), nil
		return &s
	}
	year := func(v *big.Rat) int64 {
		y := int64(scalar.AtTime(v, x.X.Typ()).Year())
		return y
	}
	per := map[string]int64{"year": 1, "isoyear": 1, "decade": 10, "century": 100, "millennium": 1000}[name]
	// One more on either side: ISO years, centuries that begin with their second year, and no year 0.
	s.Lo, s.Hi = scalar.Number(scalar.FloorDiv(year(s.Lo), per)), scalar.Number(scalar.FloorDiv(year(s.Hi), per))
	if per != 1 && per != 10 || name == "isoyear" || s.Lo.Sign() <= 0 {
		s.Lo, s.Hi = s.Lo.Sub(s.Lo, scalar.One()), s.Hi.Add(s.Hi, scalar.One())
	}
	return &s
}

// ageCall types age(a, b), whose arguments are two times; dates are midnights.
func ageCall(b *algebra.Binder, _ *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	t := catalog.Timestamp
	for _, x := range args {
		if x.Typ() == catalog.Timestamptz {
			t = x.Typ()
		}
	}
	e := algebra.Call{Name: n.Name, T: scalar.IntervalType}
	for i, arg := range args {
		x, err := Coerce(b, n.Args[i], arg, t)
		if err != nil {
			return nil, err
		}
		if !x.Typ().IsTime() {
			return nil, noFunction(b, n, x)
		}
		e.Args = append(e.Args, x)
	}
	return e, nil
}
