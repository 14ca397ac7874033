package algebra

import (
	"slices"

	"noisegate.example/catalog"
)

// KeyList asks which tuples of keys rows can have: the different values of Keys over all rows of the inputs that meet Where.
type KeyList struct {
	Scans    []*Scan        // of public tables
	Declared []DeclaredKeys // each stands for itself, beside all others
	Where    Expr           // over columns of both; nil: none
	Keys     []*Field       // of either
}

// List gives the tuples of a list; nil: it is not to be had. It is not known while nobody has asked for it.
type List func(KeyList) (tuples [][]catalog.Key, known bool)

// DeclaredKeys are the keys of a column of a table of people, as a policy declares them.
type DeclaredKeys struct {
	Of   *Field
	Keys []catalog.Key
}

// Leave keeps the keys that a list leaves, and remembers which there were without it.
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
	for _, keys := range [][]GroupKey{q.Keys, q.Within} {
		for _, k := range keys {
			if k.Unlisted != nil {
				return true
			}
		}
	}
	return false
}

// Unlisted is the query over all keys that it would have without lists.
func (q *BoundQuery) Unlisted() *BoundQuery {
	own := *q
	own.Keys, own.Within = unlisted(q.Keys), unlisted(q.Within)
	own.Blocks = nil
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
