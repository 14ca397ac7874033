package catalog

import (
	"strings"
	"testing"
)

// A set of ranks is of columns that the copy has, whose equal values are identical.
func TestSetsOfRanks(t *testing.T) {
	table := &Table{Unit: Unit{Kind: ColumnUnit, Column: "person"}, Columns: []*Column{
		{Name: "person", Type: Int4, Exposed: true, Identifies: "person"}, {Name: "ward", Type: Int4, Exposed: true},
		{Name: "kind", Type: Text, Exposed: true}, {Name: "fee", Type: Numeric, Exposed: true}, {Name: "secret", Type: Int4},
	}}
	for set, why := range map[string]string{"ward": "", "kind ward": "", "fee": "is no whole number", "secret": "exposes no column",
		"person": "tells units", "ward ward": "is there twice", "day": "exposes no column"} {
		if got := table.rankable(strings.Fields(set)); (got == "") != (why == "") || !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", set, got, why)
		}
	}
}

// What a copy is called and has is the same without sets of ranks as before there were any; each set adds two columns after the rank.
func TestCopiesWithRanks(t *testing.T) {
	table := &Table{Schema: "public", Name: "visits", Prepare: 3, Unit: Unit{Kind: ColumnUnit, Column: "person"},
		Columns: []*Column{{Name: "person", Type: Int4, NotNull: true}, {Name: "ward", Type: Int4, Exposed: true}}}
	names := func(c *Table) (all []string) {
		for i, column := range c.Columns {
			if all = append(all, column.Name); int(column.AttNum) != i+1 {
				t.Errorf("%s is column %d", column.Name, column.AttNum)
			}
		}
		return all
	}
	on := &Snapshot{Dataset: "d"}
	plain := on.CopyOf(table, Version{Number: 1})
	if got := strings.Join(names(plain), " "); got != "person noisegate_rn ward" || plain.Copy.Own() != 2 {
		t.Errorf("without ranks: %s", got)
	}
	table.Ranks = [][]string{{"ward"}}
	ranked := on.CopyOf(table, Version{Number: 1})
	if got := strings.Join(names(ranked), " "); got != "person noisegate_rn noisegate_group_1 noisegate_row_1 ward" || ranked.Copy.Own() != 4 {
		t.Errorf("with ranks: %s", got)
	}
}
