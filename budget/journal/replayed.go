package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/mechanisms"
)

// Replayed is the state of a dataset's accounts, open charges and plans after an entry, by its entries alone. It adds up
// what [Auditor] judges: the ledger's tables must agree. It is small, so that a checkpoint can keep it.
type Replayed struct {
	Head     budget.Head                             `json:"-"`
	Accounts map[int64]ReplayedAccount               `json:"accounts"`
	Open     map[budget.ReservationID]ReplayedCharge `json:"open"`
	Plans    map[budget.ReservationID]ReplayedPlan   `json:"plans"` // all that were ever registered
	Policies []budget.PolicyRow                      `json:"policies,omitempty"`
	At       time.Time                               `json:"at,omitzero"` // of the newest entry; old texts lack it
}

// ReplayedAccount is an account by its entries.
type ReplayedAccount struct {
	Text     json.RawMessage `json:"account"` // the newest machine.LimitRecord
	Opened   time.Time       `json:"opened"`
	Chained  bool            `json:"chained,omitempty"` // the entry that opened it is; old texts do not say it
	Used     machine.Sums    `json:"used"`
	Reserved machine.Sums    `json:"reserved"`
}

// ReplayedCharge is an open charge.
type ReplayedCharge struct {
	Accounts []int64         `json:"accounts"`
	Loss     mechanisms.Loss `json:"loss"`
}

// ReplayedPlan is a plan, and how many of its slots are drawn.
type ReplayedPlan struct {
	Slots machine.SlotsRecord `json:"slots"`
	Drawn int                 `json:"drawn"`
}

// NewReplayed is the state before the first entry.
func NewReplayed(dataset string) Replayed {
	return Replayed{Head: budget.Head{Dataset: dataset}, Accounts: map[int64]ReplayedAccount{},
		Open: map[budget.ReservationID]ReplayedCharge{}, Plans: map[budget.ReservationID]ReplayedPlan{}}
}

// Clone is a copy, to which entries can be added without changing this one.
func (s Replayed) Clone() Replayed {
	s.Accounts, s.Open, s.Plans = maps.Clone(s.Accounts), maps.Clone(s.Open), maps.Clone(s.Plans)
	s.Policies = slices.Clone(s.Policies)
	return s
}

// Add follows an entry; what says why it cannot follow.
func (s *Replayed) Add(e budget.Entry) (what string) {
	s.Head = budget.Head{Dataset: s.Head.Dataset, Seq: e.Seq, Hash: e.Hash}
	if what := passes(&s.At, e); what != "" {
		return what
	}
	switch e.Kind {
	case budget.EntryReserve:
		s.Open[e.Reservation] = ReplayedCharge{e.AccountIDs, e.Loss}
		s.move(e.AccountIDs, machine.SumOf(e.Loss), machine.SumOf(e.Loss))
		return s.plan(e)
	case budget.EntrySettle, budget.EntryVoid, budget.EntryExpire, budget.EntryFail:
		return s.end(e)
	case budget.EntryLimit, budget.EntryRefill, budget.EntryFreeze, budget.EntryThaw:
		if len(e.AccountIDs) != 1 {
			return "it says nothing of one account"
		}
		a, ok := s.Accounts[e.AccountIDs[0]]
		if !ok {
			a.Opened, a.Chained = e.At.UTC(), e.Hash != [32]byte{}
		}
		a.Text = e.AccountText
		s.Accounts[e.AccountIDs[0]] = a
	case budget.EntryReset:
		if _, ok := machine.ResetOf(e); !ok {
			return notAReset
		}
	case budget.EntryImport:
		if _, ok := machine.ImportOf(e); !ok {
			return notAnImport
		}
	case budget.EntryPolicy, budget.EntryFree, budget.EntryKeys:
		return followPolicy(&s.Policies, e)
	case budget.EntryRecharge:
		drawn, ok := machine.RechargeOf(e)
		if !ok {
			return notARecharge
		}
		s.move(e.AccountIDs, machine.SumOf(e.Loss), machine.Sums{})
		s.drawn(drawn)
	case budget.EntryResume:
		drawn, ok := machine.ResumeOf(e)
		if !ok {
			return notAResume
		}
		s.drawn(drawn)
	case budget.EntryArchive:
		if _, ok := ArchiveOf(e); !ok {
			return notAnArchive
		}
	case budget.EntryClock:
		c, ok := machine.SetBackOf(e)
		if !ok {
			return notAClock
		}
		s.setBack(c.To)
	default:
		return "nobody knows its kind"
	}
	return ""
}

// end follows the end of a charge.
func (s *Replayed) end(e budget.Entry) (what string) {
	c, ok := s.Open[e.Reservation]
	if !ok {
		return "its charge is not open"
	}
	delete(s.Open, e.Reservation)
	freed := machine.Sums{}
	freed.Subtract(machine.SumOf(c.Loss))
	for _, number := range c.Accounts {
		used := freed
		used.Add(machine.SumOf(machine.Counts(s.scope(number, e), e.Loss, e.Shared)))
		s.move([]int64{number}, used, freed)
	}
	return ""
}

// setBack moves the opening of each account to the time from which the ledger goes on, at the latest.
func (s *Replayed) setBack(to time.Time) {
	for number, a := range s.Accounts {
		if a.Opened.After(to) {
			a.Opened = to
			s.Accounts[number] = a
		}
	}
}

// drawn follows how far plans are drawn.
func (s *Replayed) drawn(to machine.Drawn) {
	for id, p := range s.Plans {
		p.Drawn = to(id, len(p.Slots.Epsilon), p.Drawn)
		s.Plans[id] = p
	}
}

// followPolicy adds the version that an entry is about, if it is about one, and says what is wrong with it.
func followPolicy(versions *[]budget.PolicyRow, e budget.Entry) (what string) {
	if what := machine.InForceProblem(e); what != "" {
		return what
	}
	v, ok := machine.PolicyOf(e)
	if !ok {
		return ""
	}
	if n := len(*versions); n > 0 && v.Version <= (*versions)[n-1].Version {
		return "it is about a version of the policy that was there before"
	}
	*versions = append(*versions, v.PolicyRow)
	return ""
}

// ComparePolicies says what is wrong with the stored versions of a policy, oldest first, by those that entries tell of. Without
// any entry of a policy they are older than the chain of policies.
func ComparePolicies(told, stored []budget.PolicyRow) (what string) {
	for i, v := range told {
		switch {
		case i >= len(stored) || stored[i].Version > v.Version:
			return fmt.Sprintf("version %d of the policy is missing", v.Version)
		case stored[i].Version < v.Version:
			return fmt.Sprintf("version %d of the policy was put in", stored[i].Version)
		case stored[i] != v:
			return fmt.Sprintf("version %d of the policy is not as it was applied", v.Version)
		}
	}
	if len(told) > 0 && len(stored) > len(told) {
		return fmt.Sprintf("version %d of the policy was put in", stored[len(told)].Version)
	}
	return ""
}

// scope is whose account a number is, as far as that matters to an entry.
func (s *Replayed) scope(number int64, e budget.Entry) budget.Scope {
	var said machine.LimitRecord
	if e.Shared != nil {
		_ = json.Unmarshal(s.Accounts[number].Text, &said) // its text is compared with the account
	}
	return said.Scope
}

func (s *Replayed) move(accounts []int64, used, reserved machine.Sums) {
	for _, number := range accounts {
		a := s.Accounts[number]
		a.Used.Add(used)
		a.Reserved.Add(reserved)
		s.Accounts[number] = a
	}
}

// plan follows the slots that a reservation pays for or draws.
func (s *Replayed) plan(e budget.Entry) (what string) {
	if !bytes.HasPrefix(e.MechanismText, []byte("{")) {
		return ""
	}
	r, err := machine.ReadReleases(e.MechanismText)
	if err != nil {
		return "what it releases cannot be read"
	}
	if r.Registers != nil {
		s.Plans[e.Reservation] = ReplayedPlan{Slots: *r.Registers}
	}
	if r.Draws != nil {
		if p, ok := s.Plans[r.Draws.Plan]; ok { // else it is older than the chain
			p.Drawn += r.Draws.Count
			s.Plans[r.Draws.Plan] = p
		}
	}
	return ""
}

// Compare says what in a ledger's tables is not as the entries have it. The tables are read as a state: accounts with their records, all
// open charges, and plans. Versions of policies are for [ComparePolicies].
func (s Replayed) Compare(tables Replayed) (what string) {
	if len(tables.Accounts) != len(s.Accounts) {
		return "there are other accounts than it says"
	}
	for number, a := range tables.Accounts {
		known, ok := s.Accounts[number]
		switch {
		case !ok || !known.is(a):
			return "its account is not as it says"
		case known.Used != a.Used || known.Reserved != a.Reserved:
			return "an account's sums are not those of its charges"
		}
	}
	if len(tables.Open) != len(s.Open) {
		return "there are other open charges than it says"
	}
	for id, c := range s.Open {
		if found, ok := tables.Open[id]; !ok || found.Loss != c.Loss || !slices.Equal(found.Accounts, c.Accounts) {
			return "its charge is not as it says"
		}
	}
	for id, p := range s.Plans {
		if found, ok := tables.Plans[id]; !ok || found.Drawn != p.Drawn || !slices.Equal(found.Slots.Epsilon, p.Slots.Epsilon) ||
			!slices.Equal(found.Slots.Rho, p.Slots.Rho) {
			return "its plan is not the one that was paid for and drawn from"
		}
	}
	return ""
}

// AccountOf is an account of the ledger's tables.
func AccountOf(a *machine.Account) (ReplayedAccount, error) {
	text, err := json.Marshal(machine.RecordOf(a, budget.Refill{}))
	return ReplayedAccount{Text: text, Opened: a.Opened.UTC(), Used: a.Used, Reserved: a.Reserved}, err
}

// is reports whether an account of the tables has the limit, the freeze and the age that its entries say.
func (k ReplayedAccount) is(a ReplayedAccount) bool {
	var has machine.LimitRecord
	if json.Unmarshal(a.Text, &has) != nil {
		return false
	}
	said := machine.LimitRecord{Version: has.Version} // old entries do not say it
	if json.Unmarshal(k.Text, &said) != nil || a.Opened.Before(k.Opened) || k.Chained && !a.Opened.Equal(k.Opened) {
		return false
	}
	said.Reason, said.Under, said.Mandate = "", 0, nil
	return said == has
}
