// Package release derives how far one privacy unit moves the integers of a statement that aggregates over many units. It knows values, and
// how many rows of one unit agree in given columns. It does not know the grammar of queries, nor what is claimed of them.
package release

import (
	"math/big"
	"slices"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// The release: aggregates over rows of many units, in groups. Rows belong to one unit each, and what a unit adds to an integer is added to
// what others add. With n the most rows that a unit has in one group, and [A, B] what a row adds:
//
//  1. count and sum move within n·[min(A, 0), max(B, 0)];
//  2. count(DISTINCT x): the values of one unit's rows of the group are at most n; taking them out of the union of all units' sets takes at
//     most n values from it (**Lemma 4**), and one where x follows from the unit.
//
// The unit's column must not be NULL on any row: the rows of nobody are left out.
//
// *n* is relation.rows of the unit and the group's keys: unique keys, GROUP BY keys, and place <= G (**Lemma 3**, window.go). *L0*: 1
// without keys; else the least of: the rows that a unit has in all; the number of different key tuples that a ranking leaves; the product
// of the numbers of values that conditions (text = ANY (array)) leave to the keys, where each key has one. *Keys* are exactly the GROUP
// BY keys, each as text, so that groups and rows of the result are the same. Equal keys have one text, as equal values are identical
// (Value.Same); others are refused.
//
// **Lemma 3a, pieces.** Where the release is UNION ALL of releases, added up by all their keys, and each two have conditions on the unit
// alone of which one is the other's contrary (= and <>, < and >=; the unit is not NULL), a unit is in one piece at most: it moves what
// that piece moves. Otherwise the moves of all pieces are added.
//
// *Example.* sum of numbers in [-600, 600] over rows of which a unit has 2 in a group moves by 1,200, and by 0 in groups where it has
// none; with place <= 3 for its groups L0 is 3, or 2 where the key is one of two texts.

// Release is a query that aggregates over many units.
type Release struct {
	Rows    *relation.Owned // that it adds up; nil: it adds up pieces
	Keys    []int
	Domains map[int]*big.Int // how many values conditions leave to keys
	Columns []relation.Column
	Below   *relation.Relation // it is the different tuples of the keys of these rows, without an aggregate; nil: it is not
	pieces  []piece
	groups  *big.Int // of pieces: L0 before domains; nil: not known
}

// Histogram says what the rows of a group are.
type Histogram int

// The kinds of histogram.
const (
	Plain    Histogram = iota // one row a group, of integers
	Together                  // a row for each candidate, and how many rows it has: all of a group together move by PerGroup[0] at most
	Each                      // the same, where each moves by at most PerGroup[0]
)

// Moves is how far the integers of a release move, at most, when all rows of one privacy unit come or go.
type Moves struct {
	Groups           *big.Int   // L0: in how many groups integers move
	PerGroup, Spread []*big.Int // Linf of each value column, and how far apart the moves of two groups are
	totals           []*big.Int // of each value column in all groups together; nil: nothing beyond Groups times PerGroup
	products
}

// Moves derives what a release with so many keys moves by.
func (x *Release) Moves(t *value.Terms, keys int, h Histogram) *Moves {
	if x.Below != nil || keys < 0 || keys > len(x.Columns) {
		refuse("more keys than columns, or nothing but keys")
	}
	shown := x.Columns[:keys]
	if h != Plain {
		if len(x.Columns) != keys+2 || x.Rows == nil {
			refuse("a histogram of other columns")
		}
		shown = x.Columns[:keys+1]
	}
	var ids []int // the keys of a group, without the candidate
	var id int
	left := x.Keys
	for i, c := range shown {
		id, left = keyOf(t, c.Value, left)
		if i < keys {
			ids = append(ids, id)
		}
	}
	if len(left) > 0 {
		refuse("a key of a group is not shown")
	}
	got := &Moves{Groups: x.count(ids)}
	for _, c := range x.Columns[len(shown):] {
		if c.Value.Kind != value.Text || c.Value.Sum == nil {
			refuse("a value that is not a sum over units, as text")
		}
		move, together := x.move(c.Value.Sum, ids)
		if h == Together {
			move = together
		}
		if !move.Finite() || h != Plain && move.Lo.Sign() < 0 {
			refuse("a value without bounds on what a unit adds")
		}
		move = ranges.Between(ranges.Floored(move.Lo), ranges.Ceiled(move.Hi))
		got.PerGroup = append(got.PerGroup, move.Most().Num())
		if h != Plain { // a group has several numbers: no vector has one of each
			continue
		}
		got.totals = append(got.totals, x.total(c.Value.Sum))
		got.Spread = append(got.Spread, new(big.Rat).Sub(move.Hi, move.Lo).Num())
		if x.Rows != nil && len(x.Keys) == 0 {
			got.products = append(got.products, productOf(t, c.Value.Sum, x.Rows.Rows()))
		}
	}
	return got
}

// keyOf is the key that an output shows as text, and those that are left.
func keyOf(d *value.Terms, v *value.Value, keys []int) (id int, left []int) {
	if v.Kind != value.Text || v.Sum != nil || v.Vague {
		refuse("a key that is not shown as text")
	}
	at := slices.Index(keys, v.ID)
	if t := d.Term(v.ID); t.Op == "text" {
		if of := slices.Index(keys, t.Args[0]); of >= 0 {
			at = of
		}
	}
	if at < 0 {
		refuse("an output in a key's place that is none, or is shown twice")
	}
	return keys[at], slices.Delete(slices.Clone(keys), at, at+1)
}

// move is what one unit adds to an integer of one group; together: to all those of the rows that share ids.
func (x *Release) move(t *value.Tally, ids []int) (move, together ranges.Span) {
	if t.Moves != nil {
		return t.Moves.WithZero(), ranges.Span{}
	}
	if n := x.Rows.Rows(x.Keys...); t.Once {
		move = t.Each.WithZero()
	} else if n != nil {
		move = t.Each.WithZero().Times(ranges.Point(new(big.Rat).SetInt(n)))
	}
	if n := x.Rows.Rows(ids...); n != nil {
		together = t.Each.WithZero().Times(ranges.Point(new(big.Rat).SetInt(n)))
	}
	if t.Share != nil && t.Share.Over >= 0 && slices.Equal(x.Rows.Numbers(), t.Share.Of) && x.Rows.Solid[t.Share.Over] &&
		x.Rows.Within(t.Share.Partition, ids...) {
		together = ranges.Between(ranges.Zero, t.Share.Most)
	}
	return move, together
}

// total is what one unit adds to an integer of all groups together (Lemma 2b); nil: nothing bounds it but the number of groups.
func (x *Release) total(t *value.Tally) *big.Int {
	if x.Rows == nil {
		return nil
	}
	if t.Share == nil && t.Moves == nil && t.Each.Finite() {
		// Each of the unit's rows is in one group at most, and adds to it what a row adds.
		if n := x.Rows.Rows(); n != nil {
			return ranges.Ceiled(new(big.Rat).Mul(t.Each.WithZero().Most(), new(big.Rat).SetInt(n))).Num()
		}
	}
	if t.Share == nil || t.Share.Over >= 0 || !slices.Equal(x.Rows.Numbers(), t.Share.Of) || !x.Rows.Within(t.Share.Partition) {
		return nil
	}
	return ranges.Ceiled(t.Share.Most).Num()
}

// Norm is L1 and L2² of the vector of the moves of several value columns over all groups; nil where they are not bounded.
func (got *Moves) Norm(columns []int) (l1, l2 *big.Int) {
	l1, l2 = new(big.Int), new(big.Int)
	if got.Groups == nil || len(columns) == 0 {
		return nil, nil
	}
	for at, i := range columns {
		if i < 0 || i >= len(got.totals) || slices.Contains(columns[:at], i) {
			return nil, nil
		}
		total := new(big.Int).Mul(got.PerGroup[i], got.Groups)
		if got.totals[i] != nil && got.totals[i].Cmp(total) < 0 {
			total = got.totals[i]
		}
		one, two := ranges.Norm(got.PerGroup[i], total)
		l1.Add(l1, one)
		l2.Add(l2, two)
	}
	return l1, l2
}

// count is L0 for the given keys.
func (x *Release) count(ids []int) *big.Int {
	if len(ids) == 0 {
		return big.NewInt(1)
	}
	least := x.groups
	take := func(n *big.Int) {
		if n != nil && (least == nil || n.Cmp(least) < 0) {
			least = n
		}
	}
	if x.Rows != nil {
		take(x.Rows.Rows())
		take(x.Rows.Ranked(ids))
	}
	product := big.NewInt(1)
	for _, id := range ids {
		n := x.Domains[id]
		if n == nil {
			return least
		}
		product.Mul(product, n)
	}
	take(product)
	return least
}

// piece is one side of UNION ALL.
type piece struct {
	forms  []string       // conditions on the unit alone
	moves  []*ranges.Span // by column; nil: a key
	groups *big.Int       // L0; nil: not known
}

// piecesOf are those of a release: itself, if it has none.
func (x *Release) piecesOf() []piece {
	switch {
	case x.Below != nil:
		refuse("different tuples of many units as a piece")
	case x.Rows != nil:
		p := piece{forms: x.Rows.Forms, groups: x.groupsOf()}
		for _, c := range x.Columns {
			p.moves = append(p.moves, x.pieceMove(c.Value))
		}
		return []piece{p}
	case len(x.pieces) == 0:
		refuse("a total of pieces as a piece")
	}
	return x.pieces
}

// Union gives UNION ALL of releases.
func Union(d *value.Terms, a, b *Release) *Release {
	union := &Release{pieces: append(slices.Clone(a.piecesOf()), b.piecesOf()...)}
	apart := true
	for i, p := range union.pieces {
		for _, q := range union.pieces[:i] {
			apart = apart && tree.Contrary(p.forms, q.forms)
		}
	}
	union.groups = new(big.Int)
	for _, p := range union.pieces {
		switch {
		case p.groups == nil || union.groups == nil:
			union.groups = nil
		case apart:
			union.groups = relation.Larger(union.groups, p.groups)
		default:
			union.groups = new(big.Int).Add(union.groups, p.groups)
		}
	}
	for i := range a.Columns {
		x, y := a.Columns[i].Value, b.Columns[i].Value
		v := d.Make(value.Common(x.Kind, y.Kind), d.Fresh())
		v.Nulls = []int{v.ID}
		if x.Sum == nil && y.Sum == nil {
			if x.Kind != y.Kind || !x.Same || !y.Same || x.Scale != y.Scale && !value.AlwaysSame(x.Kind) {
				refuse("pieces with keys of different types")
			}
			v.Same, v.Scale = true, x.Scale
			union.Keys = append(union.Keys, v.ID)
			union.Columns = append(union.Columns, relation.Column{Name: a.Columns[i].Name, Value: v})
			continue
		}
		m := ranges.Point(ranges.Zero)
		for _, p := range union.pieces {
			switch {
			case p.moves[i] == nil:
				refuse("pieces of different forms")
			case apart:
				m = m.Hull(p.moves[i].WithZero())
			default:
				m = m.Plus(p.moves[i].WithZero())
			}
		}
		v.Sum = &value.Tally{Moves: &m}
		union.Columns = append(union.Columns, relation.Column{Name: a.Columns[i].Name, Value: v})
	}
	return union
}

// pieceMove is what a unit adds to a column of a piece; nil for keys, which must be the piece's.
func (x *Release) pieceMove(v *value.Value) *ranges.Span {
	if v.Sum == nil {
		if !slices.Contains(x.Keys, v.ID) {
			refuse("a piece's column that is neither a key nor a sum")
		}
		return nil
	}
	m, _ := x.move(v.Sum, x.Keys)
	if !m.Finite() {
		refuse("a piece without bounds on what a unit adds")
	}
	return &m
}

func (x *Release) groupsOf() *big.Int {
	shown := make(map[int]bool)
	for _, c := range x.Columns {
		if c.Value.Sum == nil {
			shown[c.Value.ID] = true
		}
	}
	for _, key := range x.Keys { // one value may be two keys
		if !shown[key] {
			refuse("a piece's key that is not shown")
		}
	}
	return x.count(x.Keys)
}

// Total gives the sums of pieces by all their keys, under conditions on these; its columns are to come.
func (x *Release) Total(keys []int, domains map[int]*big.Int) *Release {
	if !slices.Equal(slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(x.Keys))) {
		refuse("pieces that are not added up by all their keys")
	}
	return &Release{Keys: keys, Domains: domains, groups: x.groups}
}

// refuse ends a derivation.
func refuse(format string, args ...any) { tree.Refuse(format, args...) }
