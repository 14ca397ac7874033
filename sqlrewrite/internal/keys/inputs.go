package keys

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// maxDeclared caps the combinations of declared keys in one list; with more there is no list.
const maxDeclared = 1_000_000

// input is a source of the rows of a list: a public table, or a column whose keys are declared.
type input struct {
	scan *algebra.Scan // nil: a column with declared keys
	side *side         // the side of an outer join that has the table; nil: every row has a row of the table
	key  int           // of a column: its place among the keys
	of   int           // its component, by the place of one of its inputs
}

// side is a side of an outer join that may be absent: its tables are all present, or all their columns are NULL.
type side struct {
	on algebra.Expr // the condition of its join: true where the side is present
}

// scope has the inputs of a query, and the conditions on them.
type scope struct {
	q          *algebra.BoundQuery
	from       *Inlining // what columns of queries in FROM are
	inputs     []input
	stands     map[*algebra.Field]*algebra.Field // see [algebra.KeyList]
	conditions []algebra.Expr                    // true on every row that counts
	inside     map[*side][]algebra.Expr          // besides side.on: true where the side is present
}

// Narrow drops the public keys that lists leave out, and reports whether the query waits for lists. Inputs that conditions tie together
// share one list.
func Narrow(q *algebra.BoundQuery) (waiting bool) {
	list := q.Shared().List
	if list.Of == nil || q.Private() || len(q.Keys) == 0 {
		return false
	}
	s := newScope(q)
	s.declared()
	for _, c := range s.components() {
		switch tuples, known := list.Of(c.KeyList); {
		case !known:
			waiting = true
		case tuples != nil:
			c.apply(q, tuples)
		}
	}
	return waiting
}

// Ends asks for the least and the largest value of a public column of numbers: on the rows that meet the conditions of a query, and on all
// rows of its table, which is easier to answer. It asks for none where no public table gives the column.
func Ends(q *algebra.BoundQuery, f *algebra.Field) []algebra.KeyList {
	s := newScope(q)
	f = algebra.PlainField(s.from.Of(algebra.Column{Of: f}))
	if f == nil || !f.Public {
		return nil
	}
	at := s.inputOf(f)
	if at < 0 {
		return nil
	}
	implied := s.implied()
	meet, _ := s.listOf(s.inputs[at].of, implied)
	column := []algebra.Expr{algebra.Column{Of: f}}
	return []algebra.KeyList{{Scans: meet.Scans, Sides: meet.Sides, Where: meet.Where, Stands: meet.Stands, Keys: column, Ends: true},
		{Scans: []*algebra.Scan{s.inputs[at].scan}, Keys: column, Ends: true}}
}

func newScope(q *algebra.BoundQuery) *scope {
	s := &scope{q: q, from: Inline(q, false), stands: make(map[*algebra.Field]*algebra.Field),
		inside: make(map[*side][]algebra.Expr)}
	s.conditions = append(s.from.Conditions(q.Where), s.from.Where...)
	s.item(q.Source.Node, nil)
	return s
}

// item collects public tables and conditions of joins: those of every row that counts, and those of each side that may be absent. FULL
// JOIN, and a side within a side, narrow nothing.
func (s *scope) item(n algebra.FromItem, within *side) {
	defer steps.Visit(s.from.steps).Leave()
	switch n := n.(type) {
	case *algebra.Scan:
		if n.Table.Public {
			s.scan(n, within)
			return
		}
		for _, t := range n.Table.Together {
			s.together(n, t, within)
		}
	case *algebra.RowCap:
		s.item(n.Of, within)
	case *algebra.Derived:
		if q := s.from.rowsFrom(n); q != nil && within == nil { // as in [Inlining]
			s.item(q.From, nil)
		}
	case *algebra.Joined:
		switch {
		case n.Kind == syntax.FullJoin:
		case n.Kind == syntax.RightJoin:
			s.item(n.Right, within)
			if within == nil {
				s.item(n.Left, &side{on: n.On})
			}
		case n.Semi:
			s.item(n.Left, within)
		case n.Kind == syntax.LeftJoin:
			s.item(n.Left, within)
			if within == nil {
				s.item(n.Right, &side{on: n.On})
			}
		default:
			s.item(n.Left, within)
			s.item(n.Right, within)
			if within == nil {
				s.conditions = append(s.conditions, s.from.Conditions(n.On)...)
			} else {
				s.inside[within] = append(s.inside[within], algebra.BoundConjuncts(n.On)...)
			}
		}
	}
}

// scan adds a table. All tables of one side are one component.
func (s *scope) scan(n *algebra.Scan, within *side) {
	of := slices.IndexFunc(s.inputs, func(in input) bool { return within != nil && in.side == within })
	if of < 0 {
		of = len(s.inputs)
	}
	s.inputs = append(s.inputs, input{scan: n, side: within, of: of})
}

// together adds the public table from which columns of another table take their keys together.
func (s *scope) together(n *algebra.Scan, t catalog.Together, within *side) {
	source := n.Table.Source(t)
	if source == nil {
		return
	}
	var keys, people []*algebra.Field
	for i, name := range t.Columns {
		own := slices.IndexFunc(n.Fields, func(f *algebra.Field) bool { return f.Name == name })
		column, ok := source.Column(t.Values[i])
		if own < 0 || !ok {
			return
		}
		keys = append(keys, &algebra.Field{Column: column, Table: source.Name, Public: true})
		people = append(people, n.Fields[own])
	}
	for i, f := range people {
		s.stands[f] = keys[i]
	}
	s.scan(&algebra.Scan{Leaf: algebra.Leaf{Fields: keys}, Table: source}, within)
}

// declared adds the columns whose keys the policy declares, unless a public table gives them.
func (s *scope) declared() {
	for i := range s.q.Keys {
		f := s.column(i)
		if f == nil || s.inputOf(f) >= 0 || f.Public || !isListed(f.Type) {
			continue
		}
		s.inputs = append(s.inputs, input{key: i, of: len(s.inputs)})
	}
}

// column returns the column that a key is; nil: it is computed.
func (s *scope) column(key int) *algebra.Field {
	return algebra.PlainField(s.from.Of(s.q.Keys[key].X))
}

// isListed reports whether the text of a declared key can be cast to its value.
func isListed(t catalog.Type) bool {
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8, catalog.Numeric, catalog.Bool, catalog.Text, catalog.Char, catalog.Enum, catalog.Date,
		catalog.UUID:
		return true
	default:
		return false
	}
}

// inputOf returns the place of the input that gives a field; -1: none.
func (s *scope) inputOf(f *algebra.Field) int {
	if of := s.stands[f]; of != nil {
		f = of
	}
	return slices.IndexFunc(s.inputs, func(in input) bool {
		if in.scan == nil {
			return s.column(in.key) == f
		}
		return slices.Contains(in.scan.Fields, f)
	})
}

// component is a list with the places of its keys in the query.
type component struct {
	algebra.KeyList
	places []int
}

// components returns the lists of a query that can leave out more keys than conditions on one key alone.
func (s *scope) components() (all []component) {
	implied := s.implied()
	for of := range s.inputs {
		c, where := s.listOf(of, implied)
		combinations := 1
		for _, d := range c.Declared {
			combinations = min(combinations*max(len(d.Keys), 1), maxDeclared+1)
		}
		for i := range s.q.Keys {
			if f := s.column(i); f != nil && s.component(f) == of {
				c.Keys, c.places = append(c.Keys, algebra.Column{Of: f}), append(c.places, i)
			}
		}
		if len(c.Keys) > 0 && combinations <= maxDeclared && c.narrows(where) {
			all = append(all, c)
		}
	}
	return all
}

// implied returns what the conditions say of the inputs, and ties the inputs that one of them reads.
func (s *scope) implied() (all []algebra.Expr) {
	for _, e := range s.conditions {
		e = Implied(e, func(f *algebra.Field) bool { return s.inputOf(f) >= 0 })
		if e == nil {
			continue
		}
		if columns := domain.ColumnsOf(e); len(columns) > 0 {
			all = append(all, e)
			s.tie(columns)
		}
	}
	return all
}

// listOf returns the list of a component without its keys, and the conditions of it.
func (s *scope) listOf(of int, implied []algebra.Expr) (c component, where []algebra.Expr) {
	var sides []*side
	for _, in := range s.inputs {
		switch {
		case in.of != of:
		case in.side != nil:
			at := slices.Index(sides, in.side)
			if at < 0 {
				at = len(sides)
				sides, c.Sides = append(sides, in.side), append(c.Sides, algebra.KeySide{On: s.holding(in.side)})
			}
			c.Sides[at].Scans = append(c.Sides[at].Scans, in.scan)
		case in.scan != nil:
			c.Scans = append(c.Scans, in.scan)
		default:
			c.Declared = append(c.Declared, algebra.DeclaredKeys{Of: s.column(in.key), Keys: s.q.Keys[in.key].Domain})
		}
	}
	for _, e := range implied {
		if s.component(domain.ColumnsOf(e)[0]) == of {
			where = append(where, e)
		}
	}
	c.Where, c.Stands = algebra.All(where), s.stands
	return c, where
}

// holding returns the conditions on a side's tables alone that hold where it is present; nil: none is known.
func (s *scope) holding(of *side) algebra.Expr {
	var all []algebra.Expr
	for _, e := range append(algebra.BoundConjuncts(of.on), s.inside[of]...) {
		e = Implied(e, func(f *algebra.Field) bool {
			at := s.inputOf(f)
			return at >= 0 && s.inputs[at].side == of
		})
		if e != nil && len(domain.ColumnsOf(e)) > 0 {
			all = append(all, e)
		}
	}
	return algebra.All(all)
}

// component returns the component of a field; -1: none.
func (s *scope) component(f *algebra.Field) int {
	if at := s.inputOf(f); at >= 0 {
		return s.inputs[at].of
	}
	return -1
}

// tie merges the components of some fields.
func (s *scope) tie(fields []*algebra.Field) {
	for _, f := range fields {
		one, other := s.component(fields[0]), s.component(f)
		for i := range s.inputs {
			if s.inputs[i].of == other {
				s.inputs[i].of = one
			}
		}
	}
}

// narrows reports whether a list can leave out more keys than [domain.Narrow], which has applied the conditions on one key alone. A list
// also knows which keys occur together, and which rows meet other conditions.
func (c component) narrows(where []algebra.Expr) bool {
	conditional := func(side algebra.KeySide) bool { return side.On != nil }
	return len(c.Keys) > 1 || slices.ContainsFunc(c.Sides, conditional) || len(where) > 0 && (len(c.Scans)+len(c.Sides)+len(c.Declared) > 1 ||
		slices.ContainsFunc(where, func(e algebra.Expr) bool { return !domain.Narrows(e, algebra.PlainField(c.Keys[0])) }))
}

// apply keeps the keys that some tuple of a list has, and of several keys the combinations that are tuples.
func (c component) apply(q *algebra.BoundQuery, tuples [][]catalog.Key) {
	for i, place := range c.places {
		listed := make(map[catalog.Key]bool, len(tuples))
		for _, t := range tuples {
			listed[t[i]] = true
		}
		q.Keys[place].Leave(func(k catalog.Key) bool { return listed[k] })
	}
	if len(c.places) > 1 {
		q.LeaveTuples(c.places, tuples)
	}
}
