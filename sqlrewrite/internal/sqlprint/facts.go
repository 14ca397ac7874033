package sqlprint

import (
	"fmt"

	"noisegate.example/sqlrewrite/internal/algebra"
)

// Facts are what a release block rests on of the tables that it reads: which relations and columns they are, and of what types. They have
// nothing of tables that are read above the block.
func Facts(q *algebra.BoundQuery) []string {
	w := NewPreconditionWalk()
	w.Query(q)
	var facts []string
	for _, t := range w.tables {
		facts = append(facts, "table", t.Schema, t.Name, fmt.Sprint(t.OID, t.RowSecurity))
		used := map[int16]bool{}
		for _, sc := range w.Scans {
			for _, f := range sc.Fields {
				used[f.AttNum] = used[f.AttNum] || sc.Table == t && w.Used[f]
			}
		}
		for _, c := range t.Columns {
			if used[c.AttNum] {
				facts = append(facts, "column", c.Name, fmt.Sprint(c.AttNum, c.TypeOID, c.TypMod, c.Collation))
			}
		}
	}
	return facts
}
