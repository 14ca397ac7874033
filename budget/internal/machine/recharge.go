package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"noisegate.example/budget"
	"noisegate.example/mechanisms"
)

// rechargeRecord is a recharge as the journal keeps it.
type rechargeRecord struct {
	Receipt json.RawMessage `json:"recharges"`
	By      string          `json:"by"`
}

// resumeRecord is a resume as the journal keeps it.
type resumeRecord struct {
	Lost    []lostRecord `json:"resumes_without"`
	Reason  string       `json:"reason"`
	Retires bool         `json:"retires_plans,omitempty"` // not in entries of the first day
}

type lostRecord struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Recharge books a charge that was lost, unless it is there, and reports whether it did.
func (m *Machine) Recharge(by string, r budget.Recharge) bool {
	if m.Charges[r.ID] != nil {
		return false
	}
	named := make([]budget.Account, len(r.Accounts))
	for i, id := range r.Accounts { // one that was lost as well admits nothing until its policy is applied again
		named[i] = budget.Account{ID: id, Limit: budget.Limit{Form: budget.Pure, Rho: budget.Never}}
	}
	accounts := m.find(named)
	c := &Charge{Charge: budget.Charge{ID: r.ID, Dataset: r.Dataset, Analyst: r.Analyst, Loss: r.Loss, Request: r.Receipt}, Accounts: accounts,
		State: Expired, Held: r.Loss, Opened: m.Now, Closed: m.Now, Attempt: 1, Fresh: true, Ended: true}
	c.Fingerprint = sha256.Sum256([]byte("recharge " + string(r.ID)))
	for _, a := range accounts {
		if m.Accounts[a.ID] == nil {
			m.define(by, a, budget.EntryLimit, budget.Refill{})
		}
		a.Used.Add(SumOf(r.Loss))
		a.Moved = true
	}
	m.Charges[c.ID] = c
	m.write(budget.Entry{Kind: budget.EntryRecharge, Reservation: r.ID, Loss: r.Loss, Digest: r.Answer[:],
		AccountText: encoded(rechargeRecord{r.Receipt, by})}, r.Dataset, r.Analyst, accounts)
	for _, a := range accounts {
		if a.Limit.Ceiling(a.Used.Loss()) != a.Limit.Ceiling(mechanisms.Loss{}) { // what was released is beyond the cap
			m.define(by, a, budget.EntryLimit, budget.Refill{})
		}
	}
	return true
}

// Resume writes down that a dataset goes on without entries that are lost. Who calls it draws out all plans of the dataset:
// which of their slots were drawn may be lost as well, and no slot is drawn twice.
func (m *Machine) Resume(by string, r budget.Resume) {
	record := resumeRecord{Reason: r.Reason, Lost: make([]lostRecord, len(r.Lost)), Retires: true}
	for i, h := range r.Lost {
		record.Lost[i] = lostRecord{h.Seq, hex.EncodeToString(h.Hash[:])}
	}
	m.write(budget.Entry{Kind: budget.EntryResume, AccountText: encoded(record)}, r.Dataset, by, nil)
}

// RechargeOf reports whether an entry is a recharge that says which receipt it is of.
func RechargeOf(e budget.Entry) bool {
	var record rechargeRecord
	return e.Kind == budget.EntryRecharge && json.Unmarshal(e.AccountText, &record) == nil && len(record.Receipt) > 0 &&
		e.Reservation != "" && len(e.AccountIDs) > 0 && e.Shared == nil
}

// ResumeOf reports whether an entry is a resume that says what is lost, and whether nothing is drawn any more from plans
// that were registered before it.
func ResumeOf(e budget.Entry) (retires, ok bool) {
	var record resumeRecord
	ok = e.Kind == budget.EntryResume && json.Unmarshal(e.AccountText, &record) == nil && record.Lost != nil &&
		e.Reservation == "" && len(e.AccountIDs) == 0
	return record.Retires, ok
}
