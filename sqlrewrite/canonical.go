package sqlrewrite

import (
	"crypto/sha256"
	wire "encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"

	"noisegate/catalog"
)

// fingerprint hashes everything that decides the answer's distribution and its form: what runs below and above the noise with
// all constants (but not the seed, which is noise), the names of the outputs, the options and the version of the policy.
func (p *Plan) fingerprint(snapshot *catalog.Snapshot) [32]byte {
	h := identity{sha256.New()}
	h.add("noisegate plan 1", snapshot.Dataset, fmt.Sprint(snapshot.Version), string(snapshot.Digest[:]))
	o := p.options
	h.add(fmt.Sprint(o.Epsilon), fmt.Sprint(o.Rho), fmt.Sprint(o.Delta), string(o.Mechanism), string(o.Currency),
		fmt.Sprint(float64(o.Confidence)), fmt.Sprint(p.shape.maxRows), fmt.Sprint(p.shape.maxGroups))
	if len(o.Weights) > 0 { // without them the fingerprint is what it was before there were weights
		h.add("weights", fmt.Sprint(len(o.Weights)))
		for _, name := range slices.Sorted(maps.Keys(o.Weights)) {
			h.add(name, o.Weights[name].RatString())
		}
	}
	for _, part := range p.parts {
		h.add(part.statement.SQL)
		h.args(part.statement.Args)
	}
	// What the statements do not show: how values come from what they add up, and what is chosen by it.
	for _, m := range p.query.measures {
		if m.chooses() {
			h.add("selection", m.name)
		}
	}
	for _, v := range p.query.values {
		if v.how != asReleased && v.how != meanOf {
			h.add("value", v.name, fmt.Sprint(v.how, v.of))
		}
	}
	if p.query.top > 0 {
		h.add("top", fmt.Sprint(p.query.top))
	}
	for _, k := range p.query.keys {
		h.add(k.name)
		for _, d := range k.domain {
			h.add(fmt.Sprint(d.Null), d.Text)
		}
	}
	for _, out := range p.query.outputs {
		h.add(out.name, describeWith(out.expr, p.query))
	}
	if p.post != nil {
		h.add(p.post.sql)
		h.args(p.post.args)
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// identity hashes strings so that no two lists of strings are confused: each is preceded by its length.
type identity struct{ hash.Hash }

func (h identity) add(parts ...string) {
	for _, s := range parts {
		_ = wire.Write(h, wire.BigEndian, uint64(len(s))) // a hash never fails
		_, _ = h.Write([]byte(s))
	}
}

func (h identity) args(args []any) {
	for _, a := range args {
		h.add(fmt.Sprintf("%#v", a))
	}
}
