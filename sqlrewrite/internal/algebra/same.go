package algebra

import (
	"slices"

	"noisegate.example/catalog"
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

// SameKey is [Same] for keys of groups: PostgreSQL leaves out a cast to the type that a value has, so that GROUP BY x::text is GROUP BY x
// where x is a text.
func SameKey(a, b Expr) bool { return Same(withoutIdleCasts(a), withoutIdleCasts(b)) }

func withoutIdleCasts(e Expr) Expr {
	e = written(e)
	if c, ok := e.(Cast); ok && isIdle(c) {
		return withoutIdleCasts(c.X)
	}
	return Map(e, withoutIdleCasts)
}

// isIdle reports whether PostgreSQL leaves out a cast. One that takes a modifier off, as of numeric(6,1) to numeric, it keeps; here varchar
// and enums may be text already.
func isIdle(c Cast) bool {
	if c.T != c.X.Typ() || len(c.Mods) > 0 {
		return false
	}
	switch c.T {
	case catalog.Text:
		return !slices.ContainsFunc(FreeFields(c.X), func(f *Field) bool {
			return f.Type == catalog.Text && (f.TypeOID == varcharOID || f.TypMod >= 0 || f.Enum != "")
		})
	case catalog.Bool, catalog.Date, catalog.UUID:
		return true
	default:
		return c.T.IsInteger()
	}
}

const varcharOID = 1043 // of PostgreSQL's pg_type.dat

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
	return slices.EqualFunc(w.Partition, o.Partition, m.expr) && slices.EqualFunc(w.Order, o.Order, m.sameOrdering)
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

// declared makes two fields of relations inside the expressions, at the same places, one.
func (m *matching) declared(a, b *Field) bool {
	if m.inner == nil {
		m.inner = make(map[*Field]*Field)
	}
	m.inner[a] = b
	return a.Name == b.Name
}

func (m *matching) operand(of syntax.Operator, a, b Expr) bool {
	if IsComparison(of) {
		return m.compared(a, b)
	}
	return m.expr(a, b)
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

// join matches kinds of joins; an inner one without a condition is a cross join.
func (m *matching) join(a, b syntax.JoinKind) bool {
	inner := func(k syntax.JoinKind) bool {
		return k != syntax.LeftJoin && k != syntax.RightJoin && k != syntax.FullJoin
	}
	return a == b || inner(a) && inner(b)
}

// both matches what may be missing.
func both[T any](a, b *T, same func(a, b T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return same(*a, *b)
}
