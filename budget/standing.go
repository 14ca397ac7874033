package budget

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"noisegate/mechanisms"
)

// standing is where the accounts, open charges and plans of a dataset stand after an entry, by its entries alone. It
// adds up what [Books] judge: what lies in the tables must be the same. It is small, so that it can be kept, and gone
// on from.
type standing struct {
	Head     Head                             `json:"-"`
	Accounts map[int64]standingAccount        `json:"accounts"`
	Open     map[ReservationID]standingCharge `json:"open"`
	Plans    map[ReservationID]standingPlan   `json:"plans"` // all that were ever registered
}

type standingAccount struct {
	Text     json.RawMessage `json:"account"` // the newest limitRecord
	Opened   time.Time       `json:"opened"`
	Used     sums            `json:"used"`
	Reserved sums            `json:"reserved"`
}

type standingCharge struct {
	Accounts []int64         `json:"accounts"`
	Loss     mechanisms.Loss `json:"loss"`
}

type standingPlan struct {
	Slots slotsRecord `json:"slots"`
	Drawn int         `json:"drawn"`
}

func newStanding(dataset string) standing {
	return standing{Head: Head{Dataset: dataset}, Accounts: map[int64]standingAccount{}, Open: map[ReservationID]standingCharge{},
		Plans: map[ReservationID]standingPlan{}}
}

// clone is a standing that can be gone on from without changing this one.
func (s standing) clone() standing {
	s.Accounts, s.Open, s.Plans = maps.Clone(s.Accounts), maps.Clone(s.Open), maps.Clone(s.Plans)
	return s
}

// add goes on by an entry; what says why it cannot follow.
func (s *standing) add(e Entry) (what string) {
	s.Head = Head{Dataset: s.Head.Dataset, Seq: e.Seq, Hash: e.Hash}
	switch e.Kind {
	case EntryReserve:
		s.Open[e.Reservation] = standingCharge{e.AccountIDs, e.Loss}
		s.move(e.AccountIDs, sumOf(e.Loss), sumOf(e.Loss))
		return s.plan(e)
	case EntrySettle, EntryVoid, EntryExpire, EntryFail:
		c, ok := s.Open[e.Reservation]
		if !ok {
			return "its charge is not open"
		}
		delete(s.Open, e.Reservation)
		freed := sums{}
		freed.subtract(sumOf(c.Loss))
		for _, number := range c.Accounts {
			used := freed
			used.add(sumOf(counts(s.scope(number, e), e.Loss, e.Shared)))
			s.move([]int64{number}, used, freed)
		}
	case EntryLimit, EntryRefill, EntryFreeze, EntryThaw:
		if len(e.AccountIDs) != 1 {
			return "it says nothing of one account"
		}
		a, ok := s.Accounts[e.AccountIDs[0]]
		if !ok {
			a.Opened = e.At.UTC()
		}
		a.Text = e.AccountText
		s.Accounts[e.AccountIDs[0]] = a
	case EntryReset:
		if _, ok := resetOf(e); !ok {
			return notAReset
		}
	case EntryImport:
		if _, ok := importOf(e); !ok {
			return notAnImport
		}
	default:
		return "nobody knows its kind"
	}
	return ""
}

// scope is whose account a number is, as far as that matters to an entry.
func (s *standing) scope(number int64, e Entry) Scope {
	var said limitRecord
	if e.Shared != nil {
		_ = json.Unmarshal(s.Accounts[number].Text, &said) // its text is compared with the account
	}
	return said.Scope
}

func (s *standing) move(accounts []int64, used, reserved sums) {
	for _, number := range accounts {
		a := s.Accounts[number]
		a.Used.add(used)
		a.Reserved.add(reserved)
		s.Accounts[number] = a
	}
}

// plan follows the slots that a reservation pays for or draws.
func (s *standing) plan(e Entry) (what string) {
	if !bytes.HasPrefix(e.MechanismText, []byte("{")) {
		return ""
	}
	r, err := readReleases(e.MechanismText)
	if err != nil {
		return "what it releases cannot be read"
	}
	if r.Registers != nil {
		s.Plans[e.Reservation] = standingPlan{Slots: *r.Registers}
	}
	if r.Draws != nil {
		if p, ok := s.Plans[r.Draws.Plan]; ok { // else it is older than the chain
			p.Drawn += r.Draws.Count
			s.Plans[r.Draws.Plan] = p
		}
	}
	return ""
}

// tables are what lies beside the entries of a dataset: all accounts, the open ones of the charges that a standing names, and its plans.
type tables struct {
	accounts []*tally
	open     map[ReservationID]standingCharge
	plans    map[ReservationID]standingPlan
}

// compare says what in the tables is not as the entries have it.
func (s standing) compare(t tables) (what string) {
	if len(t.accounts) != len(s.Accounts) {
		return "there are other accounts than it says"
	}
	for _, a := range t.accounts {
		known, ok := s.Accounts[a.number]
		switch {
		case !ok || !known.is(a):
			return "its account is not as it says"
		case known.Used != a.used || known.Reserved != a.reserved:
			return "an account's sums are not those of its charges"
		}
	}
	for id, c := range s.Open {
		if found, ok := t.open[id]; !ok || found.Loss != c.Loss || !slices.Equal(found.Accounts, c.Accounts) {
			return "its charge is not as it says"
		}
	}
	for id, p := range s.Plans {
		if found, ok := t.plans[id]; !ok || found.Drawn != p.Drawn || !slices.Equal(found.Slots.Epsilon, p.Slots.Epsilon) ||
			!slices.Equal(found.Slots.Rho, p.Slots.Rho) {
			return "its plan is not the one that was paid for and drawn from"
		}
	}
	return ""
}

// is reports whether an account has the limit, the freeze and the age that its entries say.
func (k standingAccount) is(a *tally) bool {
	said := limitRecord{Version: a.Version} // old entries do not say it
	if json.Unmarshal(k.Text, &said) != nil || a.opened.Before(k.Opened) {
		return false
	}
	said.Reason, said.Mandate = "", nil
	return said == recordOf(a, Refill{})
}
