package fit

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
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
	EarlierFingerprint() [32]byte // in earlier versions of Noisegate
	Statements() int
	DryRuns() []sqlrewrite.DryRun
	Notes() []sqlrewrite.Note
	// Run is what a charge pays for.
	Run(context.Context, Data, *mechanisms.Sampler) (*stored, error)
}

// ran runs the statements of a product, and keeps what they found.
func ran[F any](ctx context.Context, data Data, run sqlrewrite.Series, found func() (F, error), keep func(F) *stored) (*stored, error) {
	if err := data.Sequence(ctx, run); err != nil {
		return nil, err
	}
	f, err := found()
	if err != nil {
		return nil, err
	}
	return keep(f), nil
}

// order is a request for a product.
type order struct {
	what, dataset, key string // what is ordered, its dataset, and the Idempotency-Key
	name               string // what it is cancelled by where there is no key; see [gateway.Request]
	request            any    // as it is kept in the ledger
	atMost             *api.Price
	once               string // what takes one pass over the rows instead
	plan               func(context.Context, *gateway.Order, *sqlrewrite.Proofs) (product, error)
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
	*gateway.Order
	data    Data
	product product
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
	paid, err := gateway.Sell(ctx, s.gateway, tick, gateway.Sale[*stored]{Order: q.Order, Looks: true, Data: q.data, Tries: q.tries,
		Work: func(ctx context.Context) (gateway.Finish[*stored], error) { return q.run(ctx, s.gateway.Sampler()) }})
	if err != nil {
		return nil, err
	}
	var kept stored
	if err := json.Unmarshal(paid.Answer, &kept); err != nil {
		return nil, fault.Internal(err)
	}
	sale := api.Sale{ReleaseID: string(paid.ID), Dataset: o.dataset, Replayed: paid.Replayed, Notes: kept.Notes,
		Spent: amounts.Of(paid.Spent), Remaining: s.gateway.Remaining(ctx, q.Accounts)}
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
	bought, err := s.gateway.Order(ctx, who, o.dataset, o.key, o.atMost)
	if err != nil {
		return nil, err
	}
	q := &prepared{Order: bought, data: s.data[o.dataset]}
	if q.data == nil {
		return nil, fault.UnknownDataset(o.dataset)
	}
	if q.product, err = o.plan(ctx, bought, s.gateway.ProofsOf(who)); err != nil {
		return nil, err
	}
	if q.data.Distributed() {
		return nil, fault.FitDistributed()
	}
	if err := q.Keep(o.what+" ", o.request); err != nil {
		return nil, err
	}
	q.Charge.Fingerprint = q.product.Fingerprint()
	q.Price(q.product.Loss(), q.product.Mechanisms())
	q.Refusal = q.refused(o)
	if q.On.EarlierReleases {
		return q, s.gateway.Named(ctx, &q.Charge, q.product.EarlierFingerprint())
	}
	return q, nil
}

// refused gives the refusal of a product. Status, load and time may leak once in each pass, so that each pass costs the floor.
func (q *prepared) refused(o order) error {
	if err := q.Accounts.CheckFloor("a pass of the "+o.what, q.product.LossOfPass()); err != nil {
		return err
	}
	if err := q.Accounts.Takes(q.product.Loss()); err != nil {
		return err
	}
	switch {
	case q.Delay != nil && q.product.Statements() > 1:
		return fault.FitTimed(o.once)
	case q.Untimed != nil:
		return q.Untimed
	default:
		return gateway.LiveOnly(q.On, q.product.DryRuns)
	}
}

func (q *prepared) tries(context.Context) ([]sqlrewrite.DryRun, error) {
	return q.product.DryRuns(), nil
}

// run is the work of the charge.
func (q *prepared) run(ctx context.Context, sampler *mechanisms.Sampler) (gateway.Finish[*stored], error) {
	answer, err := q.product.Run(ctx, q.data, sampler)
	if err != nil {
		return nil, err
	}
	answer.Notes = q.Delay.Note(answer.Notes)
	return gateway.Done(answer, q.Charge.Loss), nil
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
	if q.Refusal != nil {
		return nil, api.Quote{}, q.Refusal
	}
	return q.product, s.gateway.Quote(q.Order, notes(q.product.Notes())), nil
}
