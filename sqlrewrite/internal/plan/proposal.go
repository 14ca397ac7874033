package sqlrewrite

import (
	"errors"
	"fmt"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/verify"
)

// Proofs remember which statements are proven; see [Statement.Prove]. The zero value is ready for use.
type Proofs = verify.Memo

// Prove holds a statement as it is against its claim, by package verify, which knows nothing of how it was made: internal/unverified if it
// moves by more when one unit comes or goes, or if that cannot be told.
func (s Statement) Prove(memo *Proofs) error {
	if s.On == nil {
		return fault.Unverified(errUnclaimed)
	}
	return unproven(memo.Statement(s.SQL, s.Args, s.On, s.Claim), s.SQL)
}

var errUnclaimed = errors.New("a statement without a claim")

// Prove holds a query as it is against what it may read: public tables, and what it is given.
func (p Post) Prove(memo *Proofs) error {
	on := p.on
	if len(p.pins) == 0 {
		on = nil
	}
	return unproven(memo.Public(p.sql, on), p.sql)
}

// unproven is the refusal with the text, which has parameters for constants.
func unproven(err error, sql string) error {
	if err == nil {
		return nil
	}
	return fault.Unverified(fmt.Errorf("%w: %s", err, sql))
}

// prove claims every statement of a plan, and proves each claim, and that outer layers read public tables and released values only.
func (p *pricedPlan) prove(on *catalog.Snapshot) error {
	for i := range p.parts {
		s := &p.parts[i].statement
		s.Claim, s.On = p.proposal(i), on
		if err := s.Prove(p.options.Proofs); err != nil {
			return err
		}
	}
	if p.post == nil {
		return nil
	}
	postOn(p.post, on)
	return p.post.Prove(p.options.Proofs)
}

// proposal is what the plan claims of one of its statements, in the words of package verify: what the price was computed from.
func (p *pricedPlan) proposal(at int) verify.Claim {
	part := p.parts[at]
	c := verify.Claim{Keys: part.statement.Keys, Groups: big.NewInt(p.shape.maxGroups), Pins: verifyPins(part.statement.Pins), PairsPerRow: p.query.pairsShown()}
	for _, i := range part.releases {
		r := p.releases[i]
		if r.pick == nil { // noise on all groups together
			l1, l2Squared := p.norms(r.perGroup)
			c.Norms = append(c.Norms, verify.Norm{Columns: []int{len(c.PerGroup)}, L1: l1, L2Squared: l2Squared})
		}
		c.PerGroup, c.Spread = append(c.PerGroup, r.perGroup), append(c.Spread, nil)
	}
	switch {
	case part.histogram(p.query):
		c.PerGroup, c.Spread, c.Histogram = c.PerGroup[:1], nil, verify.Each
		if p.releases[part.releases[0]].measure.kind == chooseRank {
			c.Histogram = verify.Together
		}
	case p.query.top > 0:
		// A selection of groups pays for how far two scores move apart: the largest move if all are of one sign, twice that else.
		r := p.releases[part.releases[0]]
		if c.Spread[0] = r.perGroup; !r.measure.monotone() {
			c.Spread[0] = new(big.Int).Lsh(r.perGroup, 1)
		}
	}
	if part.units {
		c.PerGroup, c.Spread = append(c.PerGroup, big.NewInt(1)), append(c.Spread, nil)
	}
	return c
}

// pairsShown is how many tuples one row of a unit is a part of, where a statement shows it: it reads one table of people, joins it to public ones by
// inner joins, and has no EXISTS.
func (q *boundQuery) pairsShown() *big.Int {
	w, shown := &pinWalk{used: make(map[*field]bool)}, true
	w.visit = func(e expr) {
		if _, is := e.(exists); is {
			shown = false
		}
	}
	w.query(q)
	people := 0
	for _, s := range w.scans {
		if !s.table.Public {
			people++
		}
	}
	if people != 1 || !shown || w.outer {
		return nil
	}
	return q.pairs
}

func verifyPins(pins []Pin) []verify.Pin {
	all := make([]verify.Pin, len(pins))
	for i, p := range pins {
		all[i] = verify.Pin{Schema: p.Schema, Table: p.Table, OID: p.OID, Keys: p.Keys, MostRows: p.MostRows}
		for _, c := range p.Columns {
			all[i].Columns = append(all[i].Columns, verify.PinnedColumn{Name: c.Name, AttNum: c.AttNum, TypeOID: c.TypeOID, TypMod: c.TypMod,
				NotNull: c.NotNull, MostEqual: c.MostEqual})
		}
	}
	return all
}
