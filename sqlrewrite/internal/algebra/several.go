package algebra

import (
	"slices"

	"noisegate.example/sqlrewrite/syntax"
)

// A statement may have several release blocks. Each is a release of its own; what is computed from all of them runs after the noise. A row
// of the answer has an interval where it is known which released row of each block it stems from.

// Bare is a release block by itself: its keys and its values, without what is computed from them.
func (q *BoundQuery) Bare() *BoundQuery {
	bare := *q
	bare.Outputs, bare.Having, bare.OrderBy, bare.Limit, bare.Offset = nil, nil, nil, nil, 0
	for i, k := range q.Keys {
		bare.Outputs = append(bare.Outputs, Output{Name: k.Name, Expr: KeyRef{Index: i, Name: k.Name, T: k.X.Typ()}})
	}
	for i, v := range q.Estimators {
		ref := EstimatorRef{Index: i, T: v.T, Chosen: q.Statistics[v.Of[0]].Chooses()}
		bare.Outputs = append(bare.Outputs, Output{Name: v.Name, Expr: ref})
	}
	return &bare
}

// Offsets are how many keys and values the blocks before a block have.
func Offsets(blocks []*BoundQuery, at int) (keys, estimators int) {
	for _, q := range blocks[:at] {
		keys, estimators = keys+len(q.Keys), estimators+len(q.Estimators)
	}
	return keys, estimators
}

// Shifted is an expression over the keys and values of one block as one over those of all blocks.
func Shifted(e Expr, keys, estimators int) Expr {
	switch e := e.(type) {
	case KeyRef:
		e.Index += keys
		return e
	case EstimatorRef:
		e.Index += estimators
		return e
	case Subquery: // its rows are its own
		return e
	default:
		return Map(e, func(x Expr) Expr { return Shifted(x, keys, estimators) })
	}
}

// BlocksOf are the blocks whose keys or values an expression over several names.
func (q *BoundQuery) BlocksOf(e Expr) (found []int) {
	for _, e := range Parts(e) {
		for at := range q.Blocks {
			keys, estimators := Offsets(q.Blocks, at)
			switch e := e.(type) {
			case KeyRef:
				if e.Index >= keys && e.Index < keys+len(q.Blocks[at].Keys) {
					found = append(found, at)
				}
			case EstimatorRef:
				if e.Index >= estimators && e.Index < estimators+len(q.Blocks[at].Estimators) {
					found = append(found, at)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Carry is the item of FROM that has the number of a block's released row.
type Carry struct {
	Block int
	Leaf  *Leaf
}

// Carries are those of a query over several blocks; none where its rows are made of several others. The rows of UNION ALL have the numbers
// of their own side alone, and count with united.
func (q *Query) Carries(united bool) []Carry {
	if q.Block || q.Set != nil || q.Distinct || q.Grouped {
		return nil
	}
	return carriesOf(q.From, united)
}

func carriesOf(n FromItem, united bool) (all []Carry) {
	switch n := n.(type) {
	case *Derived:
		for _, block := range n.Parts[0].Carried(united) {
			all = append(all, Carry{block, &n.Leaf})
		}
	case *Joined:
		all = append(carriesOf(n.Left, united), carriesOf(n.Right, united)...)
	}
	return all
}

// Carried are the blocks of which a row of a query has the number of a released row, where it stems from one.
func (q *Query) Carried(united bool) (blocks []int) {
	switch {
	case q.Block:
		return []int{q.BlockAt}
	case q.Set != nil && q.Set.All && q.Set.Kind == syntax.Union && united:
		return append(q.Set.Left.Carried(true), q.Set.Right.Carried(true)...)
	}
	for _, c := range q.Carries(united) {
		if !slices.Contains(blocks, c.Block) {
			blocks = append(blocks, c.Block)
		}
	}
	return blocks
}

// OneRow reports whether a query over several blocks has one row, which is that of a block without keys.
func (q *Query) OneRow(blocks []*BoundQuery) bool {
	if q.Block {
		b := blocks[q.BlockAt]
		return len(b.Keys) == 0 && b.Having == nil && b.Limit == nil && b.Offset == 0
	}
	if q.Set != nil || q.Grouped || q.Where != nil || q.Limit != nil || q.Offset > 0 {
		return false
	}
	d, ok := q.From.(*Derived)
	return ok && d.Parts[0].OneRow(blocks)
}

// Telling is how it is known which released row of a block a row of the answer stems from.
type Telling int

// The ways.
const (
	Untold  Telling = iota // it is not known
	ByRow                  // the row has its number, unless there is none
	OnlyRow                // the block has one row, which is there for each row of the answer
)

// Tellings are those of the blocks of a statement; same says of each block which one releases the same, itself or one before it.
//
// Of equal blocks with keys, and of a block that is read twice, a row of the answer may have several rows: then none is told.
func (q *BoundQuery) Tellings(same []int) []Telling {
	uses := make([]int, len(q.Blocks)) // in FROM, and in queries whose rows are not followed
	q.countUses(q.Post, uses)
	carried := q.Post.Carried(true)
	all := make([]Telling, len(q.Blocks))
	for at, block := range q.Blocks {
		together := 0
		for other := range uses {
			if same[other] == same[at] {
				together += uses[other]
			}
		}
		switch keyed := len(block.Keys) > 0; {
		case together == 0 && !keyed:
			all[at] = OnlyRow
		case slices.Contains(carried, at) && uses[at] == 1 && (!keyed || together == 1):
			all[at] = ByRow
		}
	}
	return all
}

// countUses adds the uses of blocks in a query; those that are the one row of a value in an expression are none.
func (q *BoundQuery) countUses(l *Query, uses []int) {
	var expr func(Expr)
	expr = func(e Expr) {
		if e == nil {
			return
		}
		if s, ok := e.(Subquery); ok && !(s.Kind == ScalarSub && s.Query.OneRow(q.Blocks)) {
			q.countUses(s.Query, uses)
		}
		for _, child := range Children(e) {
			expr(child)
		}
	}
	if l.Block {
		b := q.Blocks[l.BlockAt]
		uses[l.BlockAt]++
		for _, out := range b.Outputs {
			expr(out.Expr)
		}
		expr(b.Having)
		for _, o := range b.OrderBy {
			expr(o.Expr)
		}
		return
	}
	if l.Set != nil {
		q.countUses(l.Set.Left, uses)
		q.countUses(l.Set.Right, uses)
		return
	}
	var item func(FromItem)
	item = func(n FromItem) {
		switch n := n.(type) {
		case *Derived:
			q.countUses(n.Parts[0], uses)
		case *Joined:
			item(n.Left)
			item(n.Right)
			expr(n.On)
		}
	}
	item(l.From)
	for _, e := range slices.Concat(l.Results(), l.Keys, l.On, []Expr{l.Where, l.Having}) {
		expr(e)
	}
	for _, o := range l.OrderBy {
		expr(o.Expr)
	}
}
