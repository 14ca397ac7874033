package relation

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// ranks places the columns of a copy that number rows. A pinned key (unit, rank), rank checked to be at least 1, numbers the rows of a
// unit as row_number() does, as far as place <= n goes (Lemma 13); those of its sets are what Build derived (Lemma 16).
func (p *part) ranks(t *catalog.Table, pin *Pin, byName map[string]*value.Value, solid map[int]bool) {
	unit, rank := byName[t.Unit.Column], byName[catalog.RankColumn]
	if unit == nil || !solid[unit.ID] {
		return
	}
	key := []string{catalog.RankColumn, t.Unit.Column}
	slices.Sort(key)
	if rank != nil && solid[rank.ID] && rank.Checked && rank.Within.Lo.Cmp(ranges.One) >= 0 &&
		slices.ContainsFunc(pin.Keys, func(k []string) bool { return slices.Equal(k, key) }) {
		rank.Place = &value.Place{Partition: []int{unit.ID}, Of: []int{p.number}, Rows: p.ids}
		p.limits = append(p.limits, limit{by: []int{unit.ID}, rows: rank.Within.Hi.Num().Int64()})
	}
	for _, set := range t.Copy.Ranks {
		var keys []int
		for _, name := range set.Keys {
			if v := byName[name]; v != nil && v.Same {
				keys = append(keys, v.ID)
			}
		}
		group, row := byName[set.Group], byName[set.Row]
		if len(keys) == 0 || len(keys) < len(set.Keys) || group == nil || row == nil || !solid[group.ID] || !solid[row.ID] {
			continue
		}
		group.Place = &value.Place{Dense: true, Partition: []int{unit.ID}, Order: keys}
		row.Place = &value.Place{Partition: append([]int{unit.ID}, keys...), Of: []int{p.number}, Rows: p.ids}
	}
}
