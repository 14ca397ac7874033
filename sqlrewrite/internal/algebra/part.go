package algebra

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
)

// Part says that a block is one count over all groups of another block, from which it is reported what the bounds leave out.
type Part int

const (
	NoPart   Part = iota
	KeptRows      // the rows that count, of all groups together
	AllRows       // all rows of groups that can appear, of each unit up to KeptCap times as many as can count
)

// KeptCap is how many times as many rows of one unit are looked at as count at most: all rows of a unit have no bound.
const KeptCap = 4

// Counting is the block that counts a part of the rows of a block; rows is the count that it is of, [CountRows] or [CountValues].
func (q *BoundQuery) Counting(part Part, rows Statistic) *BoundQuery {
	name := "rows that count"
	if part == AllRows {
		name = "all rows"
	}
	rows.Name = name
	pairs := new(big.Int).Set(q.Pairs) // lower caps change it in its place, by what this block counts
	return &BoundQuery{Facts: q.Facts, Pairs: pairs, Fan: q.Fan, Spare: q.Spare, At: q.At, Load: q.Load, Source: q.Source, Where: q.Where,
		Part: part, Within: q.Keys, Statistics: []Statistic{rows},
		Estimators: []Estimator{{Name: name, T: catalog.Int8, How: AsReleased, Of: []int{0}}},
		Outputs:    []Output{{Name: name, Expr: EstimatorRef{T: catalog.Int8}}}}
}

// Computed are the release blocks that outputs are computed from, by their places; nil where none is.
func (q *BoundQuery) Computed() []*BoundQuery {
	if q.Blocks == nil {
		return []*BoundQuery{q}
	}
	all := slices.Clone(q.Blocks)
	for i, block := range all {
		if block.Part != NoPart || block.Argument {
			all[i] = nil
		}
	}
	return all
}

// Cells are the keys of the groups in which the rows of one unit are bounded.
func (q *BoundQuery) Cells() []GroupKey {
	if q.Part != NoPart {
		return q.Within
	}
	return q.Keys
}
