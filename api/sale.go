package api

import "time"

// Sale is what all answers have that sell a model of rows: a fit, clusters, scores.
type Sale struct {
	ReleaseID string  `json:"release_id"`
	Dataset   string  `json:"dataset"`
	Replayed  bool    `json:"replayed"` // the same was paid for before: the same answer, free
	Notes     []Note  `json:"notes"`
	Spent     Amounts `json:"spent"`     // what this request was charged; zero when replayed
	Remaining Amounts `json:"remaining"` // what is left in the analyst's own account
	// AsOf is, of a replay, when it was released: later rows are not in it.
	AsOf *time.Time `json:"as_of,omitempty"`
}

// Quote is what all estimates of a model of rows have.
type Quote struct {
	Dataset    string  `json:"dataset"`
	Price      Amounts `json:"price"`
	Remaining  Amounts `json:"remaining"`
	Affordable bool    `json:"affordable"` // by the caller's own account
	Notes      []Note  `json:"notes"`
}
