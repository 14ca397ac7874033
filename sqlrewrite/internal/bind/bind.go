package sqlrewrite

import (
	"fmt"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// boundQuery is a query whose names and types are settled: one release block over one table, and what is computed from it.
type boundQuery struct {
	facts    *statementFacts
	pairs    *big.Int  // rows that one row of a unit can meet
	source   *relation // what is read
	where    expr      // over columns; nil: none
	keys     []groupKey
	measures []measure // the releases, each once (A07)
	values   []value   // what outputs, HAVING and ORDER BY may refer to

	outputs []output // of the answer, over keys and values as far as they can be followed
	having  expr     // over keys and values; nil: none
	orderBy []ordering
	limit   *int64
	offset  int64
	top     int64 // so many groups are selected by their one measure; 0: all are released

	// What is computed from the block's rows by other SELECTs; nil: nothing. having, orderBy, limit and offset are the block's own.
	layer *layer
	inner []output     // the outputs of the block's own SELECT under layers
	scans []*layerScan // the public tables of layers
}

// output is one column of the answer.
type output struct {
	name string
	expr expr
}

// ordering is one key of ORDER BY over keys and values.
type ordering struct {
	expr       expr
	descending bool
	nullsFirst bool
}

// binder resolves one query against one snapshot.
type binder struct {
	text     string
	snapshot *catalog.Snapshot
	query    *syntax.Query
	bound    *boundQuery
	ctes     *environment // what FROM can name besides tables
	outer    *binder      // of the query around, whose rows conditions here may name; nil: none
	beside   *relation    // what a query under LATERAL sees; nil: nothing
}

// bindBlock settles names, types and policy of a query that releases. The order of the steps is the order in which the clauses take effect.
func bindBlock(text string, query *syntax.Query, snapshot *catalog.Snapshot) (*boundQuery, error) {
	b := &binder{text: text, snapshot: snapshot, query: query, bound: &boundQuery{}}
	b.ctes = b.ctes.with(query.With)
	for _, step := range []func(*binder) error{(*binder).from, (*binder).where, (*binder).groupBy, (*binder).selectList, (*binder).having, (*binder).distinct,
		(*binder).orderBy, (*binder).limit} {
		if err := step(b); err != nil {
			return nil, err
		}
	}
	if err := b.boundWork(); err != nil {
		return nil, err
	}
	b.bound.shared().nameLeaves()
	b.bound.settleCaps()
	b.bound.noteLongTexts()
	return b.bound, nil
}

// selectList binds the outputs over keys and aggregates.
func (b *binder) selectList() error {
	for _, item := range b.query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			return fault.NotAggregate(b.at(star), "*")
		}
		e, err := b.expression(blockScope{b}, item.Expr)
		if err != nil {
			return err
		}
		if e, err = b.coerce(item.Expr, e, catalog.Text); err != nil {
			return err
		}
		name := item.Alias
		if name == "" {
			name = outputName(item.Expr)
		}
		b.bound.outputs = append(b.bound.outputs, output{name: name, expr: e})
	}
	if len(b.bound.keys) == 0 && len(b.bound.values) == 0 && b.query.Having == nil {
		return fault.NotAggregate(b.position(b.query.Items[0].Pos), "a select list without aggregates")
	}
	return nil
}

// distinct checks that DISTINCT changes nothing: the outputs hold every key (SELECT DISTINCT key is a GROUP BY, made by
// groupBy), or there is one row.
func (b *binder) distinct() error {
	if !b.query.Distinct {
		return nil
	}
	shown := make(map[int]bool)
	for _, o := range b.bound.outputs {
		if k, ok := o.expr.(keyRef); ok {
			shown[k.index] = true
		}
	}
	if len(shown) < len(b.bound.keys) {
		return fault.Unsupported(b.position(b.query.Pos), "SELECT DISTINCT without every group key in the select list",
			"add the group keys to the select list, or leave DISTINCT out")
	}
	return nil
}

// outputName is the name that PostgreSQL gives to an output without an alias.
func outputName(n syntax.Expr) string {
	switch n := n.(type) {
	case *syntax.Column:
		return n.Name
	case *syntax.Call:
		return n.Name
	case *syntax.Cast:
		if name := outputName(n.X); name != unnamed {
			return name
		}
		return n.Type
	case *syntax.Case:
		if n.Else != nil {
			if name := outputName(n.Else); name != unnamed {
				return name
			}
		}
		return "case"
	case *syntax.Literal:
		if n.Kind == syntax.BoolLiteral {
			return "bool"
		}
		return unnamed
	default:
		return unnamed
	}
}

// unnamed is PostgreSQL's name for an output that has none.
const unnamed = "?column?"

func (b *binder) position(at syntax.Pos) fault.Position { return position(b.text, at) }

func (b *binder) at(n interface{ At() syntax.Pos }) fault.Position { return b.position(n.At()) }

func (b *binder) unsupported(n interface{ At() syntax.Pos }, what, hint string) error {
	return fault.Unsupported(b.at(n), what, hint)
}

func (b *binder) mismatch(n interface{ At() syntax.Pos }, message, hint string) error {
	return fault.TypeMismatch(b.at(n), message, hint)
}

// typeName names a type for people.
func typeName(t catalog.Type) string {
	if t == unknownType {
		return "unknown"
	}
	return string(t)
}

// noOperator says that an operator does not exist for its operands.
func (b *binder) noOperator(n syntax.Expr, op syntax.Operator, l, r expr) error {
	return b.mismatch(n, fmt.Sprintf("there is no operator %s %s %s", typeName(l.typ()), op, typeName(r.typ())),
		"both sides must be of one kind; cast one of them")
}
