package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// derived is a query in FROM: UNION ALL of its parts.
type derived struct {
	leaf
	parts   []*rowQuery
	lateral bool // its only part reads no rows but the one beside it
}

func (*derived) fromItem() {}

// rowQuery is a SELECT below the release block. Its rows belong to privacy units like those that it reads.
type rowQuery struct {
	from     fromItem  // nil: one row
	of       *relation // what from is
	where    expr      // nil: none
	keys     []expr
	distinct bool
	outputs  []expr // printed as c0, c1, ...
}

// subqueryIn is a query in FROM and where it stands.
type subqueryIn struct {
	query   *syntax.Query
	at      syntax.Pos
	alias   string
	columns []string // new names; nil: the query's own
	ctes    *environment
	beside  *relation // of LATERAL: what it sees; nil: nothing
}

// child is the binder of a query inside this one.
func (b *binder) child(q *syntax.Query, ctes *environment) *binder {
	return &binder{text: b.text, snapshot: b.snapshot, query: q, bound: &boundQuery{facts: b.bound.shared()}, ctes: ctes.with(q.With)}
}

// subquery binds a query in FROM, or one of WITH where it is named.
func (b *binder) subquery(in subqueryIn) (*relation, error) {
	child := b.child(in.query, in.ctes)
	child.beside = in.beside
	r, err := child.rows()
	if err != nil {
		return nil, err
	}
	if len(in.columns) > len(r.fields) {
		return nil, b.mismatch(syntaxAt(in.at), fmt.Sprintf("there are %d names for %d columns", len(in.columns), len(r.fields)), "")
	}
	for i, name := range in.columns {
		c := *r.fields[i].Column
		c.Name = name
		r.fields[i].Column = &c
	}
	r.parts = []fromPart{{in.alias, r.fields}}
	if d, ok := r.node.(*derived); ok {
		d.name = in.alias
	}
	return r, nil
}

// syntaxAt is a place in the text.
type syntaxAt syntax.Pos

// At gives the place.
func (at syntaxAt) At() syntax.Pos { return syntax.Pos(at) }

// rows binds a query whose rows belong to units, or to nobody.
func (b *binder) rows() (*relation, error) {
	q := b.query
	if q.Set != nil {
		return b.unionAll()
	}
	if err := b.refuseUnstable(q); err != nil {
		return nil, err
	}
	if len(q.From) == 0 {
		return b.oneRow()
	}
	if b.beside != nil {
		return nil, fault.Unsupported(b.position(q.Pos), "LATERAL with tables of its own", "join them on a condition; LATERAL (SELECT expressions) computes columns")
	}
	r, err := b.fromList()
	if err != nil {
		return nil, err
	}
	if err := b.where(); err != nil {
		return nil, err
	}
	if err := b.reachOwner(r); err != nil {
		return nil, err
	}
	if q.GroupBy == nil && q.Having == nil && !slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) {
		return b.project(r)
	}
	if !r.owned() {
		return nil, fault.Unsupported(b.position(q.Pos), "an aggregate of a public table beside rows of people", "join its rows, or write the result as constants")
	}
	return b.perUnit(r)
}

// oneRow binds a query without FROM: constants, and under LATERAL columns that are computed from the row beside it. To each row it adds one, so that
// it owns nothing and is public in a join, where no two of its rows meet one.
func (b *binder) oneRow() (*relation, error) {
	q := b.query
	if q.Where != nil || q.GroupBy != nil || q.Having != nil || q.Distinct || slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) {
		return nil, fault.Unsupported(b.position(q.Pos), "a subquery without FROM that does more than compute columns", "write SELECT expressions alone, and filter outside")
	}
	b.bound.source = b.beside
	p := b.projection(&relation{})
	p.leaf.lateral = b.beside != nil
	for _, item := range q.Items {
		e, err := b.computedOutput(item.Expr)
		if err != nil {
			return nil, err
		}
		f := p.add(itemName(item), e, true)
		f.public, f.anchor = b.beside == nil, anchor{}
		if c, ok := e.(constant); ok && c.t.IsNumber() {
			if v, ok := parseNumber(c.text); ok {
				f.Bounds = &catalog.Bounds{Lo: v, Hi: v}
			}
		}
	}
	p.out.keys, p.out.lateral = []rowKey{{}}, p.leaf.lateral
	return p.out, b.addLeaf(&p.leaf.leaf)
}

// computedOutput binds an output of a query without FROM. What leads to a unit's row may pass as it is; beside which row it stands is then known.
func (b *binder) computedOutput(n syntax.Expr) (expr, error) {
	if f, ok := b.identityOf(n); ok {
		return column{of: f}, nil
	}
	e, err := b.expression(rowScope{b}, n)
	if err != nil {
		return nil, err
	}
	return b.coerce(n, e, catalog.Text)
}

// refuseUnstable refuses what makes the rows of one unit depend on those of others (C053, C054).
func (b *binder) refuseUnstable(q *syntax.Query) error {
	switch {
	case q.Limit != nil || q.Offset != nil:
		n := q.Limit
		if n == nil {
			n = q.Offset
		}
		return b.unsupported(n, "LIMIT or OFFSET inside a query over rows of people", "move it to the end of the whole query, where it cuts released rows, or number the rows of each person: row_number() OVER (PARTITION BY the unit ORDER BY ...) <= 3")
	case q.DistinctOn != nil:
		return fault.Unsupported(b.position(q.Pos), "DISTINCT ON inside a query over rows of people", "number the rows of each person: row_number() OVER (PARTITION BY the unit ORDER BY ...) = 1")
	case q.OrderBy != nil:
		return b.unsupported(q.OrderBy[0].Expr, "ORDER BY inside a query over rows of people", "it changes nothing there: leave it out")
	}
	return nil
}

// projection collects the outputs of a query over a relation.
type projection struct {
	of    *relation
	query *rowQuery
	out   *relation
	leaf  *derived
	stems map[*field]*field // which output a field of the relation became
	facts *statementFacts
}

func (b *binder) projection(of *relation) *projection {
	q := &rowQuery{from: of.node, of: of, where: b.bound.where}
	d := &derived{parts: []*rowQuery{q}}
	return &projection{of: of, query: q, leaf: d, stems: map[*field]*field{}, facts: b.bound.shared(), out: &relation{node: d, table: of.table, maxRows: of.maxRows,
		maxGroups: of.maxGroups, maxValues: of.maxValues, notes: of.notes}}
}

// add makes an expression an output. A plain column stays what it is under its new name.
func (p *projection) add(name string, e expr, shown bool) *field {
	f := &field{Column: p.facts.derivedColumn(name, e), printed: fmt.Sprintf("c%d", len(p.query.outputs))}
	if stem := plainField(e); stem != nil {
		f.table, f.unit, f.present, f.public, f.anchor = stem.table, stem.unit, stem.present, stem.public, stem.anchor
		if p.stems[stem] == nil || shown {
			p.stems[stem] = f
		}
		if slices.Contains(p.of.owners, stem) {
			p.out.owners = append(p.out.owners, f)
		}
	}
	p.query.outputs = append(p.query.outputs, e)
	p.leaf.fields = append(p.leaf.fields, f)
	if shown {
		p.out.fields = append(p.out.fields, f)
	}
	return f
}

// derivedColumn is what is known of an expression's values.
func (s *statementFacts) derivedColumn(name string, e expr) *catalog.Column {
	if stem := plainField(e); stem != nil {
		c := *stem.Column
		c.Name = name
		return &c
	}
	c := &catalog.Column{Name: name, Type: carrierOf(e), TypMod: -1, Exposed: true, NotNull: neverNull(e)}
	if c.Type.IsText() {
		c.MaxLength = longestText(e)
	}
	if w := boundsOf(e); w != nil {
		c.Bounds = &catalog.Bounds{Lo: w.lo, Hi: w.hi, Step: w.step}
	}
	left := maxWork - s.keyWork
	if keys, ok := keyDomainIn(e, nil, &left); ok {
		c.Domain = keys
	}
	s.keyWork = maxWork - left
	return c
}

// finish completes the relation: its rows keep their unit, also where no output shows it.
func (b *binder) finish(p *projection) (*relation, error) {
	p.query.from = p.of.node // with what its expressions have joined
	if o := p.of.owner(); o != nil && len(p.out.owners) == 0 {
		p.add(o.Name, column{of: o}, false)
	}
	if f := p.out.owner(); f != nil && !p.of.owner().present {
		// Of all fields that hold the unit, the first is the one that is looked at: it must be the one that every row has.
		slices.SortStableFunc(p.out.owners, func(x, y *field) int { return boolOrder(!x.present, !y.present) })
	}
	for _, k := range p.of.keys {
		mapped := rowKey{relies: k.relies}
		for _, f := range k.fields {
			if to := p.stems[f]; to != nil {
				mapped.fields = append(mapped.fields, to)
			} else if slices.Contains(p.of.owners, f) && p.out.owner() != nil {
				mapped.fields = append(mapped.fields, p.out.owner())
			}
		}
		if len(mapped.fields) == len(k.fields) {
			p.out.keys = append(p.out.keys, mapped)
		}
	}
	return p.out, b.addLeaf(&p.leaf.leaf)
}

// project binds a query without aggregates: a filter and new columns.
func (b *binder) project(r *relation) (*relation, error) {
	if r.owned() && computesWithWindows(b.query.Items) {
		return b.projectWindows(r)
	}
	p := b.projection(r)
	for _, item := range b.query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			fields, err := b.starFields(r, star)
			if err != nil {
				return nil, err
			}
			if len(p.query.outputs)+len(fields) > maxOutputs {
				return nil, tooManyOutputs(b.at(star))
			}
			for _, f := range fields {
				p.add(f.Name, column{of: f}, true)
			}
			continue
		}
		if call, ok := item.Expr.(*syntax.Call); ok && call.Over != nil && r.owned() {
			if _, err := b.unitWindow(p, call, itemName(item)); err != nil {
				return nil, err
			}
			continue
		}
		e, err := b.rowOutput(item.Expr)
		if err != nil {
			return nil, err
		}
		p.add(itemName(item), e, true)
	}
	if err := b.settleTies(p); err != nil {
		return nil, err
	}
	return b.finishRows(p)
}

// finishRows completes a query without aggregates, whose rows DISTINCT may tell apart.
func (b *binder) finishRows(p *projection) (*relation, error) {
	if b.query.Distinct {
		if r := p.of; r.owned() && len(p.out.owners) == 0 {
			return nil, fault.Unsupported(b.position(b.query.Pos), "SELECT DISTINCT inside a query over rows of people",
				"add "+r.unitName()+" to its select list: rows are then told apart within each "+r.unitName())
		}
		p.query.distinct = true
		defer func() { p.out.keys = append(p.out.keys, rowKey{fields: p.out.fields}) }()
	}
	return b.finish(p)
}

// rowOutput binds an output of a query over rows: the id of a unit may pass as it is.
func (b *binder) rowOutput(n syntax.Expr) (expr, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := b.column(c)
		return column{of: f}, err
	}
	e, err := b.expression(rowScope{b}, n)
	if err != nil {
		return nil, err
	}
	return b.coerce(n, e, catalog.Text)
}

// starFields are the fields that * or t.* stands for: those that exist for analysts.
func (b *binder) starFields(r *relation, star *syntax.Star) ([]*field, error) {
	fields := r.fields
	if star.Qualifier != "" {
		i := slices.IndexFunc(r.parts, func(p fromPart) bool { return p.alias == star.Qualifier })
		if i < 0 {
			return nil, b.unknownColumn(&syntax.Column{Pos: star.Pos, Qualifier: star.Qualifier, Name: "*"})
		}
		fields = r.parts[i].fields
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f *field) bool { return !f.Exposed && !f.unit }), nil
}

func itemName(item syntax.Item) string {
	if item.Alias != "" {
		return item.Alias
	}
	return outputName(item.Expr)
}
