package sqlprint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// Printer writes SQL. It is the only place where SQL text comes into being, and it writes nothing that an analyst wrote:
// identifiers come from the catalog and are quoted, constants become parameters with casts fixed here.
//
// Tables, functions, collations and types are written with their schema (keywords such as integer mean pg_catalog by grammar).
// Operators are not: OPERATOR(pg_catalog.<) would make the text unreadable, and IN, CASE and IS DISTINCT FROM have no
// such form. They are found through an empty search_path, with which PostgreSQL looks in pg_catalog only; the statement runs
// with that setting, and A57 tests it with operators planted in public.
//
// No printer changes: its style is given when it is made, and what is said otherwise in one part of a text (other names, a text of its
// own) makes another printer for this part. Both add to the same arguments, marks and needs, which are what a text is about.
type Printer struct {
	style
	B *strings.Builder // the text so far
	// called are other names of fields than their own; nil: none has one.
	called    map[*algebra.Field]string
	inside    []*algebra.RowCap // those whose rows are being printed
	SemiJoins *lower.SemiJoins  // of the query that is being printed
	hiding    bool              // the equalities of joins hide from PostgreSQL which columns they compare

	args  *arguments
	marks *marks
	needs *needs
}

// arguments are those of a text, whose numbers are their places, from 1.
type arguments struct {
	all     []any
	known   map[string]int // constants that have a number already, by text and type
	awaited []Awaited      // those that are released before the statement runs
	seed    int            // the number of the secret seed; 0: none
}

// add gives another argument its number.
func (a *arguments) add(v any) int {
	a.all = append(a.all, v)
	return len(a.all)
}

// style is which kind of text a printer writes. It is given when the printer is made.
type style struct {
	Style
	leaf func(*Printer, algebra.Expr) // prints columns, released values and queries
	// collation orders and compares text: the database's default for rows, as in PostgreSQL; bytes for released keys.
	collation string
	leaves    bool       // what is read of tables are leaves
	inline    bool       // for people: constants in place, no casts
	structure *structure // not nil: to tell expressions apart, inline
}

// Style is what a statement may be printed for other than to be run on one server.
type Style struct {
	// Identity prints the text of a question's earlier name, which is hashed and never run. It lacks the forms that change no value of a right
	// computation, so that stored answers are found again. Code that prints such a form calls [Printer.adds].
	Identity bool
	// Distributed: tables may lie on several servers, which join rows that lie there by what they see to be equal; see
	// [sqlrewrite.Plan.Distribute].
	Distributed bool
	Off         []string // the passes of package lower that are left out
}

// adds reports whether to print a form that a question's earlier name does not have.
func (p *Printer) adds() bool { return !p.Identity && !p.inline }

const (
	defaultCollation = `pg_catalog."default"`
	byteCollation    = `pg_catalog."C"`
	textType         = "pg_catalog.text"
)

// newPrinter begins a text, whose printing is a part of what planning takes.
func newPrinter(s style, n *steps.Count) *Printer {
	return &Printer{style: s, B: new(strings.Builder), SemiJoins: lower.NewSemiJoins(n, s.Off...),
		args: &arguments{known: make(map[string]int)}, marks: &marks{named: make(map[*algebra.Field]bool)}, needs: new(needs)}
}

// NewRowPrinter prints what is read of the protected database.
func NewRowPrinter() *Printer { return newRowPrinter(Style{}, nil) }

func newRowPrinter(s Style, n *steps.Count) *Printer {
	return newPrinter(style{Style: s, collation: defaultCollation, leaves: true, leaf: (*Printer).column}, n)
}

// column prints a column as a value: a label of an enum is a text.
func (p *Printer) column(e algebra.Expr) {
	f := e.(algebra.Column).Of
	if p.write(p.field(f)); f.Type == catalog.Enum {
		p.write("::" + textType)
	}
}

// newInline prints constants in place, and EXISTS and IN as they were written.
func newInline(leaf func(*Printer, algebra.Expr), s *structure) *Printer {
	return newPrinter(style{Style: Style{Off: []string{lower.LiftSemiJoin}}, inline: true, structure: s, leaf: leaf}, nil)
}

func (p *Printer) write(parts ...string) {
	for _, s := range parts {
		p.B.WriteString(s)
	}
}

// arg is a parameter with its cast; equal constants share one.
func (p *Printer) arg(text, sqlType string) string {
	id := sqlType + "\x00" + text
	n, ok := p.args.known[id]
	if !ok {
		n = p.rawArg(text)
		p.args.known[id] = n
	}
	return "$" + strconv.Itoa(n) + "::" + sqlType
}

// rawArg adds an argument and gives its number.
func (p *Printer) rawArg(v any) int { return p.args.add(v) }

// seed is the secret seed's argument.
func (p *Printer) seed() string {
	if p.args.seed == 0 {
		p.args.seed = p.rawArg(int64(0))
	}
	return fmt.Sprintf("$%d::bigint", p.args.seed)
}

// Args are the arguments of what was printed.
func (p *Printer) Args() []any { return p.args.all }

// apart gives a printer that writes a separate text.
func (p *Printer) apart() *Printer {
	in := *p
	in.B = new(strings.Builder)
	return &in
}

// hides writes joins whose equalities hide from PostgreSQL which columns they compare, or joins whose equalities do not.
func (p *Printer) hides(equalities bool) *Printer {
	in := *p
	in.hiding = equalities
	return &in
}

// within writes the rows that a cap keeps some of.
func (p *Printer) within(c *algebra.RowCap) *Printer {
	in := *p
	in.inside = append(slices.Clip(p.inside), c)
	return &in
}

// ofQuery gives a printer of a query in FROM, which has its own joins.
func (p *Printer) ofQuery() *Printer {
	in := *p
	in.SemiJoins = p.SemiJoins.OfQuery()
	return &in
}

// calling writes other names of fields than their own.
func (p *Printer) calling(names map[*algebra.Field]string) *Printer {
	in := *p
	in.called = names
	return &in
}

// Text is an expression's; arguments are shared with the rest.
func (p *Printer) Text(e algebra.Expr) string {
	in := p.apart()
	in.expr(e)
	return in.B.String()
}

// sqlType spells a type so that no search path can change its meaning.
func sqlType(t catalog.Type) string {
	if element := scalar.ElementOf(t); element != t {
		return plainType(element) + scalar.ArraySuffix
	}
	return plainType(t)
}

// plainType spells a type that is no array.
func plainType(t catalog.Type) string {
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8, catalog.Numeric, catalog.Float4, catalog.Float8, catalog.Bool,
		catalog.Timestamp, catalog.Timestamptz, scalar.IntervalType:
		return string(t) // keywords of the grammar
	case catalog.Text, catalog.Enum, scalar.UnknownType:
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
func (p *Printer) expr(e algebra.Expr) {
	defer steps.Visit(p.SemiJoins.Steps).Leave()
	switch e := e.(type) {
	case algebra.Column, algebra.KeyRef, algebra.EstimatorRef, algebra.Subquery, algebra.Either:
		p.leaf(p, e)
	case algebra.Constant:
		p.constant(e)
	case algebra.Bought:
		p.bought(e)
	case algebra.Not:
		p.write("(NOT ")
		p.expr(e.X)
		p.write(")")
	case algebra.Negate:
		p.write("(- ")
		p.expr(e.X)
		p.write(")")
	case algebra.Binary:
		p.binary(e)
	case algebra.In, algebra.Is, algebra.Distinct, algebra.Like:
		p.predicate(e)
	case algebra.Choice:
		p.choice(e)
	case algebra.Cast:
		p.cast(e)
	case algebra.Call:
		p.call(e)
	case algebra.Collate:
		p.write("(")
		p.collated(e.X)
		p.write(")")
	case algebra.Computed:
		if p.inline {
			p.expr(e.Written)
		} else {
			p.expr(e.ErrorFree)
		}
	case algebra.Guard:
		if p.adds() {
			p.expr(e.Clamped)
		} else {
			p.expr(e.X)
		}
	case algebra.Exists:
		p.exists(e)
	case algebra.InRows:
		p.inRows(e)
	case algebra.Aggregate:
		p.aggregate(e)
	case lower.Nulls:
		p.nulls(e)
	case lower.Written:
		p.write(string(e))
	default:
		panic(fmt.Sprintf("sqlrewrite: no way to print %T", e))
	}
}

// predicate prints a test that has its own syntax.
func (p *Printer) predicate(e algebra.Expr) {
	p.write("(")
	switch e := e.(type) {
	case algebra.In:
		p.collated(e.X)
		p.write(negation(e.Not), " IN (")
		items := slices.Clone(e.List)
		for i := range items {
			items[i] = p.compared(items[i])
		}
		p.list(items)
		p.write(")")
	case algebra.Is:
		p.expr(e.X)
		p.write(" IS", negation(e.Not), " ", string(e.What))
	case algebra.Distinct:
		p.collated(e.L)
		p.write(" IS", negation(e.Not), " DISTINCT FROM ")
		p.expr(e.R)
	case algebra.Like:
		p.matched(e.X)
		p.write(" ", e.Operator(), " ")
		p.expr(e.Pattern)
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

func (p *Printer) constant(c algebra.Constant) {
	if c.T == catalog.Char && p.leaves && p.adds() { // as leaves give its column: a text
		c.T, c.Text = catalog.Text, strings.TrimRight(c.Text, " ")
	}
	if c.T == scalar.IntervalType && !c.Null && p.adds() {
		c.Text = scalar.ShortFields(c.Text)
	}
	switch {
	case p.structure != nil:
		p.structuralConstant(c)
	case p.inline && c.Null:
		p.write("NULL")
	case c.Null:
		p.write("NULL::", sqlType(c.T))
	case p.inline && (c.T.IsNumber() || c.T == catalog.Bool):
		p.write(c.Text)
	case p.inline:
		p.write(scalar.QuoteText(c.Text))
	default:
		p.write(p.arg(c.Text, sqlType(c.T)))
	}
}

// collated prints an operand of a comparison; text is compared under one fixed collation, so that a column's own cannot make
// the comparison fail (two collations, or one that LIKE does not take).
func (p *Printer) collated(e algebra.Expr) {
	p.expr(e)
	if scalar.FamilyOf(e.Typ()) == scalar.TextFamily && !p.inline {
		p.write(" COLLATE ", p.collation)
	}
}

func (p *Printer) binary(e algebra.Binary) {
	p.write("(")
	if algebra.IsComparison(e.Op) {
		e.L, e.R = p.compared(e.L), p.compared(e.R)
		if p.hiding && e.Op == syntax.Eq {
			p.SemiJoins.Fire(lower.HideEqualities)
			e.L, e.R = hidden(e.L, e.R), hidden(e.R, e.L)
		}
		p.collated(e.L)
	} else if e.Op == syntax.And || e.Op == syntax.Or {
		p.SemiJoins.Steps.Chained(func() { p.expr(e.L) })
	} else {
		p.expr(e.L)
	}
	p.write(" ", string(e.Op), " ")
	divisor := e.R
	if p.Identity {
		divisor = algebra.Unguarded(divisor)
	}
	if (e.Op == syntax.Divide || e.Op == syntax.Modulo) && !p.inline && mayBeZero(divisor) {
		p.write("NULLIF(")
		p.expr(e.R)
		p.write(", 0)")
	} else {
		p.expr(e.R)
	}
	p.write(")")
}

// mayBeZero is false for divisors that are NULL or another number at worst.
func mayBeZero(divisor algebra.Expr) bool {
	switch e := divisor.(type) {
	case algebra.Constant:
		return !e.Null && isZero(e)
	case algebra.Call:
		return e.Name != "nullif" || !isZero(e.Args[1])
	default:
		return true
	}
}

func isZero(e algebra.Expr) bool {
	c, ok := e.(algebra.Constant)
	v, number := scalar.ParseNumber(c.Text)
	return ok && number && v.Sign() == 0
}

// hidden writes a column that is compared with an expression of rows so that PostgreSQL has no statistics of it. By the frequency of its
// most frequent value it chooses the side of a join that is hashed: one unit with many rows would decide that.
func hidden(e, with algebra.Expr) algebra.Expr {
	if algebra.PlainField(e) == nil || algebra.IsConstant(with) {
		return e
	}
	return algebra.Call{Name: "coalesce", Args: []algebra.Expr{e, e}, T: e.Typ()}
}

func (p *Printer) nulls(e lower.Nulls) {
	p.write("(pg_catalog.num_nulls(")
	for i, f := range e.Of {
		p.separator(i)
		p.write(p.field(f))
	}
	p.write(") ", string(e.Op), " ", strconv.Itoa(e.Than), ")")
}

func (p *Printer) list(all []algebra.Expr) {
	for i, e := range all {
		p.separator(i)
		p.expr(e)
	}
}

func (p *Printer) choice(e algebra.Choice) {
	p.write("CASE")
	for _, a := range e.Arms {
		p.write(" WHEN ")
		p.expr(a.Cond)
		p.write(" THEN ")
		p.expr(a.Result)
	}
	if e.Otherwise != nil {
		p.write(" ELSE ")
		p.expr(e.Otherwise)
	}
	p.write(" END")
}

func (p *Printer) cast(e algebra.Cast) {
	p.write("(")
	p.expr(e.X)
	if p.inline {
		p.write(")::", string(e.T))
	} else {
		p.write(")::", sqlType(e.T))
	}
	for i, m := range e.Mods {
		p.write([]string{"(", ", "}[min(i, 1)], strconv.Itoa(int(m)))
	}
	if len(e.Mods) > 0 {
		p.write(")")
	}
}

// call prints a function of the allow-list; coalesce and its like are grammar, not functions.
func (p *Printer) call(e algebra.Call) {
	switch f := domain.BuiltinOf(e.Name); {
	case f != nil && f.Grammar:
		p.write(e.Name, "(")
		for i, arg := range e.Args {
			p.separator(i)
			p.collated(arg)
		}
	default:
		if !p.inline {
			p.write("pg_catalog.")
		}
		p.write(e.Name, "(")
		args := e.Args
		if e.Name == "timezone" { // a constant in place: verify reads it there
			zone := args[0].(algebra.Constant).Text
			args = args[1:]
			p.needs.zone(zone)
			p.write("'", zone, "', ")
		}
		p.list(args)
	}
	p.write(")")
}
