// Package identity names questions and what is released of them: two that mean the same have one name, which is stored with what was
// released. It knows the algebra as it was bound, before lowering. It does not know how statements are printed.
package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Parts decide an answer, or the law of its releases.
type Parts struct {
	Query    *algebra.BoundQuery
	Bounding stability.Bounding
	Snapshot *catalog.Snapshot
	Facts    []string   // of the tables that are read
	Units    []string   // of each statistic, what one unit adds to it at most, and what one of its integers is in the answer
	Laws     []string   // of each statistic
	Keys     string     // the law by which private keys are shown; "" for none
	Options  []string   // of the request
	Bought   [][32]byte // the names of the releases whose values the block takes, by their places; nil: none
	// Blocks has the names of the questions of several blocks, from which the query's outputs are computed; nil: it is one.
	Blocks [][32]byte
}

// Release names what a block releases, at its price: all releases of one name have one law. order has the places of the block's keys, and
// of its statistics, in an order that all releases of the name share.
func Release(p Parts) (name [32]byte, order [2][]int) {
	laws := make([]string, len(p.Laws))
	for i, law := range p.Laws {
		laws[i] = p.Units[i] + " " + law
	}
	n := p.named("release")
	n.add(p.Keys)
	return n.block(p, laws, false)
}

// Block names what a block releases at any price, in the order in which it has keys and statistics.
func Block(p Parts) [32]byte {
	name, _ := p.named("block").block(p, p.Units, true)
	return name
}

// Question names an answer, at its price, with what is computed from its releases and with the names of its outputs.
func Question(p Parts) [32]byte {
	var n name
	n.begin("question", p.Snapshot)
	n.add(fmt.Sprint(p.Snapshot.Version), string(p.Snapshot.Digest[:]))
	if slices.ContainsFunc(p.Snapshot.Tables, func(t *catalog.Table) bool { return t.Copy != nil }) { // numbers of versions may begin anew
		n.add("data version", p.Snapshot.DataVersion)
	}
	n.list(p.Options)
	n.add(fmt.Sprint(len(p.Blocks)))
	for _, block := range p.Blocks {
		n.add(string(block[:]))
	}
	n.add(string(algebra.EncodeOutputs(p.Query)))
	if p.Blocks != nil || p.Query.Source == nil {
		return n.sum()
	}
	n.bought(p)
	n.bounding(p)
	name, _ := n.block(p, make([]string, len(p.Query.Statistics)), true)
	return name
}

// Sums names the released sums of a query's statistics over its rows; the options define how their factors are multiplied.
func Sums(what string, p Parts) [32]byte {
	n := p.named(what)
	n.list(p.Options)
	name, _ := n.block(p, make([]string, len(p.Query.Statistics)), true)
	return name
}

// name has the texts that are hashed, each after its length.
type name []byte

func (n *name) add(all ...string) {
	for _, s := range all {
		*n = append(binary.AppendUvarint(*n, uint64(len(s))), s...)
	}
}

func (n *name) list(all []string) {
	n.add(fmt.Sprint(len(all)))
	n.add(all...)
}

func (n *name) sum() [32]byte { return sha256.Sum256(*n) }

func (n *name) begin(kind string, on *catalog.Snapshot) {
	n.add("noisegate identity 2", kind, on.Dataset)
}

// named begins the name of a block.
func (p Parts) named(kind string) *name {
	n := new(name)
	n.begin(kind, p.Snapshot)
	n.add(p.Snapshot.DataVersion)
	n.list(p.Facts)
	n.bought(p)
	n.bounding(p)
	return n
}

// bought adds the releases whose values a block takes, and which of their values those are. A block that takes none keeps its name.
func (n *name) bought(p Parts) {
	for i, first := range p.Bought {
		of := p.Query.Bought[i]
		n.add("value released first", string(first[:]), fmt.Sprint(of.Estimator), of.Name)
	}
}

// bounding adds how the rows of a unit are bounded. The ranks of a copy that leave none out are no bound.
func (n *name) bounding(p Parts) {
	b := p.Bounding
	n.add(string(b.Kind), fmt.Sprint(b.MaxRows, b.MaxGroups, b.MaxTotal, b.MaxValues))
	var ranks []string
	if s := p.Query.RankedCopy(); s != nil && b.MostRank > 0 {
		upTo := func(column string, most int64) {
			if most < s.Table.Copy.MaxRows {
				ranks = append(ranks, column, fmt.Sprint(most))
			}
		}
		upTo(catalog.RankColumn, b.MostRank)
		if set := b.Set; set != nil {
			upTo(set.Group, b.SetGroups)
			upTo(set.Row, b.SetRows)
		}
	}
	n.list(ranks)
}

func (n *name) block(p Parts, laws []string, ordered bool) ([32]byte, [2][]int) {
	q := *p.Query
	if p.Bounding.Kind == stability.PerUnit && slices.ContainsFunc(q.Within, algebra.GroupKey.Private) {
		q.Within = nil // all rows of a unit are added up, whatever their groups
	}
	encoded, order := algebra.EncodeBlock(&q, laws, ordered)
	n.add(string(encoded))
	return n.sum(), order
}
