package algebra

import (
	"slices"

	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Whether two expressions are one is decided by their structure, never by a text: a column may be called "(age + 1)", and 2 and 2.0 read
// alike and divide differently.

// Same reports whether two expressions over a row are one. Each is what was written, not its error-free form; numbers that are compared are
// told apart by their texts, whatever their types.
func Same(a, b Expr) bool { return new(matching).expr(a, b) }

// Identical is [Same] as PostgreSQL tells expressions of GROUP BY apart: every constant has its type.
func Identical(a, b Expr) bool { return (&matching{typed: true}).expr(a, b) }

// Same reports whether two statistics are one integer of every group. Their grids follow from their expressions.
func (m Statistic) Same(n Statistic) bool {
	return m.SameRows(n) && Same(m.Y, n.Y) && m.Upper == n.Upper && (m.Rank == nil) == (n.Rank == nil) &&
		(m.Rank == nil || m.Rank.Cmp(n.Rank) == 0)
}

// SameRows reports whether two statistics are of one kind, over the same values of the same rows.
func (m Statistic) SameRows(n Statistic) bool {
	return m.Kind == n.Kind && Same(m.X, n.X) && Same(m.Filter, n.Filter)
}

// SameOrder reports whether two windows have the same partitions, and rows in the same order in each.
func (w *Window) SameOrder(o *Window) bool {
	m := new(matching)
	return m.exprs(w.Partition, o.Partition) && m.orderings(w.Order, o.Order)
}

// matching compares two expressions.
type matching struct {
	typed bool
	inner map[*Field]*Field // fields of relations inside the first one, to those of the second at the same places
}

func (m *matching) field(a, b *Field) bool {
	if f, inside := m.inner[a]; inside {
		a = f
	}
	return a == b
}

func (m *matching) exprs(a, b []Expr) bool { return slices.EqualFunc(a, b, m.expr) }

func (m *matching) orderings(a, b []Ordering) bool {
	return slices.EqualFunc(a, b, func(a, b Ordering) bool {
		return a.Descending == b.Descending && a.NullsFirst == b.NullsFirst && m.expr(a.Expr, b.Expr)
	})
}

// written is an expression without the forms that keep it from failing.
func written(e Expr) Expr {
	switch e := e.(type) {
	case Computed:
		return written(e.Written)
	case Guard:
		return written(e.X)
	default:
		return e
	}
}

func (m *matching) expr(a, b Expr) bool { //nolint:funlen,gocyclo // a case for each kind of expression
	a, b = written(a), written(b)
	switch a := a.(type) {
	case nil:
		return b == nil
	case Column:
		b, ok := b.(Column)
		return ok && m.field(a.Of, b.Of)
	case KeyRef, EstimatorRef, Constant:
		return a == b
	case Not:
		b, ok := b.(Not)
		return ok && m.expr(a.X, b.X)
	case Negate:
		b, ok := b.(Negate)
		return ok && m.expr(a.X, b.X)
	case Binary:
		b, ok := b.(Binary)
		if ok && IsComparison(a.Op) {
			return a.Op == b.Op && m.compared(a.L, b.L) && m.compared(a.R, b.R)
		}
		return ok && a.Op == b.Op && m.expr(a.L, b.L) && m.expr(a.R, b.R)
	case In:
		b, ok := b.(In)
		return ok && a.Not == b.Not && m.expr(a.X, b.X) && slices.EqualFunc(a.List, b.List, m.compared)
	case Is:
		b, ok := b.(Is)
		return ok && a.What == b.What && a.Not == b.Not && m.expr(a.X, b.X)
	case Distinct:
		b, ok := b.(Distinct)
		return ok && a.Not == b.Not && m.expr(a.L, b.L) && m.expr(a.R, b.R)
	case Like:
		b, ok := b.(Like)
		return ok && a.Operator() == b.Operator() && m.expr(a.X, b.X) && a.Pattern == b.Pattern
	case Choice:
		b, ok := b.(Choice)
		return ok && m.expr(a.Otherwise, b.Otherwise) && slices.EqualFunc(a.Arms, b.Arms, func(a, b Arm) bool {
			return m.expr(a.Cond, b.Cond) && m.expr(a.Result, b.Result)
		})
	case Cast:
		b, ok := b.(Cast)
		return ok && a.T == b.T && slices.Equal(a.Mods, b.Mods) && m.expr(a.X, b.X)
	case Collate:
		b, ok := b.(Collate)
		return ok && m.expr(a.X, b.X)
	case Call:
		b, ok := b.(Call)
		return ok && a.Name == b.Name && m.exprs(a.Args, b.Args)
	case Aggregate:
		b, ok := b.(Aggregate)
		return ok && a.Name == b.Name && a.Star == b.Star && a.Distinct == b.Distinct && m.exprs(a.Args, b.Args) &&
			m.orderings(a.Order, b.Order) &&
			m.orderings(a.Within, b.Within) && m.expr(a.Filter, b.Filter) && m.window(a.Over, b.Over)
	case Exists:
		b, ok := b.(Exists)
		return ok && m.item(a.From, b.From) && m.expr(a.Where, b.Where)
	case InRows:
		b, ok := b.(InRows)
		return ok && m.exprs(a.X, b.X) && m.item(a.From, b.From) && slices.EqualFunc(a.Outputs, b.Outputs, m.field) && m.expr(a.Where, b.Where)
	case Subquery:
		b, ok := b.(Subquery)
		return ok && a.Query == b.Query
	case Either:
		b, ok := b.(Either)
		return ok && m.expr(a.L, b.L) && m.expr(a.R, b.R)
	default:
		panic("sqlrewrite: expression without a case in matching")
	}
}

// compared matches operands of comparisons.
func (m *matching) compared(a, b Expr) bool {
	x, okX := a.(Constant)
	y, okY := b.(Constant)
	if !m.typed && okX && okY && x.T.IsNumber() && y.T.IsNumber() && x.Text == y.Text && !x.Null && !y.Null {
		_, finite := scalar.ParseNumber(x.Text)
		return finite || x.T == y.T
	}
	return m.expr(a, b)
}

func (m *matching) window(a, b *Window) bool {
	if a == nil || b == nil {
		return a == b
	}
	return m.field(a.Owner, b.Owner) && m.exprs(a.Partition, b.Partition) && m.orderings(a.Order, b.Order) && sameFrame(a.Frame, b.Frame)
}

func sameFrame(a, b *Frame) bool {
	bound := func(a, b FrameBound) bool {
		return a.Kind == b.Kind && (a.Offset == nil) == (b.Offset == nil) && (a.Offset == nil || *a.Offset == *b.Offset)
	}
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && bound(a.Start, b.Start) && bound(a.End, b.End)
}

// item matches relations inside expressions, and their fields by their places.
func (m *matching) item(a, b FromItem) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case *Scan:
		b, ok := b.(*Scan)
		return ok && a.Table == b.Table && m.leaf(&a.Leaf, &b.Leaf)
	case *RowCap:
		b, ok := b.(*RowCap)
		return ok && m.item(a.Of, b.Of)
	case *Joined:
		b, ok := b.(*Joined)
		return ok && a.joins() == b.joins() && m.item(a.Left, b.Left) && m.item(a.Right, b.Right) && m.expr(a.On, b.On)
	case *Derived:
		b, ok := b.(*Derived)
		return ok && a.Lateral == b.Lateral && slices.EqualFunc(a.Parts, b.Parts, m.query) && m.leaf(&a.Leaf, &b.Leaf) &&
			slices.EqualFunc(a.Fields, b.Fields, func(f, g *Field) bool { return f.Name == g.Name })
	default:
		panic("sqlrewrite: relation without a case in matching")
	}
}

// joins is the kind of a join; an inner one without a condition is a cross join.
func (n *Joined) joins() syntax.JoinKind {
	if n.Kind != syntax.LeftJoin && n.Kind != syntax.RightJoin && n.Kind != syntax.FullJoin {
		return syntax.InnerJoin
	}
	return n.Kind
}

// leaf matches two relations that have the same rows. A question says what its relations are called.
func (m *matching) leaf(a, b *Leaf) bool {
	if m.inner == nil {
		m.inner = make(map[*Field]*Field)
	}
	for i, f := range a.Fields {
		if i < len(b.Fields) {
			m.inner[f] = b.Fields[i]
		}
	}
	return a.Name == b.Name && len(a.Fields) == len(b.Fields)
}

// query matches queries below the release block.
func (m *matching) query(a, b *Query) bool {
	return a.Distinct == b.Distinct && m.item(a.From, b.From) && m.expr(a.Where, b.Where) && m.exprs(a.Keys, b.Keys) &&
		m.exprs(a.Results(), b.Results())
}
