package sqlrewrite

import (
	"math/big"
	"reflect"
	"strconv"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// groupKey is one expression of GROUP BY.
type groupKey struct {
	x    expr
	name string // for people: the column's, or the expression as text
	at   fault.Position
	// domain holds the keys that appear, all of them, whatever the rows say; nil for private keys, which are selected.
	domain []catalog.Key
	node   syntax.Expr // nil for a column
	// declared is the number of keys before WHERE narrowed them.
	declared int
}

func (k groupKey) private() bool { return k.domain == nil }

// maxKeys caps the combinations of public keys: each is a row of the answer.
const maxKeys = 100_000

// groupBy binds the keys: expressions over a row, by themselves, by ordinal or by the alias of an output; SELECT DISTINCT of columns is
// a GROUP BY of its outputs.
func (b *binder) groupBy() error {
	nodes := b.query.GroupBy
	if b.query.Distinct && len(nodes) == 0 && b.plainColumns() {
		for _, item := range b.query.Items {
			nodes = append(nodes, item.Expr)
		}
	}
	work := maxWork
	for _, n := range nodes {
		n, err := b.groupItem(n)
		if err != nil {
			return err
		}
		key, err := b.groupKey(n, &work)
		if err != nil {
			return err
		}
		if _, known := b.keyOf(key.x); !known {
			b.bound.keys = append(b.bound.keys, key)
		}
	}
	return b.checkKeyCount()
}

// plainColumns reports whether every output is a column.
func (b *binder) plainColumns() bool {
	for _, item := range b.query.Items {
		if _, ok := item.Expr.(*syntax.Column); !ok {
			return false
		}
	}
	return true
}

// keyOf finds the key that an expression over a row is.
func (b *binder) keyOf(x expr) (keyRef, bool) {
	for i, k := range b.bound.keys {
		f, g := plainField(writtenAs(k.x)), plainField(writtenAs(x))
		if f != g || f == nil && !sameExpr(k.x, x) {
			continue
		}
		return keyRef{index: i, name: k.name, t: k.x.typ()}, true
	}
	return keyRef{}, false
}

// computedKey finds the key that an expression above the aggregates repeats.
func (s blockScope) computedKey(n syntax.Expr) (keyRef, bool) {
	for _, k := range s.bound.keys {
		if k.node == nil || reflect.TypeOf(k.node) != reflect.TypeOf(n) {
			continue
		}
		if x, err := s.expression(rowScope(s), n); err == nil {
			return s.keyOf(x)
		}
		return keyRef{}, false
	}
	return keyRef{}, false
}

// groupItem finds the expression that an item of GROUP BY means. As in PostgreSQL, a name is first a column and then an alias.
func (b *binder) groupItem(n syntax.Expr) (syntax.Expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		item, err := b.ordinal(n, "GROUP BY")
		return item.Expr, err
	case *syntax.Column:
		if _, exists := b.visible(n.Name); n.Qualifier == "" && !exists {
			for _, item := range b.query.Items {
				if item.Alias == n.Name {
					return item.Expr, nil
				}
			}
		}
	}
	return n, nil
}

// ordinal is the item of the select list that a whole number in GROUP BY or ORDER BY means.
func (b *binder) ordinal(n *syntax.Literal, clause string) (syntax.Item, error) {
	i, err := strconv.Atoi(n.Text)
	if n.Kind != syntax.IntegerLiteral || err != nil {
		return syntax.Item{}, b.unsupported(n, "a constant in "+clause, "name a column or its position in the select list")
	}
	if i < 1 || i > len(b.query.Items) {
		return syntax.Item{}, fault.UnknownColumn(b.at(n), n.Text, nil).WithHint("positions in " + clause + " count the select list from 1")
	}
	return b.query.Items[i-1], nil
}

// groupKey decides how the keys of an expression may be shown.
func (b *binder) groupKey(n syntax.Expr, work *int) (groupKey, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := b.column(c)
		if err != nil {
			return groupKey{}, err
		}
		return b.columnKey(c, f, work)
	}
	x, err := b.expression(rowScope{b}, n)
	if err != nil {
		return groupKey{}, err
	}
	if x.typ() == intervalType { // which equal ones have several texts, of which a group would show that of one of its rows
		return groupKey{}, b.unsupported(n, "grouping by an interval", "group by extract(epoch FROM x)")
	}
	if len(columnsOf(x)) == 0 {
		return groupKey{}, b.unsupported(n, "grouping by a constant", "leave it out")
	}
	key := groupKey{x: x, name: describe(x), at: b.at(n), node: n}
	if _, known := b.keyOf(x); known {
		return key, nil // it is not added again
	}
	if domain, ok := keyDomainIn(x, b.bound.where, work); ok {
		key.domain, key.declared = domain, len(domain)
		return key, nil
	}
	if missing := mayCompute(x); missing != nil {
		return groupKey{}, fault.MissingKeys(b.at(n), missing.Name)
	}
	return key, nil
}

// columnKey decides how the keys of a column may be shown.
func (b *binder) columnKey(n *syntax.Column, c *field, work *int) (groupKey, error) {
	key := groupKey{x: column{of: c}, name: c.Name, at: b.at(n)}
	switch {
	case c.unit:
		return key, fault.GroupByUnit(b.at(n), c.Name)
	case c.identity() && !c.PrivateKeys:
		return key, fault.UnitColumn(b.at(n), c.Name) // public keys are constants
	case !oneText(key.x):
		return key, b.unsupported(n, "grouping by a column of type "+string(c.Type), "equal values of it may be written differently")
	case c.Domain != nil:
		key.domain = c.Domain
	case c.Type == catalog.Bool:
		key.domain = []catalog.Key{{Text: "false"}, {Text: "true"}}
	case c.PrivateKeys:
		return key, nil
	case isGrid(c):
		if _, known := b.keyOf(key.x); known {
			return key, nil // it is not added again
		}
		return b.boundedKey(key, c, work)
	default:
		return key, fault.MissingKeys(b.at(n), c.Name)
	}
	key.declared = len(key.domain)
	key.domain = narrow(key.domain, c, b.bound.where)
	return key, nil
}

// oneText reports whether equal values of a column always have one text. Else the text that a group shows would be that of one of
// its rows (1.0 or 1.00, 0 or -0, 1 day or 24:00:00).
func oneText(e expr) bool {
	_, fixed := scale(e)
	return !isFloat(e.typ()) && e.typ() != intervalType && (e.typ() != catalog.Numeric || fixed)
}

// narrow drops the keys that WHERE rules out by itself: no row can have them, so showing them as noisy zeros would only
// mislead. It looks at text and policy alone. The result is not nil, even when it is empty.
func narrow(domain []catalog.Key, c *field, where expr) []catalog.Key {
	kept := append(make([]catalog.Key, 0, len(domain)), domain...)
	filter := func(keep func(catalog.Key) bool) {
		n := 0
		for _, k := range kept {
			if keep(k) {
				kept[n] = k
				n++
			}
		}
		kept = kept[:n]
	}
	for _, e := range boundConjuncts(where) {
		list, negated, ok := keyCondition(e, c)
		if !ok {
			continue
		}
		filter(func(k catalog.Key) bool {
			if k.Null {
				return false // a comparison with NULL is not true
			}
			for _, v := range list {
				if sameKey(c.Type, k, v) {
					return !negated
				}
			}
			return negated
		})
	}
	return kept
}

// keyCondition recognises c = v, c <> v, c IN (v, ...) and c NOT IN (v, ...) for constants that are not NULL.
func keyCondition(e expr, c *field) (list []constant, negated, ok bool) {
	var x expr
	var values []expr
	switch e := e.(type) {
	case binary:
		if e.op != syntax.Eq && e.op != syntax.Ne {
			return nil, false, false
		}
		x, values, negated = e.l, []expr{e.r}, e.op == syntax.Ne
		if _, swapped := e.r.(column); swapped {
			x, values = e.r, []expr{e.l}
		}
	case in:
		x, values, negated = e.x, e.list, e.not
	default:
		return nil, false, false
	}
	if col, isColumn := x.(column); !isColumn || col.of != c {
		return nil, false, false
	}
	for _, v := range values {
		k, isConstant := v.(constant)
		if !isConstant || k.null || c.Type.IsTime() && k.t != c.Type {
			return nil, false, false
		}
		list = append(list, k)
	}
	return list, negated, true
}

// sameKey compares a key with a constant of the same family by value.
func sameKey(t catalog.Type, k catalog.Key, v constant) bool {
	if t.IsNumber() {
		a, okA := parseNumber(k.Text)
		b, okB := parseNumber(v.text)
		return okA && okB && a.Cmp(b) == 0
	}
	return k.Text == v.text
}

// boundConjuncts splits a condition at its outermost ANDs.
func boundConjuncts(e expr) []expr {
	if e == nil {
		return nil
	}
	if and, ok := e.(binary); ok && and.op == syntax.And {
		return append(boundConjuncts(and.l), boundConjuncts(and.r)...)
	}
	return []expr{e}
}

// checkKeyCount caps the combinations of public keys.
func (b *binder) checkKeyCount() error {
	for _, k := range b.bound.keys {
		if k.private() {
			return nil
		}
	}
	if b.bound.publicTuples().Cmp(big.NewInt(maxKeys)) > 0 {
		return fault.TooManyKeys(b.bound.keys[0].at, maxKeys)
	}
	return nil
}

// publicTuples is the number of combinations of the keys' domains; 1 without keys. Only for blocks without private keys.
func (q *boundQuery) publicTuples() *big.Int {
	n := big.NewInt(1)
	for _, k := range q.keys {
		n.Mul(n, big.NewInt(int64(len(k.domain))))
	}
	return n
}

// private reports whether any key must be selected; then the whole tuple is.
func (q *boundQuery) private() bool {
	for _, k := range q.keys {
		if k.private() {
			return true
		}
	}
	return false
}
