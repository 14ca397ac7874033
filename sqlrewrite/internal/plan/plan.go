package plan

import (
	"iter"
	"math/big"
	"time"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/bind"
	"noisegate/sqlrewrite/internal/parse"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/internal/stability"
)

// DryRuns are those of the plan's statements.
func (p *Plan) DryRuns() []sqlprint.DryRun {
	var all []sqlprint.DryRun
	if !p.NeedsData() {
		return nil
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		all = append(all, sqlprint.DryRunOf(p.Query, part))
	}
	return all
}

// Options are the choices of one request, already checked for range by the caller.
type Options struct {
	Dialect parse.Dialect // of the text; empty: PostgreSQL's
	Now     time.Time     // what current_date and its like mean in the text; zero: they are refused
	// Exactly one of Epsilon and Rho is positive: the price of the whole query.
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho
	// Delta pays for partition selection; it may be zero when no key is private. With MechanismGaussian and Epsilon the
	// caller has already turned (ε, δ) into Rho.
	Delta     mechanisms.AttoDelta
	Mechanism MechanismChoice
	// Selection is the selector of quantiles, modes and first groups; empty: the most accurate one. With SelectsOnly it was asked for in the
	// place of the noise, and the query must need none.
	Selection   mechanisms.Name
	SelectsOnly bool
	// Currency is what the analyst's account adds up; [MechanismAuto] chooses the smaller error at equal charge in it.
	Currency   catalog.Form
	Confidence mechanisms.Confidence // level of the intervals, in (0, 1)
	// Simultaneous asks for intervals that hold all together at the level, instead of one by one.
	Simultaneous bool
	MaxGroups    int64            // tightens the policy's bound; 0: the policy's
	MaxRows      int64            // tightens the policy's bound; 0: the policy's
	MaxTotal     int64            // max_rows_total: tightens the policy's bound, if there is one; 0: the policy's
	Proofs       *sqlprint.Proofs // remember what was proven of earlier plans; nil: those of this plan alone are remembered
	// Weights say how much the variance of the outputs with these names matters; all positive. Empty: the price is split evenly.
	Weights map[string]*big.Rat
}

// MechanismChoice is which noise the request asks for.
type MechanismChoice string

// The choices.
const (
	MechanismAuto     MechanismChoice = "auto"
	MechanismLaplace  MechanismChoice = "laplace"
	MechanismGaussian MechanismChoice = "gaussian"
)

// ExactRow is one row of a [sqlprint.Statement]'s result: keys in clear, aggregates sealed.
type ExactRow struct {
	Part   int // which of the plan's statements gave it
	Keys   []catalog.Key
	Values []mechanisms.Exact
}

// Rows are the rows of a plan's statements, one after another and one by one as PostgreSQL sends them, or the error that ended
// them. They are streamed because the number of private groups is itself private: no limit on it may decide whether there is an answer.
type Rows = iter.Seq2[ExactRow, error]

// ColumnKind says what an output column is.
type ColumnKind string

// The kinds of output column.
const (
	KeyColumn       ColumnKind = "key"
	AggregateColumn ColumnKind = "aggregate" // one release as it is
	DerivedColumn   ColumnKind = "derived"   // computed from releases
	PublicColumn    ColumnKind = "public"    // of a query that reads nothing private: exact
)

// Column describes one output.
type Column struct {
	Name        string
	Type        string // PostgreSQL's name: bigint, numeric, text, ...
	Kind        ColumnKind
	Mechanism   mechanisms.Name // aggregate only
	Selection   mechanisms.Name // of a selection: the selector
	Sensitivity string          // aggregate only: in the output's unit
	Scale       string          // aggregate only: Laplace b or Gaussian σ², in the output's unit
	// HalfWidth is that of the noise at the requested confidence, in the output's unit: of aggregates, and of what is a weighted sum of
	// them. Nil where it is not known before there is data.
	HalfWidth *big.Rat
	// RankError of a selection is how far off it is at the requested confidence, in rows: its error in values depends on the data.
	RankError *big.Rat
	// Bias is the direction in which values are off where contribution bounding left out rows or groups of a unit. Intervals do not include
	// it.
	Bias Bias
}

// Bias is the direction of an error that noise does not explain.
type Bias string

// The directions.
const (
	Unbiased    Bias = ""
	LowBias     Bias = "low"     // values may be too low, and are not too high
	UnknownBias Bias = "unknown" // values may be too low or too high
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
	noise       []keptLaw           // by release, where it does not follow from the price; nil: it does
	Snapshot    *catalog.Snapshot
	Reused      string // what an earlier release of the question has to do with the answer; empty: nothing
}

// MaxCells caps the values that one query releases for public keys: the noise of all of them is drawn before the query runs.
const MaxCells = 1_000_000

// MaxParts caps the statements of one plan: each reads the tables once, on one connection of the protected database.
const MaxParts = 32

// NewPlan plans a query, as a selection of groups where that errs less than sorting them.
func NewPlan(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options) (*Plan, error) {
	if o.Proofs == nil {
		o.Proofs = new(sqlprint.Proofs)
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

// Repriced is the plan of the same question under other options.
func (p *Plan) Repriced(o Options) (*Plan, error) {
	if o.Proofs == nil {
		o.Proofs = p.Options.Proofs
	}
	return NewPlan(p.asked, p.Snapshot, o)
}

// Price is the price that the plan was made for: an ε or, if that is 0, a ρ.
func (p *Plan) Price() (mechanisms.PicoEpsilon, mechanisms.PicoRho) {
	return p.Options.Epsilon, p.Options.Rho
}

// planOf lays a plan out, and proves it.
func planOf(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options) (*Plan, error) {
	p, err := layOut(q, snapshot, o, keysByOutputs)
	if err != nil {
		return nil, err
	}
	return p, p.prove(snapshot)
}

// layOut chooses the bounding, splits the price and prints.
func layOut(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options, by keysBy) (*Plan, error) {
	s, err := stability.ChooseBounding(q, stability.Bounds{MaxRows: o.MaxRows, MaxGroups: o.MaxGroups, MaxTotal: o.MaxTotal})
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
	if p.Parts = sqlprint.PartsOf(q); len(p.Parts) > MaxParts {
		return nil, fault.TooManyScans(len(p.Parts), MaxParts)
	}
	p.Print()
	p.Post = sqlprint.PrintPost(q)
	p.identity = p.fingerprint(snapshot)
	return p, nil
}

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Plan) Loss() mechanisms.Loss {
	var total mechanisms.Loss
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
	if p.PartitionSelection != nil {
		all = append(all, p.PartitionSelection.Mechanism.Parameters())
	}
	for _, r := range p.Releases {
		all = append(all, r.Law().Parameters())
	}
	return all
}

// NeedsData is false when the answer is a function of the policy alone (SELECT DISTINCT over a public domain): the loss is
// zero, there is no statement to run, and Release is called with no rows.
func (p *Plan) NeedsData() bool { return len(p.Parts) > 0 }

// Statements are what runs on the protected database, in one transaction. They take the plan's draws because those hold the secret
// seed by which a unit's groups are chosen; the texts are the same for every draw, only that one argument differs.
func (p *Plan) Statements(d *Draws) []sqlprint.Statement {
	all := make([]sqlprint.Statement, len(p.Parts))
	for i, part := range p.Parts {
		all[i] = part.Statement.WithSeed(d.seed)
	}
	return all
}

// Fingerprint identifies the question: canonical query, options and the snapshot's version and digest. White space, comments,
// letter case of keywords and spelling of literals do not matter; two plans with equal fingerprints give equal answers when replayed.
func (p *Plan) Fingerprint() [32]byte { return p.identity }

// Distribute prints the plan's statements for a database whose tables lie on several servers (Citus). It asks its workers for the columns
// that HAVING names, not for the keys that are computed from them, which is no SQL: so keys that a flat statement computes are held against
// their domain row by row. That are the same groups with the same rows; PostgreSQL itself is faster when it tests groups. The question
// stays what it is.
func (p *Plan) Distribute() error {
	p.distributed = true
	p.Print()
	return p.prove(p.Snapshot)
}

// Print prints all statements. None runs before it is proven.
func (p *Plan) Print() {
	for i := range p.Parts {
		p.printPart(i)
	}
}

func (p *Plan) printPart(i int) {
	s := sqlprint.NewStatementPrinter(p.Query, p.Bounding, &p.Parts[i])
	s.Distributed = p.distributed
	s.Print()
}
