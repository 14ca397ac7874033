package sqlprint

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// preconditions are the metadata of the tables that the statement relies on: every column that it names, and every key that a proof used.
func preconditions(q *algebra.BoundQuery) []Precondition {
	w := NewPreconditionWalk()
	w.Query(q)
	for _, r := range q.Shared().Relied {
		w.table(r.Table)
	}
	var all []Precondition
	for _, t := range w.tables {
		all = append(all, w.precondition(t, q.Shared()))
	}
	return all
}

// Query collects what a query reads.
func (w *PreconditionWalk) Query(q *algebra.BoundQuery) {
	w.item(q.Source.Node)
	w.Exprs(q.Where)
	for _, o := range q.Source.Owners {
		w.Used[o] = true
	}
	for _, k := range q.Cells() {
		w.Exprs(k.X)
	}
	for _, m := range q.Statistics {
		w.Exprs(m.Filter, m.X, m.Y)
	}
}

// PreconditionWalk collects what a statement names.
type PreconditionWalk struct {
	Used   map[*algebra.Field]bool
	solid  map[*algebra.Field]bool // are to be NULL on no row, as they were when the policy was applied
	tables []*catalog.Table        // in the order in which they were met
	Scans  []*algebra.Scan
	Visit  func(algebra.Expr) // meets every expression; nil: nobody does
	Outer  bool               // there is an outer join
	ties   bool               // also what windows order by beyond what the query says

	allSolid bool // all columns that are named are to be
}

// NewPreconditionWalk begins with nothing.
func NewPreconditionWalk() *PreconditionWalk {
	return &PreconditionWalk{Used: make(map[*algebra.Field]bool), solid: make(map[*algebra.Field]bool)}
}

func (w *PreconditionWalk) table(t *catalog.Table) {
	if !slices.Contains(w.tables, t) {
		w.tables = append(w.tables, t)
	}
}

func (w *PreconditionWalk) item(n algebra.FromItem) {
	switch n := n.(type) {
	case *algebra.Scan:
		w.table(n.Table)
		w.Scans = append(w.Scans, n)
	case *algebra.Joined:
		w.Outer = w.Outer || n.Kind != syntax.InnerJoin && n.Kind != syntax.CrossJoin
		w.item(n.Left)
		w.item(n.Right)
		w.Exprs(n.On)
		if f := n.Mark(); f != nil {
			w.Used[f], w.solid[f] = true, true
			w.allSolid = w.allSolid || !f.Public // of a query in FROM
		}
	case *algebra.RowCap:
		w.item(n.Of)
		if n.Active() {
			w.Used[n.By] = true
			for _, f := range n.Outputs { // what it hands on is in its text, whether or not something reads it
				w.Used[f] = true
			}
		}
	case *algebra.Derived:
		for _, q := range n.Parts {
			if q.From != nil {
				w.item(q.From)
			}
			w.Exprs(q.Where)
			w.Exprs(q.Keys...)
			w.Exprs(q.Results()...)
		}
	default:
		panic("sqlrewrite: relation without preconditions")
	}
}

func (w *PreconditionWalk) Exprs(list ...algebra.Expr) {
	for _, e := range list {
		if e != nil && w.Visit != nil {
			w.Visit(e)
		}
		switch e := e.(type) {
		case nil:
			continue
		case algebra.Column:
			w.Used[e.Of] = true
		case algebra.Exists:
			w.item(e.From)
			w.Exprs(e.Where)
		case algebra.InRows:
			w.item(e.From)
			w.Exprs(e.Where)
			for _, f := range e.Outputs {
				w.Used[f] = true
			}
			w.allSolid = w.allSolid || len(e.X) > 1
		case algebra.Aggregate:
			if e.Over != nil {
				w.window(e)
			}
		}
		w.Exprs(algebra.Children(e)...)
	}
}

// window collects what a window orders by beyond what the query says. Its key is to be NULL in no row: rows where it is NULL tie, and the
// values that a window picks from them may differ. In such rows numbers of rows are not read.
func (w *PreconditionWalk) window(e algebra.Aggregate) {
	if e.Safe && w.ties {
		for _, f := range slices.Concat(e.Over.Ties, e.Over.Key, []*algebra.Field{e.Over.Owner}) {
			w.Used[f] = true
		}
	}
	if e.Name == "row_number" || e.Name == "ntile" {
		return
	}
	for _, f := range e.Over.Key {
		w.solid[f] = true
		w.allSolid = w.allSolid || !slices.ContainsFunc(w.Scans, func(s *algebra.Scan) bool { return slices.Contains(s.Fields, f) })
	}
}

// preconditionOf is what must still hold of a table whatever is read of it.
func preconditionOf(t *catalog.Table) Precondition {
	return Precondition{Schema: t.Schema, Table: t.Name, OID: t.OID, RowSecurity: t.RowSecurity, Partitioned: t.Partitioned, Apart: t.Apart()}
}

// preconditionColumn is what must still hold of a column that is read.
func preconditionColumn(c *catalog.Column) PreconditionColumn {
	return PreconditionColumn{Name: c.Name, AttNum: c.AttNum, TypeOID: c.TypeOID, TypMod: c.TypMod, Collation: c.Collation}
}

// precondition is what must still hold of one table.
func (w *PreconditionWalk) precondition(t *catalog.Table, facts *algebra.StatementFacts) Precondition {
	precondition := preconditionOf(t)
	named, solid, equal := map[int16]bool{}, map[int16]bool{}, map[int16]int64{}
	if t.Unit.Kind == catalog.RowUnit {
		if c, ok := t.Column(t.Unit.Column); ok {
			solid[c.AttNum] = true
		}
	}
	for _, k := range facts.Counted {
		if k.Table != t {
			continue
		}
		if c, ok := t.Column(k.Column); ok {
			named[c.AttNum], equal[c.AttNum] = true, c.MostEqual
		} else {
			precondition.MostRows = t.MostRows
		}
	}
	for _, sc := range w.Scans {
		for _, f := range sc.Fields {
			if sc.Table == t && w.Used[f] {
				named[f.AttNum] = true
				solid[f.AttNum] = solid[f.AttNum] || w.allSolid || w.solid[f]
			}
		}
	}
	for _, r := range facts.Relied {
		if r.Table != t {
			continue
		}
		precondition.Keys = append(precondition.Keys, r.Columns)
		for _, name := range r.Columns {
			if c, ok := t.Column(name); ok {
				named[c.AttNum] = true
			}
		}
	}
	if precondition.ofCopy(t); t.Copy != nil {
		own := t.Copy.Own() // the number of the unit, and ranks
		for i, c := range t.Columns {
			if i >= own && !slices.ContainsFunc(t.Copy.Ranks, func(s catalog.RankSet) bool { return slices.Contains(s.Keys, c.Name) }) {
				continue
			}
			named[c.AttNum], solid[c.AttNum] = true, true
		}
	}
	for i, c := range t.Columns {
		// A table whose number of rows alone matters is pinned by its first column.
		if named[c.AttNum] || i == 0 && len(named) == 0 {
			column := preconditionColumn(c)
			column.NotNull = solid[c.AttNum] && c.NotNull
			column.MostEqual = equal[c.AttNum]
			precondition.Columns = append(precondition.Columns, column)
		}
	}
	return precondition
}

// PublicPreconditions are the metadata of public tables that a statement relies on.
func PublicPreconditions(scans []*algebra.Scan) []Precondition {
	var preconditions []Precondition
	for _, s := range scans {
		if slices.ContainsFunc(preconditions, func(p Precondition) bool { return p.OID == s.Table.OID }) {
			continue
		}
		precondition := preconditionOf(s.Table)
		for _, f := range s.Fields {
			precondition.Columns = append(precondition.Columns, preconditionColumn(f.Column))
		}
		preconditions = append(preconditions, precondition)
	}
	return preconditions
}
