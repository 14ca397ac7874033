package sqlrewrite

import (
	"math/big"
	"slices"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// What rows cost beside what is computed of them, in ns: to be read; to be met by a row of the other side of a join; to be chosen by a cap; to
// be counted where each is a unit; to be sorted, grouped by unit and counted. TestCostsAreMeasured measures them, as those of costs.
const (
	scanRow    = 400
	pairRow    = 200
	cappedRow  = 2500
	flatRow    = 150
	groupedRow = 500
)

// price is what one evaluation of a builtin costs at most: ns at any value, and thousandths of it for each byte of a text or digit of a numeric.
type price struct{ ns, perUnit int64 }

// unmeasured is the price of what is not in the table: more than any that is.
const unmeasuredPrice = 5_000

// expr is what an expression costs for one row, in ns, and how many rows that row meets in it. At the top of a condition EXISTS is a join.
func (w *workload) expr(e expr, top bool, of effort) (cost, met *big.Int, err error) {
	cost, met = new(big.Int), new(big.Int)
	var operands []expr
	switch e := e.(type) {
	case nil:
		return cost, met, nil
	case exists:
		return w.exists(e, top)
	case inRows:
		if cost, met, err = w.inRows(e, top); err != nil {
			return cost, met, err
		}
		operands = e.x
	case unitAggregate:
		cost, met = w.window(e, of)
		operands = e.children()
	default:
		cost.SetInt64(priceOf(e))
		operands = children(e)
	}
	for _, x := range operands {
		c, m, err := w.expr(x, top && isAnd(e), of)
		if err != nil {
			return cost, met, err
		}
		cost.Add(cost, c)
		met.Add(met, m)
	}
	return cost, met, nil
}

func isAnd(e expr) bool {
	b, ok := e.(binary)
	_, negated := e.(not)
	return negated || ok && b.op == syntax.And
}

// exists is the work of EXISTS for one row. Where all that ties its rows to that row are equalities, PostgreSQL finds the first of them by a
// hash; else it looks at each of the rows that one equality leaves.
func (w *workload) exists(e exists, top bool) (cost, met *big.Int, err error) {
	c := e.from.(*rowCap)
	inner := e.where
	if e.of.owned() {
		if err := w.block(workBlock{root: &c.of, of: e.of, where: c.where, ahead: scanRow}); err != nil {
			return nil, nil, err
		}
		met = big.NewInt(1)
		if c.active() {
			met = big.NewInt(c.rows)
		}
	} else {
		met = w.publicMatches(c.of, inner, top)
	}
	per, more, err := w.expr(inner, false, effort{})
	if err != nil {
		return nil, nil, err
	}
	cost = new(big.Int).Mul(met, per.Add(per, big.NewInt(pairRow)))
	return cost, met.Add(met, more.Mul(more, met)), nil
}

// publicMatches is how many rows of public tables EXISTS looks at. As a value it is a query of its own for each row, which may read all of them.
func (w *workload) publicMatches(n fromItem, where expr, top bool) *big.Int {
	best, rests := mostRows(n)
	for _, x := range boundConjuncts(where) {
		in, out, ok := isEquality(x, n)
		if f := plainField(in); top && ok && f != nil && sameEquality(f.Type, out.typ()) {
			if rows, counts := equalRows(n, f); rows.Cmp(best) < 0 {
				best, rests = rows, counts
			}
		}
	}
	w.facts.count(rests...)
	return best
}

// lookupRow is what it costs to find a row in the hash table of IN, in ns.
const lookupRow = 1000

// hashedRows is how many rows of a public query PostgreSQL surely keeps in a hash table, in the 4 MB that it takes for one: those of IN are short.
const hashedRows = 1 << 14

// inRows is the work of IN (query) for one row: to look in a hash table, or along a list that is too long for one.
func (w *workload) inRows(e inRows, top bool) (cost, met *big.Int, err error) {
	met = big.NewInt(1)
	if e.of.owned() {
		from := e.from
		if err := w.block(workBlock{root: &from, of: e.of, where: e.where, ahead: scanRow}); err != nil {
			return nil, nil, err
		}
	} else if rows, counts := mostRows(e.from); !top && rows.Cmp(big.NewInt(hashedRows)) > 0 {
		met = rows
		w.facts.count(counts...)
	}
	return big.NewInt(lookupRow + pairRow*(clampInt64(met)-1)), met, nil
}

// window is the work of a window function, or of an aggregate of single people, for one row: rows that its frame holds where it is computed anew
// for each, else one.
func (w *workload) window(e unitAggregate, of effort) (cost, met *big.Int) {
	met = big.NewInt(1)
	if e.over != nil && !e.over.incremental(e) {
		rows := int64(unknownRows)
		if of.unit != nil && of.unit.IsInt64() {
			rows = clampInt64(new(big.Int).Mul(of.unit, of.rows))
		}
		met = big.NewInt(max(1, e.over.most(rows)))
	}
	return new(big.Int).Mul(met, big.NewInt(windowRow)), met
}

// windowRow is what a row costs a window function, or a sort by what it orders, in ns.
const windowRow = 1500

// incremental reports whether PostgreSQL computes a value from the one of the row before: the frame's start does not move, or what leaves the
// frame can be taken back. Of numerics without fixed digits it cannot always be.
func (w *unitWindow) incremental(e unitAggregate) bool {
	if e.isRank() || w.frame == nil || w.frame.start.kind == syntax.UnboundedPreceding || len(w.order) == 0 && w.frame.mode == syntax.Range {
		return true
	}
	switch e.name {
	case "count", "bool_or", "bool_and", "every":
		return true
	case "sum", "avg":
		_, fixed := scale(e.x)
		return e.x.typ().IsInteger() || carrierOf(e.x) == catalog.Numeric && fixed
	default:
		return false
	}
}

// priceOf is what an operation costs by itself.
func priceOf(e expr) int64 {
	switch e := e.(type) {
	case column, constant, keyRef, valueRef, computed:
		return columnPrice
	case in:
		p := named("= " + kindOfType(e.x.typ()))
		if n := int64(len(e.list)); n <= 8 || e.not { // one after another
			return p.of(e.x) * n
		}
		return p.of(e.x) + named("in list").of(e.x) // hashed, from version 14 on
	}
	p := named(costKey(e))
	most := int64(0)
	for _, x := range append(children(e), e) {
		most = max(most, sizeOf(x))
	}
	if _, ok := e.(like); ok {
		most = min(most, maxMatched)
	}
	return p.ns + (p.perUnit*most+999)/1000
}

const columnPrice = 20

func (p price) of(e expr) int64 { return p.ns + (p.perUnit*sizeOf(e)+999)/1000 }

// kindOfType names what types cost alike.
func kindOfType(t catalog.Type) string {
	switch {
	case t.IsInteger():
		return "integer"
	case isFloat(t):
		return "float"
	case t == catalog.Numeric:
		return "numeric"
	case t.IsText() || t == unknownType:
		return "text"
	case t.IsTime():
		return "time"
	case t == intervalType:
		return "interval"
	default:
		return "other"
	}
}

// costKey is the name of an operation in the table of costs.
func costKey(e expr) string {
	operand := func(x expr) string { return kindOfType(carrierOf(x)) }
	switch e := e.(type) {
	case not, is, choice, collate:
		return "test"
	case negate:
		return "- " + operand(e.x)
	case distinct:
		return "= " + operand(e.l)
	case binary:
		switch e.op {
		case syntax.And, syntax.Or:
			return "test"
		case syntax.Eq, syntax.Ne:
			return "= " + dearer(operand(e.l), operand(e.r))
		case syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
			return "< " + dearer(operand(e.l), operand(e.r))
		default: // arithmetic, below
		}
		l, r := operand(e.l), operand(e.r)
		if slices.Contains([]string{"time", "interval"}, l) || slices.Contains([]string{"time", "interval"}, r) {
			return "+ time"
		}
		return string(e.op) + " " + kindOfType(e.t)
	case guard:
		return "clamp " + operand(e.x)
	case like:
		switch {
		case e.regex:
			return "~"
		case e.caseInsensitive:
			return "ILIKE"
		default:
			return "LIKE"
		}
	case cast:
		return "cast " + operand(e.x) + " " + kindOfType(e.t)
	case call:
		kind := kindOfType(e.t)
		if len(e.args) > 0 {
			kind = operand(e.args[0])
			for _, x := range e.args {
				if operand(x) == "time" || operand(x) == "interval" {
					kind = "time"
				}
			}
		}
		return strings.ToLower(e.name) + " " + kind
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

// sizeOf is how many bytes a text, or digits a numeric, has at most.
func sizeOf(e expr) int64 {
	t := carrierOf(e)
	switch {
	case t.IsText():
		return longestText(e)
	case t == catalog.Numeric:
		if c, ok := e.(computed); ok && c.within != nil {
			return min(costDigits, extentDigits(c.within))
		}
		return columnDigits
	default:
		return 0
	}
}

// What digits of a numeric are at most, and of a column of them.
const (
	costDigits   = 600
	columnDigits = 60
)

func extentDigits(s *extent) int64 {
	whole := len(floor(s.reach()).Text(10))
	return int64(whole + s.scale)
}
