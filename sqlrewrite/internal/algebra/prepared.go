package algebra

// CopyOf is the prepared copy that a query reads, if it reads no other rows of people than those, each in at most one tuple for a
// tuple of public rows: a scan of the copy, beside scans of public tables. Nil: it does not.
func (q *BoundQuery) CopyOf() *Scan {
	if q.Source == nil {
		return nil
	}
	found, plain := copyIn(q.Source.Node)
	if !plain {
		return nil
	}
	return found
}

// ReadsCopy reports whether a query was bound to a snapshot with a prepared copy, and reads rows of people.
func (q *BoundQuery) ReadsCopy() bool {
	o := q.Source.Owner()
	return o != nil && o.Prepared
}

// CountsEveryUnit reports whether a query asks of a prepared copy how many units there are, and nothing else. A copy has a row of each.
func (q *BoundQuery) CountsEveryUnit() bool {
	scan := q.CopyOf()
	return scan != nil && q.Source.Node == FromItem(scan) && len(q.Keys) == 0 && q.Where == nil && len(q.Statistics) == 1 &&
		q.Statistics[0].Kind == CountUnits && q.Statistics[0].Filter == nil
}

func copyIn(n FromItem) (found *Scan, plain bool) {
	switch n := n.(type) {
	case *Scan:
		if n.Table.Copy != nil {
			return n, true
		}
		return nil, n.Table.Public
	case *Joined:
		l, plainLeft := copyIn(n.Left)
		r, plainRight := copyIn(n.Right)
		if l != nil && r != nil || !plainLeft || !plainRight {
			return nil, false
		}
		if l == nil {
			l = r
		}
		return l, true
	case *RowCap:
		if !n.Active() {
			return copyIn(n.Of)
		}
		return nil, false
	default:
		return nil, false
	}
}
