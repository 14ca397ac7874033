package sqlrewrite

import (
	"fmt"
	"strconv"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// layerPrinter prints layers. It can name released values, public tables, and nothing else.
type layerPrinter struct {
	*printer
	q        *boundQuery // whose released values there are; nil for public queries
	released string
}

// newLayerPrinter prints layers over a release; q is nil for queries over public tables alone. Released text is compared byte by byte,
// public text as in its database.
func newLayerPrinter(q *boundQuery) *layerPrinter {
	p := &layerPrinter{q: q, printer: &printer{known: make(map[string]int), collation: byteCollation}}
	if q == nil {
		p.collation = defaultCollation
	}
	p.leaf = func(_ *printer, e expr) { p.layerLeaf(e) }
	return p
}

func (p *layerPrinter) layerLeaf(e expr) {
	switch e := e.(type) {
	case keyRef:
		p.write("r.k", strconv.Itoa(e.index))
	case valueRef:
		p.write("r.v", strconv.Itoa(e.index))
	case column:
		if p.write(p.field(e.of)); e.of.Type == catalog.Enum {
			p.write("::" + textType)
		}
	case layerSub:
		p.queryInside(e)
	default:
		panic(fmt.Sprintf("sqlrewrite: %T above the aggregates", e))
	}
}

// raw prints a column as it is, so that an enum keeps the order of its labels.
func (p *layerPrinter) raw(e expr) {
	if f := plainField(e); f != nil {
		p.write(p.field(f))
		return
	}
	p.expr(e)
}

// queryInside prints a query inside an expression.
func (p *layerPrinter) queryInside(e layerSub) {
	inner := p.sub(func() { p.layer(e.layer, false) })
	switch e.kind {
	case scalarSub:
		p.write("(SELECT s.c0 FROM (", inner, ") AS s)")
	case existsSub:
		p.write("(EXISTS (", inner, "))")
	case inSub:
		var columns []string
		p.write("((")
		for i, x := range e.x {
			p.separator(i)
			p.collated(x)
			columns = append(columns, "s."+outputColumn(i))
		}
		p.write(") IN (SELECT ", strings.Join(columns, ", "), " FROM (", inner, ") AS s))")
	}
}

// layer prints a query. A top one gives its outputs as answers hold them, and the released row's number last; one inside names its outputs.
func (p *layerPrinter) layer(l *layer, top bool) {
	switch {
	case l.block:
		p.blockSelect(p.q, p.released, true)
	case l.set != nil || l.distinct:
		p.wrapped(l, top)
	default:
		p.selectList(l, top)
		p.body(l)
		p.tail(l, func(i int) { p.orderTie(l, i) })
	}
}

// wrapped prints what is ordered and cut only after its rows were compared with one another.
func (p *layerPrinter) wrapped(l *layer, top bool) {
	p.write("SELECT ")
	for i, f := range l.wrapped {
		p.separator(i)
		if top {
			p.expr(column{of: f})
		} else {
			p.write(p.field(f))
		}
		p.write(" AS ", outputColumn(i))
	}
	if top {
		p.write(", NULL::bigint AS ordinal")
	}
	p.write("\nFROM (")
	if l.set != nil {
		p.side(l.set.left, l)
		p.write("\n", string(l.set.kind))
		if l.set.all {
			p.write(" ALL")
		}
		p.write("\n")
		p.side(l.set.right, l)
	} else {
		p.selectList(l, false)
		p.body(l)
	}
	p.write(") AS d")
	p.tail(l, func(first int) {
		for i, f := range l.wrapped {
			p.separator(first + i)
			p.sortKey(column{of: f})
		}
	})
}

// side prints one side of a set operation with the columns of the result.
func (p *layerPrinter) side(l, result *layer) {
	p.write("(SELECT ")
	for i, out := range result.outputs {
		p.separator(i)
		p.write("s.", outputColumn(i), "::", sqlType(out.expr.typ()))
		if familyOf(out.expr.typ()) == textFamily {
			p.write(" COLLATE ", p.collation)
		}
		p.write(" AS ", outputColumn(i))
	}
	p.write(" FROM (")
	p.layer(l, false)
	p.write(") AS s)")
}

func (p *layerPrinter) selectList(l *layer, top bool) {
	p.write("SELECT ")
	if l.distinct {
		p.write("DISTINCT ")
	}
	if len(l.on) > 0 {
		p.write("DISTINCT ON (")
		for i, e := range l.on {
			p.separator(i)
			p.sortKey(e)
		}
		p.write(") ")
	}
	for i, out := range l.outputs {
		p.separator(i)
		if top {
			p.expr(out.expr)
		} else {
			p.raw(out.expr)
		}
		p.write(" AS ", outputColumn(i))
	}
	switch {
	case l.ordinal:
		p.write(", ", ordinalOf(l.from), " AS ordinal")
	case top:
		p.write(", NULL::bigint AS ordinal")
	}
}

// body prints FROM, WHERE, GROUP BY and HAVING.
func (p *layerPrinter) body(l *layer) {
	if l.from != nil {
		p.write("\nFROM ")
		p.item(l.from)
	}
	if l.where != nil {
		p.write("\nWHERE ")
		p.expr(l.where)
	}
	for i, k := range l.keys {
		p.write([]string{"\nGROUP BY ", ", "}[min(i, 1)])
		p.raw(k)
	}
	if l.having != nil {
		p.write("\nHAVING ")
		p.expr(l.having)
	}
}

func (p *layerPrinter) item(i layerItem) {
	switch i := i.(type) {
	case *layerScan:
		if p.adds() {
			p.write(onlyTable(i.table), " AS ", quoteIdent(i.alias))
		} else {
			p.write(tableName(i.table), " AS ", quoteIdent(i.alias))
		}
	case *layerQuery:
		p.write("(")
		p.layer(i.layer, false)
		p.write(") AS ", quoteIdent(i.alias))
	case *layerJoin:
		p.write("(")
		p.item(i.left)
		p.write(map[syntax.JoinKind]string{syntax.InnerJoin: " JOIN ", syntax.LeftJoin: " LEFT JOIN ", syntax.RightJoin: " RIGHT JOIN ",
			syntax.FullJoin: " FULL JOIN ", syntax.CrossJoin: " CROSS JOIN "}[i.kind])
		p.item(i.right)
		if i.on != nil {
			p.write(" ON ")
			p.expr(i.on)
		}
		p.write(")")
	}
}

// tail prints ORDER BY, LIMIT and OFFSET; tie ends the order so that it is a function of the rows' values, and is told how many keys
// came before.
func (p *layerPrinter) tail(l *layer, tie func(int)) {
	keys := p.sub(func() { p.orderings(l.orderBy) })
	ties := p.sub(func() { tie(len(l.orderBy)) })
	if keys+ties != "" {
		p.write("\nORDER BY ", keys, ties)
	}
	p.cut(l.limit, l.offset)
}

func (p *printer) cut(limit *int64, offset int64) {
	if limit != nil {
		p.write("\nLIMIT ")
		p.arg(strconv.FormatInt(*limit, 10), "bigint")
	}
	if offset > 0 {
		p.write("\nOFFSET ")
		p.arg(strconv.FormatInt(offset, 10), "bigint")
	}
}

// orderTie orders rows that tie: released rows by their number, groups by their keys. Public rows stay as PostgreSQL gives them.
func (p *layerPrinter) orderTie(l *layer, first int) {
	switch {
	case l.ordinal:
		p.separator(first)
		p.write(ordinalOf(l.from))
	case l.grouped:
		for _, k := range l.keys {
			p.separator(first)
			first++
			p.sortKey(k)
		}
	}
}

// identityOf is equal for expressions that mean the same and for no others.
func identityOf(e expr) string {
	p := newLayerPrinter(nil)
	p.leaf = func(_ *printer, e expr) {
		if s, ok := e.(layerSub); ok {
			p.write(fmt.Sprintf("(%p)", s.layer))
			return
		}
		p.layerLeaf(e)
	}
	p.expr(e)
	return fmt.Sprintf("%s\x00%q", p.b.String(), p.args)
}

func orderText(items []ordering, q *boundQuery) string {
	var texts []string
	for _, o := range items {
		texts = append(texts, describeWith(o.expr, q)+[]string{"", " DESC"}[boolIndex(o.descending)])
	}
	return strings.Join(texts, ", ")
}

func expressionsText(list []expr, q *boundQuery) string {
	var texts []string
	for _, e := range list {
		texts = append(texts, describeWith(e, q))
	}
	return strings.Join(texts, ", ")
}

func orNothing(s string) string {
	if s == "" {
		return "()"
	}
	return s
}

// itemText is an item's part of the plan's text.
func itemText(i layerItem, q *boundQuery) []string {
	switch i := i.(type) {
	case *layerScan:
		return []string{"public " + i.table.Schema + "." + i.table.Name}
	case *layerQuery:
		if i.layer.block {
			return []string{"released"}
		}
		return append([]string{"query"}, indented(i.layer.lines(q))...)
	case *layerJoin:
		kind := map[syntax.JoinKind]string{syntax.InnerJoin: "join", syntax.LeftJoin: "left join", syntax.RightJoin: "right join",
			syntax.FullJoin: "full join", syntax.CrossJoin: "cross join"}[i.kind]
		if i.on != nil {
			kind += " on " + describeWith(i.on, q)
		}
		return append([]string{kind}, indented(append(itemText(i.left, q), itemText(i.right, q)...))...)
	default:
		panic("sqlrewrite: item without a text")
	}
}
