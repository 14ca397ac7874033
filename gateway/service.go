// Package gateway is Noisegate's service: it takes a question from a principal to a paid, private answer.
//
// It knows everyone: policies, the rewriter, the ledger, the protected databases, and it alone brings them together. It does
// not know HTTP, tokens or PostgreSQL's protocol. The way of a query, as ARCHITECTURE.md draws it, is [Service.Query]; what
// guards protected data is [Sell], which nothing that reads it goes around.
package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/gateway/internal/each"
	"noisegate.example/gateway/internal/held"
	"noisegate.example/gateway/released"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// Data runs the statements of a plan, in one transaction, on one protected database. Its errors are [fault.Untouched]
// if no protected row can have been read.
type Data interface {
	// Read runs what names public tables and released values only: it needs no charge.
	Read(context.Context, sqlrewrite.Post) (rows []sqlrewrite.PostRow, types []string, err error)
	Run(context.Context, ...sqlrewrite.Statement) sqlrewrite.Rows
	Trier
	// Distributed reports whether tables may lie on several servers, so that statements are to be printed for such a database.
	Distributed() bool
	Ping(context.Context) error
}

// Calculator evaluates the outer layer of a query over released values; it sees nothing protected.
type Calculator interface {
	Compute(context.Context, sqlrewrite.Post) (rows []sqlrewrite.PostRow, types []string, err error)
}

// Dataset is one protected database and how its answers leave.
type Dataset struct {
	Data Data
	// Copies are the prepared copies of its tables; nil: there are none.
	Copies Copies
	// Preparer makes these; nil: this gateway makes none.
	Preparer Preparer
	// Stewards are the keys of those who may raise caps, and approve what takes two; nil: everyone with the role of a steward raises caps.
	Stewards *Stewards
	// Quantum is the first boundary at which what was done leaves, see [Schedule]; 0: at once.
	Quantum time.Duration
	// Timeout is what work may take; with a quantum, [EffectiveTimeout] of it. 0: as long as the server lets it.
	Timeout time.Duration
	// ListTime is what one list of keys may take; the lists of one analyst may take three times that within a minute. 0: 2 s.
	ListTime time.Duration
}

// Config has the parts of a service. All fields but Values, Fairness, Answers, Log and Signer are needed.
type Config struct {
	Ledger     budget.Ledger
	Values     budget.ReleasedValues // nil: only identical questions are answered again
	InForce    budget.InForce        // the same ledger: of reads of public tables, and of policies
	Policies   Policies
	Datasets   map[string]Dataset
	Calculator Calculator
	Sampler    func() *mechanisms.Sampler // a fresh one for each query
	NewID      func(time.Time) budget.ReservationID
	Clock      Clock
	Signer     *journal.Signer // of receipts; nil: answers carry none
	Abandoned  time.Duration   // a charge that is open for longer belongs to a gateway that died
	Fairness   Fairness        // how analysts share the work
	Answers    int64           // bytes of memory for answers; 0: [DefaultAnswers]
	Log        *slog.Logger
}

// Service answers questions. It is safe for concurrent use.
type Service struct {
	questions  *gate // what may cost work: questions, estimates, plans, labels
	lists      *gate // what is read of the ledger: it never waits for a question
	catalogs   *gate // what is asked of catalog twins, which may read the ledger meanwhile
	meter      meter
	ledger     budget.Ledger
	values     budget.ReleasedValues
	flights    flights
	chain      budget.InForce
	reads      freeReads
	policies   Policies
	limits     limits
	running    running
	answered   each.Analyst[answered]
	last       each.Analyst[lastAccounts]
	jobs       jobs
	refusals   refusals
	datasets   map[string]Dataset
	calculator Calculator
	sampler    func() *mechanisms.Sampler
	newID      func(time.Time) budget.ReservationID
	clock      Clock
	signer     *journal.Signer
	abandoned  time.Duration
	log        *slog.Logger
	proofs     each.Analyst[sqlrewrite.Proofs]
	keyLists   each.Analyst[keyLists]
	noises     each.Analyst[mechanisms.Noises]
	memory     *held.Budget // of answers
	serving    serving
	preparing  preparing
	// unprintable is told to operators alone.
	unprintable atomic.Int64
	ready       readiness
}

// New checks that nothing is missing.
func New(c Config) (*Service, error) {
	if c.Ledger == nil || c.InForce == nil || c.Policies == nil || c.Calculator == nil || c.Sampler == nil || c.NewID == nil ||
		c.Clock == nil {
		return nil, errors.New("gateway: a part of the service is missing")
	}
	if c.Abandoned <= 0 {
		return nil, errors.New("gateway: the age at which open charges are abandoned must be positive")
	}
	for name, d := range c.Datasets {
		if d.Data == nil || d.Quantum < 0 || d.Timeout < 0 || d.Timeout > 0 && d.Timeout < d.Quantum {
			return nil, errors.New("gateway: dataset " + name + " is not complete")
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	fairness, err := c.Fairness.Complete()
	if err != nil {
		return nil, err
	}
	s := &Service{
		questions: newGate(fairness), lists: newGate(fairness.one()), catalogs: newGate(fairness.within(catalogWait)),
		meter: meter{ledger: c.Ledger, log: c.Log}, ledger: c.Ledger,
		values: c.Values, chain: c.InForce, policies: c.Policies, datasets: c.Datasets,
		calculator: c.Calculator, sampler: c.Sampler, newID: c.NewID, clock: c.Clock, signer: c.Signer,
		abandoned: c.Abandoned, log: c.Log,
	}
	if c.Answers <= 0 {
		c.Answers = DefaultAnswers()
	}
	s.memory = held.New(c.Answers)
	s.refusals.begin(c.Datasets, c.Clock.Now())
	return s, nil
}

// Request is one question as a client put it.
type Request struct {
	api.QueryRequest
	IdempotencyKey string // "" for none
	// Name is what [Service.Cancel] calls the question by while it runs, where there is no key; unlike a key it is not stored. "" for none.
	Name   string
	memory *held.Share // for the answer
}

// Answer is a paid answer. Result is what the ledger holds, byte for byte the same in every replay of the same question, or computed from
// what another question released; the rest is about this request.
type Answer struct {
	ID        budget.ReservationID
	Dataset   string
	Replayed  bool
	At        time.Time       // of a replay: when its values were released
	Data      string          // of a replay, and of an answer from a prepared copy: the name for the state of the data that it is of
	AsOf      time.Time       // of a replay, and of an answer from a prepared copy: the time of its rows; zero for others
	Note      *api.Note       // of a replay: its age, which stands behind the notes of the result; nil for others
	Newer     *api.Newer      // of an answer from an earlier version of a prepared copy: the newest one
	Result    json.RawMessage // an [api.Result]
	Spent     api.Amounts
	Remaining api.Amounts     // of the caller's own account, once this was charged
	Receipt   json.RawMessage // a [journal.Receipt]; nil without a key, and for a question that has no price
	memory    *held.Share
}

// Query answers a question. Errors before the charge cost nothing: request/*, sql/*, policy/*, plan/*, budget/*. After it,
// the charge is taken back only if no protected row can have been read.
func (s *Service) Query(ctx context.Context, who auth.Principal, r Request) (answer *Answer, err error) {
	tick := s.Schedule(r.Dataset)
	defer s.Cancellable(who, cmp.Or(r.IdempotencyKey, r.Name), tick)()
	release, err := tick.enter(ctx, s.questions, who.Subject)
	if err != nil {
		return nil, err
	}
	defer release()
	r.memory = s.memory.Open(who.Subject)
	asked := digestOf(who, r)
	if answer := s.again(ctx, who, r, asked); answer != nil {
		return answer.holding(r.memory, true)
	}
	defer func() {
		if answer == nil {
			r.memory.Close()
		}
	}()
	q, paid, err := s.paid(ctx, who, r, tick)
	for errors.Is(err, budget.ErrSlotTaken) { // and another question has it, so that this ends
		q, paid, err = s.paid(ctx, who, r, tick)
	}
	if s.outdated(ctx, q, err) {
		tick = s.Schedule(r.Dataset)
		defer s.Cancellable(who, cmp.Or(r.IdempotencyKey, r.Name), tick)()
		q, paid, err = s.paid(ctx, who, r, tick)
	}
	if err != nil {
		if answer := s.boughtBefore(ctx, who, r, err); answer != nil {
			return answer.holding(r.memory, true)
		}
		s.refusals.count(r.Dataset, who.Subject, Asked, err)
		return nil, err
	}
	s.remember(who, r, asked, q, paid)
	answer = &Answer{
		ID: paid.ID, Dataset: r.Dataset, Replayed: paid.Replayed, Result: paid.Answer,
		Spent: amounts.Of(paid.Spent), Remaining: s.left(q.Accounts, paid),
	}
	if q.public == nil {
		answer.Receipt = s.Sign(ctx, r.Dataset, paid)
	}
	if paid.Replayed {
		answer.At = paid.At.UTC()
	}
	known := paid.Replayed && (paid.reshaped || r.IdempotencyKey == "") // a key finds its answer whatever the data are called now
	if known || !paid.Replayed && q.version != nil {
		answer.Data, answer.AsOf = q.dataVersion, q.asOf() // which is part of what the question and its release are known by
	}
	if of := paid.of; of != nil {
		answer.Data, answer.AsOf, answer.Newer = of.Name, of.AsOf, q.newer(of, s.clock.Now())
	}
	if answer.Replayed {
		answer.replay(s.clock.Now(), q.latestCosts)
	}
	return answer.holding(r.memory, paid.Replayed || q.public != nil)
}

// paid prepares a question, pays for it and runs it.
func (s *Service) paid(ctx context.Context, who auth.Principal, r Request, tick *Schedule) (*prepared, Receipt, error) {
	q, err := s.foresee(ctx, who, r, tick)
	if q == nil && err == nil {
		q, err = s.prepare(ctx, who, r)
	}
	if err != nil {
		return nil, Receipt{}, err // refused before any data or budget was touched
	}
	defer func() { q.leave() }()
	if err := s.reserve(r.memory, q); err != nil {
		return nil, Receipt{}, err
	}
	if q.public != nil {
		paid, err := s.free(ctx, q, tick)
		return q, paid, err
	}
	if err := s.Named(ctx, &q.Charge, q.earlier...); err != nil {
		return nil, Receipt{}, err
	}
	paid, err := s.recall(ctx, q, tick)
	if err != nil || paid.Replayed {
		return q, paid, err
	}
	if err := s.Named(ctx, &q.Charge, q.unlisted...); err != nil { // what it was released of was not found
		return nil, Receipt{}, err
	}
	paid, err = Sell(ctx, s, tick, Sale[*api.Result]{Order: &q.Order, Data: q.data,
		Tries: func(ctx context.Context) ([]sqlrewrite.DryRun, error) { return s.tries(ctx, q) },
		Work:  func(ctx context.Context) (Finish[*api.Result], error) { return s.run(ctx, q) }})
	return q, paid, err
}

// tries completes a question before its charge: with releases that others bought, where these help, and for distributed tables.
func (s *Service) tries(ctx context.Context, q *prepared) ([]sqlrewrite.DryRun, error) {
	if q.Charge.Shared {
		if err := q.reuse(); err != nil {
			return nil, err
		}
	}
	if q.data.Distributed() {
		if err := q.plan.Distribute(); err != nil {
			return nil, err
		}
	}
	return q.plan.DryRuns(), nil
}

// foresee prepares a question for the accounts that its caller had last, looks up these and earlier releases in one exchange, and gives the
// question with the accounts as they are. Nothing is decided by what is remembered: where anything but what is spent differs, the question
// is nil, and is to be prepared as any other (docs/decisions/0078). Its errors are those of [Service.prepare], and of waiting for questions
// that release the same.
func (s *Service) foresee(ctx context.Context, who auth.Principal, r Request, tick *Schedule) (*prepared, error) {
	if r.Plan != "" || r.Version != "" || CheckIdempotencyKey(r.IdempotencyKey) != nil {
		return nil, nil
	}
	snapshot, err := s.Snapshot(r.Dataset)
	if err != nil || snapshot.ShareReleases { // what others bought is looked up only for a caller who may be given it
		return nil, nil
	}
	ids := accountIDs(who, r.Dataset)
	before, ok := s.last.Of(who.Subject).find(snapshot, ids)
	if !ok {
		return nil, nil
	}
	o, err := s.OrderOf(who, snapshot, before, r.IdempotencyKey, r.AtMost)
	if err != nil {
		return nil, nil
	}
	q, refusal := s.planned(ctx, who, r, o, false)
	if errors.As(refusal, new(*sqlrewrite.NeedLists)) { // they are asked for once the accounts are known
		return nil, nil
	}
	if refusal != nil {
		q = &prepared{Order: *o, leave: func() {}}
	}
	same := false
	defer func() {
		if !same {
			q.leave()
		}
	}()
	now, err := s.accountsNow(ctx, who, q, tick, ids)
	if err != nil {
		return nil, err
	}
	if same = slices.Equal(now.standing, before.standing); !same {
		return nil, nil
	}
	q.Accounts = now
	return q, refusal
}

// accountsNow gives the accounts of a question's caller, and looks up its earlier releases with them where that takes no other look-up
// first.
func (s *Service) accountsNow(ctx context.Context, who auth.Principal, q *prepared, tick *Schedule,
	ids []budget.AccountID) (Accounts, error) {
	if q.plan == nil || q.earlier != nil || !s.recalls(q) {
		return s.accountsOf(ctx, who, q.On, ids)
	}
	found, err := s.lookBack(ctx, q, tick, ids)
	if err != nil {
		return Accounts{}, err
	}
	return s.accountsAmong(who, q.On, ids, found.Balances, found.Failures)
}

// prepared is a question that is planned and priced.
type prepared struct {
	Order
	data     Data
	day      string            // on which it was planned, which the text may name
	copies   []catalog.Version // the prepared copies that there were then
	reader   reader
	read     *error                 // what counting the read of public tables came to; nil: it was not tried
	plan     *sqlrewrite.Plan       // nil for a free question, which has no charge either
	public   *sqlrewrite.PublicPlan // nil for one that has a price
	earlier  [][32]byte             // see [Service.Named]
	unlisted [][32]byte             // so are these, of answers over all keys; tried where no release answers
	sharing  sharing
	released []released.Release // by place in [sqlrewrite.Plan.Blocks]
	shares   bool               // the policy gives releases to other analysts
	// dataVersion is the steward's name for the state of the data.
	dataVersion string
	version     *catalog.Version  // of the prepared copy that it reads; nil: it reads the tables
	every       *catalog.Snapshot // by which releases of all versions of that copy are known; nil: there are none
	latest      bool              // no answer of an earlier version will do
	fresh       bool              // no earlier answer will do: its rows are read now
	latestCosts fresh             // what such an answer costs
	leave       func()            // lets other questions go on that would release the same
	found       *released.Found   // earlier releases; nil: they are still to be looked up
}

// asOf is the time of the prepared copy that a question reads; zero where it reads none.
func (q *prepared) asOf() time.Time {
	if q.version == nil {
		return time.Time{}
	}
	return q.version.AsOf
}

// prepare finds policy and accounts, plans the query and makes out the charge. It touches no protected data; public tables may be asked
// which keys there can be.
func (s *Service) prepare(ctx context.Context, who auth.Principal, r Request) (*prepared, error) {
	if r.Version != "" && r.Version != versionLatest {
		return nil, fault.RequestVersion(versionLatest + ", or left out")
	}
	o, err := s.Order(ctx, who, r.Dataset, r.IdempotencyKey, r.AtMost)
	if err != nil {
		return nil, err
	}
	s.last.Of(who.Subject).keep(o.On, accountIDs(who, r.Dataset), o.Accounts)
	return s.planned(ctx, who, r, o, true)
}

// planned plans a question for the accounts of an order, whatever was spent of them. It asks for lists of keys, or ends with
// [sqlrewrite.NeedLists].
func (s *Service) planned(ctx context.Context, who auth.Principal, r Request, o *Order, asks bool) (*prepared, error) {
	snapshot, accounts := o.On, o.Accounts
	now, copies := s.clock.Now(), s.copies(snapshot)
	q := &prepared{Order: *o, data: s.datasets[r.Dataset].Data, reader: reader{r.Dataset, who.Subject, snapshot.Version}, leave: func() {}}
	plan, public, err := s.withLists(ctx, r.QueryRequest, o, q.reader,
		sqlrewrite.Options{Proofs: s.ProofsOf(who), Noises: s.noises.Of(who.Subject), Now: now}, asks)
	if err != nil {
		return nil, err
	}
	if q.public = public; public != nil {
		return q, nil
	}
	plan, of, only := s.fromCopy(ctx, r.QueryRequest, snapshot, copies, plan)
	q.plan, q.day, q.copies, q.dataVersion = plan, dayOf(now), copies, snapshot.DataVersion
	if of != nil {
		q.dataVersion, q.version, q.every = of.snapshot.DataVersion, &of.version, of.every
	}
	q.latest, q.shares = snapshot.RefreshCharges || r.Version == versionLatest, snapshot.ShareReleases
	if err := q.Keep("", asAsked(r.QueryRequest)); err != nil {
		return nil, err
	}
	c := &q.Charge
	c.Loss, c.Mechanisms, c.Fingerprint, c.Shared = plan.Loss(), plan.Mechanisms(), plan.Fingerprint(), GivenFree(snapshot, accounts)
	if !plan.NeedsData() { // keys of public domains alone: no row is read, there is no time to hide and nothing for a floor to bound
		q.Delay, q.Untimed = nil, nil
	}
	if s.values != nil && plan.NeedsData() {
		q.released = released.Of(plan, r.Plan)
		q.nameSeries()
	}
	// Answers that were bought before there was a floor, or while time was no part of the guarantee, are still given again.
	switch {
	case r.Plan != "":
		if err := s.drawSlots(ctx, q, r.QueryRequest); err != nil {
			return nil, err
		}
	case plan.NeedsData():
		if !accounts.floor.priced(plan.Price()) {
			q.Refusal = accounts.floor.check("the question", c.Loss)
		}
		if q.Refusal == nil {
			c.Loss, q.Refusal = accounts.floor.charged(c.Loss), accounts.Takes(lossesOf(plan)...)
		}
	}
	if q.Refusal == nil {
		q.Refusal = useless(r.QueryRequest, q.plan, snapshot.People)
	}
	q.complete(only)
	q.priceLatest(r.Version == versionLatest)
	if !q.fresh {
		for _, earlier := range plan.EarlierFingerprints() {
			q.earlier = append(q.earlier, released.Drawing(r.Plan, earlier))
		}
		for _, unlisted := range plan.UnlistedFingerprints() {
			q.unlisted = append(q.unlisted, released.Drawing(r.Plan, unlisted))
		}
	}
	return q, nil
}

// complete adds the delay to the charge, and the refusal: of a delay that is not possible, or only, of a table that must not be read.
func (q *prepared) complete(only error) {
	q.Delay.plus(&q.Charge)
	if q.Accounts.bill(q.Charge).alone() != nil { // it is refused whatever others did: what they bought is not looked at
		q.Charge.Shared = false
	}
	q.Refusal = orElse(only, orElse(q.Refusal, q.Untimed)) // an answer from before the policy said so is given again
}

// asAsked is a request without at_most, require_useful and wait, which are no part of the question: the next request may have others.
func asAsked(r api.QueryRequest) api.QueryRequest {
	r.AtMost, r.RequireUseful, r.Wait = nil, nil, nil
	return r
}

// Snapshot is the policy in force of a dataset. Its errors are request/missing-field, policy/unknown-dataset and
// policy/stale.
func (s *Service) Snapshot(dataset string) (*catalog.Snapshot, error) {
	if dataset == "" {
		return nil, fault.RequestMissingField("dataset")
	}
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	return s.policies.Current(dataset)
}

// run is what a charge pays for: the release, and the outer layer. What later questions use of it is kept after the boundary, since its
// presence reveals that the work had ended.
func (s *Service) run(ctx context.Context, q *prepared) (Finish[*api.Result], error) {
	if q.plan.ReadsPublic() { // now: an entry after the release would tell stewards how long its statements took
		_ = s.counted(ctx, q) // without it the outer layer is not computed
	}
	released, all, err := s.releaseShared(ctx, q)
	if err != nil {
		return nil, err
	}
	result, err := s.finish(ctx, q, released)
	if err != nil {
		return nil, err
	}
	kept, notes := s.toKeep(ctx, q, released)
	kept = append(s.vectorToKeep(ctx, q, all), kept...)
	result.Notes = q.Delay.Note(append(result.Notes, notes...))
	return func(ctx context.Context) (*api.Result, Spending, error) {
		s.keepReleased(ctx, q, kept)
		return result, Spending{Own: q.Charge.Loss}, nil
	}, nil
}

// release draws noise that depends on no data, runs the statements of a plan and releases what they give.
func (s *Service) release(ctx context.Context, data Data, plan *sqlrewrite.Plan) (*sqlrewrite.Released, error) {
	sampler := s.sampler()
	draws := plan.Draw(sampler)
	rows := sqlrewrite.Rows(func(func(sqlrewrite.ExactRow, error) bool) {})
	if plan.NeedsData() {
		rows = data.Run(ctx, plan.Statements(draws)...)
	}
	return plan.Release(sampler, draws, rows)
}

// outerAttempts is how often an outer layer is tried: a second time in case its database was away for a moment.
const outerAttempts = 2

// finish applies the outer layer to what was released: post-processing, which costs nothing. When it cannot be computed, the
// Answer is what was released, which is paid for and must not be lost.
func (s *Service) finish(ctx context.Context, q *prepared, released *sqlrewrite.Released) (*api.Result, error) {
	post, ok := released.Post()
	if !ok {
		answer, err := released.Answer(nil, nil)
		return encode(answer), err
	}
	for range outerAttempts {
		rows, types, err := s.compute(ctx, q, post)
		if err != nil {
			s.log.ErrorContext(ctx, "an outer layer failed", "code", string(fault.CodeOf(err)))
			continue
		}
		answer, err := released.Answer(rows, types)
		return encode(answer), err
	}
	return encode(released.Plain()), nil
}

// Estimate prices a question without asking it. It costs nothing and touches no protected row.
func (s *Service) Estimate(ctx context.Context, who auth.Principal, r api.QueryRequest) (e *api.EstimateResponse, err error) {
	defer func() { s.refusals.count(r.Dataset, who.Subject, Estimated, err) }()
	release, err := s.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	q, err := s.prepare(ctx, who, Request{QueryRequest: r})
	if err != nil {
		return nil, err
	}
	switch {
	case q.public != nil:
		return freeEstimate(r, q), nil
	case q.Refusal != nil:
		return nil, q.Refusal
	}
	e = estimate(r, q, s.clock.Now())
	if !q.fresh {
		e.Replayed, err = s.bought(ctx, q)
	}
	return e, err
}
