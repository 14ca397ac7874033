package budget

import (
	"errors"
	"slices"
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Plan is a registered plan: an ordered list of noises, paid for at once when it was registered, whose slots later queries draw in
// order. Nothing but the number of drawn slots ever changes.
type Plan struct {
	ID           ReservationID // of the charge that paid for it
	Dataset      string
	Loss         mechanisms.Loss
	Slots        []mechanisms.Slot
	Next         int // the first slot that is not drawn
	RegisteredAt time.Time
}

// Left are the slots that are not drawn yet.
func (p *Plan) Left() []mechanisms.Slot { return p.Slots[p.Next:] }

// Draw takes the next slots out of a plan, together with the reservation of a charge or not at all. A drawn slot is gone, however the
// Charge ends: its noise may have been seen.
type Draw struct {
	Plan  ReservationID
	From  int // the plan's next slot, as the caller saw it
	Count int
}

// ErrSlotTaken says that another query drew from the plan since the caller looked. Nothing changed. As the other one got
// its slots, callers that look and try again finish after at most as many rounds as the plan has slots.
var ErrSlotTaken = errors.New("budget: another query drew the slot")

// checkPlan refuses what only a defect of the caller can produce.
func (c Charge) checkPlan() error {
	if len(c.Registers) > 0 {
		if c.Draws != nil || len(c.Registers) > accounting.MaxSlots || slices.ContainsFunc(c.Registers,
			func(s mechanisms.Slot) bool { return s.Check() != nil }) {
			return fault.Internal(errors.New("budget: a charge registers a plan that is none"))
		}
	}
	if d := c.Draws; d != nil {
		delayed := slices.ContainsFunc(c.Mechanisms, func(p mechanisms.Parameters) bool { return p.Mechanism == mechanisms.RandomDelay })
		if d.Plan == "" || d.From < 0 || d.Count < 0 || d.From+d.Count > accounting.MaxSlots || !c.Loss.IsZero() && !delayed {
			return fault.Internal(errors.New("budget: a charge draws from a plan and is not paid by it"))
		}
	}
	return nil
}
