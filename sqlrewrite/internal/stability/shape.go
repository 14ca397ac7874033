package sqlrewrite

import (
	"math"
	"math/big"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// shapeKind is how a statement enforces what one unit may contribute.
type shapeKind string

const (
	flat          shapeKind = "flat"             // (a) a unit has at most one row in a group: one scan
	perUnit       shapeKind = "per unit"         // (b) no keys: per unit, bounded, added up
	perUnitAndKey shapeKind = "per unit and key" // (c) a unit may be in every group there is
	keptKeys      shapeKind = "kept keys"        // (d) each unit keeps max_groups of its groups
)

// shape is a chosen form with its bounds.
type shape struct {
	kind      shapeKind
	cut       cutKind
	maxRows   int64 // m: what one unit adds to a count of one group
	maxGroups int64 // L0: groups that one unit is in
	maxValues int64 // different values of one unit that one group counts
}

// maxBound caps max_rows and max_groups: beyond it no noise could hide a unit anyway, and products stay in bigint.
const maxBound = 1 << 30

// chooseShape picks the cheapest form that enforces the bounds, by facts of the catalog and the query alone. maxRows and
// maxGroups are a request's bounds; 0: none.
func chooseShape(q *boundQuery, maxRows, maxGroups int64) (shape, error) {
	rows, groups := q.source.maxRows, q.source.maxGroups
	key, one := q.source.onePerUnit()
	if one {
		rows, groups = 1, 1
	}
	if rows <= 0 {
		return shape{}, fault.MissingContribution(fault.Position{}, q.source.table, "max_rows")
	}
	if groups <= 0 && len(q.keys) > 0 {
		return shape{}, fault.MissingContribution(q.keys[0].at, q.source.table, "max_groups")
	}
	rows, err := tighten("max_rows", rows, maxRows)
	if err != nil {
		return shape{}, err
	}
	if groups, err = tighten("max_groups", max(groups, 1), maxGroups); err != nil {
		return shape{}, err
	}
	s := shape{kind: keptKeys, maxRows: min(rows, maxBound), maxGroups: min(groups, maxBound), maxValues: min(rows, maxBound)}
	if values := q.source.maxValues; values > 0 && !one {
		s.maxValues = min(values, maxBound)
		if maxRows > 0 { // a request's bound is one on values too
			s.maxValues = min(s.maxValues, maxRows)
		}
	}
	switch {
	case one:
		q.shared().rely(key.relies...)
		s.kind, s.maxGroups = flat, 1
	case q.oneInGroup(&s):
	case len(q.keys) == 0:
		s.kind, s.maxGroups = perUnit, 1
	case !q.private():
		if tuples := clampInt64(q.publicTuples()); tuples <= s.maxGroups {
			s.kind, s.maxGroups = perUnitAndKey, max(tuples, 1)
		} else if q.top > 0 {
			s.kind, s.maxGroups = perUnitAndKey, tuples // a selection of groups costs the same however many a unit is in
		}
	}
	return s, nil
}

// oneInGroup makes a shape flat where a unit may be in every group, and the catalog proves that it has at most one row in each: rows that
// agree in their keys and in what WHERE fixes agree in a unique key but for the unit.
func (q *boundQuery) oneInGroup(s *shape) bool {
	tuples := clampInt64(q.publicTuples())
	if q.private() || tuples > s.maxGroups {
		return false
	}
	var given []*field // on which all rows of one group agree
	for _, k := range q.keys {
		if f := plainField(k.x); f != nil && !slices.ContainsFunc(k.domain, func(key catalog.Key) bool { return key.Null }) {
			given = append(given, f)
		}
	}
	for _, e := range boundConjuncts(q.where) {
		eq, ok := e.(binary)
		if !ok || eq.op != syntax.Eq {
			continue
		}
		if f := plainField(eq.l); f != nil && sameEquality(f.Type, eq.r.typ()) {
			if _, ok := eq.r.(constant); ok {
				given = append(given, f)
			}
		}
	}
	key, ok := q.source.oneAmong(given)
	if ok {
		q.shared().rely(key.relies...)
		s.kind, s.maxRows, s.maxValues, s.maxGroups = flat, 1, 1, max(tuples, 1)
	}
	return ok
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

func clampInt64(v *big.Int) int64 {
	if !v.IsInt64() {
		return math.MaxInt64
	}
	return v.Int64()
}

// perGroup is Linf of a measure: how much its sealed integer of one group moves at most when one unit comes or goes.
func (s shape) perGroup(m measure) *big.Int {
	rows := big.NewInt(s.maxRows)
	switch m.kind {
	case countRows, countValues:
		return rows
	case countUnits:
		return big.NewInt(1)
	case countDistinct:
		return big.NewInt(s.maxValues)
	case sumSteps, sumCentred, sumProducts:
		return rows.Mul(rows, m.perRow())
	case chooseRank, chooseMode:
		return rows
	default:
		panic("sqlrewrite: measure without a sensitivity")
	}
}
