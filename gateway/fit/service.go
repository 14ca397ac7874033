// Package fit sells models of rows: it takes a request for a regression or for clusters from a principal to numbers that are paid for.
//
// It knows accounts, the plan of a model, when its statements run, and how SQL asks for one. It does not know HTTP, what is printed, or how
// a charge is paid: the one road to rows is [gateway.Sell].
package fit

import (
	"context"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// Data runs the statements of a fit on one protected database; see [gateway.Data].
type Data interface {
	// Sequence runs one statement after another on one snapshot, each made of what was released of those before.
	Sequence(context.Context, sqlrewrite.Series) error
	gateway.Trier
	Distributed() bool
}

// Service sells fits. It is safe for concurrent use.
type Service struct {
	gateway *gateway.Service
	data    map[string]Data // by dataset
}

// New sells fits of rows of datasets, by their names.
func New(g *gateway.Service, data map[string]Data) *Service { return &Service{g, data} }

// Fit fits a model, or gives again one that the caller paid for. Errors before the charge cost nothing: request/*, sql/*, policy/*,
// plan/*, budget/*. After it, the charge is taken back only if no protected row can have been read.
func (s *Service) Fit(ctx context.Context, who auth.Principal, r Request[api.FitRequest]) (*Answer[api.FitResponse], error) {
	return sell(ctx, s, who, s.fitOrder(r), func(sale api.Sale, kept *stored) *api.FitResponse {
		if kept.Fit.Model == "" {
			return nil
		}
		return &api.FitResponse{Sale: sale, FitModel: kept.Fit}
	})
}

func (s *Service) fitOrder(r Request[api.FitRequest]) order {
	most := r.Body.AtMost
	r.Body.AtMost = nil // no part of the question: a repetition may name another
	return order{what: "fit", dataset: r.Body.Dataset, key: r.IdempotencyKey, request: r.Body, atMost: most,
		once: `ask for the method "moments", or for 1 iteration`,
		plan: func(ctx context.Context, o *gateway.Order, proofs *sqlrewrite.Proofs) (product, error) {
			plan, err := fitting(ctx, r.Body, o, proofs)
			return regression{plan}, err
		}}
}

// regression is a fit that is for sale.
type regression struct{ *sqlrewrite.Fit }

func (r regression) Statements() int { return r.Passes() }

func (r regression) DryRuns() []sqlrewrite.DryRun { return []sqlrewrite.DryRun{r.DryRun()} }

func (r regression) Run(ctx context.Context, data Data, sampler *mechanisms.Sampler) (*stored, error) {
	run := r.Start(sampler)
	return ran(ctx, data, run, run.Fitted, r.stored)
}

// fitting reads a request strictly.
func fitting(ctx context.Context, r api.FitRequest, o *gateway.Order, proofs *sqlrewrite.Proofs) (*sqlrewrite.Fit, error) {
	for _, field := range []struct{ name, text string }{{"from", r.From}, {"target", r.Target}, {"model", r.Model}} {
		if field.text == "" {
			return nil, fault.RequestMissingField(field.name)
		}
	}
	if len(r.Features) == 0 {
		return nil, fault.RequestMissingField("features")
	}
	question := sqlrewrite.FitQuestion{From: r.From, Where: r.Where, Target: r.Target, Model: sqlrewrite.FitModel(r.Model),
		Zone: r.TimeZone}
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
	var texts []string
	for _, f := range r.Features {
		if f.Encode != "" && f.Encode != "one-hot" {
			return nil, fault.FitInvalid("encode", "one-hot, or left out")
		}
		texts = append(texts, f.Column)
	}
	var err error
	if question.Features, err = weighted(texts, r.Weights); err != nil {
		return nil, err
	}
	for i, f := range r.Features {
		question.Features[i].OneHot = f.Encode == "one-hot"
	}
	priced := api.QueryRequest{Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, MaxRows: r.MaxRows}
	if r.Confidence != nil {
		priced.Confidence = api.Level(*r.Confidence)
	}
	options, err := gateway.GaussianOptions(priced, o.Accounts)
	if err != nil {
		return nil, err
	}
	return sqlrewrite.NewFit(ctx, question, o.On, sqlrewrite.FitOptions{Method: method, Passes: int(passes), Rho: options.Rho,
		MaxRows: options.MaxRows, Confidence: options.Confidence, Proofs: proofs})
}

// Passes over the rows of a fit by gradients: as many as were measured to be of use, and the most that a request may ask for.
const (
	defaultPasses int64 = 30
	maxPasses     int64 = 100
)
