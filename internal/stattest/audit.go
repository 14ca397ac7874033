package stattest

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
)

// Draws are what a mechanism answered on two datasets that differ by one unit, each answer independent of the others, in the order
// in which they came. NaN stands for an answer without a value: NULL, or a group that was not shown.
type Draws struct{ With, Without []float64 }

// Certificate is what draws prove about a mechanism.
type Certificate struct {
	// Epsilon is at most the ε of any (ε, δ) guarantee with the δ that was asked about.
	Epsilon float64
	// Rho is at most the ρ of any zCDP guarantee.
	Rho float64
	// Draws is how many of either dataset were counted; the others chose what to count.
	Draws int
}

const (
	cellsPerAudit = 64  // answers are told apart as finely as this many quantiles
	minDraws      = 300 // fewer prove nothing
)

var errDraws = errors.New("stattest: an audit needs at least 300 draws of either dataset")

// Certify gives lower bounds on the privacy loss of a mechanism. Each of the two, by itself, exceeds the true loss with
// a probability of at most rate, whatever the mechanism.
//
// The first third of the draws chooses the event to look for, half of it to order the answers by their likelihood ratio and
// half to compare candidates: the beginnings and ends of that order, and of the order by value (the best events of noise
// with a monotone likelihood ratio; Neyman, Pearson 1933). The other two thirds count the event.
func (d Draws) Certify(delta float64, rate FalseAlarm) (Certificate, error) {
	n := min(len(d.With), len(d.Without))
	if n < minDraws {
		return Certificate{}, errDraws
	}
	pilot := n / 3
	cells := quantiles(slices.Concat(d.With[:pilot], d.Without[:pilot]))
	ordering := cells.count(d, 0, pilot/2)
	choosing := cells.count(d, pilot/2, pilot)
	deciding := cells.count(d, pilot, n)
	orders := [][]int{identity(len(ordering.on)), ordering.byRatio()}

	epsilon := func(e Evidence) float64 { return e.EpsilonAtLeast(rate) }
	rho := func(e Evidence) float64 { return e.RhoAtLeast(rate) }
	return Certificate{
		Epsilon: epsilon(deciding.evidence(choosing.best(orders, delta, epsilon), delta)),
		Rho:     rho(deciding.evidence(choosing.best(orders, delta, rho), delta)),
		Draws:   n - pilot,
	}, nil
}

// cells are the upper ends of intervals of values, ascending. What lies above the last belongs to the last; NaN has a separate cell behind
// it.
type cells []float64

// quantiles cuts where the draws' quantiles are. The draws are sorted in place.
func quantiles(draws []float64) cells {
	slices.Sort(draws) // NaN first
	first, _ := slices.BinarySearchFunc(draws, math.Inf(-1), cmp.Compare[float64])
	draws = draws[first:]
	var ends cells
	for i := 1; i <= cellsPerAudit && len(draws) > 0; i++ {
		ends = append(ends, draws[(len(draws)*i-1)/cellsPerAudit])
	}
	return slices.Compact(ends)
}

func (c cells) of(x float64) int {
	if math.IsNaN(x) {
		return len(c)
	}
	return min(sort.SearchFloat64s(c, x), max(0, len(c)-1))
}

// count counts the draws from one position up to another.
func (c cells) count(d Draws, from, to int) counts {
	n := counts{on: make([]int64, len(c)+1), off: make([]int64, len(c)+1), draws: int64(to - from)}
	for i := from; i < to; i++ {
		n.on[c.of(d.With[i])]++
		n.off[c.of(d.Without[i])]++
	}
	return n
}

// counts is how many of the draws fell into each cell: on the dataset with the unit, and on the one without.
type counts struct {
	on, off []int64
	draws   int64
}

func identity(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// byRatio orders the cells by their likelihood ratio, the largest first.
func (c counts) byRatio() []int {
	order := identity(len(c.on))
	ratio := func(i int) float64 { return (float64(c.on[i]) + 0.5) / (float64(c.off[i]) + 0.5) } // a half, against 0/0
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ratio(j), ratio(i)) })
	return order
}

// event is a set of cells, and on which of the two datasets it is expected more often.
type event struct {
	cells    []int
	reversed bool // more often without the unit
}

// best is the event that scores highest among the beginnings and ends of each order. Where nothing scores, it is the one whose
// frequencies differ most: with more draws it may.
func (c counts) best(orders [][]int, delta float64, score func(Evidence) float64) event {
	var chosen event
	highest, widest := -1.0, int64(-1)
	for _, order := range orders {
		for cut := 1; cut < len(order); cut++ {
			for _, set := range [][]int{order[:cut], order[cut:]} {
				e := event{cells: set}
				seen := c.evidence(e, delta)
				if seen.On.Hits < seen.Off.Hits {
					e.reversed = true
					seen.On, seen.Off = seen.Off, seen.On
				}
				difference := seen.On.Hits - seen.Off.Hits
				if s := score(seen); s > highest || s == highest && difference > widest {
					chosen, highest, widest = e, s, difference
				}
			}
		}
	}
	return chosen
}

func (c counts) evidence(e event, delta float64) Evidence {
	on, off := Trials{Draws: c.draws}, Trials{Draws: c.draws}
	for _, i := range e.cells {
		on.Hits += c.on[i]
		off.Hits += c.off[i]
	}
	if e.reversed {
		on, off = off, on
	}
	return Evidence{On: on, Off: off, Delta: delta}
}
