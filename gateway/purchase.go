package gateway

import (
	"context"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Purchase is a charge that is made out.
type Purchase struct {
	Accounts Accounts
	Charge   budget.Charge // to all of the accounts, for what is released
	Delay    *Delay        // nil: none; what it costs is added to the charge
}

// Buy pays for work, runs it, and stores what it released; or gives the stored answer when it was paid for before. It is
// the one road to protected data for what is no query. What it promises is said at [metered]; a policy that lowers a cap
// works from this charge on.
func Buy[T any](ctx context.Context, s *Service, tick *Schedule, p Purchase,
	work func(context.Context) (Finish[T], error)) (Receipt, error) {
	p.Delay.plus(&p.Charge)
	p.Delay.put(tick)
	return metered(ctx, s.meter, tick, p.Accounts.bill(p.Charge), work)
}

// Refusal is why a charge is refused whatever others did, before anything is tried for it: nil where it is not, or was made before.
func (s *Service) Refusal(ctx context.Context, p Purchase) error {
	p.Delay.plus(&p.Charge)
	_, err := s.meter.halted(ctx, p.Accounts.bill(p.Charge))
	return err
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
