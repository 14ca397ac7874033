package sqlprint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
)

// A statement is printed as a template, in which each scan of a table stands as a mark. When the text is complete, it is known which
// columns it names; then each mark becomes the scan's leaf: the table itself, or a query that gives exactly these columns in a form in
// which equal values are identical and no text is long. docs/sql/relations.md has the lemma.

// markLeaf begins and ends the mark of a scan. No name can hold it: PostgreSQL has no text with this byte.
const markLeaf = "\x00"

// marks are what a text has marks of, and what it names: all that it takes to complete it.
type marks struct {
	scans       []*algebra.Scan // by the number of their marks
	named       map[*algebra.Field]bool
	repeatables []repeatable
}

// mark stands for a scan until the statement is complete.
func (m *marks) mark(s *algebra.Scan) string {
	at := slices.Index(m.scans, s)
	if at < 0 {
		at, m.scans = len(m.scans), append(m.scans, s)
	}
	return fmt.Sprint(markLeaf, at, markLeaf)
}

// field names a field in a statement, as it is called where the printer is: a cap around its relation calls it by another name. Every name
// goes through here, so that leaves know what is read of them.
func (p *Printer) field(f *algebra.Field) string {
	p.marks.named[f] = true
	if name, other := p.called[f]; other {
		return name
	}
	for _, c := range f.Caps {
		if !slices.Contains(p.inside, c) && !p.inline {
			return scalar.QuoteIdent(c.Alias) + "." + scalar.QuoteIdent(fmt.Sprintf("c%d", slices.Index(c.Outputs, f)))
		}
	}
	return f.SQL()
}

// template is a statement whose scans are marks.
type template struct {
	text string
	marks
	spare    int64 // ns a row for columns that are computed again
	fans     bool  // one row may meet several
	unfenced bool
}

func (p *StatementPrinter) template() template {
	return template{text: p.B.String(), marks: *p.marks, spare: spareOf(p.Q), fans: p.Q.Pairs == nil || p.Q.Pairs.Cmp(big.NewInt(1)) > 0}
}

// with puts leaves and fences into the places of the marks.
func (t template) with(leaf func(*algebra.Scan) string) string {
	pairs, _ := t.fences()
	for i, s := range t.scans {
		pairs = append(pairs, fmt.Sprint(markLeaf, i, markLeaf), leaf(s))
	}
	if len(pairs) == 2 { // most often; a Replacer of one string prepares its search for longer than the search takes
		return strings.ReplaceAll(t.text, pairs[0], pairs[1])
	}
	return strings.NewReplacer(pairs...).Replace(t.text)
}

// sql is the statement over the tables.
func (t template) sql() string {
	return t.with(func(s *algebra.Scan) string { return t.leaf(s, source(s)) })
}

// Identity is the statement as questions were identified before there were leaves: over the tables as they are. What a leaf is follows
// from the policy, which a question's identity holds.
func (t template) Identity() string {
	t.unfenced = true
	return t.with(plainTable)
}

// plainTable is the table under its alias.
func plainTable(s *algebra.Scan) string { return TableName(s.Table) + as(&s.Leaf) }

// source is the table that a leaf reads: without tables that inherit from it, whoever makes them when; a partitioned table is its
// partitions.
func source(s *algebra.Scan) string { return onlyTable(s.Table) }

func onlyTable(t *catalog.Table) string {
	if t.Partitioned {
		return TableName(t)
	}
	return "ONLY " + TableName(t)
}

func TableName(t *catalog.Table) string {
	return scalar.QuoteIdent(t.Schema) + "." + scalar.QuoteIdent(t.Name)
}

// leaf is what stands for a scan in FROM: the source under the scan's alias where all columns that are read are canonical as they are.
func (t template) leaf(s *algebra.Scan, source string) string {
	var list, conditions []string
	bare := true
	for _, f := range s.Fields {
		if !t.named[f] {
			continue
		}
		form := form(s, f)
		if form.condition != "" {
			conditions = append(conditions, form.condition)
		}
		name := scalar.QuoteIdent(f.Name)
		if form.text != name {
			name = form.text + " AS " + name
		}
		bare = bare && form.bare()
		list = append(list, name)
	}
	if bare {
		return source + as(&s.Leaf)
	}
	where := ""
	if len(conditions) > 0 {
		where = " WHERE " + strings.Join(conditions, " AND ")
	}
	return "(SELECT " + strings.Join(list, ", ") + " FROM " + source + where + ")" + name1(s)
}

// name1 is the alias of a scan that needs one.
func name1(s *algebra.Scan) string {
	if s.Alias == "" {
		return ` AS "t1"`
	}
	return as(&s.Leaf)
}

// leafForm is how a leaf gives a column: text is an expression over the table's columns, and condition, unless it is empty, holds on the
// rows that there are.
type leafForm struct {
	text, condition string
	form            bool // text is not the column alone
}

func (f leafForm) bare() bool { return !f.form && f.condition == "" }

// form is the canonical form of a column of a scan. Of the types that it leaves as they are equal values are identical: whole numbers,
// booleans, dates, times, uuids, labels of enums, numerics of fixed digits.
func form(s *algebra.Scan, f *algebra.Field) leafForm {
	name := scalar.QuoteIdent(f.Name)
	switch f.Type {
	case catalog.Float4, catalog.Float8: // 0 for -0
		return leafForm{text: "(" + name + " + 0::" + sqlType(f.Type) + ")", form: true}
	case catalog.Numeric:
		if _, fixed := algebra.Scale(algebra.Column{Of: f}); fixed {
			return leafForm{text: name}
		}
		if f.TypMod >= 4 { // of at most 1,000 digits, and zeros before the point
			return leafForm{text: "pg_catalog.trim_scale(" + name + ")", form: true}
		}
		return numericForm(s, f, name)
	case catalog.Text, catalog.Char:
		return textForm(s, f, name)
	default:
		return leafForm{text: name}
	}
}

// Digits of a numeric that counts, before its point and after it, and the most bytes that it takes as it is stored.
const (
	numericDigits = 100
	numericBytes  = 112
)

// numericForm is a numeric in its shortest form, 1 for 1.00, if it has few digits, else NULL. What PostgreSQL tests first it reads off the
// value's header: a long value is not read, however many rows its row meets. 1e131071 takes few bytes, and its text 131,072. Where NULL
// stands for nothing, as in a unit's id and in a column that is NOT NULL, the row is left out.
func numericForm(s *algebra.Scan, f *algebra.Field, name string) leafForm {
	short := fmt.Sprintf("CASE WHEN (pg_catalog.pg_column_size(%[1]s) <= %[2]d) AND (pg_catalog.pg_column_compression(%[1]s) IS NULL) "+
		"AND ((pg_catalog.abs(%[1]s) < '1e%[3]d'::numeric) OR (pg_catalog.abs(%[1]s) >= 'Infinity'::numeric)) "+
		"AND (pg_catalog.round(%[1]s, %[3]d) = %[1]s) THEN pg_catalog.trim_scale(%[1]s) END", name, numericBytes, numericDigits)
	form := leafForm{text: short, form: true}
	if f.Column.NotNull || tellsUnit(s, f) {
		form.condition = "(" + short + " IS NOT NULL)"
	}
	return form
}

// textForm is a text of at most the bytes that the policy lets count, else NULL: octet_length looks at the header of a value, not at the
// value. A row whose unit is NULL belongs to nobody, so where the text tells the unit the row is left out, and the column stays as it is:
// indexes keep serving. (That a column is in an index does not bound its values: PostgreSQL compresses what it puts there.)
func textForm(s *algebra.Scan, f *algebra.Field, name string) leafForm {
	form := leafForm{text: name}
	if f.Type == catalog.Char { // 'a' and 'a ' are equal; as texts they are one
		form = leafForm{text: name + "::" + textType, form: true}
	}
	limit := f.LongestText()
	if characters := int64(f.TypMod) - 4; characters > 0 && 4*characters <= limit {
		return form
	}
	short := fmt.Sprintf("(pg_catalog.octet_length(%s) <= %d)", name, limit)
	if tellsUnit(s, f) {
		form.condition = short
		return form
	}
	return leafForm{text: "CASE WHEN " + short + " THEN " + form.text + " END", form: true}
}

// tellsUnit reports whether rows where a column is NULL belong to nobody: it holds the unit's id, or the path to the unit begins or
// arrives there.
func tellsUnit(s *algebra.Scan, f *algebra.Field) bool {
	return s.Table.Unit.Kind != catalog.NoUnit && f.Name == s.Table.Unit.Column || f.Name == s.Reached
}

// settled is an expression whose text is given, in a form in which equal values are identical: for where PostgreSQL picks one of them. A
// computed value may be 1.0 on one row and 1.00 on another, which divide differently, 0 and -0, 1 day and 24 hours.
func (p *Printer) settled(e algebra.Expr, text string) string {
	f := algebra.PlainField(e)
	_, fixed := algebra.Scale(e)
	switch t := algebra.CarrierOf(e); {
	case !p.adds() || f != nil && (f.Printed == "" || t == catalog.Numeric && fixed): // as a leaf gives it
		return text
	case t == catalog.Numeric:
		return "pg_catalog.trim_scale(" + text + ")"
	case scalar.IsFloat(t):
		return "(" + text + " + 0::" + sqlType(t) + ")"
	case t == scalar.IntervalType: // months as 30 days each, which is what they are in a comparison, and no day of hours
		return p.Text(domain.Levelled(e))
	default:
		return text
	}
}

// matched prints a text that a pattern is matched with: a longer one of a column is NULL, a longer one that was computed is cut.
func (p *Printer) matched(x algebra.Expr) {
	switch {
	case !p.leaves || stability.LongestText(x) <= stability.MaxMatched || !p.adds():
		p.collated(x)
	case algebra.PlainField(x) != nil:
		text := p.Text(x)
		p.write("(CASE WHEN (pg_catalog.octet_length(", text, ") <= ", fmt.Sprint(stability.MaxMatched), ") THEN ", text, " END) COLLATE ",
			p.collation)
	default:
		p.write(`pg_catalog."left"(`, p.Text(x), ", ", fmt.Sprint(stability.MatchedLetters), ") COLLATE ", p.collation)
	}
}

// NoteLongValues adds a note for each column that the block reads and whose values may be too long to count. There is none where a policy
// declares what the column holds: that says how long its values are.
func NoteLongValues(q *algebra.BoundQuery) {
	read := NewPreconditionWalk()
	read.Query(q)
	for _, s := range read.Scans {
		for _, f := range s.Fields {
			if !read.Used[f] || len(f.Domain()) > 0 {
				continue
			}
			form := form(s, f)
			counts := strings.HasPrefix(form.text, "CASE")
			switch number := f.Type == catalog.Numeric; {
			case number && f.Known().Bounds != nil:
			case number && form.condition != "":
				q.Source.Note("long-numerics", "rows of %s are left out where %s has more than %d digits before or after its point",
					s.Table.Name, f.Name, numericDigits)
			case number && counts:
				q.Source.Note("long-numerics", "numbers of %s with more than %d digits before or after the point count as NULL", f.Name, numericDigits)
			case number:
			case form.condition != "":
				q.Source.Note("long-texts", "rows of %s whose %s is longer than %d bytes belong to nobody", s.Table.Name, f.Name, f.LongestText())
			case counts:
				q.Source.Note("long-texts", "texts of %s longer than %d bytes count as NULL", f.Name, f.LongestText())
			}
		}
	}
}
