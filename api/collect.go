package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// CollectionDefinition is the body of PUT /v1/collect/{collection}: what devices report, and how they randomise it.
type CollectionDefinition struct {
	Kind      string   `json:"kind"`             // choice, number or vector
	Domain    []string `json:"domain,omitempty"` // choice: its values; vector: names of its coordinates
	Low       Decimal  `json:"low,omitempty"`    // number: what smaller ones count as
	High      Decimal  `json:"high,omitempty"`   // number: what larger ones count as
	Mechanism string   `json:"mechanism"`        // auto; krr, sue, oue or olh; duchi, piecewise or laplace
	Epsilon   Decimal  `json:"epsilon"`          // of one report
	Rounds    *int64   `json:"rounds,omitempty"` // how many reports one device may send; 1 when absent
	// EnrolmentKey is the public key, Ed25519 in PEM, that checks the tokens of devices.
	EnrolmentKey string `json:"enrolment_key"`
}

// Collection is the answer to PUT /v1/collect/{collection}.
type Collection struct {
	Collection   string    `json:"collection"`
	Kind         string    `json:"kind"`
	Domain       []string  `json:"domain,omitempty"`
	Low          Decimal   `json:"low,omitempty"`
	High         Decimal   `json:"high,omitempty"`
	Mechanism    string    `json:"mechanism"` // what auto chose
	Epsilon      Decimal   `json:"epsilon"`
	Rounds       int64     `json:"rounds"`
	EnrolmentKey string    `json:"enrolment_key"`
	DefinedAt    time.Time `json:"defined_at"`
}

// CollectionClient is the answer to GET /v1/collect/{collection}/client: all that a device needs.
type CollectionClient struct {
	Collection      string            `json:"collection"`
	Kind            string            `json:"kind"`
	Domain          []string          `json:"domain,omitempty"`
	Low             Decimal           `json:"low,omitempty"`
	High            Decimal           `json:"high,omitempty"`
	Mechanism       string            `json:"mechanism"`
	Epsilon         Decimal           `json:"epsilon"` // of one report
	Rounds          int64             `json:"rounds"`
	EpsilonLifetime Decimal           `json:"epsilon_lifetime"` // of the reports of all rounds together
	Constants       map[string]string `json:"constants"`        // exact rationals: "1/4"
	Procedure       []string          `json:"procedure"`        // what a device does, step by step
	Examples        []ClientExample   `json:"examples"`
}

// ClientExample is a test vector: with these draws, in this order, this truth is reported so.
type ClientExample struct {
	Truth  []int64 `json:"truth"`
	Draws  []int64 `json:"draws"`
	Report []int64 `json:"report"`
}

// DeviceReport is a line of the body of POST /v1/collect/{collection}/reports.
type DeviceReport struct {
	Device string  `json:"device"`          // what the steward enrolled it as
	Token  string  `json:"token"`           // of the enrolment, base64
	Round  int64   `json:"round,omitempty"` // 1 when absent
	Report []int64 `json:"report"`
}

// ReportsTaken is the answer to POST /v1/collect/{collection}/reports.
type ReportsTaken struct {
	Taken    int             `json:"taken"`
	Repeated int             `json:"repeated"` // the same reports as before: taken once
	Refused  []RefusedReport `json:"refused"`  // the others; those that were taken stay
}

// RefusedReport is a line of a batch that was not taken.
type RefusedReport struct {
	Line   int    `json:"line"`   // from 1
	Reason string `json:"reason"` // not-enrolled, unknown-round, not-a-report or second-report
}

// CollectionEstimate is the answer to GET /v1/collect/{collection}/estimate. It is computed from randomised reports alone.
type CollectionEstimate struct {
	Collection string           `json:"collection"`
	Kind       string           `json:"kind"`
	Mechanism  string           `json:"mechanism"`
	Epsilon    Decimal          `json:"epsilon"`
	Round      int64            `json:"round"`
	Reports    int64            `json:"reports"`
	Confidence float64          `json:"confidence"`
	Estimates  []DeviceEstimate `json:"estimates"` // empty without reports
}

// DeviceEstimate is a count of devices (choice), or their mean (number, vector).
type DeviceEstimate struct {
	Of       string     `json:"of,omitempty"` // value or coordinate
	Estimate float64    `json:"estimate"`     // without bias: a count may be negative
	SD       float64    `json:"sd"`           // standard deviation, from the randomisation alone
	Interval [2]float64 `json:"interval"`
}

func collectionPath(name string) string { return "/v1/collect/" + url.PathEscape(name) }

// DefineCollection defines what devices report, for stewards. The same definition again changes nothing, another is refused.
func (c *Client) DefineCollection(ctx context.Context, name string, d CollectionDefinition) (*Collection, error) {
	return send[Collection](ctx, c, call{method: http.MethodPut, path: collectionPath(name), body: d})
}

// CollectionClient shows what a device needs to know.
func (c *Client) CollectionClient(ctx context.Context, name string) (*CollectionClient, error) {
	return send[CollectionClient](ctx, c, call{method: http.MethodGet, path: collectionPath(name) + "/client"})
}

// SendReports hands on randomised reports, a [DeviceReport] in each line, for collectors.
func (c *Client) SendReports(ctx context.Context, name string, lines io.Reader) (*ReportsTaken, error) {
	return send[ReportsTaken](ctx, c, call{method: http.MethodPost, path: collectionPath(name) + "/reports", stream: lines,
		header: http.Header{"Content-Type": {"application/x-ndjson"}}})
}

// EstimateCollection estimates from the reports of a round; 0 stands for the first. A confidence of 0 stands for 0.95.
func (c *Client) EstimateCollection(ctx context.Context, name string, round int64, confidence float64) (*CollectionEstimate, error) {
	query := url.Values{}
	if round != 0 {
		query.Set("round", strconv.FormatInt(round, 10))
	}
	if confidence != 0 {
		query.Set("confidence", strconv.FormatFloat(confidence, 'g', -1, 64))
	}
	path := collectionPath(name) + "/estimate"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return send[CollectionEstimate](ctx, c, call{method: http.MethodGet, path: path})
}
