package plan

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Plan is a [sqlrewrite.Plan] without what is said of it.
type Plan struct {
	Query              *algebra.BoundQuery
	Options            Options
	Bounding           stability.Bounding
	Weights            []*big.Rat // by release; nil: the price is split evenly
	Releases           []Release
	PartitionSelection *partitionSelection // nil: the keys are public, or a count shows them
	Parts              []sqlprint.PlanPart // the statements, their seed arguments zero
	Post               *sqlprint.Post      // without the released values, which are its first arguments; nil: nothing is to be post-processed
	Outputs            []OutputForm        // set by [sqlrewrite.newPlan]
	identity           [32]byte
	// distributed: the statements are printed for tables that may lie on several servers.
	distributed bool
	asked       *algebra.BoundQuery // the question, before the choice between sorting and selecting
	sorted      *Plan               // of a selection of groups: the plan that sorts them instead; nil for others
	wide        *wide               // nil: conditions narrow no bounds
	listing     *Plan               // of a release over all keys: the plan over the listed ones, which shows some of it; nil for others
	noise       []keptLaw           // by release, where it does not follow from the price; nil: it does
	unproven    error               // of a copy: why a layout by a set of its ranks was not proven; nil: none
	Snapshot    *catalog.Snapshot
	Several     *Several // nil: there is one release block, or none
	Reused      string   // what an earlier release of the question has to do with the answer; empty: nothing
}

// MaxCells caps the values that one query releases for public keys: the noise of all of them is drawn before the query runs.
const MaxCells = 1_000_000

// newPlan plans a query, as a selection of groups where that errs less than sorting them.
func newPlan(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options) (*Plan, error) {
	if q.Blocks != nil {
		return newSeveral(q, snapshot, o)
	}
	top := bind.AsTopK(q)
	asked := q
	if top != nil && o.Selection != "" { // a selection is what is asked for
		asked, top = top, nil
	}
	p, err := planOf(asked, snapshot, o)
	if err != nil {
		return nil, err
	}
	if top != nil {
		if selected, err := planOf(top, snapshot, o); err == nil && selected.cheaperThan(p) {
			p.asked, selected.sorted = q, p
			p = selected
		}
	}
	p.asked = q
	return p, nil
}

// layOut chooses the bounding, splits the price and prints.
func layOut(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options, by keysBy) (*Plan, error) {
	s, err := stability.ChooseBounding(q, stability.Bounds{MaxRows: o.MaxRows, MaxGroups: o.MaxGroups, MaxTotal: o.MaxTotal, Set: o.set})
	if err != nil {
		return nil, err
	}
	s.Partitioning = sqlprint.ChoosePartitioning(q, s)
	if cells := new(big.Int).Mul(q.PublicTuples(), big.NewInt(int64(len(q.Statistics)))); !q.Private() && cells.Cmp(big.NewInt(MaxCells)) > 0 {
		return nil, fault.TooManyKeys(q.Keys[0].At, MaxCells/len(q.Statistics))
	}
	p := &Plan{Query: q, Options: o, Bounding: s, Snapshot: snapshot}
	if err := p.price(by); err != nil {
		return nil, err
	}
	if q.Private() || q.PublicTuples().Sign() > 0 { // else there are no groups to read
		p.Parts = sqlprint.PartsOf(q)
	}
	if len(p.Parts) > MaxParts {
		return nil, fault.TooManyScans(len(p.Parts), MaxParts)
	}
	p.Print()
	p.Post = sqlprint.PrintPost(q)
	p.identity = p.question()
	return p, nil
}

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Plan) Loss() mechanisms.Loss {
	var total mechanisms.Loss
	if p.Several != nil {
		for _, block := range p.pending() {
			total = total.Plus(block.Loss())
		}
		return total
	}
	if !p.NeedsData() {
		return total
	}
	for _, r := range p.Releases {
		total = total.Plus(r.Law().Loss())
	}
	if p.PartitionSelection != nil {
		total = total.Plus(p.PartitionSelection.Mechanism.Loss())
	}
	return total
}

// Mechanisms are the parameters of all releases, for the ledger.
func (p *Plan) Mechanisms() []mechanisms.Parameters {
	var all []mechanisms.Parameters
	if p.Several != nil {
		for _, block := range p.pending() {
			all = append(all, block.Mechanisms()...)
		}
		return all
	}
	if !p.NeedsData() {
		return nil
	}
	if p.PartitionSelection != nil {
		all = append(all, p.PartitionSelection.Mechanism.Parameters())
	}
	for _, r := range p.Releases {
		all = append(all, r.Law().Parameters())
	}
	return all
}

// NeedsData is false when the answer is a function of the policy alone (SELECT DISTINCT over a public domain, keys whose list is empty):
// the loss is zero, there is no statement to run, and Release is called with no rows.
func (p *Plan) NeedsData() bool { return p.pendingParts() > 0 }

// Statements are what runs on the protected database, in one transaction. They take the plan's draws because those hold the secret
// seed by which a unit's groups are chosen; the texts are the same for every draw, only that one argument differs.
func (p *Plan) Statements(d *Draws) []sqlprint.Statement {
	if p.Several != nil {
		var all []sqlprint.Statement
		for i, at := range p.Several.pending() {
			all = append(all, d.awaiting(at, p.Several.Plans[at].Statements(d.blocks[i]))...)
		}
		return all
	}
	all := make([]sqlprint.Statement, len(p.Parts))
	for i, part := range p.Parts {
		all[i] = part.Statement.WithSeed(d.seed)
	}
	return all
}
