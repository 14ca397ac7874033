package fit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// product is what is sold: a plan whose statements run one after another, for one charge.
type product interface {
	Loss() mechanisms.Loss
	LossOfPass() mechanisms.Loss // the least of a statement's part
	Mechanisms() []mechanisms.Parameters
	Fingerprint() [32]byte
	Statements() int
	DryRuns() []sqlrewrite.DryRun
	Notes() []sqlrewrite.Note
	// Run is what a charge pays for.
	Run(context.Context, Data, *mechanisms.Sampler) (*stored, error)
}

// order is a request for a product.
type order struct {
	what, dataset, key string // what is ordered, of which dataset, under which Idempotency-Key
	name               string // what it is cancelled by where there is no key; see [gateway.Request]
	request            any    // as it is kept in the ledger
	atMost             *api.Price
	once               string // what takes one pass over the rows instead
	plan               func(context.Context, *catalog.Snapshot, gateway.Accounts, *sqlrewrite.Proofs) (product, error)
}

// stored is what the ledger holds of a product: a table, as of a query, and the numbers.
type stored struct {
	api.Result
	Fit      api.FitModel      `json:"fit,omitzero"`
	Clusters *api.ClusterModel `json:"clusters,omitempty"`
	Scores   *api.ScoreModel   `json:"scores,omitempty"`
}

// Request is a request as a client put it.
type Request[R any] struct {
	Body           R
	IdempotencyKey string // "" for none
}

// Answer is what was sold.
type Answer[A any] struct {
	ID      budget.ReservationID
	Sale    api.Sale
	At      time.Time       // of a replay: when its numbers were released
	Body    *A              // what the client is sent, the sale included
	Receipt json.RawMessage // a [journal.Receipt]; nil without a key
}

// prepared is a product that is planned and priced.
type prepared struct {
	order    order
	data     Data
	product  product
	accounts gateway.Accounts
	delay    *gateway.Delay
	charge   budget.Charge
	refusal  error // its price is below the floor, or what is to pay for it cannot; what was bought before is given all the same
}

// sell takes an order to a paid answer, new or stored. An answer is nil of what is stored of something else: under its Idempotency-Key.
func sell[A any](ctx context.Context, s *Service, who auth.Principal, o order, answer func(api.Sale, *stored) *A) (_ *Answer[A],
	err error) {
	defer func() { s.gateway.CountRefusal(o.dataset, who, gateway.Asked, err) }()
	tick := s.gateway.Schedule(o.dataset)
	defer s.gateway.Cancellable(who, cmp.Or(o.key, o.name), tick)()
	release, err := s.gateway.EnterWith(ctx, tick, who)
	if err != nil {
		return nil, err
	}
	defer release() // after the schedule held
	q, err := s.prepare(ctx, who, o)
	if err != nil {
		return nil, err
	}
	paid, err := s.paid(ctx, who, q, tick)
	if err != nil {
		return nil, err
	}
	var kept stored
	if err := json.Unmarshal(paid.Answer, &kept); err != nil {
		return nil, fault.Internal(err)
	}
	sale := api.Sale{ReleaseID: string(paid.ID), Dataset: o.dataset, Replayed: paid.Replayed, Notes: kept.Notes,
		Spent: amounts.Of(paid.Spent), Remaining: s.gateway.Remaining(ctx, q.accounts)}
	if paid.Replayed {
		at := paid.At.UTC()
		sale.AsOf, sale.Notes = &at, append(slices.Clone(kept.Notes), s.gateway.ReplayNote(at))
	}
	body := answer(sale, &kept)
	if body == nil {
		return nil, fault.BudgetReplayMismatch()
	}
	return &Answer[A]{ID: paid.ID, Sale: sale, At: paid.At.UTC(), Body: body, Receipt: s.gateway.Sign(ctx, o.dataset, paid)}, nil
}

// prepare finds policy and accounts, plans what is ordered and makes out the charge. It touches no protected data.
func (s *Service) prepare(ctx context.Context, who auth.Principal, o order) (*prepared, error) {
	if err := gateway.CheckIdempotencyKey(o.key); err != nil {
		return nil, err
	}
	snapshot, err := s.gateway.Snapshot(o.dataset)
	if err != nil {
		return nil, err
	}
	q := &prepared{order: o, data: s.data[o.dataset]}
	if q.data == nil {
		return nil, fault.UnknownDataset(o.dataset)
	}
	if q.accounts, err = s.gateway.AccountsOf(ctx, who, snapshot); err != nil {
		return nil, err
	}
	delay, untimed := s.gateway.Timing(snapshot, q.accounts)
	q.delay = delay
	if q.product, err = o.plan(ctx, snapshot, q.accounts, s.gateway.ProofsOf(who)); err != nil {
		return nil, err
	}
	if q.data.Distributed() {
		return nil, fault.FitDistributed()
	}
	ceiling, err := gateway.CeilingOf(o.atMost)
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(o.request)
	if err != nil {
		return nil, fault.Internal(err)
	}
	q.charge = budget.Charge{
		ID: s.newID(s.clock.Now()), Dataset: o.dataset, Analyst: who.Subject, Accounts: q.accounts.All(),
		Loss: q.product.Loss(), Ceiling: ceiling, Mechanisms: q.product.Mechanisms(), Fingerprint: q.product.Fingerprint(),
		IdempotencyKey: o.key, RequestDigest: sha256.Sum256(append([]byte(o.what+" "), request...)), Request: request,
	}
	if q.refusal = q.refused(untimed); q.refusal == nil {
		q.refusal = gateway.LiveOnly(snapshot, q.product.DryRuns)
	}
	return q, nil
}

// refused is why a product is not sold; untimed is why it cannot be delayed. Status, load and time may tell something once a pass, so that
// each costs the floor.
func (q *prepared) refused(untimed error) error {
	if err := q.accounts.CheckFloor("a pass of the "+q.order.what, q.product.LossOfPass()); err != nil {
		return err
	}
	if err := q.accounts.Takes(q.charge.Loss); err != nil {
		return err
	}
	if q.delay != nil && q.product.Statements() > 1 {
		return fault.FitTimed(q.order.once)
	}
	return untimed
}

// paid gives what was paid for before, or pays for an order and runs it.
func (s *Service) paid(ctx context.Context, who auth.Principal, q *prepared, tick *gateway.Schedule) (gateway.Receipt, error) {
	again := func() (gateway.Receipt, bool, error) {
		known, err := s.gateway.Replay(ctx, q.charge)
		if err != nil || known == nil {
			return gateway.Receipt{}, false, err
		}
		return gateway.Receipt{ID: known.ID, Answer: known.Answer, Replayed: true, At: known.SettledAt}, true, nil
	}
	if paid, found, err := again(); found || err != nil {
		return paid, err
	}
	if q.refusal != nil {
		return gateway.Receipt{}, q.refusal
	}
	purchase := gateway.Purchase{Accounts: q.accounts, Charge: q.charge, Delay: q.delay}
	if err := s.gateway.Refusal(ctx, purchase); err != nil {
		return gateway.Receipt{}, err
	}
	asked, err := s.gateway.Dry(ctx, tick, q.data, who.Subject, q.product.DryRuns())
	if err != nil {
		return gateway.Receipt{}, err
	}
	paid, err := gateway.Buy(ctx, s.gateway, tick, purchase, func(ctx context.Context) (gateway.Finish[*stored], error) {
		answer, err := q.product.Run(ctx, q.data, s.sampler())
		if err != nil {
			return nil, err
		}
		answer.Notes = q.delay.Note(answer.Notes)
		return func(context.Context) (*stored, gateway.Spending, error) {
			return answer, gateway.Spending{Own: q.charge.Loss.Plus(q.delay.Loss())}, nil
		}, nil
	})
	return paid, tick.Refused(ctx, asked, err)
}

// estimated plans an order and prices it. It costs nothing and touches no row.
func (s *Service) estimated(ctx context.Context, who auth.Principal, o order) (_ product, _ api.Quote, err error) {
	defer func() { s.gateway.CountRefusal(o.dataset, who, gateway.Estimated, err) }()
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, api.Quote{}, err
	}
	defer release()
	q, err := s.prepare(ctx, who, o)
	if err != nil {
		return nil, api.Quote{}, err
	}
	if q.refusal != nil {
		return nil, api.Quote{}, q.refusal
	}
	loss := q.charge.Loss.Plus(q.delay.Loss())
	own := amounts.Released(q.accounts.Own(), s.clock.Now())
	return q.product, api.Quote{Dataset: o.dataset, Price: amounts.Of(loss), Remaining: amounts.Headroom(own),
		Affordable: amounts.Affordable(own, loss), Notes: q.delay.Note(notes(q.product.Notes()))}, nil
}
