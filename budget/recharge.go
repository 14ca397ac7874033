package budget

import (
	"encoding/json"
	"errors"
	"time"

	"noisegate.example/mechanisms"
)

// Charged is what a settled charge cost, and whom.
type Charged struct {
	Analyst  string          `json:"analyst"`
	Accounts []AccountID     `json:"accounts"`
	Loss     mechanisms.Loss `json:"loss"` // for the analyst and groups; shared accounts may have paid less
}

// Recharge books a charge again that the ledger lost, and whose answer is out: by its receipt. It counts in full on all
// accounts, also beyond their caps: what was released was.
type Recharge struct {
	Charged
	ID      ReservationID
	Dataset string
	Answer  [32]byte        // SHA-256 of the answer
	Receipt json.RawMessage // for whoever audits
}

// Check refuses what names no charge.
func (r Recharge) Check() error {
	if r.ID == "" || r.Dataset == "" || r.Analyst == "" || len(r.Accounts) == 0 || len(r.Receipt) == 0 {
		return errors.New("budget: a recharge without its charge")
	}
	for _, a := range r.Accounts {
		if a.Dataset != r.Dataset {
			return errors.New("budget: a recharge on accounts of another dataset")
		}
	}
	if r.Loss.IsZero() {
		return ErrDrawn
	}
	reserved := r.Loss
	if reserved.Tail = 0; r.Loss.Tail < 0 { // settled losses have tails, unlike those that are asked for
		return errors.New("budget: a recharge with a negative tail")
	}
	return CheckLoss(reserved)
}

// ErrDrawn says that a receipt's charge cost nothing by itself: what paid for its noise was a plan, which may be lost too.
var ErrDrawn = errors.New("budget: a registered plan paid for this answer, and its receipt does not say how much")

// Resume lets a dataset go on that was held because entries of its ledger are lost.
type Resume struct {
	Dataset string
	Reason  string
	Freeze  bool // the dataset's account, in the same transaction: nobody asks before what is lost is set again
	Lost    []Head
	Newest  time.Time // of the entries that are left, but for recharges: what was set later is lost; zero: there are none
}
