package sqlrewrite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// printer writes SQL. It is the only place where SQL text comes into being, and it writes nothing that an analyst wrote:
// identifiers come from the catalog and are quoted, constants become parameters with casts fixed here.
//
// Tables, functions, collations and types are written with their schema (keywords such as integer mean pg_catalog by grammar).
// Operators are not: OPERATOR(pg_catalog.<) would make the text unreadable, and IN, CASE and IS DISTINCT FROM have no
// such form. They are found through an empty search_path, with which PostgreSQL looks in pg_catalog only; the statement runs
// with that setting, and A57 tests it with operators planted in public.
type printer struct {
	b     strings.Builder
	args  []any
	known map[string]int  // constants that have a number already, by text and type
	scans []*scan         // those that have a mark in the text, by its number
	named map[*field]bool // the fields that the text names; nil: nobody asks
	leaf  func(*printer, expr)
	// collation orders and compares text: the database's default for rows, as in PostgreSQL; bytes for released keys.
	collation string
	inline    bool       // for people: constants in place, no casts
	structure *structure // not nil: to tell expressions apart, inline
	// identity prints what identifies a question, which is hashed and never run: the text of before there were forms that change no value of a
	// right computation, so that stored answers are found again. Whatever prints such a form asks [printer.adds].
	identity bool
	added    bool      // there are such forms in the text
	inside   []*rowCap // those whose rows are being printed
	seedArg  int       // the number of the seed's argument; 0: none
	pairs    bool      // there are joins on equalities
	semis    int       // EXISTS and IN that became joins, or could have
	asJoins  map[fromItem]*lifted
	spells   map[fromItem]expr // IN as EXISTS; nil: it cannot be said so
	stays    map[fromItem]bool // EXISTS and IN that become none
	lifts    []*lifted         // those that FROM is to join yet
	fixed    int               // inside of so many queries with nothing that could join them
	chained  bool              // no rows are to be merged
	joins    bool              // there are joins of people's rows, printed so that both sides are read
}

// adds reports whether to print a form that a question's identity does not have.
func (p *printer) adds() bool {
	if p.identity || p.inline {
		return false
	}
	p.added = true
	return true
}

const (
	defaultCollation = `pg_catalog."default"`
	byteCollation    = `pg_catalog."C"`
	textType         = "pg_catalog.text"
)

// newRowPrinter prints statements for the protected database.
func newRowPrinter() *printer {
	return &printer{known: make(map[string]int), named: make(map[*field]bool), collation: defaultCollation, leaf: func(p *printer, e expr) {
		c := e.(column).of
		p.write(p.field(c))
		if c.Type == catalog.Enum {
			p.write("::" + textType)
		}
	}}
}

func (p *printer) write(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// arg writes a parameter with its cast; equal constants share one.
func (p *printer) arg(text, sqlType string) {
	id := sqlType + "\x00" + text
	n, ok := p.known[id]
	if !ok {
		n = p.rawArg(text)
		p.known[id] = n
	}
	p.write("$", strconv.Itoa(n), "::", sqlType)
}

// rawArg adds an argument and gives its number.
func (p *printer) rawArg(v any) int {
	p.args = append(p.args, v)
	return len(p.args)
}

// sub prints something apart and gives its text; arguments are shared with the rest.
func (p *printer) sub(f func()) string {
	outer := p.b
	p.b = strings.Builder{}
	f()
	text := p.b.String()
	p.b = outer
	return text
}

func (p *printer) text(e expr) string { return p.sub(func() { p.expr(e) }) }

// quoteIdent quotes a name so that it means exactly itself.
func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText quotes a string for people; it is never run.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// sqlType spells a type so that no search path can change its meaning.
func sqlType(t catalog.Type) string {
	if element := elementOf(t); element != t {
		return sqlType(element) + arraySuffix
	}
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8, catalog.Numeric, catalog.Float4, catalog.Float8, catalog.Bool,
		catalog.Timestamp, catalog.Timestamptz, intervalType:
		return string(t) // keywords of the grammar
	case catalog.Text, catalog.Enum, unknownType:
		return textType
	case catalog.Char:
		return "pg_catalog.bpchar"
	case catalog.Date, catalog.UUID:
		return "pg_catalog." + string(t)
	default:
		panic("sqlrewrite: type without a spelling")
	}
}

// expr prints an expression. Every operator has its own parentheses, so that precedence never matters.
func (p *printer) expr(e expr) {
	switch e := e.(type) {
	case column, keyRef, valueRef, layerSub, either:
		p.leaf(p, e)
	case constant:
		p.constant(e)
	case not:
		p.write("(NOT ")
		p.expr(e.x)
		p.write(")")
	case negate:
		p.write("(- ")
		p.expr(e.x)
		p.write(")")
	case binary:
		p.binary(e)
	case in, is, distinct, like:
		p.predicate(e)
	case choice:
		p.choice(e)
	case cast:
		p.cast(e)
	case call:
		p.call(e)
	case collate:
		p.write("(")
		p.collated(e.x)
		p.write(")")
	case computed:
		if p.inline {
			p.expr(e.written)
		} else {
			p.expr(e.total)
		}
	case guard:
		if p.adds() {
			p.expr(e.clamped)
		} else {
			p.expr(e.x)
		}
	case exists:
		p.exists(e)
	case inRows:
		p.inRows(e)
	case unitAggregate:
		p.unitAggregate(e)
	case aggregateCall:
		p.aggregate(e)
	case windowCall:
		p.window(e)
	default:
		panic(fmt.Sprintf("sqlrewrite: no way to print %T", e))
	}
}

// predicate prints a test with a syntax of its own.
func (p *printer) predicate(e expr) {
	p.write("(")
	switch e := e.(type) {
	case in:
		p.collated(e.x)
		p.write(negation(e.not), " IN (")
		items := slices.Clone(e.list)
		for i := range items {
			items[i] = p.compared(items[i])
		}
		p.list(items)
		p.write(")")
	case is:
		p.expr(e.x)
		p.write(" IS", negation(e.not), " ", string(e.what))
	case distinct:
		p.collated(e.l)
		p.write(" IS", negation(e.not), " DISTINCT FROM ")
		p.expr(e.r)
	case like:
		p.matched(e.x)
		p.write(" ", e.operator(), " ")
		p.expr(e.pattern)
	default:
		panic(fmt.Sprintf("sqlrewrite: %T is no predicate", e))
	}
	p.write(")")
}

func negation(not bool) string {
	if not {
		return " NOT"
	}
	return ""
}

func (p *printer) constant(c constant) {
	if c.t == catalog.Char && p.named != nil && p.adds() { // as leaves give its column: a text
		c.t, c.text = catalog.Text, strings.TrimRight(c.text, " ")
	}
	if c.t == intervalType && !c.null && p.structure == nil {
		if text := shortFields(c.text); text != c.text && p.adds() {
			c.text = text
		}
	}
	switch {
	case p.structure != nil:
		p.structuralConstant(c)
	case p.inline && c.null:
		p.write("NULL")
	case c.null:
		p.write("NULL::", sqlType(c.t))
	case p.inline && (c.t.IsNumber() || c.t == catalog.Bool):
		p.write(c.text)
	case p.inline:
		p.write(quoteText(c.text))
	default:
		p.arg(c.text, sqlType(c.t))
	}
}

// collated prints an operand of a comparison; text is compared under one fixed collation, so that a column's own cannot make
// the comparison fail (two collations, or one that LIKE does not take).
func (p *printer) collated(e expr) {
	p.expr(e)
	if familyOf(e.typ()) == textFamily && !p.inline {
		p.write(" COLLATE ", p.collation)
	}
}

func (p *printer) binary(e binary) {
	p.write("(")
	if isComparison(e.op) {
		e.l, e.r = p.compared(e.l), p.compared(e.r)
		p.collated(e.l)
	} else {
		p.expr(e.l)
	}
	p.write(" ", string(e.op), " ")
	divisor := e.r
	if p.identity {
		divisor = unguarded(divisor)
	}
	if (e.op == syntax.Divide || e.op == syntax.Modulo) && !p.inline && mayBeZero(divisor) {
		p.write("NULLIF(")
		p.expr(e.r)
		p.write(", 0)")
	} else {
		p.expr(e.r)
	}
	p.write(")")
}

// mayBeZero is false for divisors that are NULL or another number at worst.
func mayBeZero(divisor expr) bool {
	switch e := divisor.(type) {
	case constant:
		return !e.null && isZero(e)
	case call:
		return e.name != "nullif" || !isZero(e.args[1])
	default:
		return true
	}
}

func isZero(e expr) bool {
	c, ok := e.(constant)
	v, number := parseNumber(c.text)
	return ok && number && v.Sign() == 0
}

func (p *printer) list(all []expr) {
	for i, e := range all {
		if i > 0 {
			p.write(", ")
		}
		p.expr(e)
	}
}

func (p *printer) choice(e choice) {
	p.write("CASE")
	for _, a := range e.arms {
		p.write(" WHEN ")
		p.expr(a.cond)
		p.write(" THEN ")
		p.expr(a.result)
	}
	if e.otherwise != nil {
		p.write(" ELSE ")
		p.expr(e.otherwise)
	}
	p.write(" END")
}

func (p *printer) cast(e cast) {
	p.write("(")
	p.expr(e.x)
	if p.inline {
		p.write(")::", string(e.t))
	} else {
		p.write(")::", sqlType(e.t))
	}
	for i, m := range e.mods {
		p.write([]string{"(", ", "}[min(i, 1)], strconv.Itoa(int(m)))
	}
	if len(e.mods) > 0 {
		p.write(")")
	}
}

// call prints a function of the allow-list; coalesce and its like are grammar, not functions.
func (p *printer) call(e call) {
	switch e.name {
	case "coalesce", "nullif", "greatest", "least":
		p.write(e.name, "(")
		for i, arg := range e.args {
			if i > 0 {
				p.write(", ")
			}
			p.collated(arg)
		}
	default:
		if !p.inline {
			p.write("pg_catalog.")
		}
		p.write(e.name, "(")
		p.list(e.args)
	}
	p.write(")")
}

// describe writes an expression for people, with the analyst's names and constants. Expressions that mean different things
// have different descriptions.
func describe(e expr) string { return describeWith(e, nil) }

// describeWith names the values of a block.
func describeWith(e expr, q *boundQuery) string {
	p := newDescriber(q)
	p.expr(e)
	return p.b.String()
}

// describeRows writes a query below the release block for people. Queries that mean different things have different descriptions.
func describeRows(d *derived) string { return newDescriber(nil).rowQueries(d) }

// newDescriber prints for people.
func newDescriber(q *boundQuery) *printer {
	return &printer{inline: true, leaf: func(p *printer, e expr) {
		switch e := e.(type) {
		case column:
			p.write(e.of.text())
		case keyRef:
			p.write(e.name)
		case valueRef:
			p.write(q.values[e.index].name)
		case layerSub:
			p.write("(SELECT ...)")
		case either:
			p.expr(e.l)
			p.write(" or ")
			p.expr(e.r)
		}
	}}
}
