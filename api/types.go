// Package api is what Noisegate says over HTTP: the wire types, the problem document, the OpenAPI description and a
// small client.
//
// It knows names, shapes and JSON. It does not know the gateway, budgets' arithmetic or SQL, and imports nothing but
// the standard library, so that other programs can use it alone. The names are a public contract: people script against
// them, and openapi.json (checked by a test) describes each of them.
package api

import (
	"encoding/json"
	"strconv"
	"time"
)

// QueryRequest is the body of POST /v1/query and POST /v1/query/estimate.
type QueryRequest struct {
	Dataset string `json:"dataset"`
	SQL     string `json:"sql"`
	// Params are the values of $1, $2, ... in the text: null, true, false, a number, a string, which takes the type of its context, or
	// {"type": "date", "value": "2024-01-31"}. The question is that of the text with these constants.
	Params []json.RawMessage `json:"params,omitempty"`
	// At most one of Epsilon, Rho and MaxError is given: the price of the whole query. Without one it costs the
	// policy's default, the smallest of the caller's accounts, and is refused where there is none.
	Epsilon Decimal `json:"epsilon,omitempty"`
	Rho     Decimal `json:"rho,omitempty"`
	// MaxError asks for the cheapest charge at which the half-width of the named output stays within the number.
	MaxError map[string]Decimal `json:"max_error,omitempty"`
	// Weights say how much the error of each named output matters: the price is split over the releases so that the weighted sum
	// of their variances is smallest. Outputs that are not named weigh 1. Without weights the price is split evenly.
	Weights map[string]Decimal `json:"weights,omitempty"`
	// Delta pays for the selection of private group keys, and for Gaussian noise that is priced in ε. Without one, a query that
	// needs it takes the policy's default, if there is one.
	Delta     Decimal `json:"delta,omitempty"`
	Mechanism string  `json:"mechanism,omitempty"` // auto (default), laplace or gaussian: the noise of sums
	// Selection is how quantiles, modes and first groups are chosen: exponential, permute_and_flip or report_noisy_max; the most
	// accurate one when absent. A query that only selects may name it as its mechanism.
	Selection  string      `json:"selection,omitempty"`
	Confidence *Confidence `json:"confidence,omitempty"` // of the intervals: a level, 0.95 when absent, or an object
	Dialect    string      `json:"dialect,omitempty"`    // postgresql (default) or mysql
	MaxGroups  *int64      `json:"max_groups,omitempty"` // tightens the policy's bound
	MaxRows    *int64      `json:"max_rows,omitempty"`   // tightens the policy's bound
	// MaxRowsTotal bounds a unit's rows in all groups together; it tightens the policy's bound, if there is one.
	MaxRowsTotal *int64 `json:"max_rows_total,omitempty"`
	// Report names a figure to buy with the answer, at a part of its price: "kept" buys the part of the rows that the bounds keep.
	Report string `json:"report,omitempty"`
	// Prepared says whether a prepared copy of a table may answer in its place, where there is one; true when absent.
	Prepared *bool `json:"prepared,omitempty"`
	// Version "latest" asks the rows that there are now, and is charged each time, where an earlier answer would be given free. Of a prepared
	// copy it asks the newest version, once.
	Version string `json:"version,omitempty"`
	// Plan is a registered plan whose next slots pay for the query, one for each release: it goes without a price.
	Plan string `json:"plan,omitempty"`
	// AtMost is the most that the request may be charged; above it the request is refused, free. It is no part of the question.
	AtMost *Price `json:"at_most,omitempty"`
	// RequireUseful refuses, free, a question where less than this part of the rows can be useful, in (0, 1]. It refuses nothing where that
	// is not known: with private keys, or where the policy does not say about how many people there are. It is no part of the question.
	RequireUseful *float64 `json:"require_useful,omitempty"`
	// Wait limits the seconds that the request waits for its answer. After them the gateway replies with the place to ask for it again. When
	// absent, the request waits until there is an answer. Wait is no part of the question.
	Wait *int64 `json:"wait,omitempty"`
	// TimeZone is that of a session, where it is not UTC: what depends on it is refused. HTTP has no other than UTC.
	TimeZone string `json:"-"`
}

// QueryJob is a question that goes on while its client does not wait: GET /v1/query/{job_id} gives its answer.
type QueryJob struct {
	JobID string `json:"job_id"`
	State string `json:"state"` // running
}

// Price is the most that a request may be charged: Epsilon, Rho or both, and Delta, which is 0 when absent. The comparison is exact. What
// has no finite ε, as Gaussian noise, is above every Epsilon. A request that was paid for before is free, whatever the price.
type Price struct {
	Epsilon Decimal `json:"epsilon,omitempty"`
	Rho     Decimal `json:"rho,omitempty"`
	Delta   Decimal `json:"delta,omitempty"`
}

// PlanRequest is the body of POST /v1/plans: an ordered list of noises that is paid for at once, for less than its parts.
type PlanRequest struct {
	Dataset    string          `json:"dataset"`
	Delta      Decimal         `json:"delta"` // at which the list is priced; above 0
	Mechanisms []PlanMechanism `json:"mechanisms"`
	AtMost     *Price          `json:"at_most,omitempty"` // the most that the list may be charged
}

// PlanMechanism is a number of equal slots.
type PlanMechanism struct {
	Mechanism string  `json:"mechanism"`         // laplace or gaussian
	Epsilon   Decimal `json:"epsilon,omitempty"` // laplace
	Rho       Decimal `json:"rho,omitempty"`     // gaussian
	Count     *int64  `json:"count,omitempty"`   // 1 when absent
}

// Plan is the answer to POST /v1/plans and GET /v1/plans/{id}.
type Plan struct {
	PlanID       string          `json:"plan_id"`
	Dataset      string          `json:"dataset"`
	Cost         Amounts         `json:"cost"` // of the whole plan, charged when it was registered
	Slots        int             `json:"slots"`
	Drawn        int             `json:"drawn"`
	Left         []PlanMechanism `json:"left"` // in the order in which they will be drawn
	RegisteredAt time.Time       `json:"registered_at"`
}

// QueryResponse is the answer to POST /v1/query.
type QueryResponse struct {
	ReleaseID string `json:"release_id"` // empty for an answer that reads nothing private: it is not stored
	Dataset   string `json:"dataset"`
	// Replayed says that the answer was paid for before, and is free: by the same question, whose answer it is, or by one
	// with the same release, from whose values it is computed. ReleaseID is that one's.
	Replayed bool `json:"replayed"`
	Result
	Spent     Amounts `json:"spent"`     // what this request was charged; zero when replayed
	Remaining Amounts `json:"remaining"` // what is left in the analyst's own account
	// ReleasedAt is, of a replay, when the charge that paid for it was settled (of one whose gateway died: expired), and
	// DataVersion the steward's name for the state of the data then, if it has one; absent in replays by Idempotency-Key.
	ReleasedAt  *time.Time `json:"released_at,omitempty"`
	DataVersion string     `json:"data_version,omitempty"`
	// AsOf is, of a replay, when it was released, as its note "replayed" says: later rows are not in it. Of an answer from a prepared copy it
	// is the time of the copy's rows, and DataVersion names the copy. Absent of what was released now.
	AsOf *time.Time `json:"as_of,omitempty"`
	// Newer is, of a free answer from an earlier version of a prepared copy, the version that is there now: "version": "latest" asks it.
	Newer *Newer `json:"newer,omitempty"`
}

// Newer is the version of a prepared copy that is there now.
type Newer struct {
	DataVersion string    `json:"data_version"`
	AsOf        time.Time `json:"as_of"`           // the time of its rows
	Price       *Amounts  `json:"price,omitempty"` // of an answer from it; absent where the policy would refuse that
	// Affordable says whether your own account pays that now; absent without a price, and from gateways that do not say it.
	Affordable *bool `json:"affordable,omitempty"`
}

// Result is the released part of an answer: noisy values only. It is stored once and replayed byte for byte.
type Result struct {
	Columns   []Column    `json:"columns"`
	Rows      [][]Value   `json:"rows"`
	Intervals [][]*Bounds `json:"intervals"` // parallel to Rows; null where there is none
	Notes     []Note      `json:"notes"`
	// Report has the figure that was bought with the answer: which part of the rows its bounds keep.
	Report *ReportedShare `json:"report,omitempty"`
	// Useful counts the useful rows; absent where no value has an interval.
	Useful *Useful `json:"useful,omitempty"`
}

// ReportedShare is a part of the rows, over all groups together.
type ReportedShare struct {
	Kind     string `json:"kind"`               // kept: the part that is in the figures
	Share    Value  `json:"share"`              // in [0, 1]; null where the noise hides it
	Interval Bounds `json:"interval"`           // of the share, at the level of the answer's intervals
	KeptCap  int64  `json:"kept_cap,omitempty"` // so many rows of one unit are looked at; absent: all
}

// Column describes one output column.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // PostgreSQL's name
	Kind        string `json:"kind"` // key, aggregate, derived; public of an answer that reads nothing private
	Mechanism   string `json:"mechanism,omitempty"`
	Selection   string `json:"selection,omitempty"`   // of a value that was selected: how
	Sensitivity string `json:"sensitivity,omitempty"` // in the unit of the column
	Scale       string `json:"scale,omitempty"`       // Laplace b or Gaussian σ², in the unit of the column
	HalfWidth   Value  `json:"half_width"`            // at the requested confidence; null for keys and where there is none
	// Digits is a hint for those who show numbers to people: how many decimal places leave two digits of the narrowest interval, and no
	// more than the numbers have. What follows is drowned in noise. Absent where there is no interval.
	Digits *int `json:"digits,omitempty"`
	// RankError says of a value that was selected (a quantile, a mode) how many rows it is off at most, at the requested confidence.
	RankError Decimal `json:"rank_error,omitempty"`
	// Bias says in which direction values are off if rows or groups of a unit were left out: "low" or "unknown". Intervals do not include
	// it. Absent where nothing is left out.
	Bias string `json:"bias,omitempty"`
}

// Bounds are the two ends of an interval.
type Bounds [2]Value

// Note says what an answer does not say by itself. Code is stable, Text is for people.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Amounts are privacy losses in each currency. The epsilon of a release is null when it has no finite pure ε (Gaussian
// noise). Accounts and entries of the ledger count such a release by an ε that holds but for a tail, a δ of 10⁻¹⁸.
type Amounts struct {
	Epsilon Decimal `json:"epsilon"`
	Rho     Decimal `json:"rho"`
	Delta   Decimal `json:"delta"`
	Tail    Decimal `json:"tail,omitempty"` // the sum of the tails
}

// Cancellation answers who cancelled a running question.
type Cancellation struct {
	IdempotencyKey string `json:"idempotency_key,omitempty"` // by which it was cancelled, or
	JobID          string `json:"job_id,omitempty"`
	Status         string `json:"status"` // stopping
	Text           string `json:"text"`   // what becomes of the charge
}

// EstimateResponse is the answer to POST /v1/query/estimate. It costs nothing and depends on no row.
type EstimateResponse struct {
	Dataset    string  `json:"dataset"`
	Price      Amounts `json:"price"`
	Remaining  Amounts `json:"remaining"`
	Affordable bool    `json:"affordable"` // by the analyst's own account
	// Replayed says that the analyst paid for all of this before: the answer is free, and Price is what it would cost anew.
	Replayed   bool    `json:"replayed,omitempty"`
	Confidence float64 `json:"confidence"`
	// Simultaneous: the half-widths are those of intervals that all hold together.
	Simultaneous bool             `json:"simultaneous,omitempty"`
	Outputs      []OutputEstimate `json:"outputs"`
	// Useful says from which value on a row is useful; absent where that is not known before there is an answer.
	Useful *UsefulEstimate `json:"useful,omitempty"`
	Plan   string          `json:"plan"`
	Notes  []Note          `json:"notes"`
	// AsOf and DataVersion are, where a prepared copy would answer, the time of its rows and its name.
	AsOf        *time.Time `json:"as_of,omitempty"`
	DataVersion string     `json:"data_version,omitempty"`
}

// OutputEstimate is the price and the expected error of one release inside a query.
type OutputEstimate struct {
	Name        string    `json:"name"`              // what is released, as the analyst could have written it
	Columns     []string  `json:"columns,omitempty"` // of the answer, that are computed from it; absent where rows of it are computed on
	Mechanism   string    `json:"mechanism"`
	Selection   string    `json:"selection,omitempty"` // of selections: how
	Bound       string    `json:"bound,omitempty"`
	Sensitivity string    `json:"sensitivity,omitempty"`
	Scale       string    `json:"scale,omitempty"`
	Variance    string    `json:"variance,omitempty"`
	HalfWidth   Value     `json:"half_width"`
	RankError   Decimal   `json:"rank_error,omitempty"` // of selections: in rows, at the requested confidence
	Price       Amounts   `json:"price"`                // its share of the whole price
	Weight      Decimal   `json:"weight,omitempty"`     // by which it got its share; absent when the split is even
	ShownAt     []ShownAt `json:"shown_at,omitempty"`   // private keys only
}

// ShownAt says from how many units on a private group appears with at least Probability.
type ShownAt struct {
	Probability float64 `json:"probability"`
	Units       int64   `json:"units"`
}

// DatasetList is the answer to GET /v1/datasets.
type DatasetList struct {
	Datasets      []Dataset `json:"datasets"`
	WithoutPolicy []string  `json:"without_policy,omitempty"` // for stewards: those that no policy was applied to yet
}

// Dataset is what analysts may know of a dataset: everything in it is public.
type Dataset struct {
	Name    string  `json:"name"`
	Version int64   `json:"version"` // of the policy
	Tables  []Table `json:"tables"`
}

// Table is one exposed table.
type Table struct {
	Schema    string `json:"schema"`
	Name      string `json:"name"`
	Public    bool   `json:"public"`
	Unit      *Unit  `json:"unit,omitempty"` // absent for public tables
	MaxRows   int64  `json:"max_rows,omitempty"`
	MaxGroups int64  `json:"max_groups,omitempty"`
	MaxValues int64  `json:"max_values,omitempty"` // absent: as many as max_rows
	// MaxRowsTotal bounds a unit's rows in all groups together; absent: max_rows in each of max_groups.
	MaxRowsTotal int64 `json:"max_rows_total,omitempty"`
	// NotCovered are kinds of units that rows of the table are about too, and that answers about it do not protect.
	NotCovered []string      `json:"not_covered,omitempty"`
	Columns    []TableColumn `json:"columns"`
}

// Unit is what one privacy unit of a table is.
type Unit struct {
	Kind   string `json:"kind"` // row, column or path
	Column string `json:"column"`
	To     string `json:"to,omitempty"` // path: the table it leads to
	Of     string `json:"of,omitempty"` // the kind of unit; only rows of one kind are joined
}

// TableColumn is one exposed column of a table.
type TableColumn struct {
	Name   string        `json:"name"`
	Type   string        `json:"type"`
	Bounds *ColumnBounds `json:"bounds,omitempty"`
	Keys   string        `json:"keys,omitempty"`   // public or private, when the column may be grouped by
	Domain []*string     `json:"domain,omitempty"` // the public keys, null among them if declared
}

// ColumnBounds are declared bounds: numbers as such, dates and times in ISO form.
type ColumnBounds struct {
	Lo   string `json:"lo"`
	Hi   string `json:"hi"`
	Step string `json:"step,omitempty"`
}

// BudgetResponse is the answer to GET /v1/budget.
type BudgetResponse struct {
	Budgets []DatasetBudget `json:"budgets"`
}

// DatasetBudget is the caller's own budget for one dataset.
type DatasetBudget struct {
	Dataset   string      `json:"dataset"`
	Account   string      `json:"account"` // analyst:ana, or group:x for a shared account
	Limit     BudgetLimit `json:"limit"`
	Spent     Amounts     `json:"spent"`
	Reserved  Amounts     `json:"reserved"`
	Remaining Amounts     `json:"remaining"`
	Lifetime  Amounts     `json:"lifetime"` // all that was ever charged
	Usage     Usage       `json:"usage"`
	Frozen    bool        `json:"frozen"` // a steward stopped all charges; replays stay free
	// NextTranche is when more of the limit is released; absent when all of it is.
	NextTranche *time.Time `json:"next_tranche,omitempty"`
	// Shared are the accounts that the caller's questions are charged to besides. Of them figures are not shown.
	Shared []SharedAccount `json:"shared"`
	Advice string          `json:"advice"` // in plain words: about n more counts
}

// Usage is how much of what is released of a cap is spent or reserved. An account goes on while one of its rules for ε and
// ρ admits more, and that for δ: Rule is the one that binds.
type Usage struct {
	Rule    string  `json:"rule"`    // epsilon, rho or delta
	Percent Decimal `json:"percent"` // under that rule, rounded up to a tenth; 100 also where a lowered cap is overdrawn
}

// SharedAccount is an account that others draw on too, with what may refuse a question whatever they spent.
type SharedAccount struct {
	Account            string  `json:"account"` // dataset or group:x
	Form               string  `json:"form"`
	MaxEpsilonPerQuery Decimal `json:"max_epsilon_per_query,omitempty"`
	ReplayOnly         bool    `json:"replay_only,omitempty"`
}

// BudgetLimit is the cap of an account.
type BudgetLimit struct {
	Form               string   `json:"form,omitempty"` // pure, zcdp or approx
	Epsilon            Decimal  `json:"epsilon,omitempty"`
	Rho                Decimal  `json:"rho,omitempty"`
	Delta              Decimal  `json:"delta,omitempty"`
	MaxEpsilonPerQuery Decimal  `json:"max_epsilon_per_query,omitempty"`
	ReplayOnly         bool     `json:"replay_only,omitempty"`
	Tranche            *Tranche `json:"tranche,omitempty"`
	Rate               *Rate    `json:"rate,omitempty"`
}

// LimitChange is the body of PUT /v1/datasets/{dataset}/budgets/{account}: the limit, and where it takes two stewards the second one's
// signature, over what budget.LimitChange.Text has.
type LimitChange struct {
	BudgetLimit
	Signature *RefillSignature `json:"signature,omitempty"`
}

// Tranche releases a cap in parts: one at once, and another after each period. The cap stays the promise of a lifetime.
type Tranche struct {
	Every   string  `json:"every"` // 90s, 1m, 12h, 30d
	Epsilon Decimal `json:"epsilon,omitempty"`
	Rho     Decimal `json:"rho,omitempty"` // form zcdp
}

// Rate is how much may be spent in how short a time.
type Rate struct {
	Epsilon Decimal `json:"epsilon"`
	Per     string  `json:"per"` // 90s, 1m, 12h
}

// Refill raises the cap of an account: the body of POST /v1/datasets/{dataset}/budgets/{account}/refill. It raises what the
// account may lose in a lifetime, also when the data are the same.
type Refill struct {
	Epsilon Decimal `json:"epsilon,omitempty"` // forms pure and approx
	Rho     Decimal `json:"rho,omitempty"`     // form zcdp
	Delta   Decimal `json:"delta,omitempty"`
	Reason  string  `json:"reason,omitempty"` // for the journal
	// Signature is needed where the dataset has keys of stewards.
	Signature *RefillSignature `json:"signature,omitempty"`
}

// RefillSignature is a steward's Ed25519 signature under a refill, and what else it is over: budget.Refill.Text. Where it takes two
// stewards it is the second one's, and names both.
type RefillSignature struct {
	Number    int64     `json:"number"`             // which refill or signed change of the account it is: one more than the account says
	Lifetime  Promise   `json:"lifetime"`           // of the account afterwards
	SignedAt  time.Time `json:"signed_at"`          // at most a day ago, whole seconds
	Key       string    `json:"key"`                // which key: the beginning of its SHA-256, in hexadecimal
	Signature string    `json:"signature"`          // base64
	Proposer  string    `json:"proposer,omitempty"` // subject of the token that sends it
	Approver  string    `json:"approver,omitempty"` // whose key it is, as the gateway's configuration has it
	Ledger    string    `json:"ledger,omitempty"`   // that it is for, as a head of GET /v1/audit names it; needed
}

// Clock is the body of POST /v1/datasets/{dataset}/clock, and its answer: from when the time of the dataset's ledger goes on, after an
// entry was written at a time of the future. To is within 60 s of the clocks of the ledger's server and of the gateway.
type Clock struct {
	To       time.Time `json:"to"`
	Reason   string    `json:"reason"`             // for the journal
	Approval *Approval `json:"approval,omitempty"` // needed where the policy has any changes that take two stewards: budget.SetBack.Text
}

// Approval is a second steward's signature under a change of a policy, as the header Noisegate-Approval of
// PUT /v1/datasets/{dataset}/policy takes it: over dataset, version that is replaced, text, both names and time (budget.PolicyChange.Text).
// Of a [Clock] it is over another text.
type Approval struct {
	Proposer          string    `json:"proposer"`  // subject of the token that sends it
	Approver          string    `json:"approver"`  // whose key it is, as the gateway's configuration has it
	SignedAt          time.Time `json:"signed_at"` // at most a day ago, whole seconds
	Key               string    `json:"key"`       // which key: the beginning of its SHA-256, in hexadecimal
	Signature         string    `json:"signature"` // base64
	ProposerKey       string    `json:"proposer_key,omitempty"`
	ProposerSignature string    `json:"proposer_signature,omitempty"` // needed where the token that sends it is not the proposer's
	Ledger            string    `json:"ledger,omitempty"`             // that it is for, as a review of the policy names it; needed
}

// Promise is the most that can be lost, as (ε, δ). Epsilon is null when no finite ε is known.
type Promise struct {
	Epsilon Decimal `json:"epsilon"`
	Delta   Decimal `json:"delta"`
}

// Account is a steward's view of one account.
type Account struct {
	Dataset string      `json:"dataset"`
	Account string      `json:"account"` // dataset, group:x or analyst:x
	Origin  string      `json:"origin"`  // policy or steward
	Limit   BudgetLimit `json:"limit"`
	// Due says that the limit is of an older policy: what the one in force gives is written when the account is next charged.
	Due       bool    `json:"due,omitempty"`
	Spent     Amounts `json:"spent"`
	Reserved  Amounts `json:"reserved"`
	Remaining Amounts `json:"remaining"` // of what is released so far
	// Lifetime is what the cap promises for all time, WorstCase what can be lost by a year from now: less while tranches are closed.
	Lifetime    Promise    `json:"lifetime"`
	WorstCase   Promise    `json:"worst_case_year"`
	Usage       Usage      `json:"usage"`
	Frozen      bool       `json:"frozen"`
	Refills     int64      `json:"refills"`                // how often the cap was refilled
	NextTranche *time.Time `json:"next_tranche,omitempty"` // when more of the cap is released
	Advice      string     `json:"advice"`                 // in plain words: about n more counts
}

// Failures are an analyst's failures on a dataset that count no more.
type Failures struct {
	Dataset     string `json:"dataset"`
	Account     string `json:"account"`      // analyst:NAME
	Reset       int64  `json:"reset"`        // how many of the last 24 hours counted until now
	MaxFailures int64  `json:"max_failures"` // how many stop further questions
}

// AccountList is the answer to GET /v1/datasets/{dataset}/budgets.
type AccountList struct {
	Accounts []Account `json:"accounts"`
}

// ReleaseList is a page of GET /v1/releases, newest first.
type ReleaseList struct {
	Releases   []ReleaseSummary `json:"releases"`
	NextCursor string           `json:"next_cursor,omitempty"` // absent on the last page
}

// ReleaseSummary is one past answer without its values.
type ReleaseSummary struct {
	ReleaseID string       `json:"release_id"`
	Dataset   string       `json:"dataset"`
	Request   QueryRequest `json:"request"`
	Cost      Amounts      `json:"cost"`
	At        time.Time    `json:"at"`
}

// Release is one past answer: GET /v1/releases/{id}. It never changes.
type Release struct {
	ReleaseSummary
	Result
}

// PolicyApplied is the answer to PUT /v1/datasets/{dataset}/policy.
type PolicyApplied struct {
	Dataset string `json:"dataset"`
	Version int64  `json:"version"`
	Digest  string `json:"digest"` // SHA-256 in hexadecimal
}

// Health is the answer of /healthz and /readyz.
type Health struct {
	Status string            `json:"status"`           // ok or unavailable
	Checks map[string]string `json:"checks,omitempty"` // readyz: what is up, by name
}

// Problem is a refusal or a failure (RFC 9457, application/problem+json). The client returns it as an error.
type Problem struct {
	Type      string    `json:"type"` // ends in the code
	Title     string    `json:"title"`
	Status    int       `json:"status"`
	Detail    string    `json:"detail"`
	Hint      string    `json:"hint,omitempty"`
	Code      string    `json:"code"` // area/name; see docs/errors.md
	Position  *Position `json:"position,omitempty"`
	RequestID string    `json:"request_id"`
	// Extra holds further members: needed, remaining and affordable_epsilon of budget/exhausted, or suggestion (and then, differs) of
	// refused queries, a query that would be accepted, among others.
	Extra map[string]string `json:"-"`
}

// Position is a place in the SQL text or policy file, counted from 1 in characters.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Error renders code, position, detail and hint for people.
func (p *Problem) Error() string {
	text := p.Code + ": "
	if p.Position != nil {
		text += strconv.Itoa(p.Position.Line) + ":" + strconv.Itoa(p.Position.Column) + ": "
	}
	text += p.Detail
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}
