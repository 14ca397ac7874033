package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

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

// released is a query that aggregates over many units.
type released struct {
	rel     *relation.Relation // of the rows, before; nil: of pieces
	domains map[int]*big.Int
	keys    []int
	columns []relation.Column
	forms   []string // conditions on the unit alone
	pieces  []piece
	groups  *big.Int // of pieces: L0 before domains; nil: not known
	merged  bool     // it is the different tuples of keys (sorted.go)
}

// releasing numbers a release.
func (d *derivation) releasing(x *released) int {
	d.releases = append(d.releases, x)
	return len(d.releases)
}

func (s *scope) released(columns []relation.Column, domains map[int]*big.Int) *released {
	r := s.rel
	if len(r.Roots) == 0 || !slices.ContainsFunc(r.Roots, func(id int) bool { return r.Solid[id] }) {
		refuse("rows without a unit are not left out")
	}
	return &released{rel: r, domains: domains, keys: s.group.order, columns: columns, forms: r.Forms}
}

// claim is what a release moves by.
func (x *released) claim(d *relation.Proof, keys int, h Histogram) *Claim {
	if x.merged || keys < 0 || keys > len(x.columns) {
		refuse("more keys than columns, or nothing but keys")
	}
	shown := x.columns[:keys]
	if h != Plain {
		if len(x.columns) != keys+2 || x.rel == nil {
			refuse("a histogram of other columns")
		}
		shown = x.columns[:keys+1]
	}
	var ids []int // the keys of a group, without the candidate
	var id int
	left := x.keys
	for i, c := range shown {
		id, left = keyOf(d, c.Value, left)
		if i < keys {
			ids = append(ids, id)
		}
	}
	if len(left) > 0 {
		refuse("a key of a group is not shown")
	}
	got := &Claim{Groups: x.count(d, ids), from: d}
	for _, c := range x.columns[len(shown):] {
		if c.Value.Kind != value.Text || c.Value.Sum == nil {
			refuse("a value that is not a sum over units, as text")
		}
		move, together := x.move(d, c.Value, ids)
		if h == Together {
			move = together
		}
		if !move.Finite() || h != Plain && move.Lo.Sign() < 0 {
			refuse("a value without bounds on what a unit adds")
		}
		if !move.Lo.IsInt() || !move.Hi.IsInt() {
			move = move.Mapped(func(r *big.Rat) *big.Rat {
				if r.Sign() < 0 {
					return ranges.Floored(r)
				}
				return ranges.Ceiled(r)
			})
		}
		got.PerGroup = append(got.PerGroup, move.Most().Num())
		got.totals = append(got.totals, x.total(d, c.Value))
		got.products = append(got.products, x.productsOf(d, c.Value))
		got.Spread = append(got.Spread, new(big.Rat).Sub(move.Hi, move.Lo).Num())
	}
	return got
}

// keyOf is the key that an output shows as text, and those that are left.
func keyOf(d *relation.Proof, v *value.Value, keys []int) (id int, left []int) {
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
func (x *released) move(d *relation.Proof, v *value.Value, ids []int) (move, together ranges.Span) {
	t := v.Sum
	if t.Moves != nil {
		return t.Moves.WithZero(), ranges.Span{}
	}
	if n := x.rel.Rows(d, x.keys, true); t.Once {
		move = t.Each.WithZero()
	} else if n != nil {
		move = t.Each.WithZero().Times(ranges.Point(new(big.Rat).SetInt(n)))
	}
	if n := x.rel.Rows(d, ids, true); n != nil {
		together = t.Each.WithZero().Times(ranges.Point(new(big.Rat).SetInt(n)))
	}
	if t.Share != nil && t.Share.Over >= 0 && slices.Equal(x.rel.Numbers(), t.Share.Of) && x.rel.Solid[t.Share.Over] &&
		x.rel.Within(d, t.Share.Partition, ids) {
		together = ranges.Between(ranges.Zero, t.Share.Most)
	}
	return move, together
}

// count is L0 for the given keys.
func (x *released) count(d *relation.Proof, ids []int) *big.Int {
	if len(ids) == 0 {
		return big.NewInt(1)
	}
	least := x.groups
	take := func(n *big.Int) {
		if n != nil && (least == nil || n.Cmp(least) < 0) {
			least = n
		}
	}
	if x.rel != nil {
		take(x.rel.Rows(d, nil, true))
		take(x.rel.Ranked(d, ids))
	}
	product := big.NewInt(1)
	for _, id := range ids {
		n := x.domains[id]
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
func (x *released) piecesOf(d *relation.Proof) []piece {
	if x.rel == nil {
		if len(x.pieces) == 0 {
			refuse("a total of pieces as a piece")
		}
		return x.pieces
	}
	if x.merged {
		refuse("different tuples of many units as a piece")
	}
	p := piece{forms: x.forms, groups: x.groupsOf(d)}
	for _, c := range x.columns {
		p.moves = append(p.moves, x.pieceMove(d, c.Value))
	}
	return []piece{p}
}

// pieces is UNION ALL of releases.
func (d *derivation) pieces(l, r *relation.Relation) *relation.Relation {
	if l.Released == 0 || r.Released == 0 {
		refuse("UNION ALL of aggregates over many units with other rows")
	}
	a, b := d.releases[l.Released-1], d.releases[r.Released-1]
	union := &released{pieces: append(slices.Clone(a.piecesOf(d.Proof)), b.piecesOf(d.Proof)...)}
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
	for i := range a.columns {
		x, y := a.columns[i].Value, b.columns[i].Value
		v := d.Make(value.Common(x.Kind, y.Kind), d.Fresh())
		v.Nulls = []int{v.ID}
		if x.Sum == nil && y.Sum == nil {
			if x.Kind != y.Kind || !x.Same || !y.Same || x.Scale != y.Scale && !value.AlwaysSame(x.Kind) {
				refuse("pieces with keys of different types")
			}
			v.Same, v.Scale = true, x.Scale
			union.keys = append(union.keys, v.ID)
			union.columns = append(union.columns, relation.Column{Name: a.columns[i].Name, Value: v})
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
		union.columns = append(union.columns, relation.Column{Name: a.columns[i].Name, Value: v})
	}
	return &relation.Relation{Columns: union.columns, Solid: make(map[int]bool), Released: d.releasing(union),
		Units: []*value.Unit{{}}}
}

// pieceMove is what a unit adds to a column of a piece; nil for keys, which must be the piece's.
func (x *released) pieceMove(d *relation.Proof, v *value.Value) *ranges.Span {
	if v.Sum == nil {
		if !slices.Contains(x.keys, v.ID) {
			refuse("a piece's column that is neither a key nor a sum")
		}
		return nil
	}
	m, _ := x.move(d, v, x.keys)
	if !m.Finite() {
		refuse("a piece without bounds on what a unit adds")
	}
	return &m
}

func (x *released) groupsOf(d *relation.Proof) *big.Int {
	shown := make(map[int]bool)
	for _, c := range x.columns {
		if c.Value.Sum == nil {
			shown[c.Value.ID] = true
		}
	}
	if len(shown) != len(x.keys) {
		refuse("a piece's key that is not shown")
	}
	return x.count(d, x.keys)
}

// total adds pieces up.
func (s *scope) total(q *pgquery.SelectStmt, domains map[int]*big.Int) *relation.Relation {
	below := s.d.releases[s.rel.Released-1]
	if below.rel != nil || q.WhereClause != nil {
		refuse("aggregates over aggregates over many units")
	}
	order := slices.Clone(s.group.order)
	slices.Sort(order)
	keys := slices.Clone(below.keys)
	slices.Sort(keys)
	if !slices.Equal(order, keys) {
		refuse("pieces that are not added up by all their keys")
	}
	up := &released{domains: domains, keys: s.group.order, groups: below.groups}
	for _, n := range q.TargetList {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			refuse("an output that no rule covers")
		}
		up.columns = append(up.columns, relation.Column{Name: tree.NameOf(t), Value: s.piecewise(t.Val)})
	}
	return &relation.Relation{Columns: up.columns, Solid: s.rel.Solid, Released: s.d.releasing(up), Units: s.rel.Units}
}

// piecewise is an output over pieces: a key as text, or the sum of a column as text.
func (s *scope) piecewise(n *pgquery.Node) *value.Value {
	c := n.GetTypeCast()
	k, precision, _ := value.TypeOf(c.GetTypeName())
	if c == nil || k != value.Text || precision != 0 {
		refuse("an output over pieces that is no text")
	}
	f := c.Arg.GetFuncCall()
	if f == nil {
		v := s.d.Cast(s.expr(c.Arg), value.Text)
		if !v.Whole || v.Sum != nil {
			refuse("an output over pieces that is neither a key nor a sum")
		}
		return v
	}
	tree.Reads(f, "Funcname", "Args", "Funcformat")
	if tree.Builtin(f.Funcname) != "sum" || len(f.Args) != 1 || f.Funcformat != pgquery.CoercionForm_COERCE_EXPLICIT_CALL {
		refuse("an aggregate over pieces that is no sum")
	}
	in := *s
	in.inside = true
	v := in.expr(f.Args[0])
	if !v.Moved() || f.Args[0].GetColumnRef() == nil {
		refuse("a sum over pieces of what is no sum")
	}
	sum := *v
	sum.ID, sum.Kind = s.d.Fresh(), value.Text
	return &sum
}
