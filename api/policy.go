package api

import (
	"context"
	"net/http"
)

// PolicyDraft is the answer to GET /v1/datasets/{dataset}/policy/draft: a policy made of keys, constraints and comments of the schema.
type PolicyDraft struct {
	Dataset    string   `json:"dataset"`
	Unit       string   `json:"unit,omitempty"` // [schema.]table.column that identifies one unit; absent: several could, and none was named
	Candidates []string `json:"candidates"`     // columns that could: unique ones that are never NULL
	Text       string   `json:"text,omitempty"` // the draft; absent without a unit
	Blanks     int      `json:"blanks"`         // ___ that are to be filled in, from what everybody knows
}

// PolicyReview is the answer to POST /v1/datasets/{dataset}/policy/check: what applying a policy file would do.
type PolicyReview struct {
	Dataset  string             `json:"dataset"`
	Version  int64              `json:"version"`  // in force; 0 when there is none yet
	InForce  bool               `json:"in_force"` // the file means what is in force: applying it does nothing
	Changes  []PolicyDifference `json:"changes"`  // of the file in force
	Renews   string             `json:"renews"`   // which stored answers would cost again, in plain words
	Warnings []PolicyWarning    `json:"warnings"`
	Noise    []TableNoise       `json:"noise"`
	Kinds    []string           `json:"kinds"`             // kinds of units, with their tables
	TwoFor   []string           `json:"two_for,omitempty"` // the kinds of changes that need a second steward's signature
	Ledger   string             `json:"ledger,omitempty"`  // that signatures of stewards name
	Problems []PolicyProblem    `json:"problems"`          // why it cannot be applied; all else is empty then
}

// PolicyDifference is one difference of two policy files.
type PolicyDifference struct {
	Effect string `json:"effect"` // loosens, tightens or changes
	Text   string `json:"text"`
}

// PolicyProblem is something that is wrong with a policy file.
type PolicyProblem struct {
	Line   int    `json:"line"` // 0: no place in the file
	Column int    `json:"column"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// PolicyWarning is what the author of a policy should know, and what is no mistake by itself.
type PolicyWarning struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// TableNoise says what the bounds of a table do to a count.
type TableNoise struct {
	Table string `json:"table"`
	Text  string `json:"text"`
}

// CheckPolicy says what applying a policy document would do, for stewards. It changes nothing.
func (c *Client) CheckPolicy(ctx context.Context, dataset string, document []byte) (*PolicyReview, error) {
	return send[PolicyReview](ctx, c, call{method: http.MethodPost, path: datasetPath(dataset) + "/policy/check", raw: document,
		header: http.Header{"Content-Type": {"application/yaml"}}})
}
