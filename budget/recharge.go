package budget

import (
	"encoding/json"
	"errors"

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
	return CheckLoss(r.Loss)
}

// Resume lets a dataset go on that was held because entries of its ledger are lost.
type Resume struct {
	Dataset string
	Reason  string
	Lost    []Head
}
