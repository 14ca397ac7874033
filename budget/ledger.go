// Package budget says who may still spend: limits, their rule of admission, and the interface of the ledger.
//
// It knows accounts and charges. It does not know SQL text, votes, HTTP or tokens, nor where a ledger is kept. Its packages; each may
// import those above it:
//
//	accounting         what losses add up to: zCDP, RDP, PLD
//	budget             limits, admission, Ledger and its types
//	internal/machine   the state machine of a ledger
//	journal            the chain of entries, receipts, auditor, checkpoints
//	pgledger           the ledger in PostgreSQL
//	budgettest         a ledger in memory, and the suite that both ledgers pass
//
// The life of a charge:
//
//	           Reserve (committed before any row is read)
//	              │
//	              ▼
//	Void ◀───── open ─────▶ settled      Settle: the answer is stored, for replay
//	(no row        │
//	 was read)     └──────▶ expired      Expire: failed or crashed after data may have been read; counts as spent
//
// States, limits and sums are enforced by CHECK constraints in PostgreSQL as well as here.
package budget

import (
	"context"
	"encoding/json"
	"time"

	"noisegate.example/mechanisms"
)

// Scope is whose account it is. The order of the constants is the order in which a charge locks accounts.
type Scope string

// The scopes.
const (
	DatasetScope Scope = "dataset"
	GroupScope   Scope = "group"
	AnalystScope Scope = "analyst"
)

// AccountID names an account.
type AccountID struct {
	Dataset string
	Scope   Scope
	Name    string // group or analyst; empty for the dataset's own account
}

// Form is how an account adds up losses.
type Form string

const (
	Pure   Form = "pure"   // Σε <= E
	ZCDP   Form = "zcdp"   // Σρ <= R
	Approx Form = "approx" // (E, δ): Σε <= E, or Σρ <= ρ*(E, δ/2); and Σδ <= δ/2 when approximate parts are spent; see [NewLimit]
)

// Limit is an account's cap in every currency at once. A charge is admitted iff afterwards
//
//	Σδ + min(Στ, T) <= Delta  and  ( (no loss is unbounded, Σε <= Epsilon and Στ <= T)  or  Σρ <= Rho )
//
// with τ the tails of losses, and T a 32nd of TotalDelta in form approx, else 0.
// A clause whose cap is [Never] admits nothing. The three forms are three ways to fill in the caps (see [NewLimit]).
type Limit struct {
	Form       Form
	Epsilon    mechanisms.PicoEpsilon // cap of the ε clause, or Never
	Rho        mechanisms.PicoRho     // cap of the ρ clause, or Never
	Delta      mechanisms.AttoDelta
	TotalDelta mechanisms.AttoDelta   // the δ of the promise as declared (approx: conversion and spending together)
	PerQuery   mechanisms.PicoEpsilon // cap on the ε of one query; 0: none
	// PerQueryRho is the cap on the ρ of one query without a finite ε: what [accounting.RhoFor] gives for PerQuery.
	PerQueryRho mechanisms.PicoRho
	ReplayOnly  bool
	Tranche     Tranche
	Rate        Rate
}

// Tranche releases a cap in parts: at first and then after each Every, so much more of it, until all is released. What is not spent
// stays available. The cap is the promise of a lifetime, whatever the tranche; see [Limit.Released].
type Tranche struct {
	Every   time.Duration // whole microseconds; 0: the whole cap at once
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho // form zcdp
}

// Rate is a brake: at most Epsilon at once, which wears off within Per. No time t sees more than Epsilon·(1 + t/Per). It is not a
// promise about privacy; that is the cap.
type Rate struct {
	Per     time.Duration // whole microseconds; 0: no brake
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho // what counts as Epsilon for losses that have no finite ε of their own
}

// Never is a cap that admits no charge in its clause.
const Never = -1

// Origin says who set an account's limit.
type Origin string

const (
	FromPolicy  Origin = "policy"
	FromSteward Origin = "steward" // survives the next policy
)

// Account is an account with its limit, as a charge or a steward names it.
type Account struct {
	ID     AccountID
	Limit  Limit
	Origin Origin
	// Version is the policy's that gives the limit; 0 for a steward's. A gateway that still holds an older policy than the one that set
	// a limit does not set it back.
	Version int64
}

// Balance is the state of one account.
type Balance struct {
	Account
	Spent    mechanisms.Loss // settled and expired
	Reserved mechanisms.Loss // open
	Frozen   bool            // takes no charge until a steward thaws it; its limit stays as it is
	Opened   time.Time       // tranches count from here
	Busy     time.Time       // when all that the rate counts has worn off
	Refills  int64           // how often the account was refilled
	RaisedBy string          // who, alone, raised it last: for them it pays nothing; "": nobody
}

// ReservationID identifies a charge and its release; it is chosen by the caller (a ULID).
type ReservationID string

// Charge is one request for budget.
type Charge struct {
	ID      ReservationID
	Dataset string
	Analyst string
	// Accounts are charged together or not at all. Accounts that do not exist yet are opened with the limit given here; those
	// that exist keep the limit they have.
	Accounts []Account
	Loss     mechanisms.Loss
	// Ceiling is the most that Loss may be; nil: whatever the accounts admit. A replay is free and has none.
	Ceiling *Ceiling
	// Least is the smallest ε at which the analyst may ask: a refusal says of no smaller one that it fits.
	Least mechanisms.PicoEpsilon
	// Mechanisms are the parameters of every release in the charge, so that any accountant can recompute it later.
	Mechanisms []mechanisms.Parameters
	// Fingerprint identifies the question: analyst's canonical query, parameters and dataset version. The same analyst asking the same
	// question again gets the stored answer.
	Fingerprint [32]byte
	// IdempotencyKey is the client's name for the request; "" for none. The same key with another RequestDigest is refused.
	IdempotencyKey string
	RequestDigest  [32]byte
	// Request is shown back to its owner in the list of releases (the SQL text and options, as JSON).
	Request json.RawMessage
	// Registers are the slots of a plan that the charge pays for; the plan gets the charge's id and can be drawn from once the
	// Charge is settled. It is no release: what Releases and Release show are answers.
	Registers []mechanisms.Slot
	// Shared lets [Ledger.Replay] also give the answer that another analyst was given to the same question. Callers set it where the policy
	// shares releases.
	Shared bool
	// Levels is how many losses the charge may settle with, as far as what it releases decides that: 0 and 1 say that it
	// is settled. A charge for labels whose checks may fail has one for each number of them. Its tail counts so often;
	// docs/accounting.md has the proof.
	Levels int64
	// Draws are the slots of a plan that the question uses. Its Loss is zero: the plan was paid for; or that of a random
	// delay, which no slot pays for.
	Draws *Draw
	// Policy is the version under which the charge is made; zero: none. It is refused where that is not what is stored: a failover lost it.
	Policy Policy
}

// Policy names a version of a dataset's policy, as it is stored: after a failover another one may have its number.
type Policy struct {
	Version int64
	Digest  [32]byte
}

// Reservation is an open charge.
type Reservation struct {
	ID ReservationID
	// Used is what each account has spent and reserved with this charge, in lock order (dataset, groups, analysts, each by name).
	Used []mechanisms.Loss
}

// Stored is the answer of a settled charge.
type Stored struct {
	ID        ReservationID
	Dataset   string
	Analyst   string
	Request   json.RawMessage
	Answer    []byte // as given to Settle, byte for byte
	Loss      mechanisms.Loss
	SettledAt time.Time
}

// Bought says for which charge to look.
type Bought struct {
	Dataset, Analyst string
	Request          json.RawMessage // byte for byte
	Since            time.Time       // it was settled then or later
}

// Again names a charge whose answer is to be given again, and the accounts of the caller.
type Again struct {
	Dataset  string
	Analyst  string
	Charge   ReservationID
	Accounts []AccountID
}

// Apart is what a charge released where that is not the same for all its accounts: of what is given to one analyst
// after it was released to another, the analyst pays all, and those who answer for the people in the data, the dataset
// and the ensemble, pay nothing once more.
type Apart struct {
	Own    mechanisms.Loss // of analysts and groups: what the charge counts as
	Shared mechanisms.Loss // of the dataset and the ensemble: at most Own, in every currency
}

// Outcome of Reserve: exactly one field is set.
type Outcome struct {
	Reserved *Reservation
	Replay   *Stored
}

// EntryKind is what an entry of the ledger's journal records.
type EntryKind string

const (
	EntryReserve EntryKind = "reserve"
	EntrySettle  EntryKind = "settle"
	EntryVoid    EntryKind = "void"
	EntryExpire  EntryKind = "expire"
	EntryLimit   EntryKind = "limit"
	EntryRefill  EntryKind = "refill"
	EntryFreeze  EntryKind = "freeze"
	EntryThaw    EntryKind = "thaw"
	EntryFail    EntryKind = "fail"   // an expiry that counts as a failure of the analyst's
	EntryReset   EntryKind = "reset"  // an analyst's failures until here count no more
	EntryImport  EntryKind = "import" // votes are read into an ensemble, or were about to be
	EntryPolicy  EntryKind = "policy" // a version of the policy is in force
	EntryFree    EntryKind = "free"   // an analyst may read public tables so many times; see [FreeReads]
	EntryKeys    EntryKind = "keys"   // whose signatures count from here on
	// A charge that was lost is booked again: see [Recharge].
	EntryRecharge EntryKind = "recharge"
	EntryResume   EntryKind = "resume" // the dataset goes on without entries that are lost: see [Resume]
	// EntryArchive says that older entries were moved to a file; see journal.Archived.
	EntryArchive EntryKind = "archive"
	EntryClock   EntryKind = "clock" // the dataset's time goes on from an earlier one: see [SetBack]
)

// Entry is one line of the append-only journal. Each dataset's entries are a chain: see journal.HashAfter.
type Entry struct {
	Seq         int64
	At          time.Time // the dataset's time: the server's clock, which goes back here only by [SetBack]; whole microseconds, UTC
	Kind        EntryKind
	Dataset     string
	Analyst     string // who spent; for limits, refills, freezes and resets, who did it
	Reservation ReservationID
	AccountIDs  []int64         // the accounts that it is about, as the ledger numbers them
	Loss        mechanisms.Loss // of charges, what it counts as from this entry on, zero once it is voided; of refills, what was added
	// Shared is, of settlements, what the charge counts as for the dataset and the ensemble, where that is less; see
	// [Apart]. Nil: the same.
	Shared *mechanisms.Loss
	// Digest is, of reservations, the SHA-256 of fingerprint and request; of settlements and recharges, that of the answer.
	Digest []byte
	// MechanismText and AccountText are JSON as the ledger keeps it, byte for byte; an empty one, nil or not, stands for none.
	MechanismText []byte // reservations: every release's parameters, and slots of plans that are paid for or drawn
	// AccountText: of limits, refills and freezes, the account and its limit from here on; of resets whose failures, of imports which votes,
	// of policies which version, of free reads how many, of keys which; of recharges the receipt, of resumes what is lost, of archives
	// which file, of clocks why.
	AccountText []byte
	Hash        [32]byte

	// What the texts say.
	Mechanisms []mechanisms.Parameters
	Account    *AccountID
	Limit      *Limit
}

// Head is the end of a dataset's chain of entries. The zero Seq stands for the empty chain.
type Head struct {
	Dataset string
	Seq     int64    // of the newest entry
	Hash    [32]byte // of the newest entry
}

// Page asks for a part of a list, newest first.
type Page struct {
	Before  int64 // entries with a smaller sequence number; 0: from the newest
	Forward bool  // of entries: oldest first, those after After
	After   int64
	Limit   int
	Dataset string // of entries: only this dataset's; "" for all
}

// Ledger is durable privacy accounting. Implementations are safe for concurrent use by several processes.
//
// Errors are budget/* and request/* faults, or data/unavailable when the ledger cannot be reached; in the last case
// Reserve may or may not have been committed, and an uncommitted answer must not be released.
type Ledger interface {
	// Reserve commits a charge before it returns, or gives the stored answer when the same question or the same
	// idempotency key was answered before. Refusals (budget/exhausted, budget/over-query-cap, budget/replay-mismatch,
	// budget/replay-only, budget/frozen, budget/tranche-closed, budget/rate-limited, budget/lost-answer, budget/no-account,
	// request/in-flight) change nothing, nor does [ErrSlotTaken]. A charge whose context ends before it is decided is taken back.
	Reserve(context.Context, Charge) (Outcome, error)
	// Replay gives the answer that Reserve would replay, nil if it would not; if the charge is Shared, also one that another analyst paid
	// for. It charges nothing.
	Replay(context.Context, Charge) (*Stored, error)
	// Again gives what [Ledger.Replay] gives of a charge that the caller knows: its stored answer, nil unless it is settled, of the dataset
	// and the analyst's own; and accounts as [Ledger.Balances] does, read before it.
	Again(context.Context, Again) ([]Balance, *Stored, error)
	// Plan gives one plan of one analyst; plan/unknown when there is none or it is another analyst's.
	Plan(ctx context.Context, analyst string, id ReservationID) (*Plan, error)
	// Settle records what was really released (at most what was reserved) and stores the answer. The endings below may be
	// repeated; a second, different ending is an internal error, after which no answer may be released.
	Settle(context.Context, ReservationID, mechanisms.Loss, []byte) error
	// SettleApart is Settle of what costs some accounts less than others.
	SettleApart(context.Context, ReservationID, Apart, []byte) error
	// Void takes an open charge back. Only for failures before any protected row can have been read.
	Void(context.Context, ReservationID) error
	// Expire closes an open charge without an answer; what it reserved counts as spent.
	Expire(context.Context, ReservationID) error
	// Fail is Expire of work that began and failed: it counts among the analyst's failures.
	Fail(context.Context, ReservationID) error
	// Failures is how many charges of an analyst on a dataset failed within a period until now, and since the last reset.
	Failures(ctx context.Context, dataset, analyst string, within time.Duration) (int64, error)
	// ResetFailures lets an analyst's failures until now count no more. It writes an entry, unless there are none.
	ResetFailures(ctx context.Context, by string, reset Reset) error
	// RecordImport writes an entry that votes are about to be read.
	RecordImport(ctx context.Context, by string, what Import) error
	// ExpireOlder closes every charge that has been open for longer than age (crashed gateways) and says how many.
	ExpireOlder(ctx context.Context, age time.Duration) (int, error)

	// Balances gives the accounts that exist among ids, in their order.
	Balances(context.Context, []AccountID) ([]Balance, error)
	// Caller gives what [Ledger.Balances] gives of ids, and what [Ledger.Failures] gives of an analyst on a dataset, in one exchange.
	Caller(ctx context.Context, ids []AccountID, dataset, analyst string, within time.Duration) ([]Balance, int64, error)
	// DatasetBalances gives all accounts of a dataset, in lock order and then by name.
	DatasetBalances(ctx context.Context, dataset string) ([]Balance, error)
	// SetLimit opens an account or changes its limit, and writes an entry. A limit below what is spent is allowed: it blocks.
	// A limit FromPolicy does not replace one FromSteward.
	SetLimit(ctx context.Context, by string, account Account) error
	// Enforce is SetLimit by a version of the policy, and refuses (data/unavailable) one that is not what is stored.
	Enforce(ctx context.Context, policy Policy, account Account) error
	// ChangeLimit is SetLimit with a second steward's signature, which holds once, for the account as it was when it was signed; else
	// budget/signature. While the policy in force has [ForCaps] among those that take two, the others open no account for a steward, and
	// give none more than it has. That the signature holds is for the caller to check, with journal.StewardKeys.
	ChangeLimit(ctx context.Context, by string, change LimitChange) error
	// LowerLimit is SetLimit that opens an account or lowers its limit, and refuses to raise it (budget/signature).
	LowerLimit(ctx context.Context, by string, account Account) error
	// Refill adds to the cap of an account that exists; the limit is a steward's from then on. An account that does not exist is
	// request/not-found, an amount in a currency that the account's form does not have is request/budget, a mandate for another refill than
	// this one is budget/signature. That the mandate's signature holds is for the caller to check, with journal.StewardKeys.
	Refill(ctx context.Context, by string, refill Refill) error
	// Freeze stops all charges on an account that exists, or lets them go on; replays stay free. What is so already changes nothing.
	Freeze(ctx context.Context, by string, id AccountID, frozen bool) error
	// SetBack lets a dataset's time go on from one before its newest entry's that is within 60 s of the server's clock and of this
	// process's, else it is request/parameter. While the policy in force has any changes that take two stewards it wants a second
	// one's signature (budget/signature). That the signature holds is for the caller to check, with journal.StewardKeys.
	SetBack(ctx context.Context, by string, change SetBack) error

	// Releases lists the settled charges of one analyst, newest first, without their answers: those before one of them, or "" for the newest.
	Releases(ctx context.Context, analyst string, before ReservationID, limit int) ([]ReleaseInfo, error)
	// Bought is the newest settled charge of one analyst, among their newest 10,000, that was made for a request; "" for none.
	Bought(ctx context.Context, b Bought) (ReservationID, error)
	// Release gives one settled charge of one analyst; budget/unknown-release when there is none or it is another analyst's.
	Release(ctx context.Context, analyst string, id ReservationID) (*Stored, error)
	// Requests gives what was asked with charges of any analyst, whatever became of them, in their order; nil for one that does not exist.
	// The list ends with the request with which it has so many bytes.
	Requests(ctx context.Context, ids []ReservationID, bytes int) ([]json.RawMessage, error)
	// Settlement gives the entry with which a charge was settled; budget/unknown-release when there is none. It is what receipts quote.
	Settlement(ctx context.Context, id ReservationID) (Settlement, error)
	// Entries lists the journal, newest first, or as the page says.
	Entries(ctx context.Context, page Page) ([]Entry, error)

	// Head is the newest end of a dataset's chain that this process knows to be committed, its own last entries among it.
	Head(ctx context.Context, dataset string) (Head, error)
	// Verify reads a dataset's entries after from and compares them with the chain. The empty Head (but for its dataset)
	// begins at the first, and then every charge and account is compared with its entries as well. What does not agree is
	// a [*BrokenError], which names the entry.
	Verify(ctx context.Context, from Head) (Verified, error)
	// Tables are what the ledger has of a dataset next to its entries, whether or not they explain it: for exports.
	Tables(ctx context.Context, dataset string) (Tables, error)
	// Check says whether the ledger answers, and no dataset's chain is known to be broken; else it is data/unavailable, with a
	// [*BrokenError] as the cause of the latter.
	Check(ctx context.Context) error
}

// Verified is what [Ledger.Verify] read.
type Verified struct {
	Head      Head // the end that was reached
	Entries   int  // how many were compared
	Unchained int  // entries that are older than the chain itself
}

// Tables are what a ledger has of a dataset at one moment.
type Tables struct {
	Head     Head        // where the chain ends; the later one where the journal and its end disagree
	Policies []PolicyRow // oldest first
	// State is accounts, open charges and plans, and Archived the state that the rest goes on from, nil where nothing was archived: JSON
	// that journal.Replayed is read from.
	State, Archived json.RawMessage
}

// ReleaseInfo is a line of an analyst's history.
type ReleaseInfo struct {
	ID        ReservationID
	Dataset   string
	Request   json.RawMessage
	Loss      mechanisms.Loss
	SettledAt time.Time
}

// Settlement is the entry with which a charge was settled. It commits to its answer and to all entries before it, and never changes.
type Settlement struct {
	Head
	At      time.Time
	Charged *Charged
	Shared  *mechanisms.Loss // as [Entry] has it
}
