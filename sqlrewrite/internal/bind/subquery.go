package bind

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// subqueryIn is a query in FROM and where it stands.
type subqueryIn struct {
	query   *syntax.Query
	at      syntax.Pos
	alias   string
	columns []string // new names; nil: the query's own
	ctes    *algebra.Environment
	side    *algebra.Side     // of the joins around
	beside  *algebra.Relation // of LATERAL: what it sees; nil: nothing
}

// child is the binder of a query inside this one.
func child(b *algebra.Binder, q *syntax.Query, ctes *algebra.Environment) *algebra.Binder {
	return childIn(b, subqueryIn{query: q, ctes: ctes}, false)
}

// childIn is the binder of a query in FROM, whose outputs may be read by their own names alone.
func childIn(b *algebra.Binder, in subqueryIn, named bool) *algebra.Binder {
	return &algebra.Binder{Text: b.Text, Snapshot: b.Snapshot, Zone: b.Zone, Whole: b.Whole, Query: in.query, InFrom: named,
		Bound: &algebra.BoundQuery{Facts: b.Bound.Shared()}, CTEs: in.ctes.With(in.query.With), Beside: in.beside, Side: in.side,
		Sources: b.Sources}
}

// subquery binds a query in FROM, or one of WITH where it is named.
func subquery(b *algebra.Binder, in subqueryIn) (*algebra.Relation, error) {
	child := childIn(b, in, in.columns == nil)
	r, err := rows(child)
	if err != nil {
		return nil, err
	}
	if in.beside != nil {
		b.Bound.Source = child.Bound.Source // with what its expressions have joined
	}
	return renamed(b, in, r)
}

// renamed gives a relation the names that FROM gives it.
func renamed(b *algebra.Binder, in subqueryIn, r *algebra.Relation) (*algebra.Relation, error) {
	if len(in.columns) > len(r.Fields) {
		return nil, b.Mismatch(syntaxAt(in.at), fmt.Sprintf("there are %d names for %d columns", len(in.columns), len(r.Fields)), "")
	}
	for i, name := range in.columns {
		c := *r.Fields[i].Column
		c.Name = name
		r.Fields[i].Column = &c
	}
	r.Parts = []algebra.FromPart{{Alias: in.alias, Fields: r.Fields}}
	if d, ok := r.Node.(*algebra.Derived); ok {
		d.Name = in.alias
	}
	return r, nil
}

// syntaxAt is a place in the text.
type syntaxAt syntax.Pos

// At gives the place.
func (at syntaxAt) At() syntax.Pos { return syntax.Pos(at) }

// rows binds a query whose rows belong to units, or to nobody.
func rows(b *algebra.Binder) (*algebra.Relation, error) {
	defer steps.Visit(b.Steps()).Leave()
	q := b.Query
	if q.Set != nil {
		return unionAll(b)
	}
	if q.DistinctOn != nil && len(q.From) > 0 {
		return firstRows(b)
	}
	if err := refuseUnstable(b, q); err != nil {
		return nil, err
	}
	if len(q.From) == 0 {
		return oneRow(b)
	}
	if b.Beside != nil {
		return nil, fault.Unsupported(b.Position(q.Pos), "LATERAL with tables of its own",
			"join them on a condition; LATERAL (SELECT expressions) computes columns")
	}
	if err := from(b); err != nil {
		return nil, err
	}
	return rowsOf(b)
}

// rowsOf binds such a query whose FROM is bound.
func rowsOf(b *algebra.Binder) (*algebra.Relation, error) {
	q := b.Query
	if err := where(b); err != nil {
		return nil, err
	}
	var path *algebra.Field
	if p := b.Bound.Source.Pending; p != nil {
		path = p.From
	}
	r, err := stability.ReachOwner(b, b.Bound.Source)
	if err != nil {
		return nil, err
	}
	b.Bound.Source = r
	if !q.Groups() && q.Having == nil && !slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) {
		if !dividesByKey(b, r) {
			return project(b, r)
		}
		b.Query = groupedBy(q)
	}
	if !r.Owned() {
		return publicGroups(b, r)
	}
	return perUnit(b, r, path)
}

// groupedBy is SELECT DISTINCT of columns as GROUP BY.
func groupedBy(q *syntax.Query) *syntax.Query {
	grouped := *q
	grouped.Distinct = false
	for _, item := range q.Items {
		grouped.GroupBy = append(grouped.GroupBy, item.Expr)
	}
	return &grouped
}

// from binds the items of FROM, unless they were bound to find out what the query's rows are.
func from(b *algebra.Binder) error {
	if s := b.Sources[b.Query]; s != nil && !s.Taken {
		return b.Take(s)
	}
	_, err := fromList(b)
	return err
}

// oneRow binds a query without FROM: constants, and under LATERAL columns that are computed from the row beside it. To each row it adds
// one, so that it owns nothing and is public in a join, where no two of its rows meet one.
func oneRow(b *algebra.Binder) (*algebra.Relation, error) {
	q := b.Query
	if q.Where != nil || q.Groups() || q.Having != nil || q.Distinct ||
		slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) {
		return nil, fault.Unsupported(b.Position(q.Pos), "a subquery without FROM that does more than compute columns",
			"write SELECT expressions alone, and filter outside")
	}
	b.Bound.Source = b.Beside
	p := newResult(b, &algebra.Relation{})
	p.leaf.Lateral = b.Beside != nil
	for _, item := range q.Items {
		e, err := computedOutput(b, item.Expr)
		if err != nil {
			return nil, err
		}
		f := p.field(itemName(item), e)
		f.Public, f.Anchor = b.Beside == nil, algebra.Anchor{}
		if c, ok := e.(algebra.Constant); ok && c.T.IsNumber() {
			if v, ok := scalar.ParseNumber(c.Text); ok {
				f.Bounds = &catalog.Bounds{Lo: v, Hi: v}
			}
		}
		p.put(f, e, true)
	}
	p.out.Keys, p.out.Lateral = []algebra.RowKey{{}}, p.leaf.Lateral
	return p.out, b.AddLeaf(&p.leaf.Leaf)
}

// computedOutput binds an output of a query without FROM. What leads to a unit's row may pass as it is; beside which row it stands is then
// known.
func computedOutput(b *algebra.Binder, n syntax.Expr) (algebra.Expr, error) {
	if f, ok := identityOf(b, n); ok {
		return algebra.Column{Of: f}, nil
	}
	return rowValue(b, n)
}

// refuseUnstable refuses what makes the rows of one unit depend on those of others (C053, C054).
func refuseUnstable(b *algebra.Binder, q *syntax.Query) error {
	switch {
	case q.Limit != nil || q.Offset != nil:
		n := q.Limit
		if n == nil {
			n = q.Offset
		}
		return b.Unsupported(n, "LIMIT or OFFSET inside a query over rows of people",
			"move it to the end of the whole query, where it cuts released rows, or number the rows of each person: row_number() OVER (PARTITION "+
				"BY the unit ORDER BY ...) <= 3")
	case q.DistinctOn != nil:
		return fault.Unsupported(b.Position(q.Pos), "DISTINCT ON in this place", "read from a table")
	case q.OrderBy != nil:
		return b.Unsupported(q.OrderBy[0].Expr, "ORDER BY inside a query over rows of people", "it changes nothing there: leave it out")
	}
	return nil
}

// projection collects the outputs of a query over a relation.
type projection struct {
	of    *algebra.Relation
	query *algebra.Query
	out   *algebra.Relation
	leaf  *algebra.Derived
	stems map[*algebra.Field]*algebra.Field // which output a field of the relation became
	facts *algebra.StatementFacts
	side  *algebra.Side // of the joins in the query around; nil for a query whose rows it does not see
}

// newProjection begins a query over a relation whose rows another one reads that is made up for the same SELECT.
func newProjection(b *algebra.Binder, of *algebra.Relation) *projection {
	q := &algebra.Query{From: of.Node, Of: of, Where: b.Bound.Where}
	d := &algebra.Derived{Parts: []*algebra.Query{q}}
	return &projection{of: of, query: q, leaf: d, stems: map[*algebra.Field]*algebra.Field{}, facts: b.Bound.Shared(),
		out: &algebra.Relation{Node: d, Table: of.Table, MaxRows: of.MaxRows,
			MaxGroups: of.MaxGroups, MaxValues: of.MaxValues, MaxTotal: of.MaxTotal, Notes: of.Notes}}
}

// newResult begins the query over a relation that a SELECT is.
func newResult(b *algebra.Binder, of *algebra.Relation) *projection {
	p := newProjection(b, of)
	p.side = b.Side
	return p
}

// add makes an expression an output.
func (p *projection) add(name string, e algebra.Expr, shown bool) *algebra.Field {
	return p.put(p.field(name, e), e, shown)
}

// field is what an output is as a column. A plain column stays what it is under its new name.
func (p *projection) field(name string, e algebra.Expr) algebra.Field {
	f := algebra.Field{Column: derivedColumn(p.facts, name, e)}
	if stem := algebra.PlainField(e); stem != nil {
		f.Table, f.Unit, f.Held, f.Public, f.Anchor = stem.Table, stem.Unit, stem.Present(), stem.Public, stem.Anchor
	}
	return f
}

// put makes an expression an output that is the field f.
func (p *projection) put(f algebra.Field, e algebra.Expr, shown bool) *algebra.Field {
	f.Side, f.Printed = p.side, algebra.OutputColumn(len(p.query.Outputs))
	if stem := algebra.PlainField(e); stem != nil {
		if p.stems[stem] == nil || shown {
			p.stems[stem] = &f
		}
		if slices.Contains(p.of.Owners, stem) {
			p.out.Owners = append(p.out.Owners, &f)
		}
	}
	p.query.Outputs = append(p.query.Outputs, algebra.Output{Name: f.Name, Expr: e})
	p.leaf.Fields = append(p.leaf.Fields, &f)
	if shown {
		p.out.Fields = append(p.out.Fields, &f)
	}
	return &f
}

// derivedColumn is what is known of an expression's values.
func derivedColumn(s *algebra.StatementFacts, name string, e algebra.Expr) *catalog.Column {
	if stem := algebra.PlainField(e); stem != nil {
		c := *stem.Known()
		c.Name = name
		return &c
	}
	c := &catalog.Column{Name: name, Type: algebra.CarrierOf(e), TypMod: -1, Exposed: true, NotNull: sqlprint.NeverNull(e)}
	if c.Type.IsText() {
		c.MaxLength = stability.LongestText(e)
	}
	if w := algebra.BoundsOf(e); w != nil {
		c.Bounds = &catalog.Bounds{Lo: w.Lo, Hi: w.Hi, Step: w.Step}
	}
	left := domain.MaxWork - s.KeyWork
	if keys, ok := domain.KeyDomainIn(e, nil, &left); ok {
		c.Domain = keys
	}
	s.KeyWork = domain.MaxWork - left
	return c
}

// finish completes the relation: its rows keep their unit, also where no output shows it.
func finish(b *algebra.Binder, p *projection) (*algebra.Relation, error) {
	p.query.From = b.Bound.Source.Node // with what its expressions have joined
	if o := p.of.Owner(); o != nil && len(p.out.Owners) == 0 {
		p.add(o.Name, algebra.Column{Of: o}, false)
	}
	if f := p.out.Owner(); f != nil && !p.of.Owner().Present() {
		// Of all fields that hold the unit, the first is the one that is looked at: it must be the one that every row has.
		slices.SortStableFunc(p.out.Owners, func(x, y *algebra.Field) int { return scalar.BoolOrder(!x.Present(), !y.Present()) })
	}
	for _, k := range p.of.Keys {
		mapped := algebra.RowKey{Relies: k.Relies}
		for _, f := range k.Fields {
			if to := p.stems[f]; to != nil {
				mapped.Fields = append(mapped.Fields, to)
			} else if slices.Contains(p.of.Owners, f) && p.out.Owner() != nil {
				mapped.Fields = append(mapped.Fields, p.out.Owner())
			}
		}
		if len(mapped.Fields) == len(k.Fields) {
			p.out.Keys = append(p.out.Keys, mapped)
		}
	}
	return p.out, b.AddLeaf(&p.leaf.Leaf)
}

// project binds a query without aggregates: a filter and new columns.
func project(b *algebra.Binder, r *algebra.Relation) (*algebra.Relation, error) {
	if r.Owned() && computesWithWindows(b.Query.Items) {
		return projectWindows(b, r)
	}
	p := newResult(b, r)
	for _, item := range b.Query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			fields, err := starFields(b, r, star)
			if err != nil {
				return nil, err
			}
			if len(p.query.Outputs)+len(fields) > maxOutputs {
				return nil, tooManyOutputs(b.At(star))
			}
			for _, f := range fields {
				p.add(f.Name, algebra.Column{Of: f}, true)
			}
			continue
		}
		if call, ok := item.Expr.(*syntax.Call); ok && call.Over != nil && r.Owned() {
			if _, err := unitWindow(b, p, call, itemName(item)); err != nil {
				return nil, err
			}
			continue
		}
		e, err := rowOutput(b, item.Expr)
		if err != nil && unread(b, item, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.add(itemName(item), e, true)
	}
	if err := settleTies(b, p); err != nil {
		return nil, err
	}
	return finishRows(b, p)
}

// finishRows completes a query without aggregates, whose rows DISTINCT may tell apart.
func finishRows(b *algebra.Binder, p *projection) (*algebra.Relation, error) {
	if b.Query.Distinct {
		if r := p.of; r.Owned() && len(p.out.Owners) == 0 {
			return nil, fault.Unsupported(b.Position(b.Query.Pos), "SELECT DISTINCT inside a query over rows of people",
				"add "+r.UnitName()+" to its select list: rows are then told apart within each "+r.UnitName())
		}
		p.query.Distinct = true
		defer func() { p.out.Keys = append(p.out.Keys, algebra.RowKey{Fields: p.out.Fields}) }()
	}
	return finish(b, p)
}

// rowOutput binds an output of a query over rows: the id of a unit may pass as it is.
func rowOutput(b *algebra.Binder, n syntax.Expr) (algebra.Expr, error) {
	if c, ok := n.(*syntax.Column); ok {
		f, err := column(b, c)
		return algebra.Column{Of: f}, err
	}
	return rowValue(b, n)
}

// starFields are the fields that * or t.* stands for: those that exist for analysts.
func starFields(b *algebra.Binder, r *algebra.Relation, star *syntax.Star) ([]*algebra.Field, error) {
	fields := r.Fields
	if star.Qualifier != "" {
		i := slices.IndexFunc(r.Parts, func(p algebra.FromPart) bool { return p.Alias == star.Qualifier })
		if i < 0 {
			return nil, unknownColumn(b, &syntax.Column{Pos: star.Pos, Qualifier: star.Qualifier, Name: "*"})
		}
		fields = r.Parts[i].Fields
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f *algebra.Field) bool { return !f.Exposed && !f.Unit }), nil
}

func itemName(item syntax.Item) string {
	if item.Alias != "" {
		return item.Alias
	}
	return outputName(item.Expr)
}

// firstRows binds DISTINCT ON over rows of people: the first of those rows that are equal in some expressions, among which is the unit.
//
//	SELECT DISTINCT ON (unit, k) x FROM t ORDER BY unit, k, y
//	SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY unit, k ORDER BY y) AS nth FROM t) q WHERE nth = 1
func firstRows(b *algebra.Binder) (*algebra.Relation, error) {
	q := *b.Query
	q.DistinctOn, q.OrderBy = nil, nil
	if err := refuseUnstable(b, &q); err != nil {
		return nil, err
	}
	if q.Groups() || q.Having != nil || slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) {
		return nil, fault.Unsupported(b.Position(q.Pos), "DISTINCT ON of statistics of single people", "write it around a query in FROM")
	}
	if err := from(b); err != nil {
		return nil, err
	}
	window, err := placeAmong(b)
	if err != nil {
		return nil, err
	}
	q.Items = append(slices.Clone(q.Items), syntax.Item{Pos: q.Pos, Expr: &syntax.Call{Pos: q.Pos, Name: "row_number", Over: window}})
	rows, err := rowsOf(&algebra.Binder{Text: b.Text, Snapshot: b.Snapshot, Zone: b.Zone, Query: &q, Bound: b.Bound, CTEs: b.CTEs,
		Outer: b.Outer, Beside: b.Beside, Sources: b.Sources, Merged: b.Merged})
	if err != nil {
		return nil, err
	}
	last := len(rows.Fields) - 1
	b.Bound.Source = rows
	b.Bound.Where = algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: rows.Fields[last]}, R: algebra.Constant{T: catalog.Int4, Text: "1"},
		T: catalog.Bool}
	p := newResult(b, rows)
	for _, f := range rows.Fields[:last] {
		p.add(f.Name, algebra.Column{Of: f}, true)
	}
	return finish(b, p)
}

// placeAmong is the window in which the first row is the one that DISTINCT ON keeps. As in PostgreSQL, its expressions come first in ORDER
// BY, or all of that is of them.
func placeAmong(b *algebra.Binder) (*syntax.Window, error) {
	q, w := b.Query, &syntax.Window{Pos: b.Query.Pos}
	for _, n := range q.DistinctOn {
		w.PartitionBy = append(w.PartitionBy, aliased(q, n))
	}
	ordered := make([]bool, len(w.PartitionBy))
	for _, item := range q.OrderBy {
		item.Expr = aliased(q, item.Expr)
		at := slices.IndexFunc(w.PartitionBy, func(n syntax.Expr) bool { return sameRowValue(b, n, item.Expr) })
		if at >= 0 {
			ordered[at] = true
		} else {
			w.OrderBy = append(w.OrderBy, item)
		}
		if len(w.OrderBy) > 0 && (at >= 0 || slices.Contains(ordered, false)) {
			return nil, b.Unsupported(item.Expr, "DISTINCT ON whose expressions are not the first of ORDER BY", "")
		}
	}
	return w, nil
}

// sameRowValue reports whether two expressions over a row are one.
func sameRowValue(b *algebra.Binder, l, r syntax.Expr) bool {
	x, err := rowOutput(b, l)
	if err != nil {
		return false
	}
	y, err := rowOutput(b, r)
	return err == nil && algebra.Same(x, y)
}

// unread reports whether an output that was refused can be left out: nothing in the statement has its name, or stands for all columns, and
// the columns that it names exist.
func unread(b *algebra.Binder, item syntax.Item, refused error) bool {
	if code := fault.CodeOf(refused); !b.InFrom || b.Whole == nil || b.Query.Distinct ||
		code != fault.CodeUnsupported && code != fault.CodeUnknownFunction && code != fault.CodeUnitColumn {
		return false
	}
	return resolves(b, item.Expr) && !reads(b.Whole, itemName(item))
}

// resolves reports whether an expression holds no query, and each name in it is that of a column.
func resolves(b *algebra.Binder, n syntax.Expr) bool {
	switch n := n.(type) {
	case *syntax.Column:
		_, err := column(b, n)
		return err == nil
	case *syntax.InQuery, *syntax.Exists, *syntax.Scalar:
		return false
	default:
		return !slices.ContainsFunc(operands(n), func(x syntax.Expr) bool { return !resolves(b, x) })
	}
}
