package sqlrewrite

import (
	"fmt"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// layerName is a name that the expressions of a layer can use.
type layerName struct {
	relation, name string
	e              expr
	merged         bool // USING has put another name in its place: reached by relation.name only
}

// items binds FROM.
func (lb *layerBinder) items() error {
	for i, r := range lb.query.From {
		item, names, err := lb.item(r)
		if err != nil {
			return err
		}
		lb.names = append(lb.names, names...)
		if i == 0 {
			lb.layer.from = item
		} else {
			lb.layer.from = &layerJoin{kind: syntax.CrossJoin, left: lb.layer.from, right: item}
		}
	}
	lb.layer.ordinal = lb.layer.from != nil && ordinalOf(lb.layer.from) != ""
	return lb.relationsAreTold()
}

// relationsAreTold refuses two relations of one name.
func (lb *layerBinder) relationsAreTold() error {
	first := map[string]expr{}
	for _, n := range lb.names {
		c, ok := n.e.(column)
		if !ok || n.relation == "" {
			continue
		}
		if known, twice := first[n.relation].(column); twice && known.of.relation != c.of.relation {
			return fault.Unsupported(lb.position(lb.query.Pos), "the name "+fault.Quote(n.relation)+" for two relations", "give each an alias of its own")
		}
		first[n.relation] = c
	}
	return nil
}

func (lb *layerBinder) item(r syntax.Relation) (layerItem, []layerName, error) {
	if lb.open.items++; lb.open.items > maxItems {
		return nil, nil, fault.TooComplex(lb.at(r), fmt.Sprintf("the query reads more than %d relations, each use of a CTE counted", maxItems))
	}
	switch r := r.(type) {
	case *syntax.Table:
		alias := r.Alias
		if alias == "" {
			alias = r.Name
		}
		if e := lb.env.find(r); e != nil {
			return lb.derived(r, e.cte.Query, e.outer, alias, e.cte.Columns)
		}
		return lb.scan(r, alias)
	case *syntax.Subquery:
		if r.Lateral {
			return nil, nil, lb.unsupported(r, "LATERAL over released values or public tables", "compute the columns in the select list")
		}
		return lb.derived(r, r.Query, lb.env, r.Alias, r.Columns)
	case *syntax.Join:
		return lb.join(r)
	default:
		return nil, nil, lb.unsupported(r, "this item of FROM", "")
	}
}

// alias is a name for the next relation of the statement.
func (o *opened) alias() string { return fmt.Sprintf("t%d", o.items) }

// scan is the only maker of layerScan: what is not public stays outside.
func (lb *layerBinder) scan(r *syntax.Table, alias string) (layerItem, []layerName, error) {
	t, ok := lb.snapshot.Table(r.Schema, r.Name)
	if !ok {
		return nil, nil, lb.unknownTable(r)
	}
	if !t.Public {
		return nil, nil, lb.unsupported(r, "private rows of table "+fault.Quote(t.Name)+" beside released values",
			"aggregate them first, in one SELECT over the private tables, and join public tables to the result")
	}
	s := &layerScan{table: t, alias: lb.open.alias()}
	var names []layerName
	for _, c := range t.Columns {
		if !c.Exposed {
			continue
		}
		f := &field{Column: c, relation: s.alias, table: t.Name}
		s.fields = append(s.fields, f)
		names = append(names, layerName{relation: alias, name: c.Name, e: column{of: f}})
	}
	lb.open.scans = append(lb.open.scans, s)
	return s, names, nil
}

func (lb *layerBinder) unknownTable(r *syntax.Table) error {
	if r.Schema != "" {
		return fault.UnknownTable(lb.at(r), r.Schema+"."+r.Name, nil)
	}
	known := lb.tableNames()
	for e := lb.env; e != nil; e = e.outer {
		known = append(known, e.cte.Name)
	}
	return fault.UnknownTable(lb.at(r), r.Name, known)
}

// derived is a query in FROM or one use of a CTE. It sees nothing of the query around it.
func (lb *layerBinder) derived(at syntax.Relation, q *syntax.Query, env *environment, alias string, renamed []string) (layerItem, []layerName, error) {
	item := &layerQuery{alias: lb.open.alias()}
	var err error
	if item.layer, err = lb.open.query(q, env, nil); err != nil {
		return nil, nil, err
	}
	if len(renamed) > len(item.layer.outputs) {
		return nil, nil, lb.unsupported(at, "a list of more column names than there are columns", "")
	}
	var names []layerName
	for i, out := range item.layer.outputs {
		name := out.name
		if i < len(renamed) {
			name = renamed[i]
		}
		f := &field{Column: &catalog.Column{Name: name, Type: outputType(out.expr.typ()), TypMod: -1, Exposed: true},
			relation: item.alias, printed: outputColumn(i)}
		if rawEnum(item.layer, i) {
			f.Type = catalog.Enum
		}
		lb.open.origins[f], lb.open.sizes[f] = item.layer.origins[i], item.layer.sizes[i]
		item.fields = append(item.fields, f)
		names = append(names, layerName{relation: alias, name: name, e: column{of: f}})
	}
	return item, names, nil
}

// outputColumn is the name of an output in the statement: the analyst's names need not be distinct.
func outputColumn(i int) string { return fmt.Sprintf("c%d", i) }

// outputType is the type of an output where it is read: an enum is text once it has left its table, unless rawEnum says otherwise.
func outputType(t catalog.Type) catalog.Type {
	if t == catalog.Enum || t == unknownType {
		return catalog.Text
	}
	return t
}

// rawEnum reports whether an output is an enum as it is in its table, so that it still has the order of its labels.
func rawEnum(l *layer, i int) bool {
	f := plainField(l.outputs[i].expr)
	return l.set == nil && !l.block && f != nil && f.Type == catalog.Enum
}

func (lb *layerBinder) join(r *syntax.Join) (layerItem, []layerName, error) {
	left, leftNames, err := lb.item(r.Left)
	if err != nil {
		return nil, nil, err
	}
	right, rightNames, err := lb.item(r.Right)
	if err != nil {
		return nil, nil, err
	}
	j := &layerJoin{kind: r.Kind, left: left, right: right}
	names := append(leftNames[:len(leftNames):len(leftNames)], rightNames...)
	if r.Natural {
		named := *r
		named.Using = commonNames(shownNames(leftNames), shownNames(rightNames))
		r = &named
	}
	switch {
	case r.Using != nil:
		names, err = lb.using(j, r, leftNames, rightNames)
	case r.On != nil:
		inside := *lb
		inside.names = names
		j.on, err = lb.condition(layerScope{layerBinder: &inside}, r.On)
	case r.Kind != syntax.CrossJoin:
		err = lb.unsupported(r, "a join without ON or USING, or a common column", "write JOIN ... ON a = b")
	}
	return j, names, err
}

// shownNames are the names of what is not hidden behind a merged column.
func shownNames(all []layerName) []string {
	var names []string
	for _, n := range all {
		if !n.merged {
			names = append(names, n.name)
		}
	}
	return names
}

// using joins by columns of one name on both sides, each of which is one column of the result, before all others.
func (lb *layerBinder) using(j *layerJoin, r *syntax.Join, left, right []layerName) ([]layerName, error) {
	var merged []layerName
	for _, name := range r.Using {
		l, err := lb.lookup(left, &syntax.Column{Pos: r.Pos, Name: name})
		if err != nil {
			return nil, err
		}
		rr, err := lb.lookup(right, &syntax.Column{Pos: r.Pos, Name: name})
		if err != nil {
			return nil, err
		}
		at := &syntax.Column{Pos: r.Pos, Name: name}
		x, y, err := lb.unify(at, syntax.Eq, at, at, l, rr)
		if err != nil {
			return nil, err
		}
		equal := expr(binary{op: syntax.Eq, l: x, r: y, t: catalog.Bool})
		if j.on != nil {
			equal = binary{op: syntax.And, l: j.on, r: equal, t: catalog.Bool}
		}
		j.on = equal
		one := l
		switch r.Kind {
		case syntax.RightJoin:
			one = rr
		case syntax.FullJoin:
			both, t, err := lb.common([]syntax.Expr{at, at}, []expr{l, rr})
			if err != nil {
				return nil, err
			}
			one = call{name: "coalesce", args: both, t: t}
		default: // the left is there whenever the right is
		}
		merged = append(merged, layerName{name: name, e: one})
		hide(left, name)
		hide(right, name)
	}
	return append(append(merged, left...), right...), nil
}

func hide(names []layerName, name string) {
	for i := range names {
		if names[i].name == name {
			names[i].merged = true
		}
	}
}

// lookup finds what a column means among names.
func (lb *layerBinder) lookup(names []layerName, n *syntax.Column) (expr, error) {
	var found []layerName
	var known, relations []string
	relation := false
	for _, c := range names {
		relation = relation || c.relation == n.Qualifier
		if n.Qualifier != "" && c.relation != n.Qualifier || n.Qualifier == "" && c.merged {
			continue
		}
		known = append(known, c.name)
		if c.name == n.Name {
			found, relations = append(found, c), append(relations, c.relation)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].e, nil
	case len(found) > 1:
		return nil, fault.AmbiguousColumn(lb.at(n), n.Name, relations)
	case n.Qualifier != "" && !relation:
		return nil, fault.UnknownTable(lb.at(n), n.Qualifier, relationsOf(names))
	default:
		return nil, fault.UnknownColumn(lb.at(n), n.Name, known)
	}
}

func relationsOf(names []layerName) []string {
	var all []string
	for _, n := range names {
		if n.relation != "" {
			all = append(all, n.relation)
		}
	}
	return all
}

// readsBlock reports whether released rows are among those of an item.
func readsBlock(i layerItem) bool {
	switch i := i.(type) {
	case *layerQuery:
		l := i.layer
		return l.block || readsBlock(l.from) || l.set != nil && (readsLayer(l.set.left) || readsLayer(l.set.right))
	case *layerJoin:
		return readsBlock(i.left) || readsBlock(i.right)
	default:
		return false
	}
}

func readsLayer(l *layer) bool { return readsBlock(&layerQuery{layer: l}) }

// ordinalOf is the number of the released row that an item's rows stem from; "" where there is none, or two.
func ordinalOf(i layerItem) string {
	switch i := i.(type) {
	case *layerQuery:
		if i.layer.ordinal {
			return quoteIdent(i.alias) + ".ordinal"
		}
		return ""
	case *layerJoin:
		l, r := ordinalOf(i.left), ordinalOf(i.right)
		if l == "" {
			return r
		}
		if r == "" {
			return l
		}
		return ""
	default:
		return ""
	}
}
