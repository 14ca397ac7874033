package domain

import (
	"math"
	"math/big"
	"slices"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// A key over a bounded timestamp is a function of parts that grow with it: date_trunc, a cast to a date, floor of its seconds, and, of
// extract(hour), the hour that it is in. Within a granule, at whose ends each part is the same, the key is the same. PostgreSQL compares
// the parts at both ends, and halves granules where they differ. What a granule takes is foreseen here, so that lists end; nothing else
// follows from it.

// mostGranules caps the granules of a column that are foreseen.
const mostGranules = 100_000

// growth says how a part grows with time.
type growth struct {
	step float64 // seconds in which it changes at most once; 0: nothing is known
	rate float64 // of a number, in a second
}

// atLeast makes a step longer.
func (g growth) atLeast(seconds float64) growth {
	g.step = max(g.step, seconds)
	return g
}

// whole rounds a number.
func (g growth) whole() growth { return g.atLeast(1 / g.rate) }

const secondsOfYear = 365 * 24 * 3600

// secondsOf is the length of a unit of date_trunc, at least.
func secondsOf(unit string) float64 {
	from := time.Date(2001, 2, 1, 0, 0, 0, 0, time.UTC)
	return nextUnit(from, unit).Sub(from).Seconds()
}

// grows reports how an expression grows with a time; ok is false where it may fall, or nothing is known.
func grows(e algebra.Expr, t *algebra.Field) (g growth, ok bool) {
	switch e := e.(type) {
	case algebra.Column:
		return g, e.Of == t
	case algebra.Computed:
		return grows(e.Written, t)
	case algebra.Cast:
		if g, ok = grows(e.X, t); !ok || len(e.Mods) > 0 {
			return g, false
		}
		switch from := e.X.Typ(); {
		case from.IsTime() && e.T == catalog.Date:
			return g.atLeast(secondsOf("day")), true
		case from.IsNumber() && e.T.IsInteger():
			return g.whole(), true
		default:
			return g, from.IsTime() && e.T.IsTime() || from.IsNumber() && e.T.IsNumber()
		}
	case algebra.Binary:
		return growsWith(e, t)
	case algebra.Call:
		return callGrows(e, t)
	default:
		return g, false
	}
}

// growsWith is [grows] for an operation with a constant.
func growsWith(e algebra.Binary, t *algebra.Field) (g growth, ok bool) {
	c, constant := e.R.(algebra.Constant)
	if g, ok = grows(e.L, t); !ok || !constant || c.Null {
		return g, false
	}
	added := e.Op == syntax.Add || e.Op == syntax.Subtract
	switch {
	case algebra.IsComparison(e.Op):
		return growth{step: math.Inf(1)}, e.Op != syntax.Eq && e.Op != syntax.Ne // once
	case e.L.Typ().IsTime():
		months, _, _, known := scalar.ParseInterval(c.Text)
		return g, added && c.T == scalar.IntervalType && known && months == 0
	case !e.L.Typ().IsNumber():
		return g, false
	}
	v, known := scalar.ParseNumber(c.Text)
	by := 0.0
	if known {
		by, _ = v.Float64()
	}
	switch {
	case added:
		return g, known
	case by <= 0:
		return g, false
	case e.Op == syntax.Multiply:
		g.rate *= by
		return g, true
	case e.Op == syntax.Divide && e.T.IsInteger():
		g.rate /= by
		return g.whole(), true
	case e.Op == syntax.Divide:
		g.rate /= by
		return g, true
	default:
		return g, false
	}
}

// callGrows is [grows] for a function.
func callGrows(e algebra.Call, t *algebra.Field) (g growth, ok bool) {
	if e.Name == "date_bin" {
		micros, _ := binOf(e.Args[0].(algebra.Constant)).Float64()
		g, ok = grows(e.Args[1], t)
		return g.atLeast(micros / float64(scalar.SecondUnit)), ok
	}
	if g, ok = grows(e.Args[len(e.Args)-1], t); !ok {
		return g, false
	}
	switch e.Name {
	case "timezone": // within a granule ([zonePartsOf])
		return g, true
	case "date_trunc":
		return g.atLeast(secondsOf(e.Args[0].(algebra.Constant).Text)), true
	case "extract":
		switch e.Args[0].(algebra.Constant).Text {
		case "epoch":
			g.rate = 1
			return g, true
		case "year":
			g.rate = 1.0 / secondsOfYear
			return g.atLeast(secondsOfYear), true
		}
	case "floor", "ceil", "ceiling", "round", "trunc":
		return g.whole(), len(e.Args) == 1
	}
	return g, false
}

// partsOf finds parts of an expression that grow with a time and determine its value, and how many times they change in a second at most.
// ok is false where no such parts are known.
func partsOf(e algebra.Expr, t *algebra.Field) (parts []algebra.Expr, changes float64, ok bool) {
	if !slices.Contains(ColumnsOf(e), t) {
		return nil, 0, true
	}
	if g, ok := grows(e, t); ok && g.step > 0 {
		return []algebra.Expr{e}, 1 / g.step, true
	}
	switch x := e.(type) {
	case algebra.Column:
		return nil, 0, false
	case algebra.Computed:
		return partsOf(x.Written, t)
	case algebra.Is:
		if algebra.PlainField(x.X) == t && x.What == syntax.IsNull {
			return nil, 0, true
		}
	case algebra.Call:
		if unit, of := unitOf(x); unit != "" {
			if g, ok := grows(of, t); ok && g.step == 0 {
				part := algebra.Call{Name: "date_trunc", Args: []algebra.Expr{algebra.Constant{T: catalog.Text, Text: unit}, of}, T: of.Typ()}
				return []algebra.Expr{part}, 1 / secondsOf(unit), true
			}
		}
	}
	for _, x := range algebra.Children(e) {
		some, more, ok := partsOf(x, t)
		if !ok {
			return nil, 0, false
		}
		parts, changes = append(parts, some...), changes+more
	}
	return parts, changes, true
}

// The clocks of a zone are changed at most once within so many seconds, from this year on (TestZonesChangeSeldom).
const (
	seldom        = 95 * 3600
	firstZoneYear = 1901
)

// zonePartsOf are parts that leave no change of a zone's clocks within a granule: the day that it is in, and how far the clocks of each
// zone are from UTC. A granule is shorter than the time between two changes, so that there is none between ends with one distance. There
// the clocks run on, and what they show grows with time. none: the expression has no zone.
func zonePartsOf(e algebra.Expr, t *algebra.Field) (parts []algebra.Expr) {
	var visit func(algebra.Expr)
	visit = func(e algebra.Expr) {
		switch x := e.(type) {
		case algebra.Computed:
			visit(x.Written)
			return
		case algebra.Call:
			if x.Name == "timezone" && slices.Contains(ColumnsOf(x), t) {
				inUTC := algebra.Cast{X: x.Args[1], T: x.T}
				parts = append(parts, algebra.Binary{Op: syntax.Subtract, L: x, R: inUTC, T: scalar.IntervalType})
			}
		}
		for _, x := range algebra.Children(e) {
			visit(x)
		}
	}
	if visit(e); len(parts) == 0 {
		return nil
	}
	unit := algebra.Constant{T: catalog.Text, Text: "day"}
	day := algebra.Call{Name: "date_trunc", Args: []algebra.Expr{unit, algebra.Column{Of: t}}, T: t.Type}
	return append([]algebra.Expr{day}, parts...)
}

// unitOf is a unit of date_trunc within which a field or a text of a time is the same; "": none is known.
func unitOf(e algebra.Call) (unit string, of algebra.Expr) {
	switch e.Name {
	case "to_char":
		template, _ := readTemplate(e.Args[1].(algebra.Constant).Text)
		return template.unit, e.Args[0]
	case "extract":
		switch field := e.Args[0].(algebra.Constant).Text; field {
		case "year", "decade", "century", "millennium":
			unit = "year"
		case "quarter", "month":
			unit = "month"
		case "week", "isoyear", "day", "dow", "isodow", "doy":
			unit = "day"
		case "hour", "minute":
			unit = field
		}
		return unit, e.Args[1]
	default:
		return "", nil
	}
}

// granulesOf are the granules of a bounded time for an expression, as where leaves it, and how many there are at most.
func granulesOf(f *algebra.Field, x, where algebra.Expr) (g algebra.KeyGranules, most int64, ok bool) {
	if f.Unit || f.Bounds == nil || f.Type != catalog.Timestamp && f.Type != catalog.Timestamptz || seesBeyond(x, f) {
		return g, 0, false
	}
	parts, changes, ok := partsOf(x, f)
	s, null := evaluator{where: where}.within(f)
	if clocks := zonePartsOf(x, f); len(clocks) > 0 {
		parts, changes = append(clocks, parts...), changes+1/secondsOf("day")+float64(len(clocks)-1)/seldom
		ok = ok && scalar.AtTime(s.Lo, f.Type).Year() >= firstZoneYear
	}
	span, _ := new(big.Rat).Sub(s.Hi, s.Lo).Float64()
	foreseen := span/1e6*changes + float64(len(parts)) + 1
	if !ok || !(foreseen <= mostGranules) {
		return g, 0, false
	}
	return algebra.KeyGranules{Of: f, First: scalar.TimeOf(s.Lo, f.Type), Last: scalar.TimeOf(s.Hi, f.Type), Null: null, Parts: parts},
		int64(foreseen) + 1, true
}
