package plan

import (
	"cmp"
	"math/big"
	"slices"

	"noisegate.example/sqlrewrite/internal/scalar"
)

// Cells are the noisy numbers of one release in some released rows, the rows From to To, counted from 1. From and To are 0 for the row that
// an output is of, and negative in what is known of an aggregate before there are rows: its number among those that are followed
// ([algebra.Aggregate]).
type Cells struct{ Release, From, To int }

// Weighted are cells each of which has the same weight in a sum. It is not changed once made.
type Weighted struct {
	Cells
	Weight *big.Rat
}

// Linear is a weighted sum of noisy numbers, in their steps, and a constant. The cells are disjoint and in order. It is not changed once
// made.
type Linear struct {
	Terms    []Weighted
	Constant *big.Rat
}

// IsConstant reports whether there is no release in it.
func (a Linear) IsConstant() bool { return len(a.Terms) == 0 }

// Plus is the sum.
func (a Linear) Plus(b Linear) Linear {
	sum := Linear{Constant: new(big.Rat).Add(a.Constant, b.Constant)}
	each(a.Terms, b.Terms, func(c Cells, weights [2]*big.Rat) {
		w := new(big.Rat).Add(weights[0], weights[1])
		if w.Sign() == 0 {
			return
		}
		if last := len(sum.Terms) - 1; last >= 0 && sum.Terms[last].Release == c.Release && sum.Terms[last].To == c.From-1 &&
			sum.Terms[last].Weight.Cmp(w) == 0 {
			sum.Terms[last].To = c.To
			return
		}
		sum.Terms = append(sum.Terms, Weighted{c, w})
	})
	return sum
}

// each visits the largest cells in which two sums have one weight each, in order.
func each(a, b []Weighted, visit func(c Cells, weights [2]*big.Rat)) {
	type edge struct{ release, at int }
	var edges []edge
	for _, terms := range [][]Weighted{a, b} {
		for _, t := range terms {
			edges = append(edges, edge{t.Release, t.From}, edge{t.Release, t.To + 1})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.release, y.release), cmp.Compare(x.at, y.at)) })
	edges = slices.Compact(edges)
	zero, next := new(big.Rat), [2]int{}
	for i := range max(len(edges)-1, 0) {
		c := Cells{edges[i].release, edges[i].at, edges[i+1].at - 1}
		if edges[i+1].release != c.Release {
			continue
		}
		weights, found := [2]*big.Rat{zero, zero}, false
		for side, terms := range [][]Weighted{a, b} {
			for next[side] < len(terms) && (terms[next[side]].Release < c.Release ||
				terms[next[side]].Release == c.Release && terms[next[side]].To < c.From) {
				next[side]++
			}
			if at := next[side]; at < len(terms) && terms[at].Release == c.Release && terms[at].From <= c.From {
				weights[side], found = terms[at].Weight, true
			}
		}
		if found {
			visit(c, weights)
		}
	}
}

func (a Linear) scaled(factor *big.Rat) Linear {
	out := Linear{Constant: new(big.Rat).Mul(a.Constant, factor)}
	if factor.Sign() != 0 {
		for _, t := range a.Terms {
			out.Terms = append(out.Terms, Weighted{t.Cells, new(big.Rat).Mul(t.Weight, factor)})
		}
	}
	return out
}

// times is the product, where that is linear.
func (a Linear) times(b Linear) (Linear, bool) {
	if a.IsConstant() {
		return b.scaled(a.Constant), true
	}
	return a.scaled(b.Constant), b.IsConstant()
}

func (a Linear) equals(b Linear) bool {
	difference := a.Plus(b.scaled(big.NewRat(-1, 1)))
	return difference.IsConstant() && difference.Constant.Sign() == 0
}

// Over is the sum over all rows of some runs of rows, of what it is for each of them.
func (a Linear) Over(runs [][2]int) Linear {
	rows, out := 0, Linear{}
	for _, run := range runs {
		rows += run[1] - run[0] + 1
	}
	for _, t := range a.Terms { // of one row: in the order of their releases
		for _, run := range runs {
			out.Terms = append(out.Terms, Weighted{Cells{t.Release, run[0], run[1]}, t.Weight})
		}
	}
	out.Constant = new(big.Rat).Mul(a.Constant, new(big.Rat).SetInt64(int64(rows)))
	return out
}

// in is what it is for another row; its constant is the same for all.
func (a Linear) in(row int) Linear {
	out := a.Over([][2]int{{row, row}})
	out.Constant = a.Constant
	return out
}

// At is the value for the noisy numbers of the row that it is of.
func (a Linear) At(noisy []*big.Int) *big.Rat {
	return a.Sum(func(c Cells) *big.Int { return noisy[c.Release] })
}

// Sum is the value where at gives the sum of the noisy numbers of some cells.
func (a Linear) Sum(at func(Cells) *big.Int) *big.Rat {
	v := new(big.Rat).Set(a.Constant)
	for _, t := range a.Terms {
		v.Add(v, scalar.InUnits(at(t.Cells), t.Weight))
	}
	return v
}

// Noises are the noises of one release that have the same two weights in a pair of sums.
type Noises struct {
	Release, Times int
	Over, Under    *big.Rat
}

// NoisesOf lists the noises of a fraction by their release and their weights in the two sums.
func NoisesOf(f Fraction) []Noises {
	var all []Noises
	each(f.Over.Terms, f.Under.Terms, func(c Cells, weights [2]*big.Rat) {
		times := c.To - c.From + 1
		for i := len(all) - 1; i >= 0 && all[i].Release == c.Release; i-- {
			if all[i].Over.Cmp(weights[0]) == 0 && all[i].Under.Cmp(weights[1]) == 0 {
				all[i].Times += times
				return
			}
		}
		all = append(all, Noises{c.Release, times, weights[0], weights[1]})
	})
	return all
}
