// Package fit sells regressions: it takes a request for a model from a principal to coefficients that are paid for.
//
// It knows accounts, the plan of a fit, and when its statements run. It does not know HTTP, SQL text, or how a charge is paid: the one road
// to rows is [gateway.Buy].
package fit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"noisegate/api"
	"noisegate/budget"
	"noisegate/catalog"
	"noisegate/gateway"
	"noisegate/gateway/auth"
	"noisegate/gateway/internal/amounts"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite"
)

// Data runs the statements of a fit on one protected database; see [gateway.Data].
type Data interface {
	// Sequence runs one statement after another on one snapshot, each made of what was released of those before.
	Sequence(context.Context, sqlrewrite.Series) error
	Dry(context.Context, ...sqlrewrite.DryRun) error
	Distributed() bool
}

// Config is what a service is made of. Sampler, ids and clock are those of the gateway.
type Config struct {
	Gateway *gateway.Service
	Data    map[string]Data // by dataset
	Sampler func() *mechanisms.Sampler
	NewID   func(time.Time) budget.ReservationID
	Clock   gateway.Clock
}

// Service sells fits. It is safe for concurrent use.
type Service struct {
	gateway *gateway.Service
	data    map[string]Data
	sampler func() *mechanisms.Sampler
	newID   func(time.Time) budget.ReservationID
	clock   gateway.Clock
	proofs  sqlrewrite.Proofs
}

// New checks that nothing is missing.
func New(c Config) (*Service, error) {
	if c.Gateway == nil || c.Sampler == nil || c.NewID == nil || c.Clock == nil {
		return nil, errors.New("fit: a part of the service is missing")
	}
	return &Service{gateway: c.Gateway, data: c.Data, sampler: c.Sampler, newID: c.NewID, clock: c.Clock}, nil
}

// Request is a request for a fit as a client put it.
type Request struct {
	api.FitRequest
	IdempotencyKey string // "" for none
}

// Answer is a fit and its receipt.
type Answer struct {
	*api.FitResponse
	Receipt json.RawMessage // a [journal.Receipt]; nil without a key
}

// stored is what the ledger holds of a fit: a table, as of a query, and the model.
type stored struct {
	api.Result
	Fit api.FitModel `json:"fit"`
}

// Fit fits a model, or gives again one that the caller paid for. Errors before the charge cost nothing: request/*, sql/*, policy/*,
// plan/*, budget/*. After it, the charge is taken back only if no protected row can have been read.
func (s *Service) Fit(ctx context.Context, who auth.Principal, r Request) (*Answer, error) {
	tick := s.gateway.Schedule(r.Dataset)
	defer s.gateway.Cancellable(who, r.IdempotencyKey, tick)()
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release() // after the schedule held
	q, err := s.prepare(ctx, who, r)
	if err != nil {
		return nil, err
	}
	paid, err := s.paid(ctx, q, tick)
	if err != nil {
		return nil, err
	}
	var kept stored
	if err := json.Unmarshal(paid.Answer, &kept); err != nil {
		return nil, fault.Internal(err)
	}
	if kept.Fit.Model == "" { // an Idempotency-Key that stands for something else
		return nil, fault.BudgetReplayMismatch()
	}
	return &Answer{
		FitResponse: &api.FitResponse{ReleaseID: string(paid.ID), Dataset: r.Dataset, Replayed: paid.Replayed, FitModel: kept.Fit,
			Notes: kept.Notes, Spent: amounts.Of(paid.Spent), Remaining: s.gateway.Remaining(ctx, q.accounts)},
		Receipt: s.gateway.Sign(ctx, r.Dataset, paid),
	}, nil
}

// prepared is a fit that is planned and priced.
type prepared struct {
	data     Data
	plan     *sqlrewrite.Fit
	accounts gateway.Accounts
	delay    *gateway.Delay
	charge   budget.Charge
	refusal  error // its price is below the floor, or what is to pay for it cannot; what was bought before is given all the same
}

// prepare finds policy and accounts, plans the fit and makes out the charge. It touches no protected data.
func (s *Service) prepare(ctx context.Context, who auth.Principal, r Request) (*prepared, error) {
	if err := gateway.CheckIdempotencyKey(r.IdempotencyKey); err != nil {
		return nil, err
	}
	snapshot, err := s.gateway.Snapshot(r.Dataset)
	if err != nil {
		return nil, err
	}
	q := &prepared{data: s.data[r.Dataset]}
	if q.data == nil {
		return nil, fault.UnknownDataset(r.Dataset)
	}
	if q.accounts, err = s.gateway.AccountsOf(ctx, who, snapshot); err != nil {
		return nil, err
	}
	delay, untimed := s.gateway.Timing(snapshot, q.accounts)
	q.delay = delay
	if q.plan, err = s.plan(r.FitRequest, snapshot, q.accounts); err != nil {
		return nil, err
	}
	if q.data.Distributed() {
		return nil, fault.FitDistributed()
	}
	request, err := json.Marshal(r.FitRequest)
	if err != nil {
		return nil, fault.Internal(err)
	}
	q.charge = budget.Charge{
		ID: s.newID(s.clock.Now()), Dataset: r.Dataset, Analyst: who.Subject, Accounts: q.accounts.All(),
		Loss: q.plan.Loss(), Mechanisms: q.plan.Mechanisms(), Fingerprint: q.plan.Fingerprint(),
		IdempotencyKey: r.IdempotencyKey, RequestDigest: sha256.Sum256(append([]byte("fit "), request...)), Request: request,
	}
	q.refusal = q.refused(untimed)
	return q, nil
}

// refused is why a fit is not sold; untimed is why it cannot be delayed. Status, load and time may tell something once a pass, so that each
// costs the floor.
func (q *prepared) refused(untimed error) error {
	if err := q.accounts.CheckFloor("a pass of the fit", q.plan.LossOfPass()); err != nil {
		return err
	}
	if err := q.accounts.Takes(q.charge.Loss); err != nil {
		return err
	}
	if q.delay != nil && q.plan.Passes() > 1 {
		return fault.FitTimed()
	}
	return untimed
}

// plan reads a request strictly.
func (s *Service) plan(r api.FitRequest, snapshot *catalog.Snapshot, accounts gateway.Accounts) (*sqlrewrite.Fit, error) {
	for _, field := range []struct{ name, text string }{{"from", r.From}, {"target", r.Target}, {"model", r.Model}} {
		if field.text == "" {
			return nil, fault.RequestMissingField(field.name)
		}
	}
	if len(r.Features) == 0 {
		return nil, fault.RequestMissingField("features")
	}
	question := sqlrewrite.FitQuestion{From: r.From, Where: r.Where, Target: r.Target, Model: sqlrewrite.FitModel(r.Model)}
	switch question.Model {
	case sqlrewrite.FitLinear, sqlrewrite.FitRidge, sqlrewrite.FitLogistic:
	default:
		return nil, fault.FitInvalid("model", "linear, ridge or logistic")
	}
	method, passes := sqlrewrite.FitMethod(r.Method), defaultPasses
	switch method {
	case "auto":
		method = sqlrewrite.FitAuto
	case sqlrewrite.FitAuto, sqlrewrite.FitMoments, sqlrewrite.FitGradient:
	default:
		return nil, fault.FitInvalid("method", "auto, moments or gradient")
	}
	if r.Iterations != nil {
		if passes = *r.Iterations; passes < 1 || passes > maxPasses {
			return nil, fault.FitInvalid("iterations", "from 1 to 100")
		}
		if method == sqlrewrite.FitMoments || method == sqlrewrite.FitAuto && question.Model != sqlrewrite.FitLogistic {
			return nil, fault.FitInvalid("iterations", "left out where one pass over the rows is all: by moments")
		}
	}
	for _, f := range r.Features {
		if f.Encode != "" && f.Encode != "one-hot" {
			return nil, fault.FitInvalid("encode", "one-hot, or left out")
		}
		feature := sqlrewrite.FitFeature{Expr: f.Column, OneHot: f.Encode == "one-hot"}
		if text, ok := r.Weights[f.Column]; ok {
			w, err := mechanisms.ParseDecimal(string(text))
			if err != nil || w.Sign() <= 0 {
				return nil, fault.FitInvalid("weights", "a positive decimal number for each feature it names")
			}
			feature.Weight = w
		}
		question.Features = append(question.Features, feature)
	}
	for name := range r.Weights {
		if !slices.ContainsFunc(r.Features, func(f api.FitFeature) bool { return f.Column == name }) {
			return nil, fault.FitInvalid("weights", "positive decimal numbers of features, by their text")
		}
	}
	priced := api.QueryRequest{Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, MaxRows: r.MaxRows}
	if r.Confidence != nil {
		priced.Confidence = api.Level(*r.Confidence)
	}
	options, err := gateway.GaussianOptions(priced, accounts)
	if err != nil {
		return nil, err
	}
	return sqlrewrite.NewFit(question, snapshot, sqlrewrite.FitOptions{Method: method, Passes: int(passes), Rho: options.Rho,
		MaxRows: options.MaxRows, Confidence: options.Confidence, Proofs: &s.proofs})
}

// Passes over the rows of a fit by gradients: as many as were measured to be of use, and the most that a request may ask for.
const (
	defaultPasses int64 = 30
	maxPasses     int64 = 100
)

// paid gives what was paid for before, or pays for a fit and runs it.
func (s *Service) paid(ctx context.Context, q *prepared, tick *gateway.Schedule) (gateway.Receipt, error) {
	again := func() (gateway.Receipt, bool, error) {
		known, err := s.gateway.Replay(ctx, q.charge)
		if err != nil || known == nil {
			return gateway.Receipt{}, false, err
		}
		return gateway.Receipt{ID: known.ID, Answer: known.Answer, Replayed: true}, true, nil
	}
	if paid, found, err := again(); found || err != nil {
		return paid, err
	}
	if q.refusal != nil {
		return gateway.Receipt{}, q.refusal
	}
	if err := q.data.Dry(ctx, q.plan.DryRun()); err != nil {
		return gateway.Receipt{}, err
	}
	purchase := gateway.Purchase{Accounts: q.accounts, Charge: q.charge, Delay: q.delay}
	return gateway.Buy(ctx, s.gateway, tick, purchase, func(ctx context.Context) (gateway.Finish[*stored], error) {
		answer, err := s.run(ctx, q)
		if err != nil {
			return nil, err
		}
		return func(context.Context) (*stored, gateway.Spending, error) {
			return answer, gateway.Spending{Own: q.charge.Loss.Plus(q.delay.Loss())}, nil
		}, nil
	})
}

// run is what a charge pays for.
func (s *Service) run(ctx context.Context, q *prepared) (*stored, error) {
	run := q.plan.Start(s.sampler())
	if err := q.data.Sequence(ctx, run); err != nil {
		return nil, err
	}
	model, err := run.Fitted()
	if err != nil {
		return nil, err
	}
	return storedModel(q, model), nil
}
