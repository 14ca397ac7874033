package algebra

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
)

// KeyList asks which tuples of keys rows can have: the distinct values of Keys over all rows of the inputs that meet Where.
type KeyList struct {
	Scans    []*Scan        // of public tables
	Sides    []KeySide      // of outer joins, each present or absent
	Declared []DeclaredKeys // each is an input, combined with all others
	Ranges   []KeyRange     // so is each of these
	Granules []KeyGranules  // and of these
	Where    Expr           // over columns of the inputs; nil: none
	Keys     []Expr         // over columns of the inputs
	Ends     bool           // not the tuples, but one of the least and the largest value of the only key, which a scan has
	// Stands maps columns of a table of people to the columns of a scan from which they take their keys together.
	Stands map[*Field]*Field
}

// Tables returns the scans of public tables that a list reads.
func (l KeyList) Tables() []*Scan {
	all := slices.Clone(l.Scans)
	for _, side := range l.Sides {
		all = append(all, side.Scans...)
	}
	return all
}

// KeySide are public tables that are all present or all absent: then their columns are NULL.
type KeySide struct {
	Scans []*Scan
	On    Expr // true where they are present; nil: no condition is known to be
}

// List gives lists to the queries of a statement.
type List struct {
	// Of returns the tuples of a list; nil: it is unavailable. known is false while nobody has asked for it. Without it none is asked for.
	Of     func(KeyList) (tuples [][]catalog.Key, known bool)
	Ranged bool // columns of public tables without bounds have those of their values, by a list
}

// DeclaredKeys are the keys of a column of a table of people, as a policy declares them.
type DeclaredKeys struct {
	Of   *Field
	Keys []catalog.Key
}

// KeyRange are all whole numbers or days between two bounds, as values of a column.
type KeyRange struct {
	Of          *Field
	First, Last int64 // days are those since 1970-01-01
	Null        bool  // so is NULL
}

// KeyGranules are times between two bounds, as values of a column: one of each granule, in which all parts are the same. Parts grow with
// the column, or fall.
type KeyGranules struct {
	Of          *Field
	First, Last string
	Null        bool // so is NULL
	Parts       []Expr
}

// Listed are the tuples of some keys of a query that can appear.
type Listed struct {
	Places []int           // among the keys, ascending
	Tuples [][]catalog.Key // each once, in the order of the keys
}

// ListOf returns the list that has a key, and its column there; -1: none has.
func (q *BoundQuery) ListOf(key int) (list, column int) {
	for i, l := range q.Listed {
		if at := slices.Index(l.Places, key); at >= 0 {
			return i, at
		}
	}
	return -1, -1
}

// LeaveTuples keeps, of the combinations of some keys, the tuples of a list.
func (q *BoundQuery) LeaveTuples(places []int, tuples [][]catalog.Key) {
	order := make([]map[catalog.Key]int, len(places))
	combinations := big.NewInt(1)
	for i, place := range places {
		order[i] = make(map[catalog.Key]int)
		for at, k := range q.Keys[place].Domain {
			order[i][k] = at
		}
		combinations.Mul(combinations, big.NewInt(int64(len(order[i]))))
	}
	var left [][]catalog.Key
	for _, t := range tuples {
		known := true
		for i, k := range t {
			_, declared := order[i][k]
			known = known && declared
		}
		if known {
			left = append(left, t)
		}
	}
	compare := func(a, b []catalog.Key) int {
		for i := range places {
			if c := order[i][a[i]] - order[i][b[i]]; c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortFunc(left, compare)
	left = slices.CompactFunc(left, func(a, b []catalog.Key) bool { return compare(a, b) == 0 })
	if combinations.Cmp(big.NewInt(int64(len(left)))) > 0 {
		q.Listed = append(q.Listed, Listed{places, left})
	}
}

// EachTuple visits the tuples of keys that appear, in the order of the keys, until a visit fails, and returns its error. Without keys there
// is one tuple, the empty one. A visitor may keep the tuple.
func (q *BoundQuery) EachTuple(visit func(keys []catalog.Key) error) error {
	n := len(q.Keys)
	if n == 0 {
		return visit([]catalog.Key{})
	}
	keys, next, end := make([]catalog.Key, n), make([]int, n), make([]int, n)
	begin := make([][2]int, n) // by key of a list: the range of its tuples that begin with the current keys up to it
	enter := func(at int) {
		switch list, column := q.ListOf(at); {
		case list < 0:
			next[at], end[at] = 0, len(q.Keys[at].Domain)
		case column == 0:
			next[at], end[at] = 0, len(q.Listed[list].Tuples)
		default:
			of := begin[q.Listed[list].Places[column-1]]
			next[at], end[at] = of[0], of[1]
		}
	}
	enter(0)
	for at := 0; at >= 0; {
		if next[at] == end[at] {
			at--
			continue
		}
		first := next[at]
		next[at]++
		if list, column := q.ListOf(at); list < 0 {
			keys[at] = q.Keys[at].Domain[first]
		} else {
			tuples := q.Listed[list].Tuples
			for keys[at] = tuples[first][column]; next[at] < end[at] && tuples[next[at]][column] == keys[at]; {
				next[at]++
			}
			begin[at] = [2]int{first, next[at]}
		}
		if at < n-1 {
			at++
			enter(at)
		} else if err := visit(slices.Clone(keys)); err != nil {
			return err
		}
	}
	return nil
}

// Leave keeps the keys that a list has, and stores in Unlisted those that there were before.
func (k *GroupKey) Leave(listed func(catalog.Key) bool) {
	left := make([]catalog.Key, 0, len(k.Domain))
	for _, d := range k.Domain {
		if listed(d) {
			left = append(left, d)
		}
	}
	if len(left) == len(k.Domain) {
		return
	}
	if k.Unlisted == nil {
		k.Unlisted = k.Domain
	}
	k.Domain = left
}

// FewerKeys reports whether a list left out keys of a query.
func (q *BoundQuery) FewerKeys() bool {
	if slices.ContainsFunc(q.Blocks, (*BoundQuery).FewerKeys) {
		return true
	}
	if len(q.Listed) > 0 {
		return true
	}
	for _, keys := range [][]GroupKey{q.Keys, q.Within} {
		for _, k := range keys {
			if k.Unlisted != nil {
				return true
			}
		}
	}
	return false
}

// Unlisted returns the query without lists, over all its keys.
func (q *BoundQuery) Unlisted() *BoundQuery {
	own := *q
	own.Keys, own.Within = unlisted(q.Keys), unlisted(q.Within)
	own.Listed, own.Blocks = nil, nil
	for _, block := range q.Blocks {
		own.Blocks = append(own.Blocks, block.Unlisted())
	}
	return &own
}

func unlisted(keys []GroupKey) []GroupKey {
	var all []GroupKey
	for _, k := range keys {
		if k.Unlisted != nil {
			k.Domain, k.Unlisted = k.Unlisted, nil
		}
		all = append(all, k)
	}
	return all
}
