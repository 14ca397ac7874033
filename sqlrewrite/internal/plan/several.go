package plan

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Several are the release blocks of a plan that has more than one. Each is planned by itself, at an equal share of the price; equal ones
// are released once. Their statements run in one transaction, and one charge pays for them.
type Several struct {
	Plans  []*Plan     // by block
	same   []int       // by block: the one that releases the same, itself or one before it
	places [][]int     // by block and release: which release of the whole plan it is
	given  []*Released // by block: what was released and paid for before; nil: it is still to be released
}

// newSeveral plans a statement with several release blocks.
func newSeveral(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options) (*Plan, error) {
	if len(o.Weights) > 0 {
		return nil, fault.RequestWeights("left out: a query with several releases splits its price evenly among them")
	}
	bare := make([]*algebra.BoundQuery, len(q.Blocks))
	for i, block := range q.Blocks {
		bare[i] = block.Bare()
	}
	all := divisionOf(q)
	plans, err := shares(bare, snapshot, o, all)
	if err != nil {
		return nil, err
	}
	same := sameReleases(plans)
	if fewer := all.among(same); fewer.of < all.of {
		dearer, err := shares(bare, snapshot, o, fewer)
		if again := sameReleases(dearer); err == nil && all.among(again) == fewer { // else forms differ at that price, and cost more
			plans, same = dearer, again
		}
	}
	p := &Plan{Options: o, Snapshot: snapshot, asked: q}
	p.Several = &Several{Plans: plans, same: same, given: make([]*Released, len(plans))}
	p.combine(q)
	if o.Simultaneous && p.Combinations().Cmp(big.NewInt(MaxCells)) > 0 {
		return nil, fault.RequestConfidence("one for each interval: over several releases not of private keys, or of so many groups")
	}
	p.Post = sqlprint.PrintPost(p.Query)
	p.identity = p.question()
	sqlprint.PostOn(p.Post, snapshot, o.Proofs)
	if err := p.Post.Prove(o.Proofs); err != nil {
		return nil, err
	}
	if parts := p.pendingParts(); parts > MaxParts {
		return nil, fault.TooManyScans(parts, MaxParts)
	}
	return p, nil
}

// shares plans blocks at their portions of the price, rounded down.
func shares(blocks []*algebra.BoundQuery, snapshot *catalog.Snapshot, o Options, d division) ([]*Plan, error) {
	if o.Epsilon < mechanisms.PicoEpsilon(d.of) && o.Rho < mechanisms.PicoRho(d.of) {
		return nil, fault.PriceTooSmall(d.of)
	}
	plans := make([]*Plan, len(blocks))
	for i, block := range blocks {
		var err error
		own := o.portion(d, i)
		for _, of := range block.Bought { // which are of blocks before it
			own.bought = append(own.bought, plans[of.Block])
		}
		if plans[i], err = planOf(block, snapshot, own); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// sameReleases says of each plan which one releases the same, itself or one before it.
func sameReleases(plans []*Plan) []int {
	same, first := make([]int, len(plans)), make(map[[32]byte]int)
	for i, p := range plans {
		identity := p.ReleaseIdentity()
		if _, known := first[identity]; !known {
			first[identity] = i
		}
		same[i] = first[identity]
	}
	return same
}

// pending are the plans of the blocks that are still to be released, each release once; the plan itself, where it is one block.
func (p *Plan) pending() []*Plan {
	if p.Several == nil {
		return []*Plan{p}
	}
	var plans []*Plan
	for _, at := range p.Several.pending() {
		plans = append(plans, p.Several.Plans[at])
	}
	return plans
}

// pending are the blocks that are still to be released.
func (s *Several) pending() (blocks []int) {
	for at := range s.Plans {
		if s.same[at] == at && s.given[at] == nil {
			blocks = append(blocks, at)
		}
	}
	return blocks
}

func (p *Plan) pendingParts() (n int) {
	for _, block := range p.pending() {
		n += len(block.Parts)
	}
	return n
}

// Given is the plan of the same question where some of its releases were made before: found[i], if not nil, is of the i-th of
// [Plan.Different]. Only the others are released and paid for: so is one that was made with another value than the found one.
func (p *Plan) Given(found []*Released) *Plan {
	own, several := *p, *p.Several
	several.given, own.Several = slices.Clone(several.given), &several
	next := 0
	for i := range several.Plans {
		if several.same[i] == i {
			several.given[i] = found[next]
			next++
		}
	}
	for i, r := range several.given {
		if r != nil && !several.madeWith(i, r) {
			several.given[i] = nil
		}
	}
	return &own
}

// releaseSeveral is [Plan.ReleaseRows] of several blocks. A block is released as soon as a statement waits for its value, whose rows come
// after those of the block.
func (p *Plan) releaseSeveral(s *mechanisms.Sampler, draws *Draws, rows Rows) (*Released, error) {
	r := &releasing{Several: p.Several, sampler: s, draws: draws, blocks: p.Several.pending(), made: make(map[int]*Released)}
	if len(draws.blocks) != len(r.blocks) {
		return nil, fault.Internal(ErrShape)
	}
	for range r.blocks {
		r.groups = append(r.groups, make(map[string]*Group))
	}
	draws.releasing = r
	pending := p.pending()
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		at := 0
		for at < len(pending) && row.Part >= len(pending[at].Parts) {
			row.Part -= len(pending[at].Parts)
			at++
		}
		if at == len(pending) || r.made[r.blocks[at]] != nil {
			return nil, fault.Internal(ErrShape)
		}
		if err := pending[at].gather(s, r.groups[at], row); err != nil {
			return nil, err
		}
	}
	made := make([]*Released, len(pending))
	for i, at := range r.blocks {
		var err error
		if made[i], err = r.block(at); err != nil {
			return nil, err
		}
	}
	return p.together(made)
}
