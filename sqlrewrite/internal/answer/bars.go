package answer

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// Each interval of an answer misses the true value with the probability that the level leaves. Simultaneous ones all hold with the level
// asked for: each of k intervals then has the level 1-(1-level)/k (Bonferroni), whatever depends on what. For public keys k is how many
// there could be: of every group, shown or not, since HAVING, ORDER BY and LIMIT choose among noisy values. Private keys are shown or not
// by noise that none of these intervals is about, or the interval is one of the noise given that the group is shown: there k counts the
// groups that were released.

// shownWithIntervals reports whether the rows of an answer have intervals of an output.
func shownWithIntervals(p *plan.Plan, output int) bool {
	e := p.Query.Outputs[output].Expr
	if p.Several != nil {
		return shownOver(p, e)
	}
	return HasInterval(p, e) && (p.Query.KeepsRows() || p.Query.Post.Grouped && algebra.HasAggregate(e))
}

// barsOf is how many intervals an answer has at most, with so many released rows; before there are any, 0, private keys count as one group.
func barsOf(p *plan.Plan, rows int) *big.Int {
	if p.Several != nil {
		return scalar.MaxInt(p.Combinations(), big.NewInt(1))
	}
	outputs := int64(0)
	for i, o := range p.Query.Outputs {
		if shownWithIntervals(p, i) && len(bind.ReleasesOf(p.Query, o.Expr)) > 0 {
			outputs++
		}
	}
	groups := big.NewInt(int64(max(rows, 1)))
	if !p.Query.Private() {
		groups = p.Query.PublicTuples()
	}
	if p.Query.Post != nil {
		outputs *= int64(max(len(p.Query.Post.Sets), 1)) // no set has more groups than there are
	}
	return scalar.MaxInt(groups.Mul(groups, big.NewInt(outputs)), big.NewInt(1))
}

// Level is that of each interval of an answer with so many released rows; 0 before there are any. Known is false where it depends on how
// many groups there will be.
func Level(p *plan.Plan, rows int) (level mechanisms.Confidence, known bool) {
	if level = p.Options.Confidence; !p.Options.Simultaneous {
		return level, true
	}
	bars, _ := new(big.Float).SetInt(barsOf(p, rows)).Float64()
	return 1 - (1-level)/mechanisms.Confidence(bars), rows > 0 || !p.Query.Private()
}

// barNotes say how many of the intervals of an answer are expected to miss, where that is more than none, or that all hold together.
func barNotes(p *plan.Plan, intervals [][]*Interval, rows int) []algebra.Note {
	bars := 0
	for _, row := range intervals {
		for _, i := range row {
			bars += algebra.BoolIndex(i != nil)
		}
	}
	misses := float64(bars) * (1 - float64(p.Options.Confidence))
	switch {
	case bars > 1 && p.Options.Simultaneous:
		each, _ := Level(p, rows)
		return []algebra.Note{{Code: "simultaneous", Text: fmt.Sprintf("all %d intervals hold together with a probability of %s: "+
			"each has a level of %s", bars, percent(p.Options.Confidence), percent(each))}}
	case misses >= 0.5-1e-9:
		return []algebra.Note{{Code: "misses", Text: fmt.Sprintf("of %d intervals about %s miss the true value, by chance; ask for "+
			"simultaneous ones to have all of them hold with a probability of %s", bars,
			strconv.FormatFloat(math.Round(misses*10)/10, 'g', -1, 64), percent(p.Options.Confidence))}}
	default:
		return nil
	}
}
