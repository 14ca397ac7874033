package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// Order is what somebody buys, from the request on: whose accounts pay, and the charge that is made out to them. One that is new costs
// nothing; what it asks for ([Order.Keep]), costs ([Order.Price]) and is known by is added once it is planned.
type Order struct {
	On       *catalog.Snapshot // the policy in force
	Accounts Accounts
	Charge   budget.Charge // to all of the accounts
	Delay    *Delay        // that the charge pays for; nil: none
	Untimed  error         // why it cannot be delayed as the policy asks; nil: it can
	Refusal  error         // why it is not sold; what was bought before is given all the same
}

// Order begins the order of a caller under an Idempotency-Key ("": none), who pays at most so much (nil: any price). It touches no
// protected data, and changes nothing. Its errors are those of [Service.Snapshot] and [Service.AccountsOf], request/idempotency-key and
// request/at-most.
func (s *Service) Order(ctx context.Context, who auth.Principal, dataset, key string, atMost *api.Price) (*Order, error) {
	if err := CheckIdempotencyKey(key); err != nil {
		return nil, err
	}
	snapshot, err := s.Snapshot(dataset)
	if err != nil {
		return nil, err
	}
	accounts, err := s.AccountsOf(ctx, who, snapshot)
	if err != nil {
		return nil, err
	}
	return s.OrderOf(who, snapshot, accounts, key, atMost)
}

// OrderOf is [Service.Order] for certain accounts, and a key that is one.
func (s *Service) OrderOf(who auth.Principal, on *catalog.Snapshot, accounts Accounts, key string, atMost *api.Price) (*Order, error) {
	ceiling, err := CeilingOf(atMost)
	if err != nil {
		return nil, err
	}
	o := &Order{On: on, Accounts: accounts, Charge: budget.Charge{ID: s.newID(s.clock.Now()), Dataset: on.Dataset, Analyst: who.Subject,
		Accounts: accounts.All(), Ceiling: ceiling, IdempotencyKey: key}}
	o.Delay, o.Untimed = s.Timing(on, accounts)
	return o, nil
}

// Keep makes the order one for a request, which the ledger keeps, and its Idempotency-Key stands for: but for what is no part of the
// question, such as the most that it may cost. The kind tells requests apart that are written alike.
func (o *Order) Keep(kind string, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fault.Internal(err)
	}
	o.Charge.Request, o.Charge.RequestDigest = text, sha256.Sum256(append([]byte(kind), text...))
	return nil
}

// Price makes the charge one for what is released, and for the delay.
func (o *Order) Price(l mechanisms.Loss, by []mechanisms.Parameters) {
	o.Charge.Loss, o.Charge.Mechanisms = l, by
	o.Delay.plus(&o.Charge)
}

// Quote is what an order that is priced costs, and what its caller has left.
func (s *Service) Quote(o *Order, notes []api.Note) api.Quote {
	own := amounts.Released(o.Accounts.Own(), s.clock.Now())
	return api.Quote{Dataset: o.Charge.Dataset, Price: amounts.Of(o.Charge.Loss), Remaining: amounts.Headroom(own),
		Affordable: amounts.Affordable(own, o.Charge.Loss), Notes: o.Delay.Note(notes)}
}

// Sampler is a fresh one, for the noise of one order.
func (s *Service) Sampler() *mechanisms.Sampler { return s.sampler() }

// Now is the time by the service's clock.
func (s *Service) Now() time.Time { return s.clock.Now() }

// Sale is an order and what it pays for.
type Sale[T any] struct {
	*Order
	Looks bool // what was bought before is looked for before anything is tried; else the charge itself finds it
	// Tries completes the order, and gives the statements that Data's server is asked to take before the charge; nil: there are none.
	Tries func(context.Context) ([]sqlrewrite.DryRun, error)
	Data  Trier
	Work  func(context.Context) (Finish[T], error)
}

// Sell is the one road to protected data: it pays for an order, runs its work and stores what that released, or gives the stored answer
// when it was paid for before. In this order:
//
//   - what is refused whatever others did ([bill.alone]), or for the order's own reason, is looked up in the ledger, and refused where
//     it was not bought before: nothing is tried for it;
//   - the server of the data is asked whether it takes the statements;
//   - the delay is drawn, the charge is reserved, work runs, and what it gave leaves at a boundary of the schedule, as [admitted] says.
//
// A request that is refused changes nothing in the ledger; a policy that lowers a cap works from this charge on.
func Sell[T any](ctx context.Context, s *Service, tick *Schedule, o Sale[T]) (Receipt, error) {
	if paid, err := s.meter.known(ctx, o.Accounts.bill(o.Charge), o.Refusal, o.Looks); err != nil || paid.Replayed {
		return paid, err
	}
	asked := false
	if o.Tries != nil {
		runs, err := o.Tries(ctx)
		if err != nil {
			return Receipt{}, err
		}
		if asked, err = s.dry(ctx, tick, o.Data, o.Charge.Analyst, runs); err != nil {
			// An answer that there is already was computed by another version of the server.
			if paid, replay := s.meter.replay(ctx, o.Charge, err); replay == nil {
				return paid, nil
			}
			return Receipt{}, err
		}
	}
	o.Delay.put(tick)
	paid, err := admitted(ctx, s.meter, tick, o.Accounts.bill(o.Charge), o.Work)
	return paid, tick.Refused(ctx, asked, err)
}

// Replay looks up the stored answer of a charge; nil where there is none. An Idempotency-Key that stands for another
// request is budget/replay-mismatch.
func (s *Service) Replay(ctx context.Context, charge budget.Charge) (*budget.Stored, error) {
	return within(ctx, func(ctx context.Context) (*budget.Stored, error) { return s.ledger.Replay(ctx, charge) })
}

// Enter waits for one of the places that a caller's questions have, whatever they ask for. The caller of Enter calls
// release when the question has left. Its errors are request/too-many and request/gone.
func (s *Service) Enter(ctx context.Context, who auth.Principal) (release func(), err error) {
	return s.questions.Enter(ctx, who.Subject)
}

// EnterWith is [Service.Enter] for a request with a schedule, which counts from the end of the wait on.
func (s *Service) EnterWith(ctx context.Context, tick *Schedule, who auth.Principal) (release func(), err error) {
	return tick.enter(ctx, s.questions, who.Subject)
}

// EnterList is [Service.Enter] for what is only read of the ledger: it never waits for a question.
func (s *Service) EnterList(ctx context.Context, who auth.Principal) (release func(), err error) {
	return s.lists.Enter(ctx, who.Subject)
}

// EnterCatalog is [Service.Enter] for a query about names and types. It waits for 5 s at most, which is what a twin's server takes for one.
func (s *Service) EnterCatalog(ctx context.Context, who auth.Principal) (release func(), err error) {
	return s.catalogs.Enter(ctx, who.Subject)
}

// GaussianOptions reads the price, the confidence and the bounds of what has Gaussian noise alone; a price in ε is turned into ρ. Accounts
// that count pure ε cannot pay for it: plan/mechanism.
func GaussianOptions(r api.QueryRequest, p Accounts) (sqlrewrite.Options, error) {
	if p.limit().Form == budget.Pure {
		return sqlrewrite.Options{}, fault.MechanismChoice("this has Gaussian noise, which has no pure ε, and that is what your account adds up",
			"ask the data's steward for an account in (ε, δ) or in ρ")
	}
	r.Mechanism = string(sqlrewrite.MechanismGaussian)
	return optionsOf(r, p)
}
