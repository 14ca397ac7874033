package gateway

import (
	"context"
	"crypto/sha256"
	"math/big"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/gateway/released"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// PlanRequest is one plan as a client wants it registered.
type PlanRequest struct {
	api.PlanRequest
	IdempotencyKey string // "" for none
}

// maxPlanLines bounds the different mechanisms of a plan, and with them the work of pricing it.
const maxPlanLines = 100

// RegisterPlan pays for a list of noises at once, at the price of the whole list ([accounting.PlanLoss]), which is less than that of its
// parts. Queries that name the plan draw its slots. It touches no protected data. Each call without an Idempotency-Key registers
// another plan.
func (s *Service) RegisterPlan(ctx context.Context, who auth.Principal, r PlanRequest) (*api.Plan, error) {
	release, err := s.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	o, err := s.Order(ctx, who, r.Dataset, r.IdempotencyKey, r.AtMost)
	if err != nil {
		return nil, err
	}
	o.Delay = nil // it reads no row
	c := &o.Charge
	if err := pricePlan(o, r.PlanRequest); err != nil {
		return nil, err
	}
	if err := o.Accounts.floor.checkSlots(c.Registers); err != nil {
		return nil, err
	}
	for _, slot := range c.Registers {
		if err := o.Accounts.Takes(mechanisms.Loss{Epsilon: slot.Epsilon, Rho: slot.Rho, Unbounded: slot.Rho > 0}); err != nil {
			return nil, err
		}
	}
	r.AtMost = nil // no part of what the key stands for
	if err := o.Keep("", r.PlanRequest); err != nil {
		return nil, err
	}
	c.Fingerprint = sha256.Sum256([]byte("registering " + c.ID)) // two plans may be the same
	paid, err := Sell(ctx, s, s.unscheduled(), Sale[struct{}]{Order: o, Work: func(context.Context) (Finish[struct{}], error) {
		return Done(struct{}{}, c.Loss), nil // what was paid for is the plan, which the ledger keeps with the charge
	}})
	if err != nil {
		return nil, err
	}
	return s.plan(ctx, who, string(paid.ID))
}

// pricePlan reads the slots that an order registers, and prices them.
func pricePlan(o *Order, r api.PlanRequest) error {
	slots, err := slotsOf(r.Mechanisms)
	if err != nil {
		return err
	}
	delta, err := mechanisms.ParseDelta(string(r.Delta))
	if err != nil || delta == 0 {
		return fault.RequestDelta(`a decimal number above 0 and below 1, such as "1e-9": the plan's price is for this δ`)
	}
	loss, err := accounting.PlanLoss(slots, delta)
	if err != nil {
		return fault.RequestPlan("mechanisms", "less, or delta more: the list has no finite price").WithCause(err)
	}
	var noises []mechanisms.Parameters
	for _, slot := range slots {
		// The journal shows each slot's noise for a sensitivity of 1: what it will be used for is not known yet.
		unit, err := slot.Noise(big.NewInt(1), big.NewInt(1))
		if err != nil {
			return fault.Internal(err)
		}
		noises = append(noises, unit.Parameters())
	}
	o.Charge.Registers = slots
	o.Price(loss, noises)
	return nil
}

// slotsOf reads a list of mechanisms; each may be repeated.
func slotsOf(list []api.PlanMechanism) ([]mechanisms.Slot, error) {
	if len(list) == 0 {
		return nil, fault.RequestMissingField("mechanisms")
	}
	var slots []mechanisms.Slot
	for _, line := range list {
		slot, err := slotOf(line)
		if err != nil {
			return nil, err
		}
		count := int64(1)
		if line.Count != nil {
			count = *line.Count
		}
		if count < 1 || count > accounting.MaxSlots-int64(len(slots)) || len(list) > maxPlanLines {
			return nil, fault.RequestPlan("mechanisms", "at most 100 lines with counts of at least 1 that add up to at most 1000")
		}
		for range count {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

func slotOf(line api.PlanMechanism) (slot mechanisms.Slot, err error) {
	switch {
	case line.Mechanism == "laplace" && line.Rho == "":
		if slot.Epsilon, err = mechanisms.ParseEpsilon(string(line.Epsilon)); err != nil || slot.Epsilon == 0 {
			return slot, wrongEpsilon()
		}
	case line.Mechanism == "gaussian" && line.Epsilon == "":
		if slot.Rho, err = mechanisms.ParseRho(string(line.Rho)); err != nil || slot.Rho == 0 {
			return slot, wrongRho()
		}
	default:
		return slot, fault.RequestPlan("mechanisms", `a list of {"mechanism": "laplace", "epsilon": ...} and {"mechanism": "gaussian", "rho": ...}`)
	}
	return slot, nil
}

// Plan shows what is left of one of the caller's own plans. What belongs to others does not exist.
func (s *Service) Plan(ctx context.Context, who auth.Principal, id string) (*api.Plan, error) {
	release, err := s.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.plan(ctx, who, id)
}

func (s *Service) plan(ctx context.Context, who auth.Principal, id string) (*api.Plan, error) {
	p, err := s.ledger.Plan(ctx, who.Subject, budget.ReservationID(id))
	if err != nil {
		return nil, err
	}
	shown := &api.Plan{PlanID: id, Dataset: p.Dataset, Cost: amounts.Of(p.Loss), Slots: len(p.Slots), Drawn: p.Next,
		Left: []api.PlanMechanism{}, RegisteredAt: p.RegisteredAt.UTC()}
	for i, slot := range p.Left() {
		if i > 0 && slot == p.Left()[i-1] {
			*shown.Left[len(shown.Left)-1].Count++
			continue
		}
		line := api.PlanMechanism{Mechanism: "laplace", Count: new(int64(1))}
		if slot.Rho > 0 {
			line.Mechanism, line.Rho = "gaussian", api.Decimal(slot.Rho.String())
		} else {
			line.Epsilon = api.Decimal(slot.Epsilon.String())
		}
		shown.Left = append(shown.Left, line)
	}
	return shown, nil
}

// underPlan are the options of a query that a registered plan pays for. Its price is nominal: slots take its place
// ([Service.drawSlots]), so that the question is the same whichever of them are next.
func underPlan(r api.QueryRequest, o sqlrewrite.Options) (sqlrewrite.Options, error) {
	if r.Epsilon != "" || r.Rho != "" || r.Delta != "" || len(r.MaxError) > 0 || len(r.Weights) > 0 {
		return sqlrewrite.Options{}, fault.RequestPlan("plan", "given without epsilon, rho, delta, max_error and weights: its slots fix "+
			"the noise")
	}
	o.Currency, o.Delta = catalog.Approx, mechanisms.DeltaUnit/1_000_000
	if o.Mechanism == sqlrewrite.MechanismGaussian {
		o.Rho = 1000 * mechanisms.RhoUnit
	} else {
		o.Epsilon = 1000 * mechanisms.EpsilonUnit
	}
	return o, nil
}

// drawSlots gives a question the next slots of the registered plan that it names, instead of a price. That the slots do not fit is
// no error yet: the question may have been answered when they did.
func (s *Service) drawSlots(ctx context.Context, q *prepared, r api.QueryRequest) error {
	c := &q.Charge
	registered, err := s.ledger.Plan(ctx, c.Analyst, budget.ReservationID(r.Plan))
	if err != nil {
		return err
	}
	if registered.Dataset != r.Dataset {
		return fault.PlanUnknown()
	}
	c.Fingerprint = released.Drawing(r.Plan, c.Fingerprint)
	c.Loss, c.Mechanisms = mechanisms.Loss{}, nil
	fixed, err := q.plan.WithSlots(registered.Left())
	if err == nil { // the plan may be older than the floor
		err = q.Accounts.floor.checkSlots(registered.Left()[:fixed.Slots()])
	}
	if err != nil {
		q.Refusal = err
		return nil
	}
	q.plan, c.Mechanisms = fixed, fixed.Mechanisms()
	c.Draws = &budget.Draw{Plan: registered.ID, From: registered.Next, Count: fixed.Slots()}
	return nil
}
