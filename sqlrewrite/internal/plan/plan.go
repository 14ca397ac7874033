package sqlrewrite

import (
	"iter"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/verify"
)

// Options are the choices of one request, already checked for range by the caller.
type Options struct {
	Dialect Dialect // of the text; empty: PostgreSQL's
	// Exactly one of Epsilon and Rho is positive: the price of the whole query.
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho
	// Delta pays for partition selection; it may be zero when no key is private. With MechanismGaussian and Epsilon the
	// caller has already turned (ε, δ) into Rho.
	Delta     mechanisms.AttoDelta
	Mechanism MechanismChoice
	// Currency is what the analyst's account adds up; [MechanismAuto] chooses the smaller error at equal charge in it.
	Currency   catalog.Form
	Confidence mechanisms.Confidence // level of the intervals, in (0, 1)
	MaxGroups  int64                 // tightens the policy's bound; 0: the policy's
	MaxRows    int64                 // tightens the policy's bound; 0: the policy's
	Proofs     *Proofs               // remember what was proven of earlier plans; nil: those of this plan alone are remembered
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

// Statement is SQL that Noisegate printed, with every literal as a parameter. It returns Keys columns of text (group keys,
// nullable) followed by Values columns of decimal integers in text form; the latter are sealed the moment they are read. The
// statements of a plan run in one transaction.
type Statement struct {
	SQL    string
	Args   []any // string, int64, []string, nil
	Keys   int
	Values int
	Pins   []Pin // must hold in the transaction that runs the statement
	// Sorts asks PostgreSQL to add up by sorting: over a million units that takes a third of the time of hashing them.
	Sorts bool
	// Pieces asks PostgreSQL to give each side of the statement's UNION ALL to one process, instead of many to each.
	Pieces bool
	// Hashes asks PostgreSQL to look up what a join compares for equality, InOrder to join in the order of the text, Chained that one join's rows
	// are looked up for the next.
	Hashes, InOrder, Chained bool
	Ranges                   *Ranges // nil: the statement needs none
	// Claim is what the price was computed from, about a database of the snapshot On: what [Statement.Prove] proves of SQL and Args.
	Claim verify.Claim
	On    *catalog.Snapshot
}

// Pin is a table's metadata as it was when its policy was checked; a statement runs only while it still holds.
type Pin struct {
	Schema, Table string
	OID           uint32
	Columns       []PinnedColumn
	RowSecurity   bool     // row level security may be on
	Partitioned   bool     // its rows are those of its partitions
	Apart         []uint32 // tables to which no foreign key of it may lead
	// Keys are sets of its columns that must be unique, in a table without inheriting children.
	Keys [][]string
	// MostRows is how many rows the table, a public one, may have; 0: the statement does not rest on it.
	MostRows int64
}

// PinnedColumn is one column of a [Pin].
type PinnedColumn struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypMod  int32
	NotNull bool // a row unit's key: NULL on no row
	// MostEqual is how many rows of the table, a public one, may share one value; 0: the statement does not rest on it.
	MostEqual int64
	// Collation is [catalog.Column.Collation]; where that is 0, any will do that takes no two texts for equal.
	Collation uint32
}

// ExactRow is one row of a [Statement]'s result: keys in clear, aggregates sealed.
type ExactRow struct {
	Part   int // which of the plan's statements gave it
	Keys   []catalog.Key
	Values []mechanisms.Exact
}

// Rows are the rows of a plan's statements, one after another and one by one as PostgreSQL sends them, or the error that ended
// them. They are streamed because the number of private groups is itself private: no limit on it may decide whether there is an answer.
type Rows = iter.Seq2[ExactRow, error]

// Post is SQL over released values and public tables: the outer layers of a query, or a query that reads nothing private. Only this
// package makes one, and what it prints can name no table with a privacy unit, so that whoever runs it need not have been paid. Its
// last column is the ordinal (bigint, from 1) of the released row that the output row came from, NULL where there is none.
type Post struct {
	sql      string
	identity string // the text by which the question is known
	args     []any
	pins     []Pin
	on       *catalog.Snapshot
}

// newPost is a text that is proven of a snapshot before it runs; nil: [postOn] says of which.
func newPost(text string, args []any, pins []Pin, on *catalog.Snapshot) *Post {
	return &Post{sql: text, identity: text, args: args, pins: pins, on: on}
}

// postOn says of which snapshot a text is proven.
func postOn(p *Post, on *catalog.Snapshot) { p.on = on }

// postWith is the text with arguments.
func postWith(p *Post, args []any) Post { return Post{sql: p.sql, args: args, pins: p.pins, on: p.on} }

// postIdentity is the text by which a question is known.
func postIdentity(p *Post) string { return p.identity }

// SQL is the text.
func (p Post) SQL() string { return p.sql }

// Args are its arguments: string, or []*string for text arrays with NULLs.
func (p Post) Args() []any { return p.args }

// Pins are the public tables that it reads, on the protected database; none: it runs anywhere.
func (p Post) Pins() []Pin { return p.pins }

// PostRow is one row of a [Post]'s result in PostgreSQL's text form, and which released row it came from, counted from 1; 0 for none.
type PostRow struct {
	Values  []catalog.Key
	Ordinal int
}

// Answer is what an analyst gets: noisy values with intervals.
type Answer struct {
	Columns   []Column
	Rows      [][]catalog.Key // PostgreSQL's text form, per column type
	Intervals [][]*Interval   // nil entries where there is none (keys)
	Notes     []Note
}

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
	Sensitivity string          // aggregate only: in the output's unit
	Scale       string          // aggregate only: Laplace b or Gaussian σ², in the output's unit
	// HalfWidth is that of the noise at the requested confidence, in the output's unit: of aggregates, and of what is a weighted sum of
	// them. Nil where it is not known before there is data.
	HalfWidth *big.Rat
	// RankError of a selection is how far off it is at the requested confidence, in rows: its error in values depends on the data.
	RankError *big.Rat
}

// Interval is a confidence interval in PostgreSQL's text form of a number.
type Interval struct{ Lo, Hi string }

// Note tells the analyst what the answer does not say by itself; Code is stable, Text is for people.
type Note struct{ Code, Text string }

// pricedPlan is a [Plan] without what is said of it.
type pricedPlan struct {
	query     *boundQuery
	options   Options
	shape     shape
	weights   []*big.Rat // by release; nil: the price is split evenly
	releases  []release
	selection *selection   // nil: the keys are public
	parts     []planPart   // the statements, their seed arguments zero
	post      *Post        // without the released values, which are its first arguments; nil: there is no outer layer
	outputs   []outputForm // set by [newPlan]
	identity  [32]byte
	asked     *boundQuery // the question, before the choice between sorting and selecting
	snapshot  *catalog.Snapshot
	reused    string // what an earlier release of the question has to do with the answer; empty: nothing
}

// maxCells caps the values that one query releases for public keys: the noise of all of them is drawn before the query runs.
const maxCells = 1_000_000

// maxParts caps the statements of one plan: each reads the tables once, on one connection of the protected database.
const maxParts = 32

// pricedPlanOf plans a query, as a selection of groups where that errs less than sorting them.
func pricedPlanOf(q *boundQuery, snapshot *catalog.Snapshot, o Options) (*pricedPlan, error) {
	if o.Proofs == nil {
		o.Proofs = new(Proofs)
	}
	p, err := planOf(q, snapshot, o)
	if err != nil {
		return nil, err
	}
	if top := q.asTopK(); top != nil {
		if selected, err := planOf(top, snapshot, o); err == nil && selected.cheaperThan(p) {
			p = selected
		}
	}
	p.asked, p.snapshot = q, snapshot
	return p, nil
}

// repriced is the plan of the same question under other options.
func (p *pricedPlan) repriced(o Options) (*pricedPlan, error) {
	if o.Proofs == nil {
		o.Proofs = p.options.Proofs
	}
	return pricedPlanOf(p.asked, p.snapshot, o)
}

// Price is the price that the plan was made for: an ε or, if that is 0, a ρ.
func (p *pricedPlan) Price() (mechanisms.PicoEpsilon, mechanisms.PicoRho) {
	return p.options.Epsilon, p.options.Rho
}

// planOf chooses the shape, splits the price and prints.
func planOf(q *boundQuery, snapshot *catalog.Snapshot, o Options) (*pricedPlan, error) {
	s, err := chooseShape(q, o.MaxRows, o.MaxGroups)
	if err != nil {
		return nil, err
	}
	s.cut = q.cut(s)
	if cells := new(big.Int).Mul(q.publicTuples(), big.NewInt(int64(len(q.measures)))); !q.private() && cells.Cmp(big.NewInt(maxCells)) > 0 {
		return nil, fault.TooManyKeys(q.keys[0].at, maxCells/len(q.measures))
	}
	p := &pricedPlan{query: q, options: o, shape: s}
	if err := p.price(); err != nil {
		return nil, err
	}
	if p.parts = partsOf(q); len(p.parts) > maxParts {
		return nil, fault.TooManyScans(len(p.parts), maxParts)
	}
	for i := range p.parts {
		printPart(q, s, &p.parts[i])
	}
	p.post = printPost(q)
	p.identity = p.fingerprint(snapshot)
	return p, p.prove(snapshot)
}

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *pricedPlan) Loss() mechanisms.Loss {
	var total mechanisms.Loss
	for _, r := range p.releases {
		total = total.Plus(r.law().Loss())
	}
	if p.selection != nil {
		total = total.Plus(p.selection.mechanism.Loss())
	}
	return total
}

// Mechanisms are the parameters of all releases, for the ledger.
func (p *pricedPlan) Mechanisms() []mechanisms.Parameters {
	var all []mechanisms.Parameters
	if p.selection != nil {
		all = append(all, p.selection.mechanism.Parameters())
	}
	for _, r := range p.releases {
		all = append(all, r.law().Parameters())
	}
	return all
}

// NeedsData is false when the answer is a function of the policy alone (SELECT DISTINCT over a public domain): the loss is
// zero, there is no statement to run, and Release is called with no rows.
func (p *pricedPlan) NeedsData() bool { return len(p.parts) > 0 }

// PairsPerRow is how many rows one row of a unit can meet in joins, EXISTS and windows, by public facts that the plan's pins hold and caps that
// its statements enforce.
func (p *pricedPlan) PairsPerRow() *big.Int { return new(big.Int).Set(p.query.pairs) }

// Statements are what runs on the protected database, in one transaction. They take the plan's draws because those hold the secret
// seed by which a unit's groups are chosen; the texts are the same for every draw, only that one argument differs.
func (p *pricedPlan) Statements(d *Draws) []Statement {
	all := make([]Statement, len(p.parts))
	for i, part := range p.parts {
		s := part.statement
		if part.seedArg > 0 {
			s.Args = append([]any(nil), s.Args...)
			s.Args[part.seedArg-1] = d.seed
		}
		all[i] = s
	}
	return all
}

// Fingerprint identifies the question: canonical query, options and the snapshot's version and digest. White space, comments,
// letter case of keywords and spelling of literals do not matter; two plans with equal fingerprints give equal answers when replayed.
func (p *pricedPlan) Fingerprint() [32]byte { return p.identity }
