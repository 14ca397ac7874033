package bind

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// lookedUp is a query, refused for its many keys, as one with fewer keys that means the same; nil where it knows none. A public table that
// has one row for each value of a key tells the columns of that row: the others are no keys, but are looked up after the noise.
//
//	SELECT s.id, s.boss, count(*) FROM c JOIN s ON .. GROUP BY s.id, s.boss
//	SELECT q.a1, s.boss, q.a2 FROM (SELECT s.id, count(*) FROM c JOIN s ON .. GROUP BY s.id) q(a1, a2) JOIN s ON s.id = q.a1
func lookedUp(o *algebra.Opened, query *syntax.Query, err error) *syntax.Query {
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Code != fault.CodeTooManyKeys || reshaped(query) || query.Set != nil || query.Sets != nil ||
		query.Distinct || query.Windows != nil || query.With != nil {
		return nil
	}
	tables, conditions, ok := joined(query.From)
	if !ok {
		return nil
	}
	if query.Where != nil {
		conditions = append(conditions, query.Where)
	}
	for _, t := range tables {
		for _, l := range lookups(o, query, t) {
			if len(l.by) < len(query.GroupBy) && !slices.ContainsFunc(conditions, l.mayRuleOut) {
				return l.query(query)
			}
		}
	}
	return nil
}

// joined are the tables of FROM, and on what they are joined; ok is false where other relations, or other joins, stand beside them.
func joined(from []syntax.Relation) (tables []*syntax.Table, on []syntax.Expr, ok bool) {
	for _, r := range from {
		switch r := r.(type) {
		case *syntax.Table:
			tables = append(tables, r)
		case *syntax.Join:
			more, conditions, ok := joined([]syntax.Relation{r.Left, r.Right})
			if !ok || r.Kind != syntax.InnerJoin && r.Kind != syntax.CrossJoin || r.Using != nil || r.Natural {
				return nil, nil, false
			}
			tables, on = append(tables, more...), append(on, conditions...)
			if r.On != nil {
				on = append(on, r.On)
			}
		default:
			return nil, nil, false
		}
	}
	return tables, on, true
}

// lookup is a public table whose columns are looked up by one key.
type lookup struct {
	table *syntax.Table
	known *catalog.Table
	name  string // of the table in the query
	key   *syntax.Column
	by    []syntax.Expr // the keys that remain
}

// lookups are the columns of a public table in GROUP BY that tell its row, each with what is left of GROUP BY where the others are looked
// up.
func lookups(o *algebra.Opened, query *syntax.Query, t *syntax.Table) (all []*lookup) {
	known, exists := o.Snapshot.Table(t.Schema, t.Name)
	if !exists || !known.Public {
		return nil
	}
	name := t.Alias
	if name == "" {
		name = t.Name
	}
	for _, n := range query.GroupBy {
		l := &lookup{table: t, known: known, name: name}
		if l.key = l.column(itemOf(query, n)); l.key == nil || !l.tells(l.key.Name) {
			continue
		}
		for _, n := range query.GroupBy {
			if n = itemOf(query, n); l.column(n) == nil || l.isKey(n) {
				l.by = append(l.by, n)
			}
		}
		all = append(all, l)
	}
	return all
}

// tells reports whether a column of the table tells its row.
func (l *lookup) tells(name string) bool {
	c, exists := l.known.Column(name)
	return exists && c.NotNull && slices.ContainsFunc(l.known.Unique, func(key []string) bool { return len(key) == 1 && key[0] == name })
}

// itemOf is what an item of GROUP BY means where it is a place in the select list.
func itemOf(query *syntax.Query, n syntax.Expr) syntax.Expr {
	if l, ok := n.(*syntax.Literal); ok && l.Kind == syntax.IntegerLiteral {
		if i, err := strconv.Atoi(l.Text); err == nil && i >= 1 && i <= len(query.Items) {
			return query.Items[i-1].Expr
		}
	}
	return n
}

// column is a column of the table that names it; nil for all else.
func (l *lookup) column(n syntax.Expr) *syntax.Column {
	if c, ok := n.(*syntax.Column); ok && c.Schema == "" && c.Qualifier == l.name {
		return c
	}
	return nil
}

func (l *lookup) isKey(n syntax.Expr) bool {
	c := l.column(n)
	return c != nil && c.Name == l.key.Name
}

// mayRuleOut reports whether a condition may rule out values of a column that is looked up: no group of them is then shown, but one of
// every key is looked up. Conditions are followed as far as comparisons of columns and constants go.
func (l *lookup) mayRuleOut(n syntax.Expr) bool {
	switch n := n.(type) {
	case *syntax.Binary:
		return l.mayRuleOut(n.L) || l.mayRuleOut(n.R)
	case *syntax.Literal:
		return false
	case *syntax.Column:
		if n.Qualifier != "" {
			return n.Schema != "" || l.column(n) != nil && !l.isKey(n)
		}
		_, exists := l.known.Column(n.Name)
		return exists
	default:
		return true
	}
}

// query is the outer query, whose FROM is the query without the columns that are looked up. Whatever else names one of these is refused
// when the inner query is bound, as it is no key there. ORDER BY is the outer one's: places and names of its outputs alone.
func (l *lookup) query(query *syntax.Query) *syntax.Query {
	const released = "released" // no other name is beside it
	if l.name == released {
		return nil
	}
	inner, outer := *query, syntax.Query{Pos: query.Pos, OrderBy: query.OrderBy, Limit: query.Limit, Offset: query.Offset}
	inner.GroupBy, inner.Items, inner.OrderBy, inner.Limit, inner.Offset = l.by, nil, nil, nil, nil
	var columns []string
	add := func(item syntax.Item) *syntax.Column {
		inner.Items, columns = append(inner.Items, item), append(columns, "a"+strconv.Itoa(len(columns)+1))
		return &syntax.Column{Pos: item.Pos, Qualifier: released, Name: columns[len(columns)-1]}
	}
	var key *syntax.Column
	names := make(map[string]bool)
	for _, item := range query.Items {
		shown := syntax.Item{Pos: item.Pos, Expr: item.Expr, Alias: itemName(item)}
		if c := l.column(item.Expr); c == nil || l.isKey(c) {
			column := add(item)
			if shown.Expr = column; l.isKey(item.Expr) {
				key = column
			}
		}
		names[shown.Alias] = true
		outer.Items = append(outer.Items, shown)
	}
	if key == nil {
		key = add(syntax.Item{Pos: l.key.Pos, Expr: l.key})
	}
	for _, item := range query.OrderBy {
		switch x := item.Expr.(type) {
		case *syntax.Literal:
		case *syntax.Column:
			if x.Qualifier != "" || !names[x.Name] {
				return nil
			}
		default:
			return nil
		}
	}
	outer.From = []syntax.Relation{&syntax.Join{Pos: l.table.Pos,
		Left:  &syntax.Subquery{Pos: query.Pos, Query: &inner, Alias: released, Columns: columns},
		Right: l.table, On: &syntax.Binary{Pos: l.key.Pos, Op: syntax.Eq, L: l.key, R: key}}}
	return &outer
}

// hintAtLookup is a refusal for many keys that says which of them a public table tells, and how to look these up after the noise; any other
// error is as it was.
func hintAtLookup(o *algebra.Opened, query *syntax.Query, err error) error {
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Code != fault.CodeTooManyKeys {
		return err
	}
	for _, t := range tablesOf(query.From) {
		for _, l := range lookups(o, query, t) {
			other := func(n syntax.Expr) bool { n = itemOf(query, n); return !l.isKey(n) && l.names(n) }
			if key := l.name + "." + l.key.Name; slices.ContainsFunc(query.GroupBy, other) {
				return refusal.WithHint(fmt.Sprintf("%s determines the other columns of %s: group by it instead of these in a query in FROM, and "+
					"join %s to its groups", key, fault.Quote(t.Name), t.Name))
			}
		}
	}
	return err
}

// tablesOf are the tables of FROM, however they are joined.
func tablesOf(from []syntax.Relation) (tables []*syntax.Table) {
	for _, r := range from {
		switch r := r.(type) {
		case *syntax.Table:
			tables = append(tables, r)
		case *syntax.Join:
			tables = append(tables, tablesOf([]syntax.Relation{r.Left, r.Right})...)
		}
	}
	return tables
}

// names reports whether an expression names a column of the table.
func (l *lookup) names(n syntax.Expr) bool {
	return l.column(n) != nil || slices.ContainsFunc(operands(n), l.names)
}
