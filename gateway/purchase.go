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

// Order holds the accounts that pay for a request, and the charge to them. A new order costs nothing: its seller plans it, and then adds
// the request ([Order.Keep]), the price ([Order.Price]) and the fingerprint.
type Order struct {
	On       *catalog.Snapshot // the policy in force
	Accounts Accounts
	Charge   budget.Charge // to all of the accounts
	Delay    *Delay        // the charge pays for it; nil: none
	Untimed  error         // the policy asks for a delay that the order cannot have; nil: it can
	Refusal  error         // the order is not sold, but an answer that was bought before is given again; nil: it is sold
}

// Order begins an order under an Idempotency-Key ("": none) that may cost at most a price (nil: any). It reads no protected data and
// changes nothing. Its errors are those of [Service.Snapshot] and [Service.AccountsOf], request/idempotency-key and
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

// OrderOf is [Service.Order] for accounts that are known, and a key that was checked.
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

// Keep stores the request in the charge, with its digest, which the Idempotency-Key stands for. The caller leaves out at_most and other
// fields that are no part of the question. The kind separates requests of several kinds that have the same JSON.
func (o *Order) Keep(kind string, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fault.Internal(err)
	}
	o.Charge.Request, o.Charge.RequestDigest = text, sha256.Sum256(append([]byte(kind), text...))
	return nil
}

// Price sets what the releases cost, and adds the delay.
func (o *Order) Price(l mechanisms.Loss, by []mechanisms.Parameters) {
	o.Charge.Loss, o.Charge.Mechanisms = l, by
	o.Delay.plus(&o.Charge)
}

// Quote shows the price of an order, and the headroom of the caller's own account.
func (s *Service) Quote(o *Order, notes []api.Note) api.Quote {
	own := amounts.Released(o.Accounts.Own(), s.clock.Now())
	return api.Quote{Dataset: o.Charge.Dataset, Price: amounts.Of(o.Charge.Loss), Remaining: amounts.Headroom(own),
		Affordable: amounts.Affordable(own, o.Charge.Loss), Notes: o.Delay.Note(notes)}
}

// Sampler gives a fresh sampler, for the noise of one order.
func (s *Service) Sampler() *mechanisms.Sampler { return s.sampler() }

// Now gives the time of the service's clock.
func (s *Service) Now() time.Time { return s.clock.Now() }

// Sale is an order with the work that it pays for.
type Sale[T any] struct {
	*Order
	Looks bool // look up a stored answer first; else the reservation finds it
	// Tries completes the order, and gives the statements that the server of Data must take before the charge; nil: there are none.
	Tries func(context.Context) ([]sqlrewrite.DryRun, error)
	Data  Trier
	Work  func(context.Context) (Finish[T], error)
}

// Sell is the one road to protected data. It pays for an order, runs the work and stores the answer, or gives the stored answer of an
// order that was paid for before. The steps:
//
//   - An order that is refused, for its own reason or one that no other analyst can cause ([bill.alone]), gets its stored answer
//     or the refusal.
//   - The server of the data parses the statements and runs them over made-up rows.
//   - [admitted] reserves the charge, runs the work, waits for a boundary of the schedule, and settles.
//
// A refused order changes nothing in the ledger. A policy that lowers a cap works from this charge on.
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
			// Another version of the server may have computed an answer that is stored.
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

// Named gives a charge one of the names that it had in earlier versions of Noisegate, if an answer is stored under it or a question with
// it runs. Then the charge is replayed, or refused, as before.
func (s *Service) Named(ctx context.Context, c *budget.Charge, earlier ...[32]byte) error {
	for _, name := range earlier {
		old := *c
		old.Fingerprint, old.IdempotencyKey = name, "" // what was bought under a key is found by it
		stored, err := s.Replay(ctx, old)
		if stored != nil || fault.CodeOf(err) == fault.CodeRequestInFlight {
			c.Fingerprint = name
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
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
