package pipeline

import (
	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/free"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Open is [ReadWithin] for a query that has no price yet; nil when it needs one.
func Open(n *steps.Count, text string, snapshot *catalog.Snapshot, o plan.Options) (*free.PublicPlan, error) {
	opened, err := open(n, text, snapshot, o, nil)
	if err != nil {
		return nil, err
	}
	return free.OpenPlan(opened)
}

// describedEpsilon and describedDelta are a price for plans that are made to be looked at: columns do not depend on it.
const (
	describedEpsilon = mechanisms.EpsilonUnit
	describedDelta   = mechanisms.DeltaUnit / 1_000_000
)

// Describe gives the columns of a query's answer before it has a price. With rows, a query of rows that are not shown has the columns that
// it would have.
func Describe(n *steps.Count, text string, snapshot *catalog.Snapshot, o plan.Options, rows bool) ([]plan.Column, error) {
	opened, err := open(n, text, snapshot, o, nil)
	if err != nil {
		return nil, err
	}
	public, err := free.OpenPlan(opened)
	if public == nil && err == nil && rows {
		public, err = free.Shape(opened)
	}
	if public != nil || err != nil {
		return columnsOf(public), err
	}
	private, err := planQuery(opened, plan.Options{Epsilon: describedEpsilon, Delta: describedDelta, Mechanism: plan.MechanismLaplace,
		Currency: catalog.Pure, Confidence: 0.95}, nil)
	if err != nil {
		return nil, err
	}
	return answer.Columns(private), nil
}

func columnsOf(p *free.PublicPlan) []plan.Column {
	if p == nil {
		return nil
	}
	return p.Columns()
}
