package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Time. RowWork bounds what one row of people takes in any SELECT that is charged to rows, and UnitWork what the rows of one unit take in
// all other SELECTs of the statement together, in ns. A SELECT is charged to rows where nothing limits how many rows a unit has, and
// where each of a unit's rows takes little: a cap on rows is no reason to allow each row less than without a cap.
//
//  1. A tuple takes what its expressions take, wherever the SELECT has them: in FROM's conditions, WHERE, outputs and the arguments of
//     aggregates and windows, and what it takes to read a row, to meet one, to group and to sort it.
//  2. An operation takes as long as its operands' sizes (value.Measure) say, by the formulas of docs/sql/work.md, "Prices".
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

func (b *bill) add(ns int64) { b.ns = value.Capped(b.ns, ns) }

// What a tuple takes beside its expressions, in ns.
const (
	readRow  = 400
	meetRow  = 200
	groupRow = 500
)

// charge adds what a node takes to the tuple's bill, once however often it is looked at.
func (s *scope) charge(n *pgquery.Node, v *value.Value, operands []value.Measure) {
	if s.bill == nil || s.bill.seen[n] || v.Constant {
		return
	}
	s.bill.seen[n] = true
	if regex := value.Compiles(n, operands); regex != "" {
		s.d.compiled[regex] = true
	}
	ns, listed := s.d.Price(n, v, operands)
	s.bill.listed = value.Capped(s.bill.listed, listed)
	s.bill.add(ns)
}

// What calls take by the sizes of their operands: a price of table.go is one of these.

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
	if len(s.rel.units) == 0 || s.rel.released != 0 {
		return // as in works
	}
	if d.several { // planned without its arguments, which are hashed else
		s.bill.add(s.bill.listed)
	}
	per := value.Capped(s.bill.ns, max(readRow, meetRow*int64(len(s.rel.parts)-1)))
	if grouped {
		per = value.Capped(per, groupRow)
	}
	row, unit := s.rel.tuplesOfUnit(d.Proof)
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
func (r *relation) tuplesOfUnit(d *Proof) (row, unit *big.Int) {
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
