package budget

import (
	"bytes"
	"fmt"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// The states of a charge; see the picture in the package comment.
type state string

const (
	open    state = "open"
	settled state = "settled"
	voided  state = "voided"
	expired state = "expired"
)

// ending is one of the ways in which an open charge ends.
type ending struct {
	to     state
	kind   EntryKind
	loss   *mechanisms.Loss // what the charge counts as from then on; nil: all that was reserved
	shared *mechanisms.Loss // what it counts as for shared accounts; nil: the same
	answer []byte           // settled only
}

func settling(released mechanisms.Loss, answer []byte) (ending, error) {
	if err := checkLoss(released); err != nil {
		return ending{}, err
	}
	if released.Unbounded {
		released.Epsilon = 0
	}
	return ending{to: settled, kind: EntrySettle, loss: &released, answer: append([]byte{}, answer...)}, nil
}

func settlingApart(released Apart, answer []byte) (ending, error) {
	e, err := settling(released.Own, answer)
	if err != nil {
		return ending{}, err
	}
	shared, err := settling(released.Shared, nil)
	e.shared = shared.loss
	return e, err
}

// settles gives what a charge counts as from now on, for its own accounts and, where that is less, for the shared ones;
// false if it is more than was held.
func (e ending) settles(held mechanisms.Loss) (own mechanisms.Loss, shared *mechanisms.Loss, ok bool) {
	own = held
	if e.loss != nil {
		own = settledAs(*e.loss, held)
	}
	if e.shared != nil {
		if less := settledAs(*e.shared, own); less != own {
			shared = &less
		}
	}
	return own, shared, within(own, held) && (shared == nil || within(*shared, own))
}

// counts is what a charge counts as in accounts of a scope.
func counts(s Scope, own mechanisms.Loss, shared *mechanisms.Loss) mechanisms.Loss {
	if shared != nil && (s == DatasetScope || s == EnsembleScope) {
		return *shared
	}
	return own
}

func voiding() ending  { return ending{to: voided, kind: EntryVoid, loss: &mechanisms.Loss{}} }
func expiring() ending { return ending{to: expired, kind: EntryExpire} }

// again decides about ending a charge that is not open. The same ending once more is no error: its caller could not know
// that the first was committed.
func (e ending) again(id ReservationID, is state, answer []byte) error {
	if is == e.to && bytes.Equal(answer, e.answer) {
		return nil
	}
	return fault.Internal(fmt.Errorf("budget: charge %s is %s and cannot become %s", id, is, e.to))
}

// failing ends a charge as expiring does, under another name.
func failing() ending { return ending{to: expired, kind: EntryFail} }

// settledAs is what a release counts as whose reservation is held: one that was reserved before there were tails has
// none. It keeps the whole tail, one for each of the levels that it might have settled at: see [Charge.Levels].
func settledAs(released, held mechanisms.Loss) mechanisms.Loss {
	if !released.Unbounded || held.Unbounded {
		return released
	}
	released = inLedger(released)
	released.Tail = max(released.Tail, held.Tail)
	released.Epsilon = min(released.Epsilon, held.Epsilon) // ε(ρ) rises with ρ, its computed bound nearly so
	return released
}

// within reports whether a release cost no more than was reserved for it, in every currency.
func within(released, reserved mechanisms.Loss) bool {
	return released.Epsilon <= reserved.Epsilon && released.Rho <= reserved.Rho && released.Delta <= reserved.Delta &&
		released.Tail <= reserved.Tail &&
		(reserved.Unbounded || !released.Unbounded)
}

func usedID(id ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: the reservation id %s was used before", id))
}

func overReserved(id ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: charge %s released more than it reserved", id))
}

func unknownCharge(id ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: there is no charge %s", id))
}
