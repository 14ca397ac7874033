package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"noisegate/mechanisms"
)

// limitRecord is a limit as the journal keeps it. Journals outlive programs: fields are added, never renamed.
type limitRecord struct {
	Scope       Scope                  `json:"scope"`
	Name        string                 `json:"name,omitempty"`
	Origin      Origin                 `json:"origin"`
	Form        Form                   `json:"form"`
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
	Mandate        *mandateRecord         `json:"mandate,omitempty"`
}

// mandateRecord is a steward's signature as the journal keeps it. What else it is over stands in the entry.
type mandateRecord struct {
	LifetimeEpsilon *mechanisms.PicoEpsilon `json:"lifetime_epsilon_pico"` // null: unbounded
	LifetimeDelta   mechanisms.AttoDelta    `json:"lifetime_delta_atto"`
	At              int64                   `json:"signed_at"` // seconds since 1970
	Key             string                  `json:"key"`
	Signature       []byte                  `json:"signature"`
}

func recordOf(a *tally, refill Refill) limitRecord {
	l := a.Limit
	r := limitRecord{
		Scope: a.ID.Scope, Name: a.ID.Name, Origin: a.Origin, Form: l.Form, Epsilon: l.Epsilon, Rho: l.Rho, Delta: l.Delta,
		TotalDelta: l.TotalDelta, PerQuery: l.PerQuery, PerQueryRho: l.PerQueryRho, ReplayOnly: l.ReplayOnly,
		TrancheEvery: l.Tranche.Every.Microseconds(), TrancheEpsilon: l.Tranche.Epsilon, TrancheRho: l.Tranche.Rho,
		RatePer: l.Rate.Per.Microseconds(), RateEpsilon: l.Rate.Epsilon, RateRho: l.Rate.Rho, Frozen: a.frozen, Reason: refill.Reason,
		Version: a.Version,
		Refills: a.refills,
	}
	if m := refill.Mandate; m != nil {
		r.Mandate = &mandateRecord{LifetimeDelta: m.Lifetime.Delta, At: m.At.Unix(), Key: m.Key, Signature: m.Signature}
		if m.Lifetime.Bounded {
			r.Mandate.LifetimeEpsilon = &m.Lifetime.Epsilon
		}
	}
	return r
}

// refill is what an entry says of a refill.
func (r limitRecord) refill(e Entry) Refill {
	id, _ := r.account(e.Dataset)
	refill := Refill{Account: *id, Epsilon: e.Loss.Epsilon, Rho: e.Loss.Rho, Delta: e.Loss.Delta, Reason: r.Reason}
	if m := r.Mandate; m != nil {
		refill.Mandate = &Mandate{Number: r.Refills, Lifetime: Promise{Delta: m.LifetimeDelta}, At: time.Unix(m.At, 0).UTC(), Key: m.Key,
			Signature: m.Signature}
		if m.LifetimeEpsilon != nil {
			refill.Mandate.Lifetime.Epsilon, refill.Mandate.Lifetime.Bounded = *m.LifetimeEpsilon, true
		}
	}
	return refill
}

// text is the record as JSON.
func (r limitRecord) text() []byte {
	text, err := json.Marshal(r)
	if err != nil { // numbers and strings always encode
		panic(err)
	}
	return text
}

func (r limitRecord) account(dataset string) (*AccountID, *Limit) {
	return &AccountID{Dataset: dataset, Scope: r.Scope, Name: r.Name}, &Limit{
		Form: r.Form, Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, TotalDelta: r.TotalDelta, PerQuery: r.PerQuery,
		PerQueryRho: r.PerQueryRho, ReplayOnly: r.ReplayOnly,
		Tranche: Tranche{Every: microseconds(r.TrancheEvery), Epsilon: r.TrancheEpsilon, Rho: r.TrancheRho},
		Rate:    Rate{Per: microseconds(r.RatePer), Epsilon: r.RateEpsilon, Rho: r.RateRho},
	}
}

// releaseRecord is what the journal keeps of a charge's releases: the parameters of each and, where plans are
// concerned, the slots that the charge pays for or uses. Where they are not it is the list of parameters alone.
type releaseRecord struct {
	Mechanisms []mechanisms.Parameters `json:"mechanisms"`
	Registers  *slotsRecord            `json:"registers,omitempty"`
	Draws      *drawRecord             `json:"draws,omitempty"`
}

// slotsRecord are the slots of a plan, as noisegate.plan has them.
type slotsRecord struct {
	Epsilon []int64 `json:"epsilon_pico"`
	Rho     []int64 `json:"rho_pico"`
}

type drawRecord struct {
	Plan  ReservationID `json:"plan"`
	From  int           `json:"from"`
	Count int           `json:"count"`
}

func (r releaseRecord) text() []byte {
	var kept any = r
	if r.Registers == nil && r.Draws == nil {
		kept = r.Mechanisms
	}
	text, err := json.Marshal(kept)
	if err != nil { // numbers and strings always encode
		panic(err)
	}
	return text
}

// readReleases reads either form.
func readReleases(text []byte) (r releaseRecord, err error) {
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

func importText(i Import) []byte {
	text, err := json.Marshal(importRecord{i.Ensemble, i.Version, i.Source})
	if err != nil { // numbers and strings always encode
		panic(err)
	}
	return text
}

// importAccount names the ensemble's account, which need not be opened yet.
func importAccount(i Import) *AccountID {
	return &AccountID{Dataset: i.Dataset, Scope: EnsembleScope, Name: i.Ensemble}
}

// importOf reads an import; ok is false for an entry that is none.
func importOf(e Entry) (i Import, ok bool) {
	var record importRecord
	if e.Kind != EntryImport || json.Unmarshal(e.AccountText, &record) != nil || record.Ensemble == "" || len(e.AccountIDs) != 0 ||
		e.Reservation != "" {
		return Import{}, false
	}
	return Import{Dataset: e.Dataset, Ensemble: record.Ensemble, Version: record.Version, Source: record.Source}, true
}

// resetRecord is a reset as the journal keeps it.
type resetRecord struct {
	Analyst string `json:"resets_failures_of"`
}

func resetText(r Reset) []byte {
	text, err := json.Marshal(resetRecord{r.Analyst})
	if err != nil { // strings always encode
		panic(err)
	}
	return text
}

// resetAccount names the analyst as accounts do; there need be no such account.
func resetAccount(r Reset) *AccountID {
	return &AccountID{Dataset: r.Dataset, Scope: AnalystScope, Name: r.Analyst}
}

// resetOf reads a reset; ok is false for an entry that is none.
func resetOf(e Entry) (r Reset, ok bool) {
	var record resetRecord
	if e.Kind != EntryReset || json.Unmarshal(e.AccountText, &record) != nil || record.Analyst == "" || len(e.AccountIDs) != 0 ||
		e.Reservation != "" {
		return Reset{}, false
	}
	return Reset{Dataset: e.Dataset, Analyst: record.Analyst}, true
}

// readTexts fills in what an entry's texts say.
func readTexts(e *Entry) error {
	if e.MechanismText != nil {
		r, err := readReleases(e.MechanismText)
		if err != nil {
			return err
		}
		e.Mechanisms = r.Mechanisms
	}
	if r, ok := resetOf(*e); ok {
		e.Account = resetAccount(r)
		return nil
	}
	if i, ok := importOf(*e); ok {
		e.Account = importAccount(i)
		return nil
	}
	if e.AccountText == nil {
		return nil
	}
	var r limitRecord
	if err := json.Unmarshal(e.AccountText, &r); err != nil {
		return err
	}
	e.Account, e.Limit = r.account(e.Dataset)
	return nil
}

// slotsOf are slots as the ledger keeps them.
func slotsOf(epsilon, rho []int64) []mechanisms.Slot {
	slots := make([]mechanisms.Slot, len(epsilon))
	for i := range slots {
		slots[i] = mechanisms.Slot{Epsilon: mechanisms.PicoEpsilon(epsilon[i]), Rho: mechanisms.PicoRho(rho[i])}
	}
	return slots
}

// slotColumns is the ε and the ρ of slots.
func slotColumns(slots []mechanisms.Slot) (epsilon, rho []int64) {
	for _, s := range slots {
		epsilon, rho = append(epsilon, int64(s.Epsilon)), append(rho, int64(s.Rho))
	}
	return epsilon, rho
}

// mechanismText is what the journal keeps of the charge's releases, as JSON.
func mechanismText(c Charge) []byte {
	r := releaseRecord{Mechanisms: append([]mechanisms.Parameters{}, c.Mechanisms...)}
	if len(c.Registers) > 0 {
		epsilon, rho := slotColumns(c.Registers)
		r.Registers = &slotsRecord{epsilon, rho}
	}
	if d := c.Draws; d != nil {
		r.Draws = &drawRecord{d.Plan, d.From, d.Count}
	}
	return r.text()
}
