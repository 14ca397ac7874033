package sqlrewrite

import (
	"context"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Fit is a regression, ready to be paid for and run. It is immutable and safe for concurrent use.
type Fit = fit.Plan

// FitQuestion is a regression, as texts of SQL.
type FitQuestion = fit.Question

// FitFeature is one term of a model.
type FitFeature = fit.Feature

// FitModel is what is fitted.
type FitModel = fit.Model

// FitMethod is how a model is fitted.
type FitMethod = fit.Method

// FitOptions are the choices of one request, already checked for range by the caller.
type FitOptions = fit.Options

// Fitted is a model.
type Fitted = fit.Fitted

// Series are statements of one row each over the same tables. Each may be made from the releases of those before it, such as the result of
// [Fit.Start].
type Series interface {
	// Next is the statement to run now; false after the last one.
	Next() (Statement, bool)
	// Release takes the row of the statement that ran.
	Release(ExactRow) error
	// Len is how many statements there are at most.
	Len() int
}

// FitCoefficient is one number of a model.
type FitCoefficient = fit.Coefficient

// The models, and the methods.
const (
	FitLinear   = fit.Linear
	FitRidge    = fit.Ridge
	FitLogistic = fit.Logistic
	FitAuto     = fit.Auto
	FitMoments  = fit.Moments
	FitGradient = fit.Gradient
)

// NewFit plans a regression. Its errors are those of [Rewrite] for a query over the same expressions, and plan/fit; it touches neither data
// nor budget.
func NewFit(ctx context.Context, q FitQuestion, snapshot *catalog.Snapshot, o FitOptions) (*Fit, error) {
	return steps.Run(ctx, func(n *steps.Count) (*Fit, error) {
		o.Steps = n
		return fit.NewPlan(q, snapshot, o)
	})
}
