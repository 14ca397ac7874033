package verify

import (
	"math"
	"math/big"
	"slices"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Time. RowWork bounds what one row of people takes in any SELECT that is charged to rows, and UnitWork what the rows of one unit take in
// all other SELECTs of the statement together, in ns. A SELECT is charged to rows where nothing limits how many rows a unit has, and
// where each of a unit's rows takes little: a cap on rows is no reason to allow each row less than without a cap.
//
//  1. A tuple takes what its expressions take, wherever the SELECT has them: in FROM's conditions, WHERE, outputs and the arguments of
//     aggregates and windows, and what it takes to read a row, to meet one, to group and to sort it.
//  2. An operation takes as long as its operands' sizes (sizes.go) say, by the formulas of docs/sql/work.md, "Prices".
//  3. A row of EXISTS or IN takes what that query's tuple takes, as often as work.go says that one is met.
//  4. One row is charged for so many tuples (Lemma 12); a unit for as many as that of each row that it has in the part that they are
//     charged to.
//  5. AllWork adds up all SELECTs. Of one that is charged to rows it counts as many rows as a unit may have, and at most countedRows, as
//     no claim can be made of any number of rows. So a unit of n rows takes at most AllWork, times n/countedRows where it has more.
//
// A regular expression is compiled once, when the first row meets it: that is of UnitWork.
//
// What a plain query in FROM computes is charged where it is computed; how often it is computed again is the planner's to bound.
//
// *Example.* people p CROSS JOIN shops s WHERE p.name || s.shop_id::text LIKE '%x%', with 341 shops and a person in each row: UnitWork is
// 341 times what a tuple takes.

// bill is what one tuple of a SELECT takes.
type bill struct {
	ns     int64
	listed int64 // more, where texts are compared with each element of arrays
	seen   map[*pgquery.Node]bool
}

func newBill() *bill { return &bill{seen: make(map[*pgquery.Node]bool)} }

func (b *bill) add(ns int64) { b.ns = capped(b.ns, ns) }

func capped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func product(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// What a tuple takes beside its expressions, in ns.
const (
	plain     = 40 // an operation on numbers that fit into a register, a test, a choice
	readRow   = 400
	meetRow   = 200
	groupRow  = 500
	windowRow = 1500
	numberRow = 2500

	textCompared = 20 // a text with an element of an array

	readDigits = 2 * tree.ShortDigits // of a numeric, that take no time to be read
	shortTakes = 500                  // to tell a short numeric, and to write it in one form
)

// charge adds what a node takes to the tuple's bill, once however often it is looked at.
func (s *scope) charge(n *pgquery.Node, v *value, operands []measure) {
	if s.bill == nil || s.bill.seen[n] || v.constant {
		return
	}
	s.bill.seen[n] = true
	if _, op := calledBy(n); len(operands) == 2 && strings.Contains(op, "~") {
		s.d.compiled[op+operands[1].text] = true
	}
	ns := takes(n, v, operands)
	if n.GetColumnRef() != nil && v.id >= 0 && s.d.terms[v.id].op == shortForm {
		ns += shortTakes // PostgreSQL writes the form out wherever it is named
	}
	if n.GetAExpr().GetKind() == pgquery.A_Expr_Kind_AEXPR_OP_ANY {
		s.bill.listed = capped(s.bill.listed, max(0, product(textCompared, operands[1].items)-ns))
	}
	s.bill.add(ns)
}

// takes is what one evaluation of a node takes, in ns.
func takes(n *pgquery.Node, v *value, operands []measure) int64 {
	at := func(i int) measure {
		if i < len(operands) {
			return operands[i]
		}
		return measure{}
	}
	a, b := at(0), at(1)
	switch e := n.GetNode().(type) {
	case *pgquery.Node_ColumnRef:
		if long := v.longest[0] + v.longest[1]; v.kind == numeric && long > readDigits { // it is copied, and read from elsewhere if it is longer
			return capped(plain/4, long/2)
		}
		return plain / 4
	case *pgquery.Node_CaseExpr:
		if tree.Short(e.CaseExpr) != nil {
			return shortTakes
		}
		return plain
	case *pgquery.Node_TypeCast:
		return castTakes(a, v.kind)
	case *pgquery.Node_AExpr:
		switch e.AExpr.Kind {
		case pgquery.A_Expr_Kind_AEXPR_LIKE, pgquery.A_Expr_Kind_AEXPR_ILIKE:
			return likeTakes(a, b, e.AExpr.Kind == pgquery.A_Expr_Kind_AEXPR_ILIKE)
		case pgquery.A_Expr_Kind_AEXPR_OP:
			return operators[tree.Operator(e.AExpr.Name)].ns(operands)
		case pgquery.A_Expr_Kind_AEXPR_IN:
			if count := int64(len(operands)) - 1; count <= 8 || tree.Operator(e.AExpr.Name) == "<>" {
				return product(count, comparing("=", a, a))
			}
			total := comparing("=", a, a)
			for _, o := range operands[1:] {
				if isText(a.kind) || a.kind == numeric || a.kind == interval || o.kind == numeric {
					total = capped(total, 60+o.length()/10)
				} else {
					total = capped(total, 16)
				}
			}
			return total
		case pgquery.A_Expr_Kind_AEXPR_OP_ANY:
			return 300 + a.bytes
		default:
			return comparing("=", a, b)
		}
	case *pgquery.Node_MinMaxExpr:
		total := int64(0)
		for i := range operands[min(1, len(operands)):] {
			total = capped(total, 100+5*operands[i+1].length())
		}
		return total
	case *pgquery.Node_FuncCall:
		return callTakes(e.FuncCall, operands)
	default:
		return plain
	}
}

func callTakes(f *pgquery.FuncCall, operands []measure) int64 {
	name := tree.Builtin(f.Funcname)
	switch price := functions[name].ns; {
	case f.Over != nil && name == "row_number":
		return numberRow
	case f.Over != nil:
		return windowRow
	case isAggregate(name):
		return plain
	case price != nil:
		return price(operands)
	default:
		return ordinary(operands)
	}
}

func thousandths(n int64) int64 { return capped(n, 999) / 1000 }

func castTakes(a measure, to kind) int64 {
	switch {
	case a.kind == to:
		return 0
	case isText(to) && isText(a.kind):
		return 200 + 6*a.bytes
	case isText(to):
		return 500 + 4*a.length()
	case a.kind == numeric && isFloat(to):
		return 200 + 10*a.length()
	case isNumber(to) && to != numeric && a.kind != numeric:
		return plain
	default:
		return 500
	}
}

// perComparison is what it takes LIKE to compare a byte.
const perComparison = 7

func likeTakes(a, b measure, folded bool) int64 {
	times := b.bytes // of a pattern that is not known
	if b.read {
		times = depthOf(b.text, folded)
	}
	if folded {
		return 1000 + 20*(a.bytes+b.bytes) + product(a.bytes*3/2*perComparison, 1+times)
	}
	return 200 + product(a.bytes*perComparison, 1+times)
}

func comparing(op string, a, b measure) int64 {
	switch {
	case isText(a.kind) && (op == "=" || op == "<>"):
		return 200 + a.bytes + b.bytes
	case isText(a.kind):
		return 200 + 5*(a.bytes+b.bytes)
	case isFloat(a.kind) && b.kind == numeric || a.kind == numeric && isFloat(b.kind):
		return 400 + 10*(a.length()+b.length())
	case a.kind == numeric || b.kind == numeric:
		return 200 + (a.length()+b.length())/2
	case a.kind == interval:
		return 500
	default:
		return plain
	}
}

// What calls take by the sizes of their operands: a price of table.go is one of these.

// lengths is a price of so many ns, and some for each byte or digit of all operands.
func lengths(ns, each int64) func([]measure) int64 {
	return func(operands []measure) int64 { return ns + each*lengthOf(operands) }
}

func lengthOf(operands []measure) (length int64) {
	for _, o := range operands {
		length += o.length()
	}
	return length
}

// ordinary is the price of a function without one of its own.
func ordinary(operands []measure) int64 {
	if isText(operands[0].kind) {
		return 200 + 5*lengthOf(operands)
	}
	return 200 + 2*lengthOf(operands)
}

func hashes(operands []measure) int64 { return 100 + lengthOf(operands)/2 }

func looksUp(o []measure) int64 { return 300 + product(textCompared, o[0].items) }

func formats(o []measure) int64 { return 1000 + 100*o[1].bytes }

func joins(o []measure) int64 { return 200 + thousandths(200*(o[0].bytes+o[1].bytes)) }

func matches(o []measure) int64 {
	states := int64(unknownBytes)
	if o[1].read {
		states = statesOf(o[1].text)
	}
	return 2000 + 2*o[0].bytes + product(o[0].bytes/4*5+5, states)
}

// calculates is the price of an operator on numerics, and on what is none.
func calculates(numerics func(a, b measure) int64) func([]measure) int64 {
	return func(o []measure) int64 {
		a, b := o[0], o[1]
		switch {
		case a.kind == interval, b.kind == interval, isTime(a.kind), isTime(b.kind):
			return 500
		case a.kind != numeric && b.kind != numeric:
			return plain
		default:
			return numerics(a, b)
		}
	}
}

func adds(a, b measure) int64 { return 200 + 2*(a.length()+b.length()) }

func multiplies(a, b measure) int64 {
	return 500 + thousandths(500*product(a.fours(), b.fours())) + a.length() + b.length()
}

func divides(whole bool) func(a, b measure) int64 {
	return func(a, b measure) int64 {
		return 500 + product(4*quotientFours(a, b, whole), b.fours()) + a.length() + b.length()
	}
}

func divTakes(o []measure) int64 {
	if o[0].kind != numeric && o[1].kind != numeric {
		return 100
	}
	return divides(true)(o[0], o[1])
}

func bucketsTake(operands []measure) int64 {
	wide, numerics := measure{whole: 11}, false
	for _, o := range operands {
		wide.whole, wide.scale, numerics = max(wide.whole, o.whole+11), max(wide.scale, o.scale), numerics || o.kind == numeric
	}
	if !numerics {
		return 100
	}
	return 1000 + product(4*quotientFours(wide, wide, false), wide.fours()) + lengthOf(operands)
}

func trims(operands []measure) int64 {
	cut := int64(1)
	if len(operands) > 1 {
		cut = max(1, operands[1].bytes)
	}
	return 500 + 2*lengthOf(operands) + product(5*operands[0].bytes, cut)
}

func finds(o []measure) int64 {
	depth := max(1, o[1].bytes)
	if o[1].read {
		depth = 1 + needleOf(o[1].text)
	}
	return 500 + 2*lengthOf(o) + product(o[0].bytes, depth)
}

// littleOfRow is what a row may take, in ns, without being charged to its unit: what it may take where nothing bounds how many its unit
// has.
const littleOfRow = 40_000

// countedRows is the number of rows that a unit is taken to have where a SELECT is charged to rows.
const countedRows = 100

// compilesRegex is what it takes to compile a regular expression, in ns.
const compilesRegex = 40_000

// bills adds what the rows of a SELECT take to what the statement does.
func (s *scope) bills(grouped bool) {
	d := s.d
	d.several = d.several || len(s.rel.parts) > 1
	if len(s.rel.units) == 0 || s.rel.released != nil {
		return // as in works
	}
	if d.several { // planned without its arguments, which are hashed else
		s.bill.add(s.bill.listed)
	}
	per := capped(s.bill.ns, max(readRow, meetRow*int64(len(s.rel.parts)-1)))
	if grouped {
		per = capped(per, groupRow)
	}
	row, unit := s.rel.tuplesOfUnit(d)
	var ofRow *big.Int
	if row != nil {
		ofRow = new(big.Int).Mul(row, big.NewInt(per))
	}
	several := unit != nil && row != nil && unit.Cmp(row) > 0 && ofRow.Cmp(big.NewInt(littleOfRow)) <= 0
	charge := func(account, tuples *big.Int) { account.Add(account, new(big.Int).Mul(tuples, big.NewInt(per))) }
	if unit != nil && !several {
		charge(d.taken.UnitWork, unit)
		charge(d.taken.AllWork, unit)
		return
	}
	if ofRow == nil || d.taken.RowWork == nil {
		d.taken.RowWork = nil
		return
	}
	d.taken.RowWork = bigger(d.taken.RowWork, ofRow)
	counted := new(big.Int).Mul(row, big.NewInt(countedRows))
	if several && unit.Cmp(counted) < 0 {
		counted = unit
	}
	charge(d.taken.AllWork, counted)
}

// tuplesOfUnit is how many tuples of a FROM one row of people is charged for, and how many one unit, by the best part; nil: any number.
func (r *relation) tuplesOfUnit(d *derivation) (row, unit *big.Int) {
	row = r.work(d)
	for _, p := range r.parts {
		n := r.tuples(d, p)
		if p.public || n == nil {
			continue
		}
		for _, o := range r.outer {
			if !o.holds(p) {
				continue
			}
			alone := o.left.work(d)
			if alone == nil {
				n = nil
				break
			}
			n = bigger(n, alone)
		}
		of := &relation{parts: []*part{p}, edges: r.edges, fixed: r.fixed, solid: r.solid, roots: r.roots}
		if len(r.parts) == 1 {
			of.whole = r.whole
		}
		if rows := of.rows(d, nil, true); n != nil && rows != nil {
			if total := new(big.Int).Mul(n, rows); unit == nil || total.Cmp(unit) < 0 {
				unit = total
			}
		}
	}
	for _, c := range r.cuts {
		known := r.ofUnit()
		rows := (&part{limits: c.limits}).least(d, known)
		for _, p := range c.parts {
			p.choose(known)
		}
		n := r.chosen(d, slices.DeleteFunc(slices.Clone(r.parts), func(p *part) bool { return isAmong(p, c.parts) }), known)
		beside := func(p *part) bool { // rows of others stay where they meet none of these
			return p.public || slices.ContainsFunc(r.outer, func(o outerJoin) bool { return o.holds(p) })
		}
		if rows >= 0 && n != nil && !slices.ContainsFunc(c.parts, beside) {
			if n.Mul(n, big.NewInt(rows)); unit == nil || n.Cmp(unit) < 0 {
				unit = n
			}
		}
	}
	if whole := r.rows(d, nil, true); whole != nil && (unit == nil || whole.Cmp(unit) < 0) {
		unit = whole
	}
	return row, unit
}
