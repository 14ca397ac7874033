// Package pipeline takes a query through the rooms, from its text to its answer: parse, bind, plan, release, answer.
//
// It knows the order of the rooms and does no step itself. It does not know how a plan is shown to other packages: package sqlrewrite
// wraps plans, and tests look into them.
package pipeline

import (
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/free"
	"noisegate.example/sqlrewrite/internal/joinorder"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Rewrite is [RewriteWithin] while somebody waits, however long it takes.
func Rewrite(text string, snapshot *catalog.Snapshot, o plan.Options) (*plan.Plan, error) {
	return steps.Bounded(new(steps.Count), func(n *steps.Count) (*plan.Plan, error) { return RewriteWithin(n, text, snapshot, o) })
}

// RewriteWithin parses, binds and plans a query that reads private rows; [ReadWithin] takes every query.
func RewriteWithin(n *steps.Count, text string, snapshot *catalog.Snapshot, o plan.Options) (*plan.Plan, error) {
	lists := keys.NewAsked(o.Lists, snapshot)
	opened, err := open(n, text, snapshot, o, lists)
	if err != nil {
		return nil, err
	}
	return planQuery(opened, o, lists)
}

// Read is [ReadWithin] while somebody waits, however long it takes.
func Read(text string, snapshot *catalog.Snapshot, o plan.Options) (private *plan.Plan, public *free.PublicPlan, err error) {
	private, err = steps.Bounded(new(steps.Count), func(n *steps.Count) (made *plan.Plan, err error) {
		made, public, err = ReadWithin(n, text, snapshot, o)
		return made, err
	})
	return private, public, err
}

// ReadWithin parses, binds and plans a query: exactly one of private and public is not nil when there is no error.
func ReadWithin(n *steps.Count, text string, snapshot *catalog.Snapshot, o plan.Options) (private *plan.Plan, public *free.PublicPlan,
	err error) {
	lists := keys.NewAsked(o.Lists, snapshot)
	opened, err := open(n, text, snapshot, o, lists)
	if err != nil {
		return nil, nil, err
	}
	if public, err = free.OpenPlan(opened); public != nil || err != nil {
		return nil, public, err
	}
	private, err = planQuery(opened, o, lists)
	return private, nil, err
}

func open(n *steps.Count, text string, snapshot *catalog.Snapshot, o plan.Options, lists *keys.Asked) (*algebra.Opened, error) {
	clock := parse.Clock{Now: o.Now, Zone: o.Zone}
	query, err := parse.ParseAt(text, o.Dialect, clock)
	if err == nil {
		err = withViews(text, query, snapshot, clock)
	}
	opened := algebra.NewOpened(text, query, snapshot)
	opened.Steps = n
	opened.Zone = o.Zone
	if lists != nil {
		opened.List.Of = lists.List
	}
	return opened, err
}

// planQuery plans a query as it was written; where it is refused for the order of its joins, in the first order that is not. If all are
// refused, what is said follows from the relations and not from their order.
func planQuery(opened *algebra.Opened, o plan.Options, lists *keys.Asked) (*plan.Plan, error) {
	p, err := planOrder(opened, o, lists)
	if !joinorder.Decides(err) {
		return p, err
	}
	for i, other := range joinorder.Others(opened.Steps, opened.Query, opened.Snapshot) {
		again, own := opened.Again(other), lists.Again()
		if own != nil {
			again.List.Of = own.List
		}
		p, refused := planOrder(again, o, own)
		if !joinorder.Decides(refused) && fault.CodeOf(refused) != fault.CodeAmbiguousColumn {
			return p, refused
		}
		if i == 0 && joinorder.Decides(refused) && fault.CodeOf(refused) != fault.CodeOf(err) {
			err = refused
		}
	}
	return nil, err
}

// planOrder plans a query in the order in which it is written. Where it is refused for a column without bounds, public columns have those
// of their values: what was answered before they had any is answered as it was.
func planOrder(opened *algebra.Opened, o plan.Options, lists *keys.Asked) (*plan.Plan, error) {
	p, err := planOnce(opened, o, lists)
	if lists != nil && !opened.List.Ranged && fault.CodeOf(err) == fault.CodeMissingBounds {
		again := opened.Again(opened.Query)
		again.List.Ranged = true
		return planOrder(again, o, lists)
	}
	if plan.IsDear(err) && !opened.Load.Dear {
		again := opened.Again(opened.Query)
		again.Load.Dear = true
		if capped, refused := planOnce(again, o, lists); refused == nil {
			return capped, nil
		}
	}
	return p, err
}

func planOnce(opened *algebra.Opened, o plan.Options, lists *keys.Asked) (*plan.Plan, error) {
	bound, err := plan.Asked(opened, o)
	if needed := lists.Needed(); needed != nil && err == nil {
		return nil, needed
	}
	if err != nil {
		return nil, err
	}
	p, err := shown(plan.NewPlan(bound, opened.Snapshot, o))
	if opened.Wide || !bound.Narrowed() {
		return p, err
	}
	wide := func(n *steps.Count, o plan.Options) (*plan.Plan, error) {
		again := opened.Again(opened.Query)
		again.Wide, again.Steps, again.Load.Dear = true, n, false
		own := lists.Again() // it may be planned while others are
		if own != nil {
			again.List.Of = own.List
		}
		return planQuery(again, o, own)
	}
	// Totals over released groups have the centre of what is released: beside other releases each release has to fit them.
	if err != nil || bound.Blocks != nil && opened.Levels != nil {
		return wide(opened.Steps, o)
	}
	if o.Bounded {
		return p, nil
	}
	p.Widened(func(o plan.Options) (*plan.Plan, error) {
		return steps.Bounded(new(steps.Count), func(n *steps.Count) (*plan.Plan, error) { return wide(n, o) })
	})
	return p, nil
}

// shown describes the outputs of a plan that was made; nil with an error.
func shown(p *plan.Plan, err error) (*plan.Plan, error) {
	if err != nil {
		return nil, err
	}
	p.Outputs = answer.OutputForms(p)
	return p, nil
}

// Reprice is the plan of the same question under other options.
func Reprice(p *plan.Plan, o plan.Options) (*plan.Plan, error) { return shown(p.Repriced(o)) }

// WithSlots is the plan with the noise of a registered plan's next slots.
func WithSlots(p *plan.Plan, next []mechanisms.Slot) (*plan.Plan, error) {
	return shown(p.WithNoise(next))
}
