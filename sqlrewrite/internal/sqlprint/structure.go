package sqlprint

import (
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// The structure of expressions as text is for earlier names alone, which are stored (package earlier). [algebra.Same] decides whether two
// expressions of one query are one.

// structure writes an expression so that two that mean different things never have one text.
type structure struct {
	inner map[*algebra.Field]string // fields of relations inside the expression, by their place in it
}

// StructureOf writes an expression so that none of another meaning has the same text; "" for none. The text is equal in all processes,
// once the relations of the statement have names.
func StructureOf(e algebra.Expr) string {
	if e == nil {
		return ""
	}
	p := newInline((*Printer).structuralLeaf, &structure{inner: make(map[*algebra.Field]string)})
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
