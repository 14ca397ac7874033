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
	Draws   []DrawRecord `json:"draws,omitempty"`
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
	e := budget.Entry{Kind: budget.EntryRecharge, Reservation: r.ID, Loss: r.Loss, Digest: r.Answer[:],
		AccountText: encoded(rechargeRecord{r.Receipt, by})}
	if r.Plan != nil {
		c.Draws = r.Plan.Draw()
		e.MechanismText = drawText(*c.Draws)
		if plan := m.Charges[c.Draws.Plan]; plan != nil { // else what is left of it is lost
			plan.drawnTo(c.Draws.From + c.Draws.Count)
		}
	}
	m.write(e, r.Dataset, r.Analyst, accounts)
	for _, a := range accounts {
		if a.Limit.Ceiling(a.Used.Loss()) != a.Limit.Ceiling(mechanisms.Loss{}) { // what was released is beyond the cap
			m.define(by, a, budget.EntryLimit, budget.Refill{})
		}
	}
	return true
}

// drawnTo notes that the slots of a plan before one are drawn.
func (c *Charge) drawnTo(next int) {
	if next = min(next, len(c.Registers)); next > c.Drawn {
		c.Drawn, c.Drew = next, true
	}
}

// Resume writes down that a dataset goes on without entries that are lost. Who calls it draws the dataset's plans out, or as far as
// r says: no slot is drawn twice.
func (m *Machine) Resume(by string, r budget.Resume) {
	record := resumeRecord{Reason: r.Reason, Lost: make([]lostRecord, len(r.Lost)), Retires: r.Retires}
	for _, d := range r.Draws {
		record.Draws = append(record.Draws, DrawRecord{d.Plan, d.From, d.Count})
	}
	for i, h := range r.Lost {
		record.Lost[i] = lostRecord{h.Seq, hex.EncodeToString(h.Hash[:])}
	}
	m.write(budget.Entry{Kind: budget.EntryResume, AccountText: encoded(record)}, r.Dataset, by, nil)
}

// Drawn says how far a plan with so many slots is drawn, if before of them were already drawn.
type Drawn func(plan budget.ReservationID, slots, before int) int

// RechargeOf reads a recharge: how far plans are drawn at least from then on. It is false for an entry that names no receipt.
func RechargeOf(e budget.Entry) (Drawn, bool) {
	var record rechargeRecord
	if e.Kind != budget.EntryRecharge || json.Unmarshal(e.AccountText, &record) != nil || len(record.Receipt) == 0 ||
		e.Reservation == "" || len(e.AccountIDs) == 0 || e.Shared != nil {
		return nil, false
	}
	var draws []DrawRecord
	if len(e.MechanismText) > 0 {
		r, err := ReadReleases(e.MechanismText)
		if err != nil || r.Draws == nil {
			return nil, false
		}
		draws = append(draws, *r.Draws)
	}
	return furthest(draws), true
}

// ResumeOf reads a resume: how far plans from before it are drawn from then on at least; false for an entry that does not say what is
// lost.
func ResumeOf(e budget.Entry) (Drawn, bool) {
	var record resumeRecord
	if e.Kind != budget.EntryResume || json.Unmarshal(e.AccountText, &record) != nil || record.Lost == nil ||
		e.Reservation != "" || len(e.AccountIDs) != 0 {
		return nil, false
	}
	if record.Retires {
		return func(_ budget.ReservationID, slots, _ int) int { return slots }, true
	}
	return furthest(record.Draws), true
}

func furthest(draws []DrawRecord) Drawn {
	return func(plan budget.ReservationID, slots, drawn int) int {
		for _, d := range draws {
			if d.Plan == plan {
				drawn = max(drawn, min(d.From+d.Count, slots))
			}
		}
		return drawn
	}
}
