// Package verify proves what a statement for the protected database claims. It knows PostgreSQL's parse tree and the catalog; it does not
// know the rewriter, and shares no line with it.
//
// It reads the SQL text that is about to be sent, parses it with PostgreSQL's own grammar, and derives bottom-up, node by node, how far one
// privacy unit can move the integers that the statement returns. What no rule covers is refused: a node, a field of a node, a function, an
// overload, a type. docs/sql has the lemmas; each file here is one rule, and its comment is the proof.
//
// # Map
//
//	internal/tree      nodes of the parse tree, every field of them read or refused
//	internal/ranges    ranges of numbers
//	internal/calendar  ranges of times and intervals
//	internal/public    queries that read nothing private
//	internal/copying   the shape of statements that fill a prepared copy
//	internal/value     facts about values and expressions
//	internal/relation  rows with owners; how many of them agree in given columns
//	internal/release   how far one unit moves aggregates over many (Lemmas 2c, 3, 3a and 4)
//	expression.go      expressions, and CASE, which narrows
//	join.go            FROM
//	present.go         what is not NULL, and the outer joins that are inner ones by that
//	block.go           SELECT: conditions, outputs, DISTINCT, UNION ALL
//	grouping.go        GROUP BY within one unit, over many and over pieces; aggregates
//	semijoin.go        EXISTS and IN
//	window.go          windows among one unit's rows, and ties
//	contribution.go    what cuts sums (Lemma 2)
//	sorted.go          what PostgreSQL sorts rows of people by
//	total.go           what a unit adds to all groups together (Lemma 2b)
//	histogram.go       ranks and modes (Lemma 5)
//	prepared.go        bounded copies of tables (Lemmas 13 and 14)
//	cost.go            what the rows of one unit take
package verify

import (
	"errors"
	"fmt"
	"math/big"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/public"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/release"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Claim is what a statement's integers are said to move by, at most, when all rows of one privacy unit come or go. Bounds that are nil are
// not claimed.
type Claim struct {
	Keys      int        // leading output columns that are group keys
	Histogram Histogram  // what the last two columns are
	Groups    *big.Int   // L0: in how many groups integers move
	PerGroup  []*big.Int // Linf of each value column; of a histogram, one number (see [Histogram])
	Spread    []*big.Int // of each value column: how far apart the moves of two groups are at most
	Norms     []Norm
	Joint     []Joint
	// PairsPerRow bounds how many tuples of a SELECT one row of a unit is charged for, with what they meet in EXISTS, IN and windows
	// (relation/work.go).
	PairsPerRow *big.Int
	Work
	Pins  []Pin         // what will hold while the statement runs
	Zones []string      // the time zones whose files are read before it
	moves release.Moves // as they were derived
	steps *steps.Count  // what planning the text that the statement is made of has taken
}

// Counted is the claim, proven as a part of what planning takes.
func (c Claim) Counted(n *steps.Count) Claim {
	c.steps = n
	return c
}

// Norm bounds the vector of the moves of several value columns over all groups, for mechanisms that noise them together.
type Norm struct {
	Columns       []int // places among the value columns, from 0
	L1, L2Squared *big.Int
}

// Pin, PinnedColumn and Check hold of a table while a statement runs. Joint bounds several columns together, and Histogram says what the
// rows of a group are.
type (
	Pin          = relation.Pin
	PinnedColumn = relation.PinnedColumn
	Check        = relation.Check
	Joint        = release.Joint
	Histogram    = release.Histogram
)

// The kinds of histogram.
const Plain, Together, Each = release.Plain, release.Together, release.Each

// Any is an argument whose type alone is used, like that of an int64: what is proven holds for every text that PostgreSQL can read as the
// type.
type Any = value.Any

// Refusal says why a statement is not proven: a shape of SQL, never a value.
type Refusal = tree.Refusal

// Statement proves a claim about a statement, or says why it cannot: nil means proven.
func Statement(sql string, args []any, on *catalog.Snapshot, c Claim) error {
	_, err := Prove(sql, args, on, c)
	return err
}

// Prove is [Statement], with what was derived.
func Prove(sql string, args []any, on *catalog.Snapshot, c Claim) (Claim, error) {
	prove := func(n *steps.Count) (got Claim, err error) {
		defer tree.Caught(&err)
		c.steps = n
		derived := derive(sql, parse(sql), args, on, c)
		return *derived, derived.covers(c)
	}
	if c.steps != nil {
		return prove(c.steps)
	}
	return steps.Bounded(new(steps.Count), prove)
}

// Derive is what can be proven of a statement with as many keys and the kind of histogram that the claim has, under the claim's pins. Tests
// hold it against what is claimed, which should be no larger.
func Derive(sql string, args []any, on *catalog.Snapshot, c Claim) (got Claim, err error) {
	defer tree.Caught(&err)
	return *derive(sql, parse(sql), args, on, c), nil
}

func parse(sql string) *pgquery.SelectStmt {
	parsed, err := pgquery.Parse(sql)
	if err != nil {
		refuse("PostgreSQL's grammar does not read it")
	}
	return tree.Only(parsed)
}

func derive(sql string, s *pgquery.SelectStmt, args []any, on *catalog.Snapshot, c Claim) *Claim {
	d := newDerivation(sql, args, on, c.Pins, c.steps)
	d.Zones = c.Zones
	r := d.query(s, &scope{d: d, number: d.Number()})
	if r.Released == 0 {
		refuse("the rows are not aggregated over units")
	}
	if d.Unread() { // PostgreSQL would not know its type: the statement fails after its charge
		refuse("an argument that the text does not name")
	}
	m := d.released(r).Moves(d.Terms, c.Keys, c.Histogram)
	compiling := big.NewInt(int64(len(d.compiled)) * compilesRegex)
	d.taken.UnitWork.Add(d.taken.UnitWork, compiling)
	d.taken.AllWork.Add(d.taken.AllWork, compiling)
	return &Claim{Keys: c.Keys, Histogram: c.Histogram, Groups: m.Groups, PerGroup: m.PerGroup, Spread: m.Spread, PairsPerRow: d.work,
		Work: d.taken, Pins: c.Pins, Zones: c.Zones, moves: *m}
}

// covers reports whether what was derived is enough for a claim.
func (got *Claim) covers(c Claim) error {
	var errs []error
	exceeds := func(what string, have, claimed *big.Int) {
		if claimed == nil {
			errs = append(errs, &Refusal{Why: what + " is not claimed"})
		} else if have == nil || have.Cmp(claimed) > 0 {
			errs = append(errs, &Refusal{Why: what + " is above the claim"})
		}
	}
	exceeds("the number of groups (L0)", got.Groups, c.Groups)
	if len(c.PerGroup) != len(got.PerGroup) {
		return &Refusal{Why: "the number of value columns is another"}
	}
	for i := range got.PerGroup {
		exceeds(fmt.Sprintf("value %d (Linf)", i), got.PerGroup[i], c.PerGroup[i])
	}
	if len(c.Spread) > len(got.Spread) {
		return &Refusal{Why: "there are fewer value columns than spreads"}
	}
	for i, spread := range c.Spread {
		if spread != nil {
			exceeds(fmt.Sprintf("the spread of value %d", i), got.Spread[i], spread)
		}
	}
	if c.PairsPerRow != nil {
		exceeds("the number of rows that one row meets", got.PairsPerRow, c.PairsPerRow)
	}
	errs = append(errs, c.Within(got.Work))
	for _, n := range c.Norms {
		l1, l2 := got.Norm(n.Columns)
		exceeds("L1", l1, n.L1)
		exceeds("L2", l2, n.L2Squared)
	}
	for _, j := range c.Joint {
		have := got.moves.Joint(j)
		if j.L2Squared == nil {
			errs = append(errs, &Refusal{Why: "the joint L2 is not claimed"})
		} else if have == nil || have.Cmp(j.L2Squared) > 0 {
			errs = append(errs, &Refusal{Why: "the joint L2 is above the claim"})
		}
	}
	return errors.Join(errs...)
}

// Within reports whether what a statement takes, as it was derived, is within a claim; nil means it is.
func (c Claim) Within(taken Work) error {
	above := func(taken, claimed *big.Int) bool { return claimed != nil && (taken == nil || taken.Cmp(claimed) > 0) }
	switch {
	case above(taken.RowWork, c.RowWork):
		return &Refusal{Why: "what one row takes is above the claim"}
	case above(taken.UnitWork, c.UnitWork):
		return &Refusal{Why: "what one unit takes is above the claim"}
	case above(taken.AllWork, c.AllWork):
		return &Refusal{Why: "what one unit takes in all SELECTs is above the claim"}
	default:
		return nil
	}
}

// Norm is L1 and L2² of the vector of the moves of several value columns over all groups, as they were derived; nil where they are not
// bounded.
func (got *Claim) Norm(columns []int) (l1, l2 *big.Int) { return got.moves.Norm(columns) }

// Public proves that a query reads public tables of a snapshot and its arguments only; without a snapshot, its arguments only.
func Public(sql string, on *catalog.Snapshot) error { return public.Prove(sql, on) }
