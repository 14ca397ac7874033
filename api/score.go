package api

import (
	"context"
	"net/http"
)

// ScoreRequest is the body of POST /v1/cluster/score and POST /v1/cluster/score/estimate: how well centres group the rows of a dataset.
type ScoreRequest struct {
	Dataset string   `json:"dataset"`
	From    string   `json:"from"`            // tables and joins, as after FROM
	Where   string   `json:"where,omitempty"` // a condition on rows; all of them when absent
	Columns []string `json:"columns"`         // numbers of a row, each scaled by its bounds
	// Centers are in the units of the columns, from 2 to 64; public, or bought.
	Centers [][]float64 `json:"centers"`
	// Score are the scores: calinski_harabasz and simplified_silhouette, which are both bought when absent.
	Score []string `json:"score,omitempty"`
	// One of Epsilon, with Delta, and Rho is the price of all. Without one it costs the policy's default.
	Epsilon Decimal `json:"epsilon,omitempty"`
	Rho     Decimal `json:"rho,omitempty"`
	Delta   Decimal `json:"delta,omitempty"` // the δ at which ε is turned into the ρ that is charged
	// Weights are public: what half of a column's range counts in distances, by the column's text; 1 when absent.
	Weights    map[string]Decimal `json:"weights,omitempty"`
	Confidence *float64           `json:"confidence,omitempty"` // level of the intervals; 0.95 when absent
	MaxRows    *int64             `json:"max_rows,omitempty"`   // tightens the policy's bound
	AtMost     *Price             `json:"at_most,omitempty"`    // the most that it may be charged
}

// ScoreResponse is the answer to POST /v1/cluster/score.
type ScoreResponse struct {
	Sale
	ScoreModel
}

// ScoreModel are scores. They are stored once and replayed.
type ScoreModel struct {
	Scores []ClusterScore `json:"scores"`
	Rho    Decimal        `json:"rho"` // of the release
}

// ClusterScore is one score of a grouping.
type ClusterScore struct {
	Score string `json:"score"` // calinski_harabasz or simplified_silhouette
	// Value is null where the noise is too large for what the score is made of.
	Value *float64 `json:"value"`
	// Interval is that of Value, for the noise alone.
	Interval *[2]float64 `json:"interval"`
}

// ScoreEstimate is the answer to POST /v1/cluster/score/estimate.
type ScoreEstimate struct {
	Quote
	// SizeDeviation is the standard deviation of the noise of each cluster's size; without calinski_harabasz, of the number of rows.
	SizeDeviation float64 `json:"size_deviation"`
}

// Score scores centres, or replays their scores. idempotencyKey may be empty; with a key, a repeated call gives the first call's answer.
func (c *Client) Score(ctx context.Context, r ScoreRequest, idempotencyKey string) (*ScoreResponse, error) {
	return send[ScoreResponse](ctx, c, call{method: http.MethodPost, path: "/v1/cluster/score", body: r, header: keyed(idempotencyKey)})
}

// EstimateScore prices scores. It costs nothing and touches no row.
func (c *Client) EstimateScore(ctx context.Context, r ScoreRequest) (*ScoreEstimate, error) {
	return send[ScoreEstimate](ctx, c, call{method: http.MethodPost, path: "/v1/cluster/score/estimate", body: r})
}
