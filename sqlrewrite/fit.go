package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/fit"
)

// Fit is a regression, ready to be paid for and run. It is immutable and safe for concurrent use.
type Fit = fit.Plan

// FitQuestion is a regression, as texts of SQL.
type FitQuestion = fit.Question

// FitFeature is one term of a model.
type FitFeature = fit.Feature

// FitModel is what is fitted.
type FitModel = fit.Model

// FitOptions are the choices of one request, already checked for range by the caller.
type FitOptions = fit.Options

// Fitted is a model.
type Fitted = fit.Fitted

// FitCoefficient is one number of a model.
type FitCoefficient = fit.Coefficient

// The models.
const (
	FitLinear   = fit.Linear
	FitRidge    = fit.Ridge
	FitLogistic = fit.Logistic
)

// NewFit plans a regression. Its errors are those of [Rewrite] for a query over the same expressions, and plan/fit; it touches neither data
// nor budget.
func NewFit(q FitQuestion, snapshot *catalog.Snapshot, o FitOptions) (*Fit, error) {
	return fit.NewPlan(q, snapshot, o)
}
