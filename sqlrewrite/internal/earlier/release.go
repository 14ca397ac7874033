package earlier

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Release is the earlier name of what a plan releases, [plan.Plan.ReleaseIdentity].
func Release(p *plan.Plan) [32]byte { return identify(before(p), true) }

// BlockQuestion is the earlier name of it at any price, [plan.Plan.BlockQuestion].
func BlockQuestion(p *plan.Plan) [32]byte { return identify(before(p), false) }

// Recall is [plan.Plan.Recall] of what was stored under the earlier name of what the plan releases.
func Recall(p *plan.Plan, text []byte) (*plan.Released, error) {
	p = before(p)
	return p.RecallIn(text, blockOf(p).Order)
}

// block is the release block of a plan in one certain order: questions that name its keys or its statistics in another order, or show
// something else of them, release the same.
type block struct {
	query *algebra.BoundQuery
	plan.Order
}

// blockOf sorts keys and statistics by their texts. The text that is hashed is printed in that order, so that two equal texts can make one
// release two, and never two releases one.
func blockOf(p *plan.Plan) block {
	q := *p.Query
	b := block{query: &q}
	b.Keys = sortedPlaces(q.Keys, func(k algebra.GroupKey) string { return sqlprint.StructureOf(k.X) })
	b.Releases = sortedPlaces(q.Statistics, statisticText)
	q.Within = at(q.Within, sortedPlaces(q.Within, func(k algebra.GroupKey) string { return sqlprint.StructureOf(k.X) }))
	q.Keys, q.Statistics = at(p.Query.Keys, b.Keys), at(p.Query.Statistics, b.Releases)
	q.Estimators = slices.Clone(q.Estimators) // which releases they read decides how units are bounded
	for i, v := range q.Estimators {
		q.Estimators[i].Of = make([]int, len(v.Of))
		for j, release := range v.Of {
			q.Estimators[i].Of[j] = slices.Index(b.Releases, release)
		}
	}
	if q.Where != nil {
		q.Where = Ordered(q.Where)
	}
	return b
}

// sortedPlaces are the places of a list's items in the order of their texts.
func sortedPlaces[T any](list []T, text func(T) string) []int {
	texts, places := make([]string, len(list)), make([]int, len(list))
	for i, item := range list {
		texts[i], places[i] = text(item), i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		if texts[a] < texts[b] {
			return -1
		}
		return algebra.BoolIndex(texts[a] > texts[b])
	})
	return places
}

// statisticText is a statistic so written that no other one is written alike.
func statisticText(m algebra.Statistic) string {
	grid := func(g *algebra.Grid) string {
		if g == nil {
			return ""
		}
		return fmt.Sprint(g.Lo, g.Hi, g.Step, int(g.Form), g.Coarse)
	}
	rank := ""
	if m.Rank != nil {
		rank = fmt.Sprint(m.Rank, m.Upper)
	}
	among := ""
	for _, k := range m.Among {
		among += fmt.Sprintf("%t%q", k.Null, k.Text)
	}
	return fmt.Sprintf("%d %q %q %q %q %q %q %q", m.Kind, sqlprint.StructureOf(m.X), grid(m.Grid), sqlprint.StructureOf(m.Y), grid(m.GridY),
		sqlprint.StructureOf(m.Filter), rank, among)
}

// identify hashes what decides the law of what a plan releases, and nothing else: what is read and on which conditions, the keys and
// which of them can appear, the statistics and the bounds of their units, the noise or the selection of each, the name of the data, and
// the facts of the tables that are read. It has neither the outputs and their names, ORDER BY, LIMIT and outer queries, nor the level of
// the intervals, nor anything of the policy that the block does not rest on, such as budgets and other tables.
//
// Without a price it has no noise, but the order in which the plan releases.
func identify(p *plan.Plan, priced bool) [32]byte {
	b, s := blockOf(p), p.Bounding
	s.Partitioning = stability.Unpartitioned // how rows are stored changes no release
	h := sqlprint.Identity{Hash: sha256.New()}
	h.Add("noisegate release 1", p.Snapshot.Dataset, p.Snapshot.DataVersion)
	h.Add(sqlprint.Facts(b.query)...)
	h.Add("bounding", string(s.Kind), fmt.Sprint(s.MaxRows, s.MaxGroups, s.MaxTotal, s.MaxValues), fmt.Sprint(b.query.Top))
	for _, part := range sqlprint.PartsOf(b.query) {
		sqlprint.NewStatementPrinter(b.query, s, &part, sqlprint.Style{Identity: true}).Print()
		h.Add("statement", fmt.Sprint(part.Releases, part.Units), part.Template.Identity())
		h.Args(part.Statement.Args)
	}
	for _, k := range b.query.Within { // of which all groups are added up
		h.Add("within", sqlprint.StructureOf(k.X), fmt.Sprint(k.Private()))
	}
	for _, k := range b.query.Keys {
		h.Add("key", sqlprint.StructureOf(k.X), fmt.Sprint(k.Private(), len(k.Domain)))
		for _, d := range k.Domain {
			h.Add(fmt.Sprint(d.Null), d.Text)
		}
	}
	for i, m := range b.query.Statistics {
		r := p.Releases[b.Releases[i]]
		h.Add("statistic", statisticText(m), r.PerGroup.String(), r.Unit.RatString())
		if priced {
			h.Add(lawText(r.Law().Parameters()))
		}
	}
	if p.PartitionSelection != nil && priced {
		h.Add("shown by", lawText(p.PartitionSelection.Mechanism.Parameters()))
	}
	if !priced {
		h.Add("order", fmt.Sprint(b.Keys, b.Releases))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// lawText is a mechanism as the ledger writes it.
func lawText(law mechanisms.Parameters) string {
	text, err := json.Marshal(law)
	if err != nil { // texts and numbers always encode
		panic(err)
	}
	return string(text)
}

// at gives the items of a list at some places.
func at[T any](list []T, places []int) []T {
	out := make([]T, len(places))
	for i, place := range places {
		out[i] = list[place]
	}
	return out
}
