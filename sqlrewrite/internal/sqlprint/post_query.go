package sqlprint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// postPrinter prints post-processing queries. It can name released values, public tables, and nothing else.
type postPrinter struct {
	*Printer
	q        *algebra.BoundQuery // whose released values there are; nil for public queries
	released []string            // by block
}

// newPostPrinter prints post-processing queries over a release; q is nil for queries over public tables alone. Released text is compared
// byte by byte, public text as in its database.
func newPostPrinter(q *algebra.BoundQuery, as Style, n *steps.Count) *postPrinter {
	p := &postPrinter{q: q}
	collation := byteCollation
	if q == nil {
		collation = defaultCollation
	}
	p.Printer = newPrinter(style{Style: as, collation: collation, leaf: func(in *Printer, e algebra.Expr) { p.on(in).postLeaf(e) }}, n)
	return p
}

// on writes where another printer does.
func (p *postPrinter) on(in *Printer) *postPrinter { return &postPrinter{in, p.q, p.released} }

func (p *postPrinter) postLeaf(e algebra.Expr) {
	switch e := e.(type) {
	case algebra.KeyRef:
		p.write("r.k", strconv.Itoa(e.Index))
	case algebra.EstimatorRef:
		p.write("r.v", strconv.Itoa(e.Index))
	case algebra.Column:
		p.column(e)
	case algebra.Subquery:
		p.queryInside(e)
	default:
		panic(fmt.Sprintf("sqlrewrite: %T above the aggregates", e))
	}
}

// queryInside prints a query inside an expression.
func (p *postPrinter) queryInside(e algebra.Subquery) {
	in := p.on(p.apart())
	in.query(e.Query, false)
	inner := in.B.String()
	switch e.Kind {
	case algebra.ScalarSub:
		p.write("(SELECT s.c0 FROM (", inner, ") AS s)")
	case algebra.ExistsSub:
		p.write("(EXISTS (", inner, "))")
	case algebra.InSub:
		var columns []string
		p.write("((")
		for i, x := range e.X {
			p.separator(i)
			p.collated(x)
			columns = append(columns, "s."+algebra.OutputColumn(i))
		}
		p.write(") IN (SELECT ", strings.Join(columns, ", "), " FROM (", inner, ") AS s))")
	}
}

// query prints a query. A top one gives its outputs as answers hold them, and the released row's number last; one inside names its outputs.
func (p *postPrinter) query(l *algebra.Query, top bool) {
	defer steps.Visit(p.SemiJoins.Steps).Leave()
	switch {
	case l.Block:
		q := p.q
		if p.several() {
			q = p.q.Blocks[l.BlockAt]
		}
		p.blockSelect(q, l.BlockAt, true, top)
	case l.Set != nil || l.Distinct:
		p.wrapped(l, top)
	default:
		p.selectList(l, top)
		p.body(l)
		p.tail(l, func(in *postPrinter, first int) { in.orderTie(l, first) })
	}
}

// wrapped prints what is ordered and cut only after its rows were compared with one another.
func (p *postPrinter) wrapped(l *algebra.Query, top bool) {
	p.write("SELECT ")
	for i, f := range l.Wrapped {
		p.separator(i)
		if top {
			p.expr(algebra.Column{Of: f})
		} else {
			p.write(p.field(f))
		}
		p.write(" AS ", algebra.OutputColumn(i))
	}
	known := p.united(l)
	switch {
	case p.several() && (top || len(known) > 0):
		p.write(", ")
		p.numbers(top, known)
	case top:
		p.write(", NULL::bigint AS ordinal")
	}
	p.write("\nFROM (")
	if l.Set != nil {
		p.side(l.Set.Left, l, known)
		p.write("\n", string(l.Set.Kind))
		if l.Set.All {
			p.write(" ALL")
		}
		p.write("\n")
		p.side(l.Set.Right, l, known)
	} else {
		p.selectList(l, false)
		p.body(l)
	}
	p.write(") AS d")
	p.tail(l, func(in *postPrinter, first int) {
		for i, f := range l.Wrapped {
			in.separator(first + i)
			in.sortKey(algebra.Column{Of: f})
		}
		for _, block := range slices.Sorted(maps.Keys(known)) { // equal rows have other intervals
			in.write(", ", known[block])
		}
	})
}

// side prints one side of a set operation with the columns of the result, and the numbers of released rows that are known.
func (p *postPrinter) side(l, result *algebra.Query, known map[int]string) {
	p.write("(SELECT ")
	for i, out := range result.Outputs {
		p.separator(i)
		p.write("s.", algebra.OutputColumn(i), "::", sqlType(out.Expr.Typ()))
		if scalar.FamilyOf(out.Expr.Typ()) == scalar.TextFamily {
			p.write(" COLLATE ", p.collation)
		}
		p.write(" AS ", algebra.OutputColumn(i))
	}
	p.sideNumbers(l, known)
	p.write(" FROM (")
	p.query(l, false)
	p.write(") AS s)")
}

func (p *postPrinter) selectList(l *algebra.Query, top bool) {
	p.write("SELECT ")
	if l.Distinct {
		p.write("DISTINCT ")
	}
	if len(l.On) > 0 {
		p.write("DISTINCT ON (")
		for i, e := range l.On {
			p.separator(i)
			p.sortKey(e)
		}
		p.write(") ")
	}
	for i, out := range l.Outputs {
		p.separator(i)
		if top {
			p.expr(out.Expr)
		} else {
			p.write(p.asIs(out.Expr))
		}
		p.write(" AS ", algebra.OutputColumn(i))
	}
	for _, number := range p.tells(l) {
		p.write(", ")
		if l.Stem() != nil && slices.Contains(algebra.TellsOf(l.Under(), p.q), number) {
			p.write(scalar.QuoteIdent(l.Stem().Alias), ".", algebra.RowsColumn(number), " AS ", algebra.RowsColumn(number))
		} else {
			p.rowsOf(number, l.Outputs, l.RowsBelow().Alias)
		}
	}
	switch {
	case p.several():
		if known := p.carried(l); top || len(known) > 0 {
			p.write(", ")
			p.numbers(top, known)
		}
	case l.Stem() != nil:
		p.write(", ", ordinal(l.Stem()), " AS ordinal")
	case top:
		p.write(", NULL::bigint AS ordinal")
	}
}

// tells are the numbers of the followed aggregates whose rows a query has a column for; nil is the block's own SELECT.
func (p *postPrinter) tells(l *algebra.Query) []int {
	if p.q == nil || p.several() {
		return nil
	}
	told := algebra.TellsOf(l, p.q)
	numbers := slices.DeleteFunc(p.q.Followed(), func(n int) bool { return !slices.Contains(told, n) })
	if len(numbers) == 0 || !p.adds() {
		return nil
	}
	return numbers
}

// rowsOf prints which rows of a relation the aggregate with a number is computed from.
func (p *postPrinter) rowsOf(number int, outputs []algebra.Output, relation string) {
	for _, out := range outputs {
		if a, found := algebra.Numbered(out.Expr, number); found {
			p.aggregate(algebra.RowsOfAggregate(a, algebra.OrdinalOf(relation)))
			p.write(" AS ", algebra.RowsColumn(number))
			return
		}
	}
}

// body prints FROM, WHERE, GROUP BY and HAVING.
func (p *postPrinter) body(l *algebra.Query) {
	if l.From != nil {
		p.write("\nFROM ")
		p.item(l.From)
	}
	if l.Where != nil {
		p.write("\nWHERE ")
		p.expr(l.Where)
	}
	if l.Sets != nil {
		p.write("\nGROUP BY GROUPING SETS (")
		for i, set := range l.Sets {
			p.separator(i)
			p.write("(")
			for j, key := range set {
				p.separator(j)
				p.write(p.asIs(l.Keys[key]))
			}
			p.write(")")
		}
		p.write(")")
	} else {
		for i, k := range l.Keys {
			p.write([]string{"\nGROUP BY ", ", "}[min(i, 1)])
			p.write(p.asIs(k))
		}
	}
	if l.Having != nil {
		p.write("\nHAVING ")
		p.expr(l.Having)
	}
}

func (p *postPrinter) item(i algebra.FromItem) {
	defer steps.Visit(p.SemiJoins.Steps).Leave()
	switch i := i.(type) {
	case *algebra.Scan:
		if p.adds() {
			p.write(onlyTable(i.Table), " AS ", scalar.QuoteIdent(i.Alias))
		} else {
			p.write(TableName(i.Table), " AS ", scalar.QuoteIdent(i.Alias))
		}
	case *algebra.Derived:
		p.write("(")
		p.query(i.Parts[0], false)
		p.write(") AS ", scalar.QuoteIdent(i.Alias))
	case *algebra.Joined:
		p.write("(")
		p.item(i.Left)
		p.write(joinWord(i.Kind, i.On == nil))
		p.item(i.Right)
		if i.On != nil {
			p.write(" ON ")
			p.expr(i.On)
		}
		p.write(")")
	}
}

// tail prints ORDER BY, LIMIT and OFFSET; tie ends the order so that it is a function of the rows' values, and is told how many keys
// came before.
func (p *postPrinter) tail(l *algebra.Query, tie func(*postPrinter, int)) {
	in := p.on(p.apart())
	in.orderings(l.OrderBy)
	tie(in, len(l.OrderBy))
	p.write(clause("\nORDER BY ", in.B.String()))
	p.cut(l.Limit, l.Offset)
}

func (p *Printer) cut(limit *int64, offset int64) {
	if limit != nil {
		p.write("\nLIMIT ", p.arg(strconv.FormatInt(*limit, 10), "bigint"))
	}
	if offset > 0 {
		p.write("\nOFFSET ", p.arg(strconv.FormatInt(offset, 10), "bigint"))
	}
}

// ordinal is the number of the released row that a row stems from.
func ordinal(l *algebra.Leaf) string { return scalar.QuoteIdent(l.Alias) + ".ordinal" }

// orderTie orders rows that tie: released rows by their number, groups by their keys. Public rows stay as PostgreSQL gives them.
func (p *postPrinter) orderTie(l *algebra.Query, first int) {
	switch {
	case p.several() && len(p.carries(l)) > 0:
		for i, c := range p.carries(l) {
			p.separator(first + i)
			p.write(numberOf(c))
		}
	case !p.several() && l.Stem() != nil:
		p.separator(first)
		p.write(ordinal(l.Stem()))
	case l.Grouped:
		for _, k := range l.Keys {
			p.separator(first)
			first++
			p.sortKey(k)
		}
		if l.Sets != nil && len(l.Keys) > 0 { // a key that is NULL comes before a set without it
			p.separator(first)
			p.aggregate(algebra.Aggregate{Name: syntax.Grouping, Args: l.Keys, T: catalog.Int4})
		}
	}
}

func OrderText(items []algebra.Ordering, q *algebra.BoundQuery) string {
	var texts []string
	for _, o := range items {
		texts = append(texts, DescribeWith(o.Expr, q)+[]string{"", " DESC"}[algebra.BoolIndex(o.Descending)])
	}
	return strings.Join(texts, ", ")
}

// setsText writes the sets of groups of a query.
func setsText(l *algebra.Query, q *algebra.BoundQuery) string {
	var sets []string
	for _, set := range l.Sets {
		var keys []algebra.Expr
		for _, key := range set {
			keys = append(keys, l.Keys[key])
		}
		sets = append(sets, "("+expressionsText(keys, q)+")")
	}
	return "grouping sets (" + strings.Join(sets, ", ") + ")"
}

func expressionsText(list []algebra.Expr, q *algebra.BoundQuery) string {
	var texts []string
	for _, e := range list {
		texts = append(texts, DescribeWith(e, q))
	}
	return strings.Join(texts, ", ")
}

func orNothing(s string) string {
	if s == "" {
		return "()"
	}
	return s
}
