package algebra

import (
	"cmp"
	"slices"

	"noisegate.example/catalog"
)

// CopyOf is the prepared copy that a query reads, if it reads no other rows of people: a scan of the copy, in queries that give at most a
// row for each of theirs, beside scans of public tables. Nil: it does not, or asks for others of a unit's rows in EXISTS or IN.
func (q *BoundQuery) CopyOf() *Scan {
	if q.Source == nil || asksPeople(q.Where) || slices.ContainsFunc(q.Keys, func(k GroupKey) bool { return asksPeople(k.X) }) ||
		slices.ContainsFunc(q.Statistics, func(m Statistic) bool { return asksPeople(m.X) || asksPeople(m.Y) || asksPeople(m.Filter) }) {
		return nil
	}
	return copyIn(q.Source.Node)
}

// asksPeople reports whether an expression asks for rows of people, in EXISTS or IN.
func asksPeople(e Expr) bool {
	asks := func(from FromItem, where Expr) bool { return RowsOf(from) == OwnedRows || asksPeople(where) }
	switch e := e.(type) {
	case nil:
		return false
	case Exists:
		return asks(e.From, e.Where)
	case InRows:
		return asks(e.From, e.Where) || slices.ContainsFunc(e.X, asksPeople)
	default:
		return slices.ContainsFunc(Children(e), asksPeople)
	}
}

// RankedCopy is that copy where conditions of the query itself can name its ranks: it is not in a query in FROM.
func (q *BoundQuery) RankedCopy() *Scan {
	if scan := q.CopyOf(); scan != nil && slices.Contains(LeavesIn(q.Source.Node), &scan.Leaf) {
		return scan
	}
	return nil
}

// Copied is the prepared copy that a query reads, however often; nil: it was bound to a snapshot without one, or reads no rows of people.
func (q *BoundQuery) Copied() *catalog.Copy { return copied(q.Source.Node) }

func copied(n FromItem) *catalog.Copy {
	switch n := n.(type) {
	case *Scan:
		return n.Table.Copy
	case *Joined:
		return cmp.Or(copied(n.Left), copied(n.Right))
	case *RowCap:
		return copied(n.Of)
	case *Derived:
		for _, q := range n.Parts {
			if of := copied(q.From); of != nil {
				return of
			}
		}
	}
	return nil
}

// RowByRow reports whether each row of people that a query is about is computed of one row of a table. Of what is computed of several, a
// prepared copy that leaves some out makes another value.
func (q *BoundQuery) RowByRow() bool { return rowByRow(q.Source.Node) }

func rowByRow(n FromItem) bool {
	switch n := n.(type) {
	case *Joined:
		return rowByRow(n.Left) && rowByRow(n.Right)
	case *RowCap:
		return rowByRow(n.Of)
	case *Derived:
		return !slices.ContainsFunc(n.Parts, func(q *Query) bool {
			return q.Rows() == OwnedRows && (!q.Rowwise() || !rowByRow(q.From))
		})
	default:
		return true
	}
}

// CountsEveryUnit reports whether a query asks of a prepared copy how many units there are, and nothing else. A copy has a row of each.
func (q *BoundQuery) CountsEveryUnit() bool {
	scan := q.CopyOf()
	return scan != nil && q.Source.Node == FromItem(scan) && len(q.Keys) == 0 && q.Where == nil && len(q.Statistics) == 1 &&
		q.Statistics[0].Kind == CountUnits && q.Statistics[0].Filter == nil
}

// copyIn is the only scan of a copy of which each row of an item comes; nil: there is none, or more.
func copyIn(n FromItem) *Scan {
	switch n := n.(type) {
	case *Scan:
		if n.Table.Copy != nil {
			return n
		}
	case *Joined:
		l, r := copyIn(n.Left), copyIn(n.Right)
		if asksPeople(n.On) {
			return nil
		}
		if l != nil && RowsOf(n.Right) == PublicRows {
			return l
		}
		if r != nil && RowsOf(n.Left) == PublicRows {
			return r
		}
	case *RowCap:
		if !n.Active() {
			return copyIn(n.Of)
		}
	case *Derived:
		if q := n.Parts[0]; len(n.Parts) == 1 && q.From != nil && len(q.Keys) == 0 && !asksPeople(q.Where) &&
			!slices.ContainsFunc(q.Results(), func(e Expr) bool { return HasAggregate(e) || asksPeople(e) }) {
			return copyIn(q.From)
		}
	}
	return nil
}
