package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/mechanisms"
)

// LimitRecord is a limit as the journal keeps it. Journals outlive programs: fields are added, never renamed.
type LimitRecord struct {
	Scope       budget.Scope           `json:"scope"`
	Name        string                 `json:"name,omitempty"`
	Origin      budget.Origin          `json:"origin"`
	Form        budget.Form            `json:"form"`
	Epsilon     mechanisms.PicoEpsilon `json:"epsilon_pico"`
	Rho         mechanisms.PicoRho     `json:"rho_pico"`
	Delta       mechanisms.AttoDelta   `json:"delta_atto"`
	TotalDelta  mechanisms.AttoDelta   `json:"total_delta_atto"`
	PerQuery    mechanisms.PicoEpsilon `json:"per_query_epsilon_pico"`
	PerQueryRho mechanisms.PicoRho     `json:"per_query_rho_pico"`
	ReplayOnly  bool                   `json:"replay_only"`

	TrancheEvery   int64                  `json:"tranche_every_us,omitempty"`
	TrancheEpsilon mechanisms.PicoEpsilon `json:"tranche_epsilon_pico,omitempty"`
	TrancheRho     mechanisms.PicoRho     `json:"tranche_rho_pico,omitempty"`
	RatePer        int64                  `json:"rate_per_us,omitempty"`
	RateEpsilon    mechanisms.PicoEpsilon `json:"rate_epsilon_pico,omitempty"`
	RateRho        mechanisms.PicoRho     `json:"rate_rho_pico,omitempty"`
	Frozen         bool                   `json:"frozen,omitempty"`
	Reason         string                 `json:"reason,omitempty"`
	Version        int64                  `json:"policy_version"` // missing in old entries
	Refills        int64                  `json:"refills,omitempty"`
	// Under is the newest policy when a steward set or refilled the limit. Old entries lack it: their rule did not look at it.
	Under int64 `json:"under_policy_version,omitempty"`
	// RaisedBy is who raised the account last, alone. Old entries lack it: nobody was refused for it.
	RaisedBy string         `json:"raised_by,omitempty"`
	Mandate  *MandateRecord `json:"mandate,omitempty"`
}

// MandateRecord is a steward's signature as the journal keeps it. What else it is over stands in the entry.
type MandateRecord struct {
	LifetimeEpsilon *mechanisms.PicoEpsilon `json:"lifetime_epsilon_pico"` // null: unbounded
	LifetimeDelta   mechanisms.AttoDelta    `json:"lifetime_delta_atto"`
	At              int64                   `json:"signed_at"` // seconds since 1970
	Key             string                  `json:"key"`
	Signature       []byte                  `json:"signature"`
	Proposer        string                  `json:"proposer,omitempty"`
	Approver        string                  `json:"approver,omitempty"`
	Ledger          string                  `json:"ledger,omitempty"` // missing in old entries
}

// Defines reports whether entries of a kind say what one account is from there on.
func Defines(kind budget.EntryKind) bool {
	return kind == budget.EntryLimit || kind == budget.EntryRefill || kind == budget.EntryFreeze || kind == budget.EntryThaw
}

// RecordOf is what an entry says of an account from now on, and of what a refill added.
func RecordOf(a *Account, refill budget.Refill) LimitRecord {
	l := a.Limit
	r := LimitRecord{
		Scope: a.ID.Scope, Name: a.ID.Name, Origin: a.Origin, Form: l.Form, Epsilon: l.Epsilon, Rho: l.Rho, Delta: l.Delta,
		TotalDelta: l.TotalDelta, PerQuery: l.PerQuery, PerQueryRho: l.PerQueryRho, ReplayOnly: l.ReplayOnly,
		TrancheEvery: l.Tranche.Every.Microseconds(), TrancheEpsilon: l.Tranche.Epsilon, TrancheRho: l.Tranche.Rho,
		RatePer: l.Rate.Per.Microseconds(), RateEpsilon: l.Rate.Epsilon, RateRho: l.Rate.Rho, Frozen: a.Frozen, Reason: refill.Reason,
		Version: a.Version,
		Refills: a.Refills, RaisedBy: a.RaisedBy,
	}
	if m := refill.Mandate; m != nil {
		r.Mandate = &MandateRecord{LifetimeDelta: m.Lifetime.Delta, At: m.At.Unix(), Key: m.Key, Signature: m.Signature,
			Proposer: m.Pair.Proposer, Approver: m.Pair.Approver, Ledger: m.Ledger}
		if m.Lifetime.Bounded {
			r.Mandate.LifetimeEpsilon = &m.Lifetime.Epsilon
		}
	}
	return r
}

// RefillOf is what an entry says of a refill.
func (r LimitRecord) RefillOf(e budget.Entry) budget.Refill {
	id, _ := r.AccountOf(e.Dataset)
	return budget.Refill{Account: *id, Epsilon: e.Loss.Epsilon, Rho: e.Loss.Rho, Delta: e.Loss.Delta, Reason: r.Reason, Mandate: r.MandateOf()}
}

// MandateOf is the signature that an entry has; nil: none.
func (r LimitRecord) MandateOf() *budget.Mandate {
	m := r.Mandate
	if m == nil {
		return nil
	}
	mandate := &budget.Mandate{Number: r.Refills, Lifetime: budget.Promise{Delta: m.LifetimeDelta}, At: time.Unix(m.At, 0).UTC(), Key: m.Key,
		Signature: m.Signature, Pair: budget.Pair{Proposer: m.Proposer, Approver: m.Approver}, Ledger: m.Ledger}
	if m.LifetimeEpsilon != nil {
		mandate.Lifetime.Epsilon, mandate.Lifetime.Bounded = *m.LifetimeEpsilon, true
	}
	return mandate
}

// Text is the record as JSON.
func (r LimitRecord) Text() []byte {
	return encoded(r)
}

// AccountOf is the account that a record is about, and its limit.
func (r LimitRecord) AccountOf(dataset string) (*budget.AccountID, *budget.Limit) {
	return &budget.AccountID{Dataset: dataset, Scope: r.Scope, Name: r.Name}, &budget.Limit{
		Form: r.Form, Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, TotalDelta: r.TotalDelta, PerQuery: r.PerQuery,
		PerQueryRho: r.PerQueryRho, ReplayOnly: r.ReplayOnly,
		Tranche: budget.Tranche{Every: microseconds(r.TrancheEvery), Epsilon: r.TrancheEpsilon, Rho: r.TrancheRho},
		Rate:    budget.Rate{Per: microseconds(r.RatePer), Epsilon: r.RateEpsilon, Rho: r.RateRho},
	}
}

// ReleaseRecord is what the journal keeps of a charge's releases: the parameters of each and, where plans are
// concerned, the slots that the charge pays for or uses. Where they are not it is the list of parameters alone.
type ReleaseRecord struct {
	Mechanisms []mechanisms.Parameters `json:"mechanisms"`
	Registers  *SlotsRecord            `json:"registers,omitempty"`
	Draws      *DrawRecord             `json:"draws,omitempty"`
}

// SlotsRecord are the slots of a plan, as noisegate.plan has them.
type SlotsRecord struct {
	Epsilon []int64 `json:"epsilon_pico"`
	Rho     []int64 `json:"rho_pico"`
}

// DrawRecord are the slots that a charge uses.
type DrawRecord struct {
	Plan  budget.ReservationID `json:"plan"`
	From  int                  `json:"from"`
	Count int                  `json:"count"`
}

// drawText says which slots a charge drew, where nothing is said of its releases.
func drawText(d budget.Draw) []byte {
	return ReleaseRecord{Draws: &DrawRecord{d.Plan, d.From, d.Count}}.text()
}

func (r ReleaseRecord) text() []byte {
	var kept any = r
	if r.Registers == nil && r.Draws == nil {
		kept = r.Mechanisms
	}
	return encoded(kept)
}

// encoded is a record of numbers and strings, which always encode.
func encoded(record any) []byte {
	text, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return text
}

// ReadReleases reads either form.
func ReadReleases(text []byte) (r ReleaseRecord, err error) {
	var into any = &r
	if bytes.HasPrefix(text, []byte("[")) {
		into = &r.Mechanisms
	}
	if err = json.Unmarshal(text, into); err == nil && r.Registers != nil && len(r.Registers.Epsilon) != len(r.Registers.Rho) {
		err = errors.New("budget: a plan has as many ε as ρ")
	}
	return r, err
}

// microseconds is a duration as the ledger keeps it.
func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// importRecord is an import as the journal keeps it.
type importRecord struct {
	Ensemble string `json:"imports_votes_of"`
	Version  int64  `json:"version"`
	Source   string `json:"source"`
}

func importText(i budget.Import) []byte {
	return encoded(importRecord{i.Ensemble, i.Version, i.Source})
}

// importAccount names the ensemble's account, which need not be opened yet.
func importAccount(i budget.Import) *budget.AccountID {
	return &budget.AccountID{Dataset: i.Dataset, Scope: budget.EnsembleScope, Name: i.Ensemble}
}

// ImportOf reads an import; ok is false for an entry that is none.
func ImportOf(e budget.Entry) (i budget.Import, ok bool) {
	var record importRecord
	if e.Kind != budget.EntryImport || json.Unmarshal(e.AccountText, &record) != nil || record.Ensemble == "" || len(e.AccountIDs) != 0 ||
		e.Reservation != "" {
		return budget.Import{}, false
	}
	return budget.Import{Dataset: e.Dataset, Ensemble: record.Ensemble, Version: record.Version, Source: record.Source}, true
}

// resetRecord is a reset as the journal keeps it.
type resetRecord struct {
	Analyst string `json:"resets_failures_of"`
}

func resetText(r budget.Reset) []byte {
	return encoded(resetRecord{r.Analyst})
}

// resetAccount names the analyst as accounts do; there need be no such account.
func resetAccount(r budget.Reset) *budget.AccountID {
	return &budget.AccountID{Dataset: r.Dataset, Scope: budget.AnalystScope, Name: r.Analyst}
}

// ResetOf reads a reset; ok is false for an entry that is none.
func ResetOf(e budget.Entry) (r budget.Reset, ok bool) {
	var record resetRecord
	if e.Kind != budget.EntryReset || json.Unmarshal(e.AccountText, &record) != nil || record.Analyst == "" || len(e.AccountIDs) != 0 ||
		e.Reservation != "" {
		return budget.Reset{}, false
	}
	return budget.Reset{Dataset: e.Dataset, Analyst: record.Analyst}, true
}

// ReadTexts fills in what an entry's texts say.
func ReadTexts(e *budget.Entry) error {
	if len(e.MechanismText) > 0 {
		r, err := ReadReleases(e.MechanismText)
		if err != nil {
			return err
		}
		e.Mechanisms = r.Mechanisms
	}
	if r, ok := ResetOf(*e); ok {
		e.Account = resetAccount(r)
		return nil
	}
	if i, ok := ImportOf(*e); ok {
		e.Account = importAccount(i)
		return nil
	}
	others := []budget.EntryKind{budget.EntryPolicy, budget.EntryFree, budget.EntryKeys, budget.EntryRecharge, budget.EntryResume,
		budget.EntryArchive, budget.EntryClock}
	if len(e.AccountText) == 0 || slices.Contains(others, e.Kind) {
		return nil
	}
	var r LimitRecord
	if err := json.Unmarshal(e.AccountText, &r); err != nil {
		return err
	}
	e.Account, e.Limit = r.AccountOf(e.Dataset)
	return nil
}

// SlotsOf are slots as the ledger keeps them.
func SlotsOf(epsilon, rho []int64) []mechanisms.Slot {
	slots := make([]mechanisms.Slot, len(epsilon))
	for i := range slots {
		slots[i] = mechanisms.Slot{Epsilon: mechanisms.PicoEpsilon(epsilon[i]), Rho: mechanisms.PicoRho(rho[i])}
	}
	return slots
}

// SlotColumns is the ε and the ρ of slots.
func SlotColumns(slots []mechanisms.Slot) (epsilon, rho []int64) {
	for _, s := range slots {
		epsilon, rho = append(epsilon, int64(s.Epsilon)), append(rho, int64(s.Rho))
	}
	return epsilon, rho
}

// mechanismText is what the journal keeps of the charge's releases, as JSON.
func mechanismText(c budget.Charge) []byte {
	r := ReleaseRecord{Mechanisms: append([]mechanisms.Parameters{}, c.Mechanisms...)}
	if len(c.Registers) > 0 {
		epsilon, rho := SlotColumns(c.Registers)
		r.Registers = &SlotsRecord{epsilon, rho}
	}
	if d := c.Draws; d != nil {
		r.Draws = &DrawRecord{d.Plan, d.From, d.Count}
	}
	return r.text()
}
