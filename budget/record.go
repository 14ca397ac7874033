package budget

import "noisegate/mechanisms"

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
}

func recordOf(a Account) limitRecord {
	l := a.Limit
	return limitRecord{
		Scope: a.ID.Scope, Name: a.ID.Name, Origin: a.Origin, Form: l.Form, Epsilon: l.Epsilon, Rho: l.Rho, Delta: l.Delta,
		TotalDelta: l.TotalDelta, PerQuery: l.PerQuery, PerQueryRho: l.PerQueryRho, ReplayOnly: l.ReplayOnly,
	}
}

func (r limitRecord) account(dataset string) (*AccountID, *Limit) {
	return &AccountID{Dataset: dataset, Scope: r.Scope, Name: r.Name}, &Limit{
		Form: r.Form, Epsilon: r.Epsilon, Rho: r.Rho, Delta: r.Delta, TotalDelta: r.TotalDelta, PerQuery: r.PerQuery,
		PerQueryRho: r.PerQueryRho, ReplayOnly: r.ReplayOnly,
	}
}
