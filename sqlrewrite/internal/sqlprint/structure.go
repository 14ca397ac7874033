package sqlprint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// The structure of expressions as text is for fingerprints alone, which are stored. Whether two expressions of one query are one,
// [algebra.Same] decides.

// structure writes an expression so that two that mean different things are never written alike.
type structure struct {
	inner map[*algebra.Field]string // fields of relations inside the expression, by their place in it
}

// StructureOf is an expression so written that none that means something else is written alike; "" for none. It is equal in all processes,
// once the relations of the statement have names.
func StructureOf(e algebra.Expr) string {
	if e == nil {
		return ""
	}
	p := newInline(func(p *Printer, e algebra.Expr) { p.structuralLeaf(e) })
	p.structure = &structure{inner: make(map[*algebra.Field]string)}
	p.expr(e)
	return p.B.String()
}

func (p *Printer) structuralLeaf(e algebra.Expr) {
	switch e := e.(type) {
	case algebra.Column:
		name, inner := p.structure.inner[e.Of]
		if !inner {
			name = e.Of.SQL()
		}
		p.write(name)
	case algebra.KeyRef:
		p.write(fmt.Sprintf("k%d", e.Index))
	case algebra.EstimatorRef:
		p.write(fmt.Sprintf("v%d", e.Index))
	case algebra.Either:
		p.expr(e.L)
		p.write(" or ")
		p.expr(e.R)
	case algebra.Subquery: // the text of what is computed after the noise holds it
		p.write("(SELECT)")
	}
}

// enter gives the fields of relations inside an expression names by their places.
func (s *structure) enter(item algebra.FromItem) {
	if s == nil {
		return
	}
	named := func(fields []*algebra.Field) {
		for _, f := range fields {
			s.inner[f] = fmt.Sprintf("#%d", len(s.inner))
		}
	}
	switch item := item.(type) {
	case *algebra.Scan:
		named(item.Fields)
	case *algebra.RowCap:
		s.enter(item.Of)
	case *algebra.Derived:
		for _, q := range item.Parts {
			s.enter(q.From)
		}
		named(item.Fields)
	case *algebra.Joined:
		s.enter(item.Left)
		s.enter(item.Right)
	}
}

// structuralConstant writes a constant with its type.
func (p *Printer) structuralConstant(c algebra.Constant) {
	if c.Null {
		p.write("NULL::", string(c.T))
		return
	}
	p.write(scalar.QuoteText(c.Text), "::", string(c.T))
}

// compared is an operand of a comparison: numbers compare by value, whatever their types.
func (p *Printer) compared(e algebra.Expr) algebra.Expr {
	if c, ok := e.(algebra.Constant); ok && p.structure != nil && !c.Null && c.T.IsNumber() {
		if v, ok := scalar.ParseNumber(c.Text); ok {
			return algebra.Constant{T: catalog.Numeric, Text: v.RatString()}
		}
	}
	return e
}

// sqlWords are words of descriptions.
var sqlWords = strings.Fields(
	"and or not is in like ilike case when then else end between distinct from collate filter where as null true false unknown exists " +
		"select over by")

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
func readsAsOne(e algebra.Expr) bool {
	if f := algebra.PlainField(e); f != nil && !plainName(f.Name) {
		return false
	}
	return !slices.ContainsFunc(algebra.Children(e), func(child algebra.Expr) bool { return !readsAsOne(child) })
}

// ambiguous reports whether the descriptions of a query may be those of another.
func ambiguous(q *algebra.BoundQuery) bool {
	var all []algebra.Expr
	for _, m := range q.Statistics {
		all = append(all, m.X, m.Y, m.Filter)
	}
	for _, k := range q.Cells() {
		all = append(all, k.X)
	}
	return slices.ContainsFunc(all, func(e algebra.Expr) bool { return e != nil && !readsAsOne(e) })
}

// AddStructure makes what a question's descriptions say certain, where another question may have the same.
func (h Identity) AddStructure(q *algebra.BoundQuery) {
	if !ambiguous(q) {
		return
	}
	h.Add("structure")
	for _, m := range q.Statistics {
		h.Add(StructureOf(m.X), StructureOf(m.Y), StructureOf(m.Filter))
	}
	for _, k := range q.Cells() {
		h.Add(StructureOf(k.X))
	}
	for _, v := range q.Estimators {
		h.Add(fmt.Sprint(int(v.How), v.Of))
	}
	for _, out := range q.Outputs {
		h.Add(StructureOf(out.Expr))
	}
}
