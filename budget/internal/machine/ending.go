package machine

import (
	"bytes"
	"fmt"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// State is where a charge is; see the picture in the comment of package budget.
type State string

// The states.
const (
	Open    State = "open"
	Settled State = "settled"
	Voided  State = "voided"
	Expired State = "expired"
)

// Ending is one of the ways in which an open charge ends.
type Ending struct {
	to     State
	kind   budget.EntryKind
	loss   *mechanisms.Loss // what the charge counts as from then on; nil: all that was reserved
	shared *mechanisms.Loss // what it counts as for shared accounts; nil: the same
	answer []byte           // settled only
}

// Settling ends a charge with an answer, and what was really released.
func Settling(released mechanisms.Loss, answer []byte) (Ending, error) {
	if err := budget.CheckLoss(released); err != nil {
		return Ending{}, err
	}
	if released.Unbounded {
		released.Epsilon = 0
	}
	return Ending{to: Settled, kind: budget.EntrySettle, loss: &released, answer: append([]byte{}, answer...)}, nil
}

// SettlingApart is Settling of what costs some accounts less than others.
func SettlingApart(released budget.Apart, answer []byte) (Ending, error) {
	e, err := Settling(released.Own, answer)
	if err != nil {
		return Ending{}, err
	}
	shared, err := Settling(released.Shared, nil)
	e.shared = shared.loss
	return e, err
}

// settles gives what a charge counts as from now on, for its own accounts and, where that is less, for the shared ones;
// false if it is more than was held.
func (e Ending) settles(held mechanisms.Loss) (own mechanisms.Loss, shared *mechanisms.Loss, ok bool) {
	own = held
	if e.loss != nil {
		own = settledAs(*e.loss, held)
	}
	if e.shared != nil {
		if less := settledAs(*e.shared, own); less != own {
			shared = &less
		}
	}
	return own, shared, Within(own, held) && (shared == nil || Within(*shared, own))
}

// Counts is what a charge counts as in accounts of a scope.
func Counts(s budget.Scope, own mechanisms.Loss, shared *mechanisms.Loss) mechanisms.Loss {
	if shared != nil && (s == budget.DatasetScope || s == budget.EnsembleScope) {
		return *shared
	}
	return own
}

// Voiding takes a charge back.
func Voiding() Ending { return Ending{to: Voided, kind: budget.EntryVoid, loss: &mechanisms.Loss{}} }

// Expiring ends a charge without an answer; what it reserved counts as spent.
func Expiring() Ending { return Ending{to: Expired, kind: budget.EntryExpire} }

// again decides about ending a charge that is not open. The same ending once more is no error: its caller could not know
// that the first was committed.
func (e Ending) again(id budget.ReservationID, is State, answer []byte) error {
	if is == e.to && bytes.Equal(answer, e.answer) {
		return nil
	}
	return fault.Internal(fmt.Errorf("budget: charge %s is %s and cannot become %s", id, is, e.to))
}

// Failing is Expiring of work that began and failed.
func Failing() Ending { return Ending{to: Expired, kind: budget.EntryFail} }

// settledAs is what a release counts as whose reservation is held: one that was reserved before there were tails has
// none. It keeps the whole tail, one for each of the levels that it might have settled at: see [budget.Charge.Levels].
func settledAs(released, held mechanisms.Loss) mechanisms.Loss {
	if !released.Unbounded || held.Unbounded {
		return released
	}
	released = budget.InLedger(released)
	released.Tail = max(released.Tail, held.Tail)
	released.Epsilon = min(released.Epsilon, held.Epsilon) // ε(ρ) rises with ρ, its computed bound nearly so
	return released
}

// Within reports whether a release cost no more than was reserved for it, in every currency.
func Within(released, reserved mechanisms.Loss) bool {
	return released.Epsilon <= reserved.Epsilon && released.Rho <= reserved.Rho && released.Delta <= reserved.Delta &&
		released.Tail <= reserved.Tail &&
		(reserved.Unbounded || !released.Unbounded)
}

// UsedID refuses the id of another charge.
func UsedID(id budget.ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: the reservation id %s was used before", id))
}

func overReserved(id budget.ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: charge %s released more than it reserved", id))
}

// UnknownCharge refuses an id that no charge has.
func UnknownCharge(id budget.ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: there is no charge %s", id))
}
