package budget

import (
	"encoding/json"
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
}

func recordOf(a *tally, reason string) limitRecord {
	l := a.Limit
	return limitRecord{
		Scope: a.ID.Scope, Name: a.ID.Name, Origin: a.Origin, Form: l.Form, Epsilon: l.Epsilon, Rho: l.Rho, Delta: l.Delta,
		TotalDelta: l.TotalDelta, PerQuery: l.PerQuery, PerQueryRho: l.PerQueryRho, ReplayOnly: l.ReplayOnly,
		TrancheEvery: l.Tranche.Every.Microseconds(), TrancheEpsilon: l.Tranche.Epsilon, TrancheRho: l.Tranche.Rho,
		RatePer: l.Rate.Per.Microseconds(), RateEpsilon: l.Rate.Epsilon, RateRho: l.Rate.Rho, Frozen: a.frozen, Reason: reason,
	}
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

// microseconds is a duration as the ledger keeps it.
func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
