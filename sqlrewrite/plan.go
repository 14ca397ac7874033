package sqlrewrite

import (
	"math/big"

	"noisegate/catalog"
	"noisegate/mechanisms"
)

// Options are the choices of one request, already checked for range by the caller.
type Options struct {
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
// nullable) followed by Values columns of decimal integers in text form; the latter are sealed the moment they are read.
type Statement struct {
	SQL    string
	Args   []any // string, int64, []string, nil
	Keys   int
	Values int
	Pins   []Pin // must hold in the transaction that runs the statement
}

// Pin is a table's metadata as it was when its policy was checked; a statement runs only while it still holds.
type Pin struct {
	Schema, Table string
	OID           uint32
	Columns       []PinnedColumn
}

// PinnedColumn is one column of a [Pin].
type PinnedColumn struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypMod  int32
}

// ExactRow is one row of a [Statement]'s result: keys in clear, aggregates sealed.
type ExactRow struct {
	Keys   []catalog.Key
	Values []mechanisms.Exact
}

// Post is the outer layer of a query (HAVING, ORDER BY, LIMIT, expressions over aggregates) printed over released values.
// It touches no table. Its last column is the ordinal (bigint) of the released row that the output row came from.
type Post struct {
	SQL  string
	Args []any
}

// PostRow is one row of a [Post]'s result in PostgreSQL's text form, and which released row it came from.
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
)

// Column describes one output.
type Column struct {
	Name        string
	Type        string // PostgreSQL's name: bigint, numeric, text, ...
	Kind        ColumnKind
	Mechanism   mechanisms.Name // aggregate only
	Sensitivity string          // aggregate only: in the output's unit
	Scale       string          // aggregate only: Laplace b or Gaussian σ², in the output's unit
	HalfWidth   *big.Rat        // aggregate only: at the requested confidence, in the output's unit; nil otherwise
}

// Interval is a confidence interval in PostgreSQL's text form of a number.
type Interval struct{ Lo, Hi string }

// Note tells the analyst what the answer does not say by itself; Code is stable, Text is for people.
type Note struct{ Code, Text string }

// Plan is a private query, ready to be paid for and run.
type Plan struct{}

// Draws is the randomness of a plan that depends on no data, drawn before the query runs.
type Draws struct{}

// Released is a plan's noisy values, before the outer layer of the query.
type Released struct{}

// Rewrite parses, binds and plans a query. Its errors are sql/*, policy/* and plan/* faults; it touches neither data nor budget.
func Rewrite(sql string, snapshot *catalog.Snapshot, options Options) (*Plan, error) {
	panic("not yet")
}

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Plan) Loss() mechanisms.Loss { panic("not yet") }

// Mechanisms are the parameters of all releases, for the ledger.
func (p *Plan) Mechanisms() []mechanisms.Parameters { panic("not yet") }

// NeedsData is false when the answer is a function of the policy alone (SELECT DISTINCT over a public domain): the loss is
// zero, there is no statement to run, and Release is called with no rows.
func (p *Plan) NeedsData() bool { panic("not yet") }

// Statement is what runs on the protected database. It takes the plan's draws because they hold the secret seed by which
// a unit's groups are chosen; the text is the same for every draw, only that one argument differs.
func (p *Plan) Statement(d *Draws) Statement { panic("not yet") }

// Fingerprint identifies the question: canonical query, options and the snapshot's version and digest. White space, comments,
// letter case of keywords and spelling of literals do not matter; two plans with equal fingerprints give equal answers when replayed.
func (p *Plan) Fingerprint() [32]byte { panic("not yet") }

// Draw samples everything that depends on no data, before the statement runs: the noise of public groups and the secret
// seed of the statement. Draws serve one release.
func (p *Plan) Draw(s *mechanisms.Sampler) *Draws { panic("not yet") }

// Release adds the noise and selects private keys: the only step that holds sealed values.
func (p *Plan) Release(s *mechanisms.Sampler, draws *Draws, rows []ExactRow) (*Released, error) {
	panic("not yet")
}

// Post is the outer layer as SQL over the released values; ok is false when there is none to run.
func (r *Released) Post() (post Post, ok bool) { panic("not yet") }

// Answer assembles the answer: from the outer layer's result when there is one (rows in order; types are PostgreSQL's names
// of the output columns, without the ordinal), else from the released values (rows and types are nil).
func (r *Released) Answer(rows []PostRow, types []string) (*Answer, error) { panic("not yet") }

// Explain describes the plan without touching a row.
func (p *Plan) Explain() Explanation { panic("not yet") }

// Explanation is what an estimate shows.
type Explanation struct {
	Tree    string // the plan as text, one operator a line; the golden text
	Outputs []OutputEstimate
	Notes   []Note
}

// OutputEstimate is the price and the expected error of one release.
type OutputEstimate struct {
	Name        string // the output or release it belongs to, as the analyst wrote it
	Parameters  mechanisms.Parameters
	Bound       string // which bound, and where it comes from ("people.age in [17, 90], policy")
	Sensitivity string // in the output's unit
	HalfWidth   *big.Rat
	Loss        mechanisms.Loss
	// Private keys only: numbers of units at which a group is shown with probability 50, 95 and 99 %.
	ShownAt []ShownAt
}

// ShownAt says from how many units on a private group is shown with at least Probability.
type ShownAt struct {
	Probability float64
	Units       int64
}
