package verify

import (
	"math/big"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Time. RowWork bounds what one row of people takes in any SELECT that is charged to rows, and UnitWork what the rows of one unit take in
// all other SELECTs of the statement together, in ns. A SELECT is charged to rows where nothing limits how many rows a unit has, and
// where each of a unit's rows takes little: a cap on rows is no reason to allow each row less than without a cap.
//
//  1. A tuple takes what its expressions take, wherever the SELECT has them: in FROM's conditions, WHERE, outputs and the arguments of
//     aggregates and windows, and what it takes to read a row, to meet one, to group and to sort it.
//  2. An operation takes as long as its operands' sizes (value.Measure) say, by the formulas of docs/sql/work.md, "Prices".
//  3. A row of EXISTS or IN takes what that query's tuple takes, as often as relation/work.go says that one is met.
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

// Work is the time that one unit's rows take, in ns.
type Work struct {
	RowWork  *big.Int // of one row, in the dearest SELECT that is charged to rows; nil as derived: nothing bounds it
	UnitWork *big.Int // of one unit, in all other SELECTs
	AllWork  *big.Int // of one unit, in all SELECTs: where nothing bounds how many rows it has, of a hundred
}

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
	d.several = d.several || len(s.rel.Parts) > 1
	if len(s.rel.Units) == 0 || s.rel.Released != 0 {
		return // as in works
	}
	if d.several { // planned without its arguments, which are hashed else
		s.bill.add(s.bill.listed)
	}
	per := value.Capped(s.bill.ns, max(readRow, meetRow*int64(len(s.rel.Parts)-1)))
	if grouped {
		per = value.Capped(per, groupRow)
	}
	row, unit := s.rel.TuplesOfUnit(d.Proof)
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
	d.taken.RowWork = relation.Larger(d.taken.RowWork, ofRow)
	counted := new(big.Int).Mul(row, big.NewInt(countedRows))
	if several && unit.Cmp(counted) < 0 {
		counted = unit
	}
	charge(d.taken.AllWork, counted)
}

// works notes the work of a SELECT: the tuples of its FROM, with the rows that each of them meets inside.
func (s *scope) works() {
	if len(s.rel.Units) == 0 || s.rel.Released != 0 {
		return // public rows are read whatever units there are, and a piece has one row
	}
	s.d.work = bounded(s.d.work, times(s.rel.Work(s.d.Proof), s.meeting))
}

// met notes how many rows of an inner query one row of the outer one meets: in a join those with equal values, else all. A
// query that is written several times in one place is counted once.
func (s *scope) met(query int, inner *scope, joined bool) {
	query *= 2
	if joined {
		query++
	}
	if s.d.queries[query] {
		return
	}
	s.d.queries[query] = true
	if inner.rel.Once {
		refuse("EXISTS or IN over groups of public rows, which PostgreSQL may compute anew for each row of people")
	}
	n := inner.rel.Met(s.d.Proof, joined)
	if n != nil && n.IsInt64() && inner.bill != nil {
		s.bill.add(value.Product(n.Int64(), value.Capped(inner.bill.ns, meetRow)))
	}
	s.meets(times(n, inner.meeting))
}

// meets adds n to the rows that each tuple of a query meets.
func (s *scope) meets(n *big.Int) {
	if n == nil {
		s.d.work = nil
		return
	}
	s.meeting.Add(s.meeting, n)
}

// times counts n tuples, each with the rows that it meets inside.
func times(n, inside *big.Int) *big.Int {
	if n == nil {
		return nil
	}
	return new(big.Int).Mul(n, new(big.Int).Add(inside, big.NewInt(1)))
}

// bounded gives the larger of two bounds; nil: unbounded.
func bounded(a, b *big.Int) *big.Int {
	if a == nil || b == nil {
		return nil
	}
	return relation.Larger(a, b)
}

// slides notes the rows of a frame whose start moves, for an aggregate that PostgreSQL computes anew for each row. It can
// take back the rows that leave the frame from counts, booleans and sums that are exact in every order, and from no others.
func (s *scope) slides(name string, w *pgquery.WindowDef, x *run, args []*value.Value) {
	o := int(w.FrameOptions)
	anew := name == "min" || name == "max" || len(args) == 1 && args[0].Kind == value.Numeric && args[0].Scale < 0 && name != "count"
	if !anew || o&unboundedPreceding != 0 || len(x.order) == 0 && o&frameRange != 0 {
		return
	}
	most := s.rel.Rows(s.d.Proof, ids(x.partition), true)
	if o&frameRows != 0 && o&untilUnbounded == 0 {
		rows := big.NewInt(1)
		for _, end := range []struct {
			offset *pgquery.Node
			inward bool
		}{{w.StartOffset, o&startFollowing != 0}, {w.EndOffset, o&endPreceding != 0}} {
			if end.offset == nil {
				continue
			}
			n := s.expr(end.offset).Number().Num()
			if end.inward {
				n = new(big.Int).Neg(n)
			}
			rows.Add(rows, n)
		}
		if rows = relation.Larger(rows, big.NewInt(1)); most == nil || rows.Cmp(most) < 0 {
			most = rows
		}
	}
	s.meets(most)
}
