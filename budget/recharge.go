package budget

import (
	"encoding/json"
	"errors"
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/mechanisms"
)

// Charged is what a settled charge cost, and whom.
type Charged struct {
	Analyst  string          `json:"analyst"`
	Accounts []AccountID     `json:"accounts"`
	Loss     mechanisms.Loss `json:"loss"` // for the analyst and groups; shared accounts may have paid less
	// Plan paid for the noise; nil: the charge did, or its receipt is from before 2026-11-27.
	Plan *PaidPlan `json:"plan,omitempty"`
}

// PaidPlan is what a charge drew from a registered plan, and what that cost the same analyst.
type PaidPlan struct {
	ID       ReservationID   `json:"id"`
	From     int             `json:"from"`
	Count    int             `json:"count"`
	Accounts []AccountID     `json:"accounts"`
	Loss     mechanisms.Loss `json:"loss"`
}

// Draw are the slots.
func (p PaidPlan) Draw() *Draw { return &Draw{Plan: p.ID, From: p.From, Count: p.Count} }

// Recharge books a charge again that the ledger lost, and whose answer is out: by its receipt. It counts in full on all
// accounts, also beyond their caps: what was released was.
type Recharge struct {
	Charged
	ID      ReservationID
	Dataset string
	Answer  [32]byte        // SHA-256 of the answer
	Receipt json.RawMessage // for auditors
}

// Charges are what a receipt proves: the charge of the plan that paid for the answer, where one did, and the answer's own.
func (r Recharge) Charges() []Recharge {
	if r.Plan == nil {
		return []Recharge{r}
	}
	plan := r
	plan.ID, plan.Charged = r.Plan.ID, Charged{Analyst: r.Analyst, Accounts: r.Plan.Accounts, Loss: r.Plan.Loss}
	return []Recharge{plan, r}
}

// Check refuses what names no charge.
func (r Recharge) Check() error {
	for _, c := range r.Charges() {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

func (r Recharge) check() error {
	if r.ID == "" || r.Dataset == "" || r.Analyst == "" || len(r.Accounts) == 0 || len(r.Receipt) == 0 {
		return errors.New("budget: a recharge without its charge")
	}
	for _, a := range r.Accounts {
		if a.Dataset != r.Dataset {
			return errors.New("budget: a recharge on accounts of another dataset")
		}
	}
	switch p := r.Plan; {
	case p == nil && r.Loss.IsZero():
		return ErrDrawn
	case p != nil && (p.ID == r.ID || p.From < 0 || p.Count < 0 || p.From+p.Count > accounting.MaxSlots):
		return errors.New("budget: a recharge draws from a plan that is none")
	}
	reserved := r.Loss
	if reserved.Tail = 0; r.Loss.Tail < 0 { // settled losses have tails, unlike those that are asked for
		return errors.New("budget: a recharge with a negative tail")
	}
	return CheckLoss(reserved)
}

// ErrDrawn says that a receipt's charge cost nothing by itself: what paid for its noise was a plan, which may be lost too. Receipts
// say which since 2026-11-27.
var ErrDrawn = errors.New("budget: a registered plan paid for this answer, and its receipt does not say how much")

// Resume lets a dataset go on that was held because entries of its ledger are lost.
type Resume struct {
	Dataset string
	Reason  string
	Freeze  bool // the dataset's account, in the same transaction: nobody asks before what is lost is set again
	Lost    []Head
	Newest  time.Time // of the entries that are left, but for recharges: what was set later is lost; zero: there are none

	// Draws are how far plans were drawn that gateways know of, from slot 0 on. Retires says that this may not be all: nothing is
	// drawn any more from any plan of the dataset.
	Draws   []Draw
	Retires bool
	Unpaid  []ReservationID // plans of Draws that the ledger has no charge of
}
