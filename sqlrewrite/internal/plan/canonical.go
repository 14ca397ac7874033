package sqlrewrite

import (
	"crypto/sha256"
	wire "encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// fingerprint hashes everything that decides the answer's distribution and its form: what runs below and above the noise with
// all constants (but not the seed, which is noise), the names of the outputs, the options and the version of the policy.
func (p *pricedPlan) fingerprint(snapshot *catalog.Snapshot) [32]byte {
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
	for _, part := range p.canonicalParts() {
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
	h.addStructure(p.query)
	if p.post != nil {
		h.add(postIdentity(p.post))
		h.args(p.post.Args())
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// canonicalParts are the statements as they would be if the filter's conditions had been written in one certain order and way, without the
// forms that identity does not have. AND and OR do not depend on the order: no condition can fail on any row. They are hashed, and never run.
func (p *pricedPlan) canonicalParts() []planPart {
	q := *p.query
	if q.where != nil {
		q.where = ordered(q.where)
	}
	parts := slices.Clone(p.parts)
	for i := range parts {
		if q.where != nil || parts[i].added {
			printer := newStatementPrinter(&q, p.shape, &parts[i])
			printer.identity = true
			printer.print()
		}
		parts[i].statement.SQL = parts[i].template.identity()
	}
	return parts
}

// ordered sorts the operands of AND and OR by how they read. Those that read the same stay as they were written: the worst that can come
// of it is that two spellings of one question are two questions.
func ordered(e expr) expr {
	switch e := e.(type) {
	case not:
		return not{x: ordered(e.x)}
	case binary:
		switch e.op {
		case syntax.And, syntax.Or:
		case syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
			return binary{op: e.op, l: plain(e.l), r: plain(e.r), t: e.t}
		default:
			return e
		}
		operands := operandsOf(e.op, e)
		for i := range operands {
			operands[i] = ordered(operands[i])
		}
		slices.SortStableFunc(operands, func(a, b expr) int { return strings.Compare(describe(a), describe(b)) })
		sorted := operands[0]
		for _, next := range operands[1:] {
			sorted = binary{op: e.op, l: sorted, r: next, t: e.t}
		}
		return sorted
	default:
		return e
	}
}

// plain spells a number that is compared in one way: 30, 30.0 and 3e1 are as large as each other, whatever they are compared with. (Not so
// in a division, where 2 and 2.0 differ.)
func plain(e expr) expr {
	c, ok := e.(constant)
	if !ok || c.null || !c.t.IsInteger() && c.t != catalog.Numeric {
		return e
	}
	value, ok := parseNumber(c.text)
	if !ok {
		return e
	}
	return constant{text: value.RatString(), t: catalog.Numeric}
}

// operandsOf takes a chain of one operator apart.
func operandsOf(op syntax.Operator, e expr) []expr {
	if b, ok := e.(binary); ok && b.op == op {
		return append(operandsOf(op, b.l), operandsOf(op, b.r)...)
	}
	return []expr{e}
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
