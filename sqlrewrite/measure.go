package sqlrewrite

import (
	"fmt"
	"math/big"
	"strings"

	"noisegate/catalog"
)

// measureKind is what a release adds up, or chooses by.
type measureKind int

const (
	countRows     measureKind = iota // rows that pass the filter
	countValues                      // of these, rows where the expression is not NULL
	countUnits                       // privacy units that have a row that passes the filter
	sumSteps                         // the expression's values in steps of its grid
	sumCentred                       // the same after subtracting the middle of the bounds from each value
	sumProducts                      // products of the centred steps of two expressions; squares less the middle of their range
	countDistinct                    // different values of the expression
	chooseRank                       // a point of the expression's grid near a rank among its values
	chooseMode                       // one of the candidates: the value that most rows have
)

// measure is one exact integer per group, which one release makes noisy; or, for those that choose, how many rows each candidate of a
// group has, from which one release takes a candidate.
type measure struct {
	kind   measureKind
	x      expr  // over columns; nil for countRows; the unit's id for countUnits
	grid   *grid // of x, where its values are numbers of steps
	y      expr  // sumProducts only: the second factor
	gridY  *grid
	filter expr          // over columns; nil: none
	rank   *big.Rat      // chooseRank only: the fraction of the rows that lie below, in [0, 1]
	upper  bool          // chooseRank only: where two ranks fit, the upper one
	among  []catalog.Key // chooseMode only: the candidates; nil: the points of the grid
	name   string        // its description
}

// chooses reports whether the release of a measure is a selection; else it is noise on an integer.
func (m measure) chooses() bool { return m.kind == chooseRank || m.kind == chooseMode }

// isSquare reports whether both factors of products are one.
func (m measure) isSquare() bool { return m.gridY == m.grid }

// unit is one step of a measure's integer in the output's unit.
func (m measure) unit() *big.Rat {
	switch {
	case m.kind == sumProducts:
		return new(big.Rat).Mul(m.grid.step, m.gridY.step)
	case m.grid != nil && !m.chooses():
		return m.grid.step
	default:
		return one()
	}
}

// perRow is the largest absolute value that one row adds to a sum; at least 1, so that no release is free of noise.
func (m measure) perRow() *big.Int {
	switch m.kind {
	case sumSteps:
		return m.grid.magnitude()
	case sumCentred:
		return m.grid.deviation()
	case sumProducts:
		most := new(big.Int).Mul(m.grid.deviation(), m.gridY.deviation())
		return maxInt(big.NewInt(1), most.Sub(most, m.middle())) // the middle is rounded down: the upper end is farther
	default:
		panic("sqlrewrite: measure without a sum")
	}
}

// middle is what is subtracted from each product: half of the largest square, so that squares lie around 0; products do already.
func (m measure) middle() *big.Int {
	if !m.isSquare() {
		return new(big.Int)
	}
	d := m.grid.deviation()
	return d.Rsh(new(big.Int).Mul(d, d), 1)
}

// describe names the measure as SQL over the analyst's names.
func (m measure) describe() string {
	var s string
	switch m.kind {
	case countRows:
		s = "count(*)"
	case countValues:
		s = "count(" + describe(m.x) + ")"
	case countUnits, countDistinct:
		s = "count(DISTINCT " + describe(m.x) + ")"
	case sumSteps:
		s = "sum(" + describe(m.x) + ")"
	case sumCentred:
		s = "sum(" + lessText(m.grid) + ")"
	case sumProducts:
		s = "sum((" + lessText(m.grid) + ") * (" + lessText(m.gridY) + "))"
	case chooseRank:
		s = "percentile(" + decimalOrFraction(m.rank) + ") of " + describe(m.x)
		if m.upper {
			s += " from above"
		}
	case chooseMode:
		s = "mode of " + describe(m.x)
	default:
		panic("sqlrewrite: measure without a case in describe")
	}
	return s + filterText(m.filter)
}

// lessText is a grid's expression less the middle of its bounds.
func lessText(g *grid) string {
	centre, sign := g.value(g.centre()), " - "
	if centre.Sign() < 0 {
		sign = " + "
	}
	text := describe(g.x) + sign + decimalOrFraction(centre.Abs(centre))
	if g.coarse {
		text += " by " + decimalOrFraction(g.step)
	}
	return text
}

func filterText(filter expr) string {
	if filter == nil {
		return ""
	}
	return " FILTER (WHERE " + describe(filter) + ")"
}

// planPart is one statement of a plan: releases that one scan serves.
type planPart struct {
	releases  []int // by index; all additive, or all of one histogram
	units     bool  // the last column is the number of units, by which private keys are selected
	statement Statement
	template  template // of the statement
	seedArg   int      // which argument is the seed, from 1; 0: none
	added     bool     // the statement has forms that the question's identity does not have
}

// partsOf divides the releases over statements: everything that adds up in one scan, another for each expression whose different values
// are counted, and one for each histogram.
func partsOf(q *boundQuery) []planPart {
	var parts []planPart
	var additive []int
	byScan := make(map[string]int)
	for i, m := range q.measures {
		switch m.kind {
		case countDistinct, chooseRank, chooseMode:
			id := strings.Join([]string{fmt.Sprint(m.kind), describe(m.x), filterText(m.filter), structureOf(m.x), structureOf(m.filter)}, "\x00")
			if _, known := byScan[id]; !known {
				byScan[id] = len(parts)
				parts = append(parts, planPart{})
			}
			parts[byScan[id]].releases = append(parts[byScan[id]].releases, i)
		default:
			additive = append(additive, i)
		}
	}
	if len(additive) > 0 || q.private() {
		parts = append([]planPart{{releases: additive, units: q.private()}}, parts...)
	}
	return parts
}
