package sqlprint

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// fromWhere prints FROM and WHERE of the block: rows of units, and by keys of groups that may be shown. It is [Printer.fromWhere] but for
// the beginnings of lines.
func (p *StatementPrinter) fromWhere(indent string, keys []string, late bool) (text string, joins bool) {
	groups := func() string {
		if keys == nil {
			return ""
		}
		return p.domainFilter(keys)
	}
	from, where, joins := p.Printer.fromWhere(p.Q.Source.Node, p.Q.Where, p.owned, groups, late)
	return clause(indent+"FROM ", from) + clause(indent+"WHERE ", where), joins
}

// nothing is the absent condition.
func nothing() string { return "" }

// fromWhere prints FROM and WHERE of a query. owned is the condition that rows have owners, groups the one that selects groups; "" for
// none. late prints WHERE before FROM, for the numbers of arguments in earlier names. joins reports whether there are joins that read both
// sides in any case.
func (p *Printer) fromWhere(n algebra.FromItem, where algebra.Expr, owned, groups func() string, late bool) (from, all string, joins bool) {
	if n != nil && p.adds() {
		var reads bool
		if n, where, reads = p.SemiJoins.Join(n, where); reads {
			first, then := lower.Written(owned()), lower.Written(groups())
			from, all = p.reading(p.SemiJoins.ReadBothSides(n, where, first, then))
			return from, all, true
		}
	}
	if n != nil && !late {
		from = p.fromItem(n)
	}
	conditions := []string{owned()}
	if where != nil {
		conditions = append(conditions, p.Text(where))
	}
	conditions = append(conditions, groups())
	if n != nil && late {
		from = p.fromItem(n)
	}
	return from, joinConditions(conditions), false
}

// needs are what a statement asks of its plan and of its transaction.
type needs struct {
	pairs     bool     // there are joins on equalities
	bothSides bool     // there are joins of people's rows, printed so that both sides are read
	rowByRow  bool     // EXISTS or IN over rows of people, or a large public table, is none of the joins
	zones     []string // that the text names, whose files its transaction reads first
}

func (n *needs) zone(name string) {
	if !slices.Contains(n.zones, name) {
		n.zones = append(n.zones, name)
	}
}

func (n *needs) reads(r lower.Reading) { n.bothSides, n.pairs = true, n.pairs || r.Pairs }

func (n *needs) joins(j *algebra.Joined) { n.pairs = n.pairs || lower.Pairs(j) }

func (n *needs) lookups(many bool) { n.rowByRow = n.rowByRow || many }

// reading prints FROM and WHERE with joins that read both sides.
func (p *Printer) reading(r lower.Reading) (from, where string) {
	p.needs.reads(r)
	in := p.hides(!p.Distributed && !r.Small) // PostgreSQL hashes the small side, or both are small
	from = in.fromItem(r.From)
	var late, early []string
	for _, c := range r.Where {
		if text := in.Text(c.Expr); c.Late {
			late = append(late, text)
		} else {
			early = append(early, text)
		}
	}
	if r.Fence != nil {
		late = []string{"CASE WHEN " + in.Text(r.Fence) + " THEN (" + strings.Join(late, " AND ") + ") END"}
	}
	return from, joinConditions(append(late, early...))
}

// read prints a join that reads both sides, its arguments in the order of the query.
func (p *Printer) read(j *lower.Read) string {
	sides, texts := [2]algebra.FromItem{j.Left, j.Right}, [2]string{}
	for i := range sides {
		i ^= algebra.BoolIndex(j.Swapped)
		texts[i] = p.fromItem(sides[i])
	}
	text := texts[0] + joinWord(j.Kind, len(j.On) == 0) + bracketed(j.Right, texts[1])
	for i, c := range j.On {
		text += []string{" ON ", " AND "}[min(i, 1)] + p.Text(c)
	}
	return text
}

// fromItem prints a relation.
func (p *Printer) fromItem(n algebra.FromItem) string {
	defer steps.Visit(p.SemiJoins.Steps).Leave()
	switch n := n.(type) {
	case *algebra.Scan:
		if p.structure != nil {
			return TableName(n.Table)
		}
		if p.inline {
			return n.Table.Schema + "." + n.Table.Name + called(&n.Leaf)
		}
		return p.marks.mark(n)
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
		right := bracketed(n.Right, p.fromItem(n.Right))
		p.needs.joins(n)
		text := p.fromItem(n.Left) + joinWord(n.Kind, n.On == nil) + right
		if n.On != nil {
			text += " ON " + p.Text(n.On)
		}
		return text
	case *lower.Read:
		return p.read(n)
	default:
		panic("sqlrewrite: relation without a printed form")
	}
}

// bracketed is an item on the right side of a join.
func bracketed(n algebra.FromItem, text string) string {
	switch n := n.(type) {
	case *algebra.RowCap:
		if !n.Active() {
			return bracketed(n.Of, text)
		}
	case *algebra.Joined, *lower.Read:
		return "(" + text + ")"
	}
	return text
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
func joinWord(kind syntax.JoinKind, cross bool) string {
	switch {
	case kind == syntax.LeftJoin:
		return " LEFT JOIN "
	case kind == syntax.RightJoin:
		return " RIGHT JOIN "
	case kind == syntax.FullJoin:
		return " FULL JOIN "
	case cross:
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
		p = p.ofQuery()
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
		// Where an aggregate sorts, PostgreSQL sorts for its groups too.
		if f := algebra.PlainField(k); f != nil && q.Of != nil && f == q.Of.Owner() && slices.ContainsFunc(q.Results(), sorts) && p.adds() {
			keys = append([]string{p.scattered(p.field(f), f.Type)}, keys...)
		}
	}
	text := "SELECT "
	if q.Distinct {
		text += "DISTINCT "
	}
	text += strings.Join(outputs, ", ")
	from, where, joins := p.fromWhere(q.From, q.Where, nothing, nothing, false)
	if from != "" {
		text += " FROM " + from
	}
	if where != "" {
		text += " WHERE " + where
	}
	if len(keys) > 0 {
		text += " GROUP BY " + strings.Join(keys, ", ")
	}
	joins = joins || stability.GroupsPublic(q) && p.adds()
	if joins {
		p.SemiJoins.Fire(lower.FenceJoins)
		text += fence
	}
	return text
}

// sorts reports whether PostgreSQL sorts the rows of an aggregate in an expression.
func sorts(e algebra.Expr) bool {
	a, is := e.(algebra.Aggregate)
	return is && a.Over == nil && a.Distinct || slices.ContainsFunc(algebra.Children(e), sorts)
}

// asIs prints an expression without the cast that comparisons of enums need: an enum keeps the order of its labels.
func (p *Printer) asIs(e algebra.Expr) string {
	if f := algebra.PlainField(e); f != nil && !p.inline {
		return p.field(f)
	}
	return p.Text(e)
}

// asJoin prints EXISTS or IN that has become a join, or that such joins express; false if it has not. Earlier names of questions have no
// such joins.
func (p *Printer) asJoin(e algebra.Expr) bool {
	if !p.adds() {
		return false
	}
	if f := p.SemiJoins.Lift(e); f != nil {
		p.write("(", p.field(f), " IS NOT NULL)")
		return true
	}
	in, _ := e.(algebra.InRows)
	if in.From == nil {
		return false
	}
	spelled := p.SemiJoins.Spelled(in)
	if spelled != nil {
		p.expr(spelled)
	}
	return spelled != nil
}

// exists prints EXISTS.
func (p *Printer) exists(e algebra.Exists) {
	if p.asJoin(e) {
		return
	}
	p.needs.lookups(lower.Unbounded(e))
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
	p.needs.lookups(lower.ReadsMany(e.AsExists()))
	defer p.SemiJoins.Stay()()
	p.structure.enter(e.From)
	p.write("(")
	if len(e.X) > 1 {
		p.write("ROW(")
	}
	for i, x := range e.X {
		p.separator(i)
		p.collated(x)
	}
	if len(e.X) > 1 {
		p.write(")")
	}
	p.write(" IN (SELECT ")
	for i, f := range e.Outputs {
		p.separator(i)
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
		line := strings.ToLower(strings.TrimSpace(joinWord(n.Kind, n.On == nil)))
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
