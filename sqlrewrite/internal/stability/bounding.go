package stability

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// boundingKind is how a statement enforces what one unit may contribute.
type boundingKind string

const (
	Flat          boundingKind = "flat"             // (a) a unit has at most one row in a group: one scan
	PerUnit       boundingKind = "per unit"         // (b) no keys: per unit, bounded, added up
	PerUnitAndKey boundingKind = "per unit and key" // (c) a unit may be in every group there is
	KeptKeys      boundingKind = "kept keys"        // (d) each unit keeps max_groups of its groups
)

// Bounding is a chosen form with its bounds.
type Bounding struct {
	Kind         boundingKind
	Partitioning Partitioning
	MaxRows      int64 // m: what one unit adds to a count of one group
	MaxGroups    int64 // L0: groups that one unit is in
	MaxTotal     int64 // N: rows of one unit in all groups together, below MaxRows·MaxGroups; 0: not bounded apart
	MaxValues    int64 // different values of one unit that one group counts
	MostRank     int64 // of a prepared copy: its rows count up to this rank; 0: it is none
	// Set is a set of ranks of that copy by which rows are left out: SetGroups groups of a unit count, with SetRows rows in each; nil: no set.
	Set                *catalog.RankSet
	SetGroups, SetRows int64
	Together           bool // all groups are added up: there is one integer, and no other group
}

// Bounds are those of a request; 0: none.
type Bounds struct {
	MaxRows, MaxGroups, MaxTotal int64
	Set                          *catalog.RankSet // of a copy: its ranks are used; nil: they are not
}

// MaxBound caps max_rows and max_groups: beyond it no noise could hide a unit anyway, and products stay in bigint.
const MaxBound = 1 << 30

// ChooseBounding picks the cheapest form that enforces the bounds, by facts of the catalog and the query alone.
func ChooseBounding(q *algebra.BoundQuery, asked Bounds) (Bounding, error) {
	if q.Part != algebra.NoPart {
		return ofPart(q, asked)
	}
	return ofGroups(q, asked)
}

// ofGroups is the bounding of a block that counts all that it shows.
func ofGroups(q *algebra.BoundQuery, asked Bounds) (Bounding, error) {
	if q.Copied() != nil {
		return ofCopy(q, asked)
	}
	key, one := q.Source.OnePerUnit()
	rows, groups, total, err := contribution(q, asked, one)
	if err != nil {
		return Bounding{}, err
	}
	s := Bounding{Kind: KeptKeys, MaxRows: min(rows, MaxBound), MaxGroups: min(groups, MaxBound), MaxValues: min(rows, MaxBound)}
	if values := q.Source.MaxValues; values > 0 && !one {
		s.MaxValues = min(values, MaxBound)
		if asked.MaxRows > 0 { // a request's bound is one on values too
			s.MaxValues = min(s.MaxValues, asked.MaxRows)
		}
	}
	switch {
	case one:
		q.Shared().Rely(key.Relies...)
		s.Kind, s.MaxGroups = Flat, 1
	case oneInGroup(q, &s):
	case len(q.Keys) == 0:
		s.Kind, s.MaxGroups = PerUnit, 1
	case !q.Private():
		if tuples := scalar.ClampInt64(q.Combinations()); tuples <= s.MaxGroups {
			s.Kind, s.MaxGroups = PerUnitAndKey, max(tuples, 1)
		} else if q.Top > 0 {
			s.Kind, s.MaxGroups = PerUnitAndKey, tuples // a selection of groups costs the same however many a unit is in
		}
	}
	if (s.Kind == PerUnitAndKey || s.Kind == KeptKeys) && q.Top == 0 && total < s.MaxRows*s.MaxGroups {
		s.MaxTotal = total
	}
	return s, nil
}

// contribution gives how much one unit may add under the policy and the request: rows in a group, groups, and rows in all groups together
// (0: no such bound). one: a unit has at most one row.
func contribution(q *algebra.BoundQuery, asked Bounds, one bool) (rows, groups, total int64, err error) {
	rows, groups, total = q.Source.MaxRows, q.Source.MaxGroups, q.Source.MaxTotal
	if one {
		rows, groups, total = 1, 1, 0
	}
	if asked.MaxTotal > 0 && (total == 0 || asked.MaxTotal < total) && !one {
		total = asked.MaxTotal
	} else if asked.MaxTotal > total && total > 0 {
		return 0, 0, 0, fault.LooserBound("max_rows_total", asked.MaxTotal, total)
	}
	if rows <= 0 {
		rows = total
	}
	if groups <= 0 {
		groups = total
	}
	if rows <= 0 && countsUnits(q) {
		rows = max(asked.MaxRows, 1) // a unit counts once whatever rows it has
	}
	if rows <= 0 {
		return 0, 0, 0, fault.MissingContribution(fault.Position{}, q.Source.Table, "max_rows")
	}
	if groups <= 0 && len(q.Keys) > 0 {
		return 0, 0, 0, fault.MissingContribution(q.Keys[0].At, q.Source.Table, "max_groups")
	}
	if rows, err = tighten("max_rows", rows, asked.MaxRows); err != nil {
		return 0, 0, 0, err
	}
	if groups, err = tighten("max_groups", max(groups, 1), asked.MaxGroups); err != nil {
		return 0, 0, 0, err
	}
	if total > 0 {
		rows, groups = min(rows, total), min(groups, total)
	}
	return rows, groups, total, nil
}

// oneInGroup makes a bounding flat where a unit may be in every group, and the catalog proves that it has at most one row in each: rows
// that agree in their keys and in what WHERE fixes agree in a unique key but for the unit.
func oneInGroup(q *algebra.BoundQuery, s *Bounding) bool {
	tuples := scalar.ClampInt64(q.Combinations())
	if q.Private() || tuples > s.MaxGroups {
		return false
	}
	var given []*algebra.Field // on which all rows of one group agree
	for _, k := range q.Keys {
		if f := algebra.PlainField(k.X); f != nil && !slices.ContainsFunc(k.Domain, func(key catalog.Key) bool { return key.Null }) {
			given = append(given, f)
		}
	}
	for _, e := range algebra.BoundConjuncts(q.Where) {
		eq, ok := e.(algebra.Binary)
		if !ok || eq.Op != syntax.Eq {
			continue
		}
		if f := algebra.PlainField(eq.L); f != nil && algebra.SameEquality(f.Type, eq.R.Typ()) {
			if _, ok := eq.R.(algebra.Constant); ok {
				given = append(given, f)
			}
		}
	}
	key, ok := q.Source.OneAmong(given)
	if ok {
		q.Shared().Rely(key.Relies...)
		s.Kind, s.MaxRows, s.MaxValues, s.MaxGroups = Flat, 1, 1, max(tuples, 1)
	}
	return ok
}

// countsUnits reports whether units are all that a query counts.
func countsUnits(q *algebra.BoundQuery) bool {
	return q.Top == 0 && len(q.Statistics) > 0 &&
		!slices.ContainsFunc(q.Statistics, func(m algebra.Statistic) bool { return m.Kind != algebra.CountUnits })
}

// tighten applies a request's bound to the policy's.
func tighten(option string, policy, asked int64) (int64, error) {
	switch {
	case asked == 0:
		return policy, nil
	case asked < 0 || asked > policy:
		return 0, fault.LooserBound(option, asked, policy)
	default:
		return asked, nil
	}
}

// PerGroup is Linf of a statistic: how much its sealed integer of one group moves at most when one unit comes or goes.
func (s Bounding) PerGroup(m algebra.Statistic) *big.Int {
	rows := big.NewInt(s.MaxRows)
	if s.Together {
		rows.Mul(rows, big.NewInt(s.MaxGroups))
	}
	switch m.Kind {
	case algebra.CountRows, algebra.CountValues:
		return rows
	case algebra.CountUnits:
		return big.NewInt(1)
	case algebra.CountDistinct:
		return big.NewInt(s.MaxValues)
	case algebra.SumSteps, algebra.SumCentred, algebra.SumProducts:
		return rows.Mul(rows, m.PerRow())
	case algebra.ChooseRank, algebra.ChooseMode:
		return rows
	default:
		panic("sqlrewrite: statistic without a sensitivity")
	}
}

// UnitSum are the least and the largest sum of steps that one unit adds to one group: what max_rows rows can add.
func UnitSum(s Bounding, m algebra.Statistic) (least, most *big.Int) {
	rows := big.NewInt(s.MaxRows)
	least, most = new(big.Int), new(big.Int)
	if m.Grid.Lo.Sign() < 0 {
		least.Mul(m.Grid.Lo, rows)
	}
	if m.Grid.Hi.Sign() > 0 {
		most.Mul(m.Grid.Hi, rows)
	}
	return least, most
}

// BoundsTotal reports whether MaxTotal bounds a statistic: it adds something for each row.
func (s Bounding) BoundsTotal(m algebra.Statistic) bool {
	switch m.Kind {
	case algebra.CountRows, algebra.CountValues, algebra.SumSteps, algebra.SumCentred, algebra.SumProducts:
		return s.MaxTotal > 0
	case algebra.CountDistinct: // of a copy's rows, each of which has one value
		return s.MostRank > 0
	default:
		return false
	}
}

// Norms are L1 and L2² of what one unit adds to a statistic in all groups. With N = MaxTotal rows in all, of which m = MaxRows count in one
// group, both are largest where as many groups as possible have m rows: L2² is convex in how the rows are divided.
func (s Bounding) Norms(m algebra.Statistic) (l1, l2Squared *big.Int) {
	if s.Together {
		l1 = s.InAll()
		return l1, new(big.Int).Mul(l1, l1)
	}
	perGroup := s.PerGroup(m)
	if !s.BoundsTotal(m) {
		l1 = new(big.Int).Mul(big.NewInt(s.MaxGroups), perGroup)
		return l1, new(big.Int).Mul(l1, perGroup)
	}
	each := perGroup.Quo(perGroup, big.NewInt(s.MaxRows)) // what one row adds
	full, rest := s.MaxTotal/s.MaxRows, s.MaxTotal%s.MaxRows
	square := new(big.Int).Mul(big.NewInt(s.MaxRows), big.NewInt(s.MaxRows))
	square.Mul(square, big.NewInt(full)).Add(square, new(big.Int).Mul(big.NewInt(rest), big.NewInt(rest)))
	l2Squared = square.Mul(square, each).Mul(square, each)
	return new(big.Int).Mul(each, big.NewInt(s.MaxTotal)), l2Squared
}
