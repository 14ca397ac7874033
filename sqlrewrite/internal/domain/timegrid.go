package sqlrewrite

import (
	"fmt"
	"math/big"
	"time"

	"noisegate/catalog"
	"noisegate/internal/fault"
)

// timeGrid is the grid of a column of dates or times, from which quantiles are chosen: as fine as the policy says and the number of
// points allows, in steps that clocks have. Its unit is the day for dates and the microsecond for times, since 1970-01-01 UTC.
func timeGrid(x expr, within *bounds, at fault.Position) (*grid, error) {
	g := &grid{x: x, form: timeSteps}
	finest := within.step
	if finest == nil {
		finest = one()
	}
	for _, step := range clockSteps(x.typ()) {
		if step.Cmp(finest) < 0 {
			continue
		}
		g.step, g.derived = step, within.step == nil || step.Cmp(finest) > 0
		g.lo, g.hi = ceil(new(big.Rat).Quo(within.lo, step)), floor(new(big.Rat).Quo(within.hi, step))
		if g.lo.Cmp(g.hi) <= 0 && g.points().Cmp(big.NewInt(maxCandidates)) <= 0 {
			return g, nil
		}
	}
	return nil, fault.BadStep(at, describe(x), "there is no step between 10000 points and none")
}

// clockSteps are steps of time in the unit of a type.
func clockSteps(t catalog.Type) []*big.Rat {
	const day = int64(24 * time.Hour / time.Microsecond)
	days := []int64{1, 2, 7, 14, 30, 100, 365, 1000, 10_000}
	var steps []*big.Rat
	if t != catalog.Date {
		for _, s := range []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour} {
			steps = append(steps, big.NewRat(s.Microseconds(), 1))
		}
		for i := range days {
			days[i] *= day
		}
	}
	for _, d := range days {
		steps = append(steps, big.NewRat(d, 1))
	}
	return steps
}

// clockText writes a number of days or microseconds as PostgreSQL writes type t in UTC.
func clockText(units *big.Rat, t catalog.Type) string {
	n := floor(units).Int64()
	if t == catalog.Date {
		return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly)
	}
	text := time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.999999")
	if t == catalog.Timestamptz {
		text += "+00"
	}
	return text
}

// label is the point at k steps for people.
func (g *grid) label(k *big.Int) string {
	if g.form == timeSteps {
		return clockText(g.value(k), g.x.typ())
	}
	return decimalOrFraction(g.value(k))
}

// stepLabel is the step for people.
func (g *grid) stepLabel() string {
	if g.form != timeSteps {
		return decimalOrFraction(g.step)
	}
	const day = int64(24 * time.Hour / time.Microsecond)
	n := g.step.Num().Int64()
	switch {
	case g.x.typ() == catalog.Date:
		return fmt.Sprintf("%d days", n)
	case n%day == 0:
		return fmt.Sprintf("%d days", n/day)
	default:
		return (time.Duration(n) * time.Microsecond).String()
	}
}

// timeSteps is the place of a time among the points of its grid. As for numbers, CASE keeps NULL and lets only times within the bounds
// reach the subtraction, which infinite ones would fail.
func (p *statementPrinter) timeSteps(g *grid) string {
	x, t := p.operand(g.x), g.x.typ()
	bound := func(k *big.Int) string { return p.sub(func() { p.arg(clockText(g.value(k), t), sqlType(t)) }) }
	last := new(big.Int).Sub(g.hi, g.lo)
	since := "(" + x + " - " + bound(g.lo) + ")"
	if t != catalog.Date {
		since = "(EXTRACT(epoch FROM (" + x + " - " + bound(g.lo) + ")) * 1000000)"
	}
	half := new(big.Int).Rsh(g.step.Num(), 1)
	return "CASE WHEN " + x + " < " + bound(g.lo) + " THEN 0 WHEN " + x + " > " + bound(g.hi) + " THEN " + p.number(last, "integer") +
		" ELSE ((" + since + "::bigint + " + p.number(half, "bigint") + ") / " + p.number(g.step.Num(), "bigint") + ")::integer END"
}
