package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

// FitRequest is the body of POST /v1/fit and POST /v1/fit/estimate: a regression over the rows of a dataset.
type FitRequest struct {
	Dataset  string       `json:"dataset"`
	From     string       `json:"from"`            // tables and joins, as after FROM
	Where    string       `json:"where,omitempty"` // a condition on rows; all of them when absent
	Target   string       `json:"target"`          // an expression over a row; 0 or 1 for a logistic model
	Model    string       `json:"model"`           // linear, ridge or logistic
	Features []FitFeature `json:"features"`
	// Method is moments, gradient (of logistic models), or auto (default): gradient for logistic models, moments for others.
	Method string `json:"method,omitempty"`
	// Iterations are the passes over the rows of the method gradient: 30 when absent, at most 100.
	Iterations *int64 `json:"iterations,omitempty"`
	// One of Epsilon, with Delta, and Rho is the price of the whole fit. Without one it costs the policy's default.
	Epsilon Decimal `json:"epsilon,omitempty"`
	Rho     Decimal `json:"rho,omitempty"`
	Delta   Decimal `json:"delta,omitempty"` // the δ at which ε is turned into the ρ that is charged
	// Weights are public: a feature with a larger one has less noise, and the others more. By the feature's text; 1 when absent.
	Weights    map[string]Decimal `json:"weights,omitempty"`
	Confidence *float64           `json:"confidence,omitempty"` // level of the intervals; 0.95 when absent
	MaxRows    *int64             `json:"max_rows,omitempty"`   // tightens the policy's bound
	AtMost     *Price             `json:"at_most,omitempty"`    // the most that it may be charged
	TimeZone   string             `json:"-"`                    // as of a [QueryRequest]
}

// FitFeature is a term of a model: a number of each row, or with Encode one column for each value of a domain. A feature without Encode may
// be written as a string.
type FitFeature struct {
	Column string `json:"column"`           // an expression over a row
	Encode string `json:"encode,omitempty"` // one-hot, or absent
}

// UnmarshalJSON reads a string, or an object with exactly these members.
func (f *FitFeature) UnmarshalJSON(text []byte) error {
	*f = FitFeature{}
	if json.Unmarshal(text, &f.Column) == nil {
		return nil
	}
	type object FitFeature
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*object)(f))
}

// FitResponse is the answer to POST /v1/fit.
type FitResponse struct {
	Sale
	FitModel
}

// FitModel is a fitted model. It is stored once and replayed.
type FitModel struct {
	Model        string           `json:"model"`
	Method       string           `json:"method"`
	Iterations   *int64           `json:"iterations,omitempty"` // passes over the rows, of the method gradient
	Rho          Decimal          `json:"rho"`                  // of the release
	Intercept    FitCoefficient   `json:"intercept"`
	Coefficients []FitCoefficient `json:"coefficients"`
}

// FitCoefficient is one number of a model.
type FitCoefficient struct {
	Name string `json:"name"`
	// Value is what one unit of the feature adds to the prediction: to the target, or to the logarithm of its odds.
	Value float64 `json:"value"`
	// Scaled is what half of the feature's range adds, of a column of a one-hot feature its value: comparable between features. The
	// intercept's is the prediction in the middle of all ranges.
	Scaled float64 `json:"scaled"`
	// Interval is that of Value, for the noise alone; null where the noise is too large for one.
	Interval *[2]float64 `json:"interval"`
}

// FitEstimate is the answer to POST /v1/fit/estimate.
type FitEstimate struct {
	Quote
	Method string `json:"method"`
	// People is the number of people from which on the noise is small compared with what is fitted, where features spread evenly over their
	// ranges.
	People int64 `json:"people"`
	// Coefficients are the intercept and the columns of the model, with the noise that each has.
	Coefficients []FitNoise `json:"coefficients"`
}

// FitNoise is the expected noise of one coefficient.
type FitNoise struct {
	Name string `json:"name"`
	// Deviation is its standard deviation in the unit of Value, among People people whose features spread evenly; twice as many have half.
	Deviation float64 `json:"deviation"`
}

// Fit fits a model, or replays it. idempotencyKey may be empty; with a key, a repeated call gives the first call's answer.
func (c *Client) Fit(ctx context.Context, r FitRequest, idempotencyKey string) (*FitResponse, error) {
	return send[FitResponse](ctx, c, call{method: http.MethodPost, path: "/v1/fit", body: r, header: keyed(idempotencyKey)})
}

// EstimateFit prices a fit. It costs nothing and touches no row.
func (c *Client) EstimateFit(ctx context.Context, r FitRequest) (*FitEstimate, error) {
	return send[FitEstimate](ctx, c, call{method: http.MethodPost, path: "/v1/fit/estimate", body: r})
}
