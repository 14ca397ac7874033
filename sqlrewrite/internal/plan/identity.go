package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"noisegate.example/sqlrewrite/internal/identity"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Fingerprint identifies the question: its canonical query, its options, and the snapshot's version and digest. White space, comments,
// letter case of keywords, spelling of literals, order of conditions and aliases of tables do not matter. Plans with equal fingerprints
// give equal answers when replayed.
func (p *Plan) Fingerprint() [32]byte { return p.identity }

// ReleaseIdentity identifies what the plan releases, by all that decides its law and by nothing else. Left out are outputs and their names,
// ORDER BY, LIMIT and outer queries, the level of the intervals, and all of the policy that the block does not depend on, such as budgets
// and other tables.
func (p *Plan) ReleaseIdentity() [32]byte {
	name, _ := identity.Release(p.parts())
	return name
}

// BlockQuestion identifies the plan's release at any price, with the plan's order of keys and releases.
func (p *Plan) BlockQuestion() [32]byte { return identity.Block(p.parts()) }

// Order is the order in which keys and releases of a plan are stored.
type Order struct {
	Keys     []int // place i has the plan's key Keys[i]
	Releases []int // place i has the plan's release Releases[i]
}

// order returns the order in which all releases of the plan's name are stored.
func (p *Plan) order() Order {
	if len(p.Query.Keys) < 2 && len(p.Releases) < 2 { // there is only one order, and finding it takes as long as the name
		return Order{make([]int, len(p.Query.Keys)), make([]int, len(p.Releases))}
	}
	_, places := identity.Release(p.parts())
	return Order{places[0], places[1]}
}

// question names the answer.
func (p *Plan) question() [32]byte {
	parts := p.parts()
	parts.Options = p.asks()
	return identity.Question(parts)
}

// parts returns the parts of the plan's names.
func (p *Plan) parts() identity.Parts {
	parts := identity.Parts{Query: p.Query, Bounding: p.Bounding, Snapshot: p.Snapshot}
	if s := p.Several; s != nil {
		for _, block := range s.Plans {
			parts.Blocks = append(parts.Blocks, block.identity)
		}
		return parts
	}
	for _, first := range p.Options.bought {
		parts.Bought = append(parts.Bought, first.ReleaseIdentity())
	}
	parts.Facts = sqlprint.Facts(p.Query)
	for _, r := range p.Releases {
		parts.Units = append(parts.Units, fmt.Sprint(r.PerGroup, r.Unit.RatString()))
		parts.Laws = append(parts.Laws, lawText(r.Law()))
	}
	if p.PartitionSelection != nil {
		parts.Keys = lawText(p.PartitionSelection.Mechanism)
	}
	return parts
}

// asks returns the options that decide the law or the form of an answer.
func (p *Plan) asks() []string {
	o := p.Options
	if p.Several != nil { // the blocks have the others
		return []string{fmt.Sprint(p.Several.same), string(o.Report)}
	}
	all := []string{fmt.Sprint(o.Epsilon), fmt.Sprint(o.Rho), fmt.Sprint(o.Delta), string(o.Mechanism), string(o.Currency),
		fmt.Sprint(float64(o.Confidence)), fmt.Sprint(o.Simultaneous), string(o.Report), string(o.Selection)}
	for _, name := range slices.Sorted(maps.Keys(o.Weights)) {
		all = append(all, name, o.Weights[name].RatString())
	}
	return all
}

// lawText writes a mechanism as the ledger does.
func lawText(l law) string {
	text, err := json.Marshal(l.Parameters())
	if err != nil { // texts and numbers always encode
		panic(err)
	}
	return string(text)
}

// at returns the items of a list at some places.
func at[T any](list []T, places []int) []T {
	out := make([]T, len(places))
	for i, place := range places {
		out[i] = list[place]
	}
	return out
}
