package answer

import (
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Contribution bounding leaves out rows and groups of units that exceed its bounds. How many depends on the data. So the bias of a column
// is the direction in which its values are off if anything was left out, whether or not anything was. Intervals cover the noise alone.

func biasOf(p *plan.Plan, r plan.Release) plan.Bias {
	p = p.Home(r)
	capped := capsRows(p) || p.Bounding.MostRank > 0 && !p.Query.CountsEveryUnit()
	groups, rows := capped || p.Bounding.Kind == stability.KeptKeys, capped || p.Bounding.Kind != stability.Flat
	switch r.Statistic.Kind {
	case algebra.CountUnits:
		rows = false
	case algebra.SumSteps, algebra.CountRows, algebra.CountValues, algebra.CountDistinct:
	default:
		if groups || rows {
			return plan.UnknownBias
		}
	}
	switch {
	case !p.NeedsData() || !groups && !rows:
		return plan.Unbiased
	case r.Statistic.Monotone() && r.Selection == nil:
		return plan.LowBias
	default:
		return plan.UnknownBias
	}
}

// capsRows reports whether rows of one unit are left out below a join.
func capsRows(p *plan.Plan) bool {
	for _, c := range p.Query.Shared().Caps {
		if c.Active() {
			return true
		}
	}
	return false
}

// outputBias returns the bias of an output: for a sum of releases with positive weights, the bias of the releases.
func outputBias(p *plan.Plan, f plan.OutputForm, e algebra.Expr) plan.Bias {
	if e, ok := e.(algebra.Either); ok {
		l, r := outputForm(p, algebra.Output{Expr: e.L}, 0).Column.Bias, outputForm(p, algebra.Output{Expr: e.R}, 0).Column.Bias
		switch {
		case l == r || r == plan.Unbiased:
			return l
		case l == plan.Unbiased:
			return r
		default:
			return plan.UnknownBias
		}
	}
	bias := plan.Unbiased
	for i := range bind.ReleasesOf(p.Query, e) {
		if b := biasOf(p, p.Releases[i]); b != plan.Unbiased && bias != plan.UnknownBias {
			bias = b
		}
	}
	if bias != plan.LowBias {
		return bias
	}
	if _, plain := e.(algebra.EstimatorRef); plain && f.Column.Kind == plan.AggregateColumn {
		return bias
	}
	if f.Ratio == nil {
		return plan.UnknownBias
	}
	sum, ok := f.Ratio.Of.Affine()
	if _, whole := f.Ratio.Context.(ratioRef); !ok || !whole {
		return plan.UnknownBias
	}
	for _, t := range sum.Terms {
		if t.Weight.Sign() < 0 {
			return plan.UnknownBias
		}
	}
	return bias
}

// biasNotes add the notes on a report of what is left out, and on biased columns. Notes on the bounds themselves come before.
func biasNotes(p *plan.Plan, add func(code, format string, args ...any)) {
	reportNotes(p, add)
	names := make(map[plan.Bias][]string)
	for _, f := range p.Outputs {
		if b := f.Column.Bias; !slices.Contains(names[b], f.Column.Name) {
			names[b] = append(names[b], f.Column.Name)
		}
	}
	if low := names[plan.LowBias]; len(low) > 0 {
		add("biased-low", "%s: too low if these bounds leave anything out; the intervals do not include that", strings.Join(low, ", "))
	}
	if unknown := names[plan.UnknownBias]; len(unknown) > 0 {
		add("biased", "%s: too low or too high if these bounds leave anything out; the intervals do not include that",
			strings.Join(unknown, ", "))
	}
}
