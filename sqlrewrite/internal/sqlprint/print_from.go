package sqlprint

import (
	"fmt"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// from prints the relations of the block.
func (p *StatementPrinter) from() string { return p.fromItem(p.Q.Source.Node) }

// fromWhere prints FROM and WHERE of the block: rows of units, and of groups that may be shown, which keys tell. late says that WHERE is
// printed before FROM, for the numbers of arguments that identify a question. joins reports whether there are joins that read both
// sides in any case.
func (p *StatementPrinter) fromWhere(keys []string, late bool) (joins bool) {
	domain := func() string {
		if keys == nil {
			return ""
		}
		return p.domainFilter(keys)
	}
	from, where, ok := p.steady(p.Q.Source.Node, p.Q.Where, func() (owned, groups string) { return p.owned(), domain() })
	if !ok && !late {
		from = p.from()
	}
	if !ok {
		where = joinConditions([]string{p.owned(), p.RowFilter(), domain()})
	}
	if !ok && late {
		from = p.from()
	}
	p.clause("\n      FROM ", from)
	p.clause("\n      WHERE ", where)
	return ok
}

// fromItem prints a relation.
func (p *Printer) fromItem(n algebra.FromItem) string {
	defer steps.Visit(p.planning).Leave()
	switch n := n.(type) {
	case *algebra.Scan:
		if p.structure != nil {
			return TableName(n.Table)
		}
		if p.inline {
			return n.Table.Schema + "." + n.Table.Name + called(&n.Leaf)
		}
		return p.mark(n)
	case *algebra.Derived:
		text := "(" + p.rowQueries(n) + ")"
		if n.Lateral {
			text = "LATERAL " + text
		}
		if p.inline {
			return text + called(&n.Leaf)
		}
		return text + as(&n.Leaf)
	case *algebra.RowCap:
		return p.rowCap(n)
	case *algebra.Joined:
		right := p.fromItem(n.Right)
		if nestedJoin(n.Right) {
			right = "(" + right + ")"
		}
		p.pairs = p.pairs || n.Meets == nil && n.On != nil || n.Meets != nil && len(n.Meets.Pairs) > 0
		text := p.fromItem(n.Left) + joinWord(n) + right
		if n.On != nil {
			text += " ON " + p.Text(n.On)
		}
		return text
	default:
		panic("sqlrewrite: relation without a printed form")
	}
}

// nestedJoin reports whether an item prints as a join.
func nestedJoin(n algebra.FromItem) bool {
	if c, ok := n.(*algebra.RowCap); ok && !c.Active() {
		return nestedJoin(c.Of)
	}
	_, nested := n.(*algebra.Joined)
	return nested
}

// as is the relation's name in the statement.
func as(l *algebra.Leaf) string {
	if l.Alias == "" {
		return ""
	}
	return " AS " + scalar.QuoteIdent(l.Alias)
}

// called is the relation's name for people: what its fields are called by must be told apart.
func called(l *algebra.Leaf) string {
	if l.Name == "" {
		return ""
	}
	return " AS " + l.Name
}

// joinWord is the keyword of a join; an inner one without a condition is a cross join.
func joinWord(j *algebra.Joined) string {
	switch {
	case j.Kind == syntax.LeftJoin:
		return " LEFT JOIN "
	case j.Kind == syntax.RightJoin:
		return " RIGHT JOIN "
	case j.Kind == syntax.FullJoin:
		return " FULL JOIN "
	case j.On == nil:
		return " CROSS JOIN "
	default:
		return " JOIN "
	}
}

// rowQueries prints a UNION ALL of queries below the release block.
func (p *Printer) rowQueries(d *algebra.Derived) string {
	var texts []string
	for _, q := range d.Parts {
		text := p.rowQuery(q, d.Fields)
		if len(d.Parts) > 1 && strings.HasSuffix(text, fence) {
			text = "(" + text + ")"
		} else if !strings.HasSuffix(text, fence) {
			text = p.repeats(text, repeatable{of: q, fields: d.Fields, one: len(d.Parts) == 1})
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " UNION ALL ")
}

// fence ends a query whose joins read both sides, or whose columns are to be computed once: PostgreSQL tests no condition of the query
// around below it, nor makes one query of both.
const fence = " OFFSET 0"

// rowQuery prints one of them, whose outputs are the fields of the whole; people know these by other names than the statement does.
func (p *Printer) rowQuery(q *algebra.Query, fields []*algebra.Field) string {
	if q.From != nil { // else what its outputs look up is beside it
		around := p.SemiJoins
		p.SemiJoins = around.OfQuery()
		defer func() { p.SemiJoins = around }()
	}
	var outputs, keys []string
	for i, e := range q.Results() {
		output := p.asIs(e)
		if q.Distinct {
			output = p.settled(e, output)
		}
		switch {
		case !p.inline:
			output += fmt.Sprintf(" AS c%d", i)
		case output != fields[i].Name:
			output += " AS " + fields[i].Name
		}
		outputs = append(outputs, output)
	}
	for _, k := range q.Keys {
		keys = append(keys, p.asIs(k))
	}
	text := "SELECT "
	if q.Distinct {
		text += "DISTINCT "
	}
	text += strings.Join(outputs, ", ")
	end := ""
	if from, where, ok := p.steady(q.From, q.Where, func() (owned, groups string) { return "", "" }); ok {
		if text += " FROM " + from; where != "" {
			text += " WHERE " + where
		}
		end = fence
	} else {
		if q.From != nil {
			text += " FROM " + p.fromItem(q.From)
		}
		if q.Where != nil {
			text += " WHERE " + p.Text(q.Where)
		}
	}
	if len(keys) > 0 {
		text += " GROUP BY " + strings.Join(keys, ", ")
	}
	return text + end
}

// asIs prints an expression without the cast that comparisons of enums need.
func (p *Printer) asIs(e algebra.Expr) string {
	if f := algebra.PlainField(e); f != nil && !p.inline {
		return p.field(f)
	}
	return p.Text(e)
}

// joined are the joins that EXISTS and IN become; what identifies a question has none.
func (p *Printer) joined() *lower.SemiJoins {
	if p.Identity {
		return lower.NoSemiJoins()
	}
	return p.SemiJoins
}

// asJoin prints EXISTS or IN that has become a join; false if it has not.
func (p *Printer) asJoin(e algebra.Expr) bool {
	f := p.joined().Lift(e)
	if f != nil && p.adds() {
		p.write("(", p.field(f), " IS NOT NULL)")
	}
	return f != nil
}

// exists prints EXISTS.
func (p *Printer) exists(e algebra.Exists) {
	if p.asJoin(e) {
		return
	}
	p.rowByRow = p.rowByRow || lower.Unbounded(e)
	defer p.SemiJoins.Stay()()
	p.structure.enter(e.From)
	p.write("EXISTS (SELECT 1 FROM ", p.fromItem(e.From))
	if e.Where != nil {
		p.write(" WHERE ")
		p.expr(e.Where)
	}
	p.write(")")
}

// inRows prints IN (query).
func (p *Printer) inRows(e algebra.InRows) {
	if p.asJoin(e) {
		return
	}
	if spelled := p.joined().Spelled(e); spelled != nil {
		p.expr(spelled)
		return
	}
	p.rowByRow = p.rowByRow || lower.ReadsMany(e.AsExists())
	defer p.SemiJoins.Stay()()
	p.structure.enter(e.From)
	p.write("(")
	if len(e.X) > 1 {
		p.write("ROW(")
	}
	for i, x := range e.X {
		if i > 0 {
			p.write(", ")
		}
		p.collated(x)
	}
	if len(e.X) > 1 {
		p.write(")")
	}
	p.write(" IN (SELECT ")
	for i, f := range e.Outputs {
		if i > 0 {
			p.write(", ")
		}
		p.expr(algebra.Column{Of: f})
	}
	p.write(" FROM ", p.fromItem(e.From))
	if e.Where != nil {
		p.write(" WHERE ")
		p.expr(e.Where)
	}
	p.write("))")
}

// RelationLines are a relation's part of the plan's text.
func RelationLines(r *algebra.Relation) []string { return itemLines(r.Node, nil) }

// itemLines is an item's part of the plan's text; q is the block that its values are of, nil below the block.
func itemLines(n algebra.FromItem, q *algebra.BoundQuery) []string {
	switch n := n.(type) {
	case *algebra.Scan:
		return []string{[]string{"scan ", "public "}[algebra.BoolIndex(q != nil)] + n.Table.Schema + "." + n.Table.Name}
	case *algebra.Joined:
		line := strings.ToLower(strings.TrimSpace(joinWord(n)))
		if n.On != nil {
			line += " on " + DescribeWith(n.On, q)
		}
		return append([]string{line}, scalar.Indented(append(itemLines(n.Left, q), itemLines(n.Right, q)...))...)
	case *algebra.RowCap:
		if !n.Active() {
			return itemLines(n.Of, q)
		}
		return append([]string{n.Text()}, scalar.Indented(itemLines(n.Of, q))...)
	case *algebra.Derived:
		if q != nil && n.Parts[0].Block {
			return blockLines(n.Parts[0], q)
		}
		if q != nil {
			return append([]string{"query"}, scalar.Indented(PostLines(n.Parts[0], q))...)
		}
		var lines1 []string
		for _, q := range n.Parts {
			lines1 = append(lines1, lines(q)...)
		}
		if len(n.Parts) > 1 {
			return append([]string{"union all"}, scalar.Indented(lines1)...)
		}
		return lines1
	default:
		panic("sqlrewrite: relation without a text")
	}
}

func lines(q *algebra.Query) []string {
	var outputs, keys []string
	for _, e := range q.Results() {
		outputs = append(outputs, Describe(e))
	}
	line := "rows: "
	if q.Distinct {
		line = "distinct rows: "
	}
	lines := []string{line + strings.Join(outputs, ", ")}
	for _, k := range q.Keys {
		keys = append(keys, Describe(k))
	}
	if len(keys) > 0 {
		lines[0] += " by " + strings.Join(keys, ", ")
	}
	if q.From == nil {
		return lines
	}
	inner := itemLines(q.From, nil)
	if q.Where != nil {
		inner = append([]string{"where " + Describe(q.Where)}, inner...)
	}
	return append(lines, scalar.Indented(inner)...)
}
