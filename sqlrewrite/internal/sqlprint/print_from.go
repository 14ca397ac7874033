package sqlrewrite

import (
	"fmt"
	"strings"

	"noisegate/sqlrewrite/syntax"
)

// from prints the relations of the block.
func (p *statementPrinter) from() string { return p.fromItem(p.q.source.node) }

// fromWhere prints FROM and WHERE of the block: rows of units, and of groups that may be shown, which keys tell. late says that WHERE is
// printed before FROM, for the numbers of arguments that identify a question.
func (p *statementPrinter) fromWhere(keys []string, late bool) {
	domain := func() string {
		if keys == nil {
			return ""
		}
		return p.domainFilter(keys)
	}
	from, where, ok := p.steady(p.q.source.node, p.q.where, func() []string { return []string{p.notNullUnit(), domain()} })
	if !ok && !late {
		from = p.from()
	}
	if !ok {
		where = joinConditions([]string{p.notNullUnit(), p.rowFilter(), domain()})
	}
	if !ok && late {
		from = p.from()
	}
	p.clause("\n      FROM ", from)
	p.clause("\n      WHERE ", where)
}

// fromItem prints a relation.
func (p *printer) fromItem(n fromItem) string {
	switch n := n.(type) {
	case *scan:
		if p.structure != nil {
			return tableName(n.table)
		}
		if p.inline {
			return n.table.Schema + "." + n.table.Name + n.called()
		}
		return p.mark(n)
	case *derived:
		text := "(" + p.rowQueries(n) + ")"
		if n.lateral {
			text = "LATERAL " + text
		}
		if p.inline {
			return text + n.called()
		}
		return text + n.as()
	case *rowCap:
		return p.rowCap(n)
	case *joined:
		right := p.fromItem(n.right)
		if nestedJoin(n.right) {
			right = "(" + right + ")"
		}
		p.pairs = p.pairs || n.meets == nil && n.on != nil || n.meets != nil && len(n.meets.pairs) > 0
		text := p.fromItem(n.left) + joinWord(n) + right
		if n.on != nil {
			text += " ON " + p.text(n.on)
		}
		return text
	default:
		panic("sqlrewrite: relation without a printed form")
	}
}

// nestedJoin reports whether an item prints as a join.
func nestedJoin(n fromItem) bool {
	if c, ok := n.(*rowCap); ok && !c.active() {
		return nestedJoin(c.of)
	}
	_, nested := n.(*joined)
	return nested
}

// as is the relation's name in the statement.
func (l *leaf) as() string {
	if l.alias == "" {
		return ""
	}
	return " AS " + quoteIdent(l.alias)
}

// called is the relation's name for people: what its fields are called by must be told apart.
func (l *leaf) called() string {
	if l.name == "" {
		return ""
	}
	return " AS " + l.name
}

// joinWord is the keyword of a join; an inner one without a condition is a cross join.
func joinWord(j *joined) string {
	switch {
	case j.kind == syntax.LeftJoin:
		return " LEFT JOIN "
	case j.kind == syntax.FullJoin:
		return " FULL JOIN "
	case j.on == nil:
		return " CROSS JOIN "
	default:
		return " JOIN "
	}
}

// rowQueries prints a UNION ALL of queries below the release block.
func (p *printer) rowQueries(d *derived) string {
	var texts []string
	for _, q := range d.parts {
		text := p.rowQuery(q, d.fields)
		if len(d.parts) > 1 && strings.HasSuffix(text, fence) {
			text = "(" + text + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " UNION ALL ")
}

// fence ends a query whose joins read both sides: PostgreSQL tests no condition of the query around below it, nor makes one query of both.
const fence = " OFFSET 0"

// rowQuery prints one of them, whose outputs are the fields of the whole; people know these by other names than the statement does.
func (p *printer) rowQuery(q *rowQuery, fields []*field) string {
	var outputs, keys []string
	for i, e := range q.outputs {
		output := p.asIs(e)
		if q.distinct {
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
	for _, k := range q.keys {
		keys = append(keys, p.asIs(k))
	}
	text := "SELECT "
	if q.distinct {
		text += "DISTINCT "
	}
	text += strings.Join(outputs, ", ")
	end := ""
	if from, where, ok := p.steady(q.from, q.where, func() []string { return nil }); ok {
		if text += " FROM " + from; where != "" {
			text += " WHERE " + where
		}
		end = fence
	} else {
		if q.from != nil {
			text += " FROM " + p.fromItem(q.from)
		}
		if q.where != nil {
			text += " WHERE " + p.text(q.where)
		}
	}
	if len(keys) > 0 {
		text += " GROUP BY " + strings.Join(keys, ", ")
	}
	return text + end
}

// asIs prints an expression without the cast that comparisons of enums need.
func (p *printer) asIs(e expr) string {
	if f := plainField(e); f != nil && !p.inline {
		return p.field(f)
	}
	return p.text(e)
}

// exists prints EXISTS.
func (p *printer) exists(e exists) {
	if f := p.lift(e); f != nil {
		p.write("(", p.field(f), " IS NOT NULL)")
		return
	}
	p.fixed++
	defer func() { p.fixed-- }()
	p.structure.enter(e.from)
	p.write("EXISTS (SELECT 1 FROM ", p.fromItem(e.from))
	if e.where != nil {
		p.write(" WHERE ")
		p.expr(e.where)
	}
	p.write(")")
}

// inRows prints IN (query).
func (p *printer) inRows(e inRows) {
	if f := p.lift(e); f != nil {
		p.write("(", p.field(f), " IS NOT NULL)")
		return
	}
	if spelled := p.spelled(e); spelled != nil {
		p.expr(spelled)
		return
	}
	p.fixed++
	defer func() { p.fixed-- }()
	p.structure.enter(e.from)
	p.write("(")
	if len(e.x) > 1 {
		p.write("ROW(")
	}
	for i, x := range e.x {
		if i > 0 {
			p.write(", ")
		}
		p.collated(x)
	}
	if len(e.x) > 1 {
		p.write(")")
	}
	p.write(" IN (SELECT ")
	for i, f := range e.outputs {
		if i > 0 {
			p.write(", ")
		}
		p.expr(column{of: f})
	}
	p.write(" FROM ", p.fromItem(e.from))
	if e.where != nil {
		p.write(" WHERE ")
		p.expr(e.where)
	}
	p.write("))")
}

// lines are a relation's part of the plan's text.
func (r *relation) lines() []string { return itemLines(r.node) }

func itemLines(n fromItem) []string {
	switch n := n.(type) {
	case *scan:
		return []string{"scan " + n.table.Schema + "." + n.table.Name}
	case *joined:
		line := strings.ToLower(strings.TrimSpace(joinWord(n)))
		if n.on != nil {
			line += " on " + describe(n.on)
		}
		return append([]string{line}, indented(append(itemLines(n.left), itemLines(n.right)...))...)
	case *rowCap:
		if !n.active() {
			return itemLines(n.of)
		}
		return append([]string{n.text()}, indented(itemLines(n.of))...)
	case *derived:
		var lines []string
		for _, q := range n.parts {
			lines = append(lines, q.lines()...)
		}
		if len(n.parts) > 1 {
			return append([]string{"union all"}, indented(lines)...)
		}
		return lines
	default:
		panic("sqlrewrite: relation without a text")
	}
}

func (q *rowQuery) lines() []string {
	var outputs, keys []string
	for _, e := range q.outputs {
		outputs = append(outputs, describe(e))
	}
	line := "rows: "
	if q.distinct {
		line = "distinct rows: "
	}
	lines := []string{line + strings.Join(outputs, ", ")}
	for _, k := range q.keys {
		keys = append(keys, describe(k))
	}
	if len(keys) > 0 {
		lines[0] += " by " + strings.Join(keys, ", ")
	}
	if q.from == nil {
		return lines
	}
	inner := itemLines(q.from)
	if q.where != nil {
		inner = append([]string{"where " + describe(q.where)}, inner...)
	}
	return append(lines, indented(inner)...)
}
