package sqlrewrite

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// Whether two expressions are one is decided by their structure. Their descriptions, which are for people, are no names: a column may be
// called "(age + 1)", and 2 and 2.0 read alike and divide differently.

// structure writes an expression so that two that mean different things are never written alike.
type structure struct {
	inner  map[*field]string // fields of relations inside the expression, by their place in it
	stored bool              // what is written is stored: fields have their names in the statement
}

// structureOf is equal for expressions of one query that are the same.
func structureOf(e expr) string { return structured(e, false) }

// storedStructureOf is equal in all processes, once the relations of the statement have names.
func storedStructureOf(e expr) string { return structured(e, true) }

func structured(e expr, stored bool) string {
	if e == nil {
		return ""
	}
	p := &printer{inline: true, structure: &structure{inner: make(map[*field]string), stored: stored}}
	p.leaf = func(_ *printer, e expr) { p.structuralLeaf(e) }
	p.expr(e)
	return p.b.String()
}

// sameExpr reports whether two expressions are one.
func sameExpr(a, b expr) bool { return describe(a) == describe(b) && structureOf(a) == structureOf(b) }

func (p *printer) structuralLeaf(e expr) {
	switch e := e.(type) {
	case column:
		name, inner := p.structure.inner[e.of]
		switch {
		case inner:
		case p.structure.stored:
			name = e.of.sql()
		default:
			name = fmt.Sprintf("%p", e.of)
		}
		p.write(name)
	case keyRef:
		p.write(fmt.Sprintf("k%d", e.index))
	case valueRef:
		p.write(fmt.Sprintf("v%d", e.index))
	case either:
		p.expr(e.l)
		p.write(" or ")
		p.expr(e.r)
	case layerSub: // the text of what is computed after the noise holds it
		p.write("(SELECT)")
	}
}

// enter gives the fields of relations inside an expression names by their places.
func (s *structure) enter(item fromItem) {
	if s == nil {
		return
	}
	named := func(fields []*field) {
		for _, f := range fields {
			s.inner[f] = fmt.Sprintf("#%d", len(s.inner))
		}
	}
	switch item := item.(type) {
	case *scan:
		named(item.fields)
	case *rowCap:
		s.enter(item.of)
	case *derived:
		for _, q := range item.parts {
			s.enter(q.from)
		}
		named(item.fields)
	case *joined:
		s.enter(item.left)
		s.enter(item.right)
	}
}

// structuralConstant writes a constant with its type.
func (p *printer) structuralConstant(c constant) {
	if c.null {
		p.write("NULL::", string(c.t))
		return
	}
	p.write(quoteText(c.text), "::", string(c.t))
}

// compared is an operand of a comparison: numbers compare by value, whatever their types.
func (p *printer) compared(e expr) expr {
	if c, ok := e.(constant); ok && p.structure != nil && !c.null && c.t.IsNumber() {
		if v, ok := parseNumber(c.text); ok {
			return constant{t: catalog.Numeric, text: v.RatString()}
		}
	}
	return e
}

func isComparison(op syntax.Operator) bool {
	return slices.Contains([]syntax.Operator{syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge}, op)
}

// structure is equal for measures that are one integer of every group.
func (m measure) structure() string {
	parts := []string{fmt.Sprint(int(m.kind)), m.describe()}
	for _, e := range []expr{m.x, m.y, m.filter} {
		parts = append(parts, structureOf(e))
	}
	return strings.Join(parts, "\x00")
}

// sqlWords are words of descriptions.
var sqlWords = strings.Fields("and or not is in like ilike case when then else end between distinct from collate filter where as null true false unknown exists select over by")

// plainName reports whether no description of a computed value can hold a name: it is words, and none of those of SQL.
func plainName(name string) bool {
	for word := range strings.SplitSeq(name, " ") {
		for i, c := range word {
			if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsNumber(c) && !strings.ContainsRune("$#.-", c)) {
				return false
			}
		}
		if word == "" || len(word) <= 8 && slices.ContainsFunc(sqlWords, func(w string) bool { return strings.EqualFold(w, word) }) {
			return false
		}
	}
	return true
}

// readsAsOne reports whether a description names its columns beyond doubt.
func readsAsOne(e expr) bool {
	if f := plainField(e); f != nil && !plainName(f.Name) {
		return false
	}
	return !slices.ContainsFunc(children(e), func(child expr) bool { return !readsAsOne(child) })
}

// ambiguous reports whether the descriptions of a query may be those of another.
func (q *boundQuery) ambiguous() bool {
	var all []expr
	for _, m := range q.measures {
		all = append(all, m.x, m.y, m.filter)
	}
	for _, k := range q.keys {
		all = append(all, k.x)
	}
	return slices.ContainsFunc(all, func(e expr) bool { return e != nil && !readsAsOne(e) })
}

// addStructure makes what a question's descriptions say certain, where another question may have the same.
func (h identity) addStructure(q *boundQuery) {
	if !q.ambiguous() {
		return
	}
	h.add("structure")
	for _, m := range q.measures {
		h.add(storedStructureOf(m.x), storedStructureOf(m.y), storedStructureOf(m.filter))
	}
	for _, k := range q.keys {
		h.add(storedStructureOf(k.x))
	}
	for _, v := range q.values {
		h.add(fmt.Sprint(int(v.how), v.of))
	}
	for _, out := range q.outputs {
		h.add(storedStructureOf(out.expr))
	}
}
