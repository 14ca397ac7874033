package bind

import (
	"math/big"
	"reflect"
	"slices"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// groupBy binds the keys: expressions over a row, by themselves, by ordinal or by the alias of an output; SELECT DISTINCT of columns is
// a GROUP BY of its outputs. A constant is none: it is the same in all groups.
func groupBy(b *algebra.Binder) error {
	nodes := b.Query.GroupBy
	if b.Query.Distinct && len(nodes) == 0 && plainColumns(b) {
		for _, item := range b.Query.Items {
			nodes = append(nodes, item.Expr)
		}
	}
	work, inside := domain.MaxWork, newKeysInside(b)
	for _, n := range nodes {
		n, err := groupItem(b, n)
		if err != nil {
			return err
		}
		key, err := groupKey(b, n, &work)
		key, err = inside.find(key, err)
		if err != nil {
			return err
		}
		at, known := keyOf(b, key.X)
		_, isTest := n.(*syntax.Is)
		_, isConstant := key.X.(algebra.Constant)
		switch {
		case isTest && isConstant:
			b.Constants = append([]algebra.GroupKey{key}, b.Constants...) // before one that another set has
		case algebra.IsConstant(key.X) && b.Query.Sets != nil: // it is NULL in the totals
			return refuseConstantKey(b, n)
		case algebra.IsConstant(key.X):
		case !known:
			b.KeysAt, b.Bound.Keys = append(b.KeysAt, len(b.Bound.Keys)), append(b.Bound.Keys, key)
		default:
			b.KeysAt = append(b.KeysAt, at.Index)
			if b.Bound.Keys[at.Index].Node == nil { // it is written in two ways
				b.Bound.Keys[at.Index].Node = key.Node
			}
		}
	}
	narrowKeys(b)
	if keys.Narrow(b.Bound) || inside.waits { // it is bound again once they are known
		return nil
	}
	return checkKeyCount(b)
}

// narrowKeys leaves out computed numbers that no row which meets the conditions can have. Lists leave out values of columns, but are asked
// for computed keys only where these are not known without.
func narrowKeys(b *algebra.Binder) {
	q := b.Bound
	if q.Shared().List.Of == nil || q.Private() || len(b.Query.GroupBy) == 0 {
		return
	}
	k := domain.NewImplied(b, b.Query.GroupBy[0])
	impliedIn(k, q.Source.Node)
	k.Learn(q.Where, true)
	for i, key := range q.Keys {
		within := algebra.BoundsOf(key.X)
		if !key.X.Typ().IsNumber() || algebra.PlainField(key.X) != nil || within == nil {
			continue
		}
		implied := k.BoundsOf(key.X)
		if implied == nil || implied.Hi.Cmp(within.Lo) < 0 || implied.Lo.Cmp(within.Hi) > 0 { // rows beyond a bound count as the bound
			continue
		}
		q.Keys[i].Leave(func(d catalog.Key) bool {
			v, number := scalar.ParseNumber(d.Text)
			return d.Null || !number || v.Cmp(implied.Lo) >= 0 && v.Cmp(implied.Hi) <= 0
		})
	}
}

// constantKey is the value of a key that is the same in all groups.
func constantKey(b *algebra.Binder, n syntax.Expr) (algebra.Expr, bool) {
	id := testedId(b, n)
	at := slices.IndexFunc(b.Constants, func(k algebra.GroupKey) bool {
		return id != nil && testedId(b, k.Node) == id && k.Node.(*syntax.Is).Not == n.(*syntax.Is).Not
	})
	if at < 0 {
		return nil, false
	}
	return b.Constants[at].X, true
}

// testedId is the column that an expression tests for NULL; nil: it tests none.
func testedId(b *algebra.Binder, n syntax.Expr) *algebra.Field {
	test, ok := n.(*syntax.Is)
	if !ok || test.What != syntax.IsNull {
		return nil
	}
	c, ok := test.X.(*syntax.Column)
	if !ok {
		return nil
	}
	f, err := column(b, c)
	if err != nil {
		return nil
	}
	return f
}

func refuseConstantKey(b *algebra.Binder, n syntax.Expr) error {
	return b.Unsupported(n, "grouping by a constant in this place", "leave it out")
}

// RowKeys binds each item of GROUP BY by itself, all over one FROM and WHERE: as the only key of a query. Its errors are those of such
// queries.
func RowKeys(o *algebra.Opened) ([]algebra.GroupKey, error) {
	if !isBlock(o, o.Query, nil) {
		return nil, fault.Unsupported(fault.Position{}, "a query that reads no private rows in this place", "name a table with a privacy unit")
	}
	s := sourceOf(o, o.Query, nil)
	if s.Taken = true; s.Refused != nil {
		return nil, s.Refused
	}
	for _, step := range []func(*algebra.Binder) error{owner, where} {
		if err := step(s.Binder); err != nil {
			return nil, err
		}
	}
	keys, work := make([]algebra.GroupKey, len(o.Query.GroupBy)), domain.MaxWork
	for i, n := range o.Query.GroupBy {
		var err error
		if keys[i], err = groupKey(s.Binder, n, &work); err != nil {
			return nil, err
		}
		if algebra.IsConstant(keys[i].X) {
			return nil, refuseConstantKey(s.Binder, n)
		}
	}
	return keys, nil
}

// plainColumns reports whether every output is a column.
func plainColumns(b *algebra.Binder) bool {
	for _, item := range b.Query.Items {
		if _, ok := item.Expr.(*syntax.Column); !ok {
			return false
		}
	}
	return true
}

// keyOf finds the key that an expression over a row is.
func keyOf(b *algebra.Binder, x algebra.Expr) (algebra.KeyRef, bool) {
	for i, k := range b.Bound.Keys {
		if algebra.SameKey(k.X, x) {
			return algebra.KeyRef{Index: i, Name: k.Name, T: k.X.Typ()}, true
		}
	}
	return algebra.KeyRef{}, false
}

// isKey reports whether an expression above the aggregates is a key.
func (s blockScope) isKey(e algebra.Expr) bool {
	switch e := e.(type) {
	case algebra.KeyRef:
		return true
	case algebra.Constant:
		return slices.ContainsFunc(s.Constants, func(k algebra.GroupKey) bool { return k.X == e })
	default:
		return false
	}
}

// computedKey finds the key that an expression above the aggregates repeats.
func (s blockScope) computedKey(n syntax.Expr) (algebra.Expr, bool) {
	if value, ok := constantKey(s.Binder, n); ok {
		return value, true
	}
	keys := s.Bound.Keys
	if s.Level != nil {
		keys = slices.Concat(keys, s.Level.Absent)
	}
	buy := s.Buy
	defer func() { s.Buy = buy }()
	s.Buy = nil // no key takes a value that is released first
	for _, k := range keys {
		if k.Node == nil || reflect.TypeOf(k.Node) != reflect.TypeOf(n) {
			continue
		}
		if x, err := expression(s.Binder, rowScope(s), n); err == nil {
			return keyValue(s.Binder, x)
		}
		return nil, false
	}
	return nil, false
}

// groupItem finds the expression that an item of GROUP BY means. As in PostgreSQL, a name is first a column and then an alias.
func groupItem(b *algebra.Binder, n syntax.Expr) (syntax.Expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		item, err := ordinal(b, n, "GROUP BY")
		return item.Expr, err
	case *syntax.Column:
		if _, exists := visible(b, n.Name); n.Qualifier == "" && !exists {
			for _, item := range b.Query.Items {
				if item.Alias == n.Name {
					return item.Expr, nil
				}
			}
		}
	}
	return n, nil
}

// ordinal is the item of the select list that a whole number in GROUP BY or ORDER BY means.
func ordinal(b *algebra.Binder, n *syntax.Literal, clause string) (syntax.Item, error) {
	i, err := strconv.Atoi(n.Text)
	if n.Kind != syntax.IntegerLiteral || err != nil {
		return syntax.Item{}, b.Unsupported(n, "a constant in "+clause, "name a column or its position in the select list")
	}
	if i < 1 || i > len(b.Query.Items) {
		return syntax.Item{}, fault.UnknownColumn(b.At(n), n.Text, nil).WithHint("positions in " + clause + " count the select list from 1")
	}
	return b.Query.Items[i-1], nil
}

// groupKey decides how the keys of an expression may be shown. Where an expression is refused for its keys
// alone, it is returned.
func groupKey(b *algebra.Binder, n syntax.Expr, work *int) (algebra.GroupKey, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := column(b, c)
		if err != nil {
			return algebra.GroupKey{}, err
		}
		return columnKey(b, c, f, work)
	}
	x, err := expression(b, rowScope{b}, n)
	if err != nil {
		return algebra.GroupKey{}, err
	}
	if x.Typ() == scalar.IntervalType { // which equal ones have several texts, of which a group would show that of one of its rows
		return algebra.GroupKey{}, fault.Unsupported(b.At(n), "grouping by an interval", "group by extract(epoch FROM x)").WithPart(secondsForm)
	}
	key := algebra.GroupKey{X: x, Name: sqlprint.Describe(x), At: b.At(n), Node: n}
	if _, known := keyOf(b, x); known || algebra.IsConstant(x) {
		return key, nil // it is not added
	}
	if domain, ok := domain.KeyDomainIn(x, b.Bound.Where, work); ok {
		key.Domain, key.Declared = domain, len(domain)
		return key, nil
	}
	if missing := domain.MayCompute(x); missing != nil {
		return key, missingKeys(b, n, missing, x)
	}
	return key, nil
}

// missingKeys refuses a key x over a column without known keys. Steps of a bounded value are a key; within one unit's rows each value is.
func missingKeys(b *algebra.Binder, n interface{ At() syntax.Pos }, c *algebra.Field, x algebra.Expr) error {
	if form := domain.StepForm(x); form != "" {
		refused := fault.MissingSteps(b.At(n), c.Name, form)
		if !algebra.OneText(algebra.Column{Of: c}) { // no policy makes its values keys
			refused = refused.WithHint("group by larger whole steps of it")
		}
		return refused
	}
	refused := fault.MissingKeys(b.At(n), c.Name).WithPart(b.Bound.Source.UnitText())
	switch isKey := algebra.OneText(algebra.Column{Of: c}); { // else no policy makes its values keys
	case !isKey && c.Bounds == nil && x.Typ().IsNumber():
		refused = refused.WithHint("ask the data's steward to declare bounds: [lo, hi] for " + c.Name)
	case !isKey:
		refused = refused.WithHint("group by its whole numbers: " + c.Name + "::integer")
	case algebra.PlainField(x) == nil && c.Bounds == nil && (c.Type.IsNumber() || c.Type.IsTime()):
		refused = refused.WithHint("ask the data's steward to declare bounds: [lo, hi], a domain, or keys: private, for " + c.Name)
	}
	return refused
}

// columnKey decides how the keys of a column may be shown.
func columnKey(b *algebra.Binder, n *syntax.Column, c *algebra.Field, work *int) (algebra.GroupKey, error) {
	key := algebra.GroupKey{X: algebra.Column{Of: c}, Name: c.Name, At: b.At(n)}
	switch {
	case c.Unit:
		return algebra.GroupKey{}, fault.GroupByUnit(b.At(n), c.Name)
	case c.Identity() && !c.PrivateKeys:
		return algebra.GroupKey{}, fault.GroupByIdentity(b.At(n), c.Name) // public keys are constants
	case !algebra.OneText(key.X):
		return key, fault.Unsupported(b.At(n), "grouping by a column of type "+string(c.Type),
			"equal values of "+c.Name+" may be written differently").WithPart(domain.StepForm(key.X))
	case c.Domain() != nil:
		key.Domain = c.Domain()
	case c.Type == catalog.Bool:
		key.Domain = []catalog.Key{{Text: "false"}, {Text: "true"}}
	case c.PrivateKeys:
		return key, nil
	case domain.IsGrid(c):
		if _, known := keyOf(b, key.X); known {
			return key, nil // it is not added again
		}
		return domain.BoundedKey(key, c, c, b.Bound.Where, work)
	default:
		return key, missingKeys(b, n, c, key.X)
	}
	key.Declared = len(key.Domain)
	key.Domain = domain.Narrow(key.Domain, c, b.Bound.Where)
	return key, nil
}

// checkKeyCount caps the combinations of public keys.
func checkKeyCount(b *algebra.Binder) error {
	for _, k := range b.Bound.Keys {
		if k.Private() {
			return nil
		}
	}
	if b.Bound.PublicTuples().Cmp(big.NewInt(domain.MaxKeys)) > 0 {
		return fault.TooManyKeys(b.Bound.Keys[0].At, domain.MaxKeys)
	}
	return nil
}
