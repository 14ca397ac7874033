package stability

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// What rows cost beside what is computed of them, in ns: to be read; to be met by a row of the other side of a join; to be chosen by a cap;
// to be counted where each is a unit; to be sorted, grouped by unit and counted. TestRowCostsAreMeasured measures them.
const (
	ScanRow    = 400
	PairRow    = 200
	CappedRow  = 2500
	FlatRow    = 150
	GroupedRow = 500
)

// standing is where an expression stands in a condition: PostgreSQL makes a join of EXISTS at its top and of NOT EXISTS there.
type standing int

const (
	asValue standing = iota
	asCondition
	asNegated
)

// below is where an operand of an expression stands.
func (s standing) below(e algebra.Expr) standing {
	switch e := e.(type) {
	case algebra.Not:
		if s == asCondition && IsQuery(e.X) {
			return asNegated
		}
	case algebra.Binary:
		if e.Op == syntax.And {
			return s
		}
	}
	return asValue
}

// expr is what an expression costs for one row, in ns, and how many rows that row meets in it.
func (w *workload) expr(e algebra.Expr, at standing, of effort) (cost, met *big.Int, err error) {
	defer steps.Visit(w.Steps()).Leave()
	cost, met = new(big.Int), new(big.Int)
	var operands []algebra.Expr
	switch e := e.(type) {
	case nil:
		return cost, met, nil
	case algebra.Exists:
		return w.exists(e, at != asValue)
	case algebra.InRows:
		if cost, met, err = w.inRows(e, at); err != nil {
			return cost, met, err
		}
		operands = e.X
	case algebra.Aggregate:
		cost, met = w.window(e, of)
		if operands = algebra.Children(e); domain.BuiltinOf(e.Name).IsRank() { // constants cost nothing where they count rows
			operands = slices.DeleteFunc(operands, func(x algebra.Expr) bool { _, is := x.(algebra.Constant); return is })
		}
	default:
		cost.SetInt64(PriceOf(e))
		w.dear.meets(e, cost.Int64())
		if like, ok := e.(algebra.Like); ok && like.Regex {
			w.compiled[fmt.Sprint(like.CaseInsensitive, like.Pattern)] = true
		}
		if call, ok := e.(algebra.Call); ok && call.Name == "regexp_replace" {
			w.compiled[fmt.Sprint(call.Args[1:])] = true
		}
		operands = algebra.Children(e)
	}
	for _, x := range operands {
		c, m, err := w.expr(x, at.below(e), of)
		if err != nil {
			return cost, met, err
		}
		cost.Add(cost, c)
		met.Add(met, m)
	}
	return cost, met, nil
}

// exists is the work of EXISTS for one row. Where all that ties its rows to that row are equalities, PostgreSQL finds the first of them by
// a hash; else it looks at each of the rows that one equality leaves.
func (w *workload) exists(e algebra.Exists, top bool) (cost, met *big.Int, err error) {
	c := e.From.(*algebra.RowCap)
	inner := e.Where
	if e.Of.Owned() {
		if _, err := w.block(workBlock{root: &c.Of, of: e.Of, where: c.Where, ahead: ScanRow}); err != nil {
			return nil, nil, err
		}
		met = big.NewInt(1)
		if c.Active() {
			met = big.NewInt(c.Rows)
		}
	} else {
		if err := w.small(c.Of, inner); err != nil {
			return nil, nil, err
		}
		met = w.publicMatches(c.Of, inner, top)
	}
	per, more, err := w.expr(inner, asValue, effort{})
	if err != nil {
		return nil, nil, err
	}
	cost = new(big.Int).Mul(met, per.Add(per, big.NewInt(PairRow)))
	return cost, met.Add(met, more.Mul(more, met)), nil
}

// publicMatches is how many rows of public tables EXISTS looks at. As a value it is a query of its own for each row, which may read all of
// them.
func (w *workload) publicMatches(n algebra.FromItem, where algebra.Expr, top bool) *big.Int {
	best, rests := mostRows(n)
	for _, x := range algebra.BoundConjuncts(where) {
		in, out, ok := algebra.IsEquality(x, n)
		if f := algebra.PlainField(in); top && !algebra.ReadsAround(n) && ok && f != nil && algebra.SameEquality(f.Type, out.Typ()) {
			if rows, counts := equalRows(n, f); rows.Cmp(best) < 0 {
				best, rests = rows, counts
			}
		}
	}
	w.facts.Count(rests...)
	return best
}

// LookupRow is what it costs to find a row in the hash table of IN, in ns.
const LookupRow = 1000

// hashedRows is how many rows of a public query PostgreSQL surely keeps in a hash table, in the 4 MB that it takes for one: those of IN are
// short.
const hashedRows = 1 << 14

// inRows is the work of IN (query) for one row: to look in a hash table, or along a list that is too long for one.
func (w *workload) inRows(e algebra.InRows, at standing) (cost, met *big.Int, err error) {
	met = big.NewInt(1)
	if e.Of.Owned() {
		from := e.From
		if _, err := w.block(workBlock{root: &from, of: e.Of, where: e.Where, ahead: ScanRow}); err != nil {
			return nil, nil, err
		}
	} else if err := w.small(e.From, e.Where); err != nil {
		return nil, nil, err
	} else if rows, counts := mostRows(e.From); !hashes(e) || at == asValue && rows.Cmp(big.NewInt(hashedRows)) > 0 ||
		comparesNull(e, at) && !Large(e.From) {
		met = rows
		w.facts.Count(counts...)
	}
	return big.NewInt(LookupRow + PairRow*(scalar.ClampInt64(met)-1)), met, nil
}

// comparesNull reports whether IN compares several values of which one may be NULL: a row that is equal at the other places then makes it
// NULL, and PostgreSQL goes along all rows of its hash table to find one. Over large tables, and as a condition of WHERE, IN is a join.
func comparesNull(e algebra.InRows, at standing) bool {
	nulls, joins := false, at == asCondition
	for i, x := range e.X {
		nulls = nulls || !algebra.IsSolid(x) || !e.Outputs[i].NotNull()
		joins = joins && algebra.SameEquality(x.Typ(), e.Outputs[i].Type)
	}
	return len(e.X) > 1 && nulls && !joins
}

// hashes reports whether PostgreSQL has a hash for each equality of IN: it has none for times of two kinds, and goes along all rows.
func hashes(e algebra.InRows) bool {
	for i, x := range e.X {
		if a, b := x.Typ(), e.Outputs[i].Type; a != b && a.IsTime() && b.IsTime() {
			return false
		}
	}
	return true
}

// window is the work of a window function, or of an aggregate of single people, for one row: rows that its frame holds where it is computed
// anew for each, else one.
func (w *workload) window(e algebra.Aggregate, of effort) (cost, met *big.Int) {
	met = big.NewInt(1)
	if e.Over != nil && !domain.Incremental(e) {
		rows := int64(unknownRows)
		if of.unit != nil && of.unit.IsInt64() {
			rows = scalar.ClampInt64(new(big.Int).Mul(of.unit, of.rows))
		}
		met = big.NewInt(max(1, e.Over.Most(rows)))
	}
	return new(big.Int).Mul(met, big.NewInt(WindowRow)), met
}

// WindowRow is what a row costs a window function, or a sort by what it orders, in ns.
const WindowRow = 1500

// PriceOf is what an operation costs by itself, in ns; of one that has no price, more than anything may cost.
func PriceOf(e algebra.Expr) int64 {
	switch e := e.(type) {
	case algebra.Column:
		return columnPrice + leafPrice(e)
	case algebra.Bought:
		return columnPrice + int64(algebra.BoolIndex(e.MayBeNull))*priceOf("test")
	case algebra.Constant, algebra.KeyRef, algebra.EstimatorRef, algebra.Computed:
		return columnPrice
	case algebra.In:
		x := SizeOf(e.X)
		each := priceOf("= "+KindOfType(e.X.Typ()), x, x)
		if n := int64(len(e.List)); n <= 8 || e.Not { // one after another
			return MultiplyCapped(each, n)
		}
		return each + priceOf(listKey(e), sizesOf(algebra.Children(e))...)
	case algebra.Not, algebra.Is, algebra.Choice, algebra.Collate:
		return priceOf("test")
	case algebra.Like:
		x := SizeOf(e.X)
		x.Bytes = min(x.Bytes, MaxMatched)
		return priceOf(CostKey(e), x, SizeOf(e.Pattern))
	default:
		return priceOf(CostKey(e), sizesOf(algebra.Children(e))...) + asFloats(e)
	}
}

// listKey names what it costs to look along a list, for each of its constants: the array of them is built for each row, as it is no
// constant of a statement that is planned without its arguments (clauses.c, convert_saop_to_hashed). Values that fit into no register are
// copied.
func listKey(e algebra.In) string {
	for _, x := range algebra.Children(e) {
		switch KindOfType(algebra.CarrierOf(x)) {
		case "text", "numeric", "interval":
			return "in long list"
		}
	}
	return "in list"
}

// asFloats is what it costs to compare a numeric with a float, beside the comparison: PostgreSQL casts it.
func asFloats(e algebra.Expr) int64 {
	cost, floats := int64(0), false
	switch e := e.(type) {
	case algebra.Binary, algebra.Distinct:
		for _, x := range algebra.Children(e) {
			if t := algebra.CarrierOf(x); t == catalog.Numeric {
				cost += priceOf("cast numeric float", SizeOf(x))
			} else {
				floats = floats || scalar.IsFloat(t)
			}
		}
	}
	return cost * int64(algebra.BoolIndex(floats))
}

// leafPrice is what it costs to read a column beside its value: a character(n) is cast to text wherever it is read, and a numeric whose
// type fixes no digits loses zeros at its end.
func leafPrice(e algebra.Column) int64 {
	switch _, fixed := algebra.Scale(e); {
	case e.Of.Type == catalog.Char:
		return priceOf("cast text text", SizeOf(e))
	case e.Of.Type == catalog.Numeric && !fixed:
		return priceOf("trim_scale numeric", SizeOf(e))
	default:
		return 0
	}
}

const columnPrice = 20

// dearest is the dearest operation that was met, and what would make it cheaper.
type dearest struct {
	ns     int64
	remedy string
}

// leastDear is what an operation costs at least, in ns, that is worth a word: a tenth of what a row may.
const leastDear = MaxRowWork / 10

func (d *dearest) meets(e algebra.Expr, ns int64) {
	if ns <= max(d.ns, leastDear) {
		return
	}
	if _, list := e.(algebra.In); list {
		d.ns, d.remedy = ns, "compare with fewer constants"
		return
	}
	key := CostKey(e)
	p, ok := domain.PriceNamed(key)
	if d.ns, d.remedy = ns, p.Remedy(); !ok {
		d.remedy = "leave out " + strings.TrimSpace(key) + ", whose time nothing bounds"
	}
}

// unpriced is what an operation without a price costs.
const unpriced = math.MaxInt64

func priceOf(key string, operands ...domain.Size) int64 {
	p, ok := domain.PriceNamed(key)
	if !ok {
		return unpriced
	}
	return p.Of(operands)
}

// KindOfType names what types cost alike.
func KindOfType(t catalog.Type) string {
	switch {
	case t.IsInteger():
		return "integer"
	case scalar.IsFloat(t):
		return "float"
	case t == catalog.Numeric:
		return "numeric"
	case t.IsText() || t == scalar.UnknownType:
		return "text"
	case t.IsTime():
		return "time"
	case t == scalar.IntervalType:
		return "interval"
	default:
		return "other"
	}
}

// CostKey is the name of an operation in the table of costs.
func CostKey(e algebra.Expr) string {
	operand := func(x algebra.Expr) string { return KindOfType(algebra.CarrierOf(x)) }
	switch e := e.(type) {
	case algebra.Not, algebra.Is, algebra.Choice, algebra.Collate:
		return "test"
	case algebra.Negate:
		return "- " + operand(e.X)
	case algebra.Distinct:
		return "= " + operand(e.L)
	case algebra.Binary:
		switch e.Op {
		case syntax.And, syntax.Or:
			return "test"
		case syntax.Eq, syntax.Ne:
			return "= " + dearer(operand(e.L), operand(e.R))
		case syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
			return "< " + dearer(operand(e.L), operand(e.R))
		default: // arithmetic, below
		}
		l, r := operand(e.L), operand(e.R)
		if slices.Contains([]string{"time", "interval"}, l) || slices.Contains([]string{"time", "interval"}, r) {
			return "+ time"
		}
		return string(e.Op) + " " + KindOfType(e.T)
	case algebra.Guard:
		return "clamp " + operand(e.X)
	case algebra.Like:
		switch {
		case e.Regex:
			return "~"
		case e.CaseInsensitive:
			return "ILIKE"
		default:
			return "LIKE"
		}
	case algebra.Cast:
		return "cast " + operand(e.X) + " " + KindOfType(e.T)
	case algebra.Call:
		kind := KindOfType(e.T)
		if len(e.Args) > 0 {
			kind = operand(e.Args[0])
			for _, x := range e.Args {
				if operand(x) == "time" || operand(x) == "interval" {
					kind = "time"
				}
			}
		}
		return strings.ToLower(e.Name) + " " + kind
	default:
		return "?"
	}
}

// dearer is the kind of which a comparison of two kinds is.
func dearer(l, r string) string {
	for _, kind := range []string{"numeric", "text", "float"} {
		if l == kind || r == kind {
			return kind
		}
	}
	return l
}
