package domain

import (
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Statements run in UTC. What means something else in the time zone of the client's session is refused there. Each operation that takes or
// gives a timestamptz passes through one of these functions: constants ([Typed]), operands that are compared or stand for one another
// ([Unify], [Common]), arithmetic, calls and casts. Moments that are stored, compared, chosen, or subtracted from one another are the same
// in all zones.

// refuseZone refuses what depends on the time zone of the session; nil where that is UTC.
func refuseZone(b *algebra.Binder, n interface{ At() syntax.Pos }, what string) error {
	if b.Zone == "" {
		return nil
	}
	return fault.TimeZone(b.At(n), what, b.Zone)
}

// mixes reports whether a timestamptz stands beside another type of time, which PostgreSQL reads in the session's zone.
func mixes(all ...algebra.Expr) bool {
	zoned, other := false, false
	for _, e := range all {
		zoned = zoned || e.Typ() == catalog.Timestamptz
		other = other || e.Typ() != catalog.Timestamptz && e.Typ().IsTime()
	}
	return zoned && other
}

// mixedZone refuses times with and without time zone beside one another.
func mixedZone(b *algebra.Binder, n interface{ At() syntax.Pos }, all ...algebra.Expr) error {
	if !mixes(all...) {
		return nil
	}
	return refuseZone(b, n, "a time without time zone beside one with time zone")
}

// arithmeticZone refuses arithmetic that depends on the zone: a day or a month begins and ends where the zone says, and so does a text.
func arithmeticZone(b *algebra.Binder, n *syntax.Binary, l, r algebra.Expr) error {
	lz, rz := l.Typ() == catalog.Timestamptz, r.Typ() == catalog.Timestamptz
	switch {
	case !lz && !rz, lz && rz && n.Op == syntax.Subtract, lz && onlyClock(r), rz && onlyClock(l):
		return nil
	default:
		return refuseZone(b, n, string(n.Op)+" with a timestamp with time zone")
	}
}

// onlyClock reports whether an expression is a constant interval without days and months.
func onlyClock(e algebra.Expr) bool {
	c, ok := e.(algebra.Constant)
	if !ok || c.T != scalar.IntervalType {
		return false
	}
	months, days, _, ok := scalar.ParseInterval(c.Text)
	return ok && (c.Null || months == 0 && days == 0)
}

// callZone refuses functions of times that depend on the zone.
func callZone(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) error {
	for i, arg := range args {
		switch t := arg.Typ(); {
		case t == catalog.Timestamptz && !momentCall(n, args):
			return refuseZone(b, n, n.Name+" of a timestamp with time zone")
		case t == catalog.Date && i == 1 && n.Name == "date_trunc", t == catalog.Date && i == 0 && n.Name == "to_char":
			return refuseZone(b, n, n.Name+" of a date, which PostgreSQL reads as a timestamp with time zone,")
		}
	}
	return nil
}

// momentCall reports whether a function gives the same for a moment in all zones.
func momentCall(n *syntax.Call, args []algebra.Expr) bool {
	switch n.Name {
	case "coalesce", "nullif", "greatest", "least", "date_bin", "timezone":
		return true
	case "extract", "date_part":
		field, ok := args[0].(algebra.Constant)
		return ok && field.Text == "epoch"
	default:
		return false
	}
}

// CastZone refuses casts from and to timestamptz that depend on the zone.
func CastZone(b *algebra.Binder, n *syntax.Cast, x algebra.Expr, t catalog.Type) error {
	from := x.Typ()
	if from == t || from != catalog.Timestamptz && !(t == catalog.Timestamptz && from.IsTime()) {
		return nil
	}
	return refuseZone(b, n, "a cast from "+scalar.TypeName(from)+" to "+scalar.TypeName(t))
}
