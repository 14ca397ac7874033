package sqlrewrite

import (
	"slices"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// pins are the metadata of the tables that the statement relies on: every column that it names, and every key that a proof used.
func pins(q *boundQuery) []Pin {
	w := &pinWalk{used: make(map[*field]bool)}
	w.query(q)
	for _, r := range q.shared().relied {
		w.table(r.table)
	}
	var all []Pin
	for _, t := range w.tables {
		all = append(all, w.pin(t, q.shared()))
	}
	return all
}

// query collects what a query reads.
func (w *pinWalk) query(q *boundQuery) {
	w.item(q.source.node)
	w.exprs(q.where)
	for _, o := range q.source.owners {
		w.used[o] = true
	}
	for _, k := range q.keys {
		w.exprs(k.x)
	}
	for _, m := range q.measures {
		w.exprs(m.filter, m.x, m.y)
	}
}

// pinWalk collects what a statement names.
type pinWalk struct {
	used   map[*field]bool
	tables []*catalog.Table // in the order in which they were met
	scans  []*scan
	visit  func(expr) // meets every expression; nil: nobody does
	outer  bool       // there is an outer join
	ties   bool       // also what windows order by beyond what the query says
}

func (w *pinWalk) table(t *catalog.Table) {
	if !slices.Contains(w.tables, t) {
		w.tables = append(w.tables, t)
	}
}

func (w *pinWalk) item(n fromItem) {
	switch n := n.(type) {
	case *scan:
		w.table(n.table)
		w.scans = append(w.scans, n)
	case *joined:
		w.outer = w.outer || n.kind != syntax.InnerJoin && n.kind != syntax.CrossJoin
		w.item(n.left)
		w.item(n.right)
		w.exprs(n.on)
	case *rowCap:
		w.item(n.of)
		if n.active() {
			w.used[n.by] = true
		}
	case *derived:
		for _, q := range n.parts {
			if q.from != nil {
				w.item(q.from)
			}
			w.exprs(q.where)
			w.exprs(q.keys...)
			w.exprs(q.outputs...)
		}
	default:
		panic("sqlrewrite: relation without pins")
	}
}

func (w *pinWalk) exprs(list ...expr) {
	for _, e := range list {
		if e != nil && w.visit != nil {
			w.visit(e)
		}
		switch e := e.(type) {
		case nil:
			continue
		case column:
			w.used[e.of] = true
		case exists:
			w.item(e.from)
			w.exprs(e.where)
		case inRows:
			w.item(e.from)
			w.exprs(e.where)
			for _, f := range e.outputs {
				w.used[f] = true
			}
		case unitAggregate:
			if e.over != nil && w.ties {
				for _, f := range slices.Concat(e.over.ties, e.over.key, []*field{e.over.owner}) {
					w.used[f] = true
				}
			}
		}
		w.exprs(children(e)...)
	}
}

// pinOf is what must still hold of a table whatever is read of it.
func pinOf(t *catalog.Table) Pin {
	return Pin{Schema: t.Schema, Table: t.Name, OID: t.OID, RowSecurity: t.RowSecurity, Partitioned: t.Partitioned, Apart: t.Apart}
}

// pinnedColumn is what must still hold of a column that is read.
func pinnedColumn(c *catalog.Column) PinnedColumn {
	return PinnedColumn{Name: c.Name, AttNum: c.AttNum, TypeOID: c.TypeOID, TypMod: c.TypMod, Collation: c.Collation}
}

// pin is what must still hold of one table.
func (w *pinWalk) pin(t *catalog.Table, facts *statementFacts) Pin {
	pin := pinOf(t)
	named, equal := map[int16]bool{}, map[int16]int64{}
	for _, k := range facts.counted {
		if k.table != t {
			continue
		}
		if c, ok := t.Column(k.column); ok {
			named[c.AttNum], equal[c.AttNum] = true, c.MostEqual
		} else {
			pin.MostRows = t.MostRows
		}
	}
	for _, sc := range w.scans {
		for _, f := range sc.fields {
			if sc.table == t && w.used[f] {
				named[f.AttNum] = true
			}
		}
	}
	for _, r := range facts.relied {
		if r.table != t {
			continue
		}
		pin.Keys = append(pin.Keys, r.columns)
		for _, name := range r.columns {
			if c, ok := t.Column(name); ok {
				named[c.AttNum] = true
			}
		}
	}
	for i, c := range t.Columns {
		// A table of which only the number of rows matters is pinned by its first column.
		if named[c.AttNum] || i == 0 && len(named) == 0 {
			column := pinnedColumn(c)
			column.NotNull = t.Unit.Kind == catalog.RowUnit && c.Name == t.Unit.Column
			column.MostEqual = equal[c.AttNum]
			pin.Columns = append(pin.Columns, column)
		}
	}
	return pin
}
