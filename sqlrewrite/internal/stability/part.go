package stability

import (
	"errors"
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// errWhole refuses a count of what is left out where nothing is. Nobody sees it: no such count is planned.
var errWhole = errors.New("stability: each row counts")

// ofPart is the bounding of one count over all groups of a block: of the rows that count there, each unit keeps the groups and rows that it
// keeps in the block; of all rows, a unit has at most [algebra.KeptCap] times as many.
func ofPart(q *algebra.BoundQuery, asked Bounds) (Bounding, error) {
	cells := *q
	cells.Part, cells.Keys, cells.Within = algebra.NoPart, q.Within, nil
	s, err := ofGroups(&cells, asked)
	switch {
	case err != nil:
		return Bounding{}, err
	case s.Kind == Flat:
		return Bounding{}, fault.Internal(errWhole)
	case q.Part == algebra.AllRows:
		return Bounding{Kind: PerUnit, MaxRows: KeptCap(s), MaxGroups: 1, MaxValues: 1}, nil
	case s.Kind != PerUnit:
		s.Kind, s.Together = KeptKeys, true
	}
	return s, nil
}

// InAll is how many rows of one unit count in all groups together.
func (s Bounding) InAll() *big.Int {
	if s.MaxTotal > 0 {
		return big.NewInt(s.MaxTotal)
	}
	return new(big.Int).Mul(big.NewInt(s.MaxRows), big.NewInt(s.MaxGroups))
}

// Groups is L0: how many integers of one statistic a unit moves.
func (s Bounding) Groups() int64 {
	if s.Together {
		return 1
	}
	return s.MaxGroups
}

// KeptCap is how many rows of one unit are looked at to report which part of them counts.
func KeptCap(s Bounding) int64 {
	most := new(big.Int).Mul(s.InAll(), big.NewInt(algebra.KeptCap))
	if most.Cmp(big.NewInt(MaxBound)) > 0 {
		return MaxBound
	}
	return most.Int64()
}
