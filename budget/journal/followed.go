package journal

import (
	"encoding/json"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

// Followed is a state that goes on with each entry, and says of accounts whether they are as the entries have them.
type Followed struct {
	State   Replayed
	limits  map[int64]machine.LimitRecord // what the texts of State.Accounts say
	numbers map[budget.AccountID]int64
}

// Follow begins with a state, which is its own from then on.
func Follow(s Replayed) *Followed {
	f := &Followed{State: s, limits: map[int64]machine.LimitRecord{}, numbers: map[budget.AccountID]int64{}}
	for number := range s.Accounts {
		f.read(number)
	}
	return f
}

// read takes over what the text of an account says.
func (f *Followed) read(number int64) {
	var said machine.LimitRecord
	if json.Unmarshal(f.State.Accounts[number].Text, &said) != nil {
		return // then the account is never as it says
	}
	id, _ := said.AccountOf(f.State.Head.Dataset)
	said.Reason, said.Under, said.Mandate = "", 0, nil
	f.limits[number], f.numbers[*id] = said, number
}

// Add follows an entry; what says why it cannot.
func (f *Followed) Add(e budget.Entry) (what string) {
	if what := f.State.Add(e); what != "" {
		return what
	}
	if machine.Defines(e.Kind) {
		f.read(e.AccountIDs[0])
	}
	return ""
}

// Agrees says what is not as the entries have it: of accounts as a ledger has them, all that it has of those named.
func (f *Followed) Agrees(accounts map[budget.AccountID]*machine.Account, named []budget.AccountID) (what string) {
	for _, id := range named {
		if _, told := f.numbers[id]; told && accounts[id] == nil {
			return "an account is missing"
		}
	}
	for id, a := range accounts {
		number, told := f.numbers[id]
		is, said := f.State.Accounts[number], f.limits[number]
		now := machine.RecordOf(a, budget.Refill{})
		if now.Version == 0 || said.Version == 0 { // old entries do not say it
			now.Version, said.Version = 0, 0
		}
		switch {
		case !told || number != a.Number || said != now || a.Opened.Before(is.Opened):
			return "an account is not as its entries say"
		case is.Used != a.Used || is.Reserved != a.Reserved:
			return "an account's sums are not those of its charges"
		}
	}
	return ""
}
