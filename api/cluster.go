package api

import (
	"context"
	"net/http"
)

// ClusterRequest is the body of POST /v1/cluster and POST /v1/cluster/estimate: k-means over the rows of a dataset.
type ClusterRequest struct {
	Dataset string   `json:"dataset"`
	From    string   `json:"from"`            // tables and joins, as after FROM
	Where   string   `json:"where,omitempty"` // a condition on rows; all of them when absent
	Columns []string `json:"columns"`         // numbers of a row, each scaled by its bounds
	K       int64    `json:"k"`               // how many centres: from 2 to 64
	// Iterations are the steps of the centres: 4 when absent, at most 20. Each is a pass over the rows.
	Iterations *int64 `json:"iterations,omitempty"`
	// One of Epsilon, with Delta, and Rho is the price of all. Without one it costs the policy's default.
	Epsilon Decimal `json:"epsilon,omitempty"`
	Rho     Decimal `json:"rho,omitempty"`
	Delta   Decimal `json:"delta,omitempty"` // the δ at which ε is turned into the ρ that is charged
	// Weights are public: what half of a column's range counts in distances, by the column's text; 1 when absent.
	Weights map[string]Decimal `json:"weights,omitempty"`
	MaxRows *int64             `json:"max_rows,omitempty"` // tightens the policy's bound
	AtMost  *Price             `json:"at_most,omitempty"`  // the most that it may be charged

	TimeZone string `json:"-"` // as of a [QueryRequest]
}

// ClusterResponse is the answer to POST /v1/cluster.
type ClusterResponse struct {
	Sale
	ClusterModel
}

// ClusterModel are centres. They are stored once and replayed.
type ClusterModel struct {
	Columns []string `json:"columns"`
	// Centers are in the units of the columns, the largest cluster first.
	Centers [][]float64 `json:"centers"`
	// Sizes are how many rows were closest to each before its last step, with noise.
	Sizes []float64 `json:"sizes"`
	// SizeDeviation is the standard deviation of the noise of each size.
	SizeDeviation float64 `json:"size_deviation"`
	Iterations    int64   `json:"iterations"`
	Rho           Decimal `json:"rho"` // of the release
}

// ClusterEstimate is the answer to POST /v1/cluster/estimate.
type ClusterEstimate struct {
	Quote
	// People is the number of people from which on the noise of centres is small compared with the spread of the rows, in clusters of one
	// size.
	People int64 `json:"people"`
	// SizeDeviation is the standard deviation of the noise of each cluster's size.
	SizeDeviation float64 `json:"size_deviation"`
}

// Cluster finds centres, or replays them. idempotencyKey may be empty; with a key, a repeated call gives the first call's answer.
func (c *Client) Cluster(ctx context.Context, r ClusterRequest, idempotencyKey string) (*ClusterResponse, error) {
	return send[ClusterResponse](ctx, c, call{method: http.MethodPost, path: "/v1/cluster", body: r, header: keyed(idempotencyKey)})
}

// EstimateCluster prices a clustering. It costs nothing and touches no row.
func (c *Client) EstimateCluster(ctx context.Context, r ClusterRequest) (*ClusterEstimate, error) {
	return send[ClusterEstimate](ctx, c, call{method: http.MethodPost, path: "/v1/cluster/estimate", body: r})
}
