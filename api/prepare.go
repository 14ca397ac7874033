package api

import "time"

// PrepareRequest is the body of POST /v1/datasets/{dataset}/prepare.
type PrepareRequest struct {
	Table string `json:"table,omitempty"` // as table or schema.table; all that the policy has prepare for when absent
	Full  bool   `json:"full,omitempty"`  // make each copy anew, also where the policy has new rows appended
}

// PrepareJob is a run that makes new versions of prepared copies, as the gateway knows it that it runs on.
type PrepareJob struct {
	JobID   string         `json:"job_id"`
	Dataset string         `json:"dataset"`
	By      string         `json:"by"`    // the steward who began it
	State   string         `json:"state"` // running, done, failed (of one table at least) or cancelled
	Begun   time.Time      `json:"begun"`
	Ended   *time.Time     `json:"ended,omitempty"` // absent while it runs
	Tables  []PrepareTable `json:"tables"`          // in the order in which they are prepared
}

// PrepareTable is how far a run is with one table.
type PrepareTable struct {
	Table   string     `json:"table"`
	State   string     `json:"state"`             // waiting, running, done, failed or cancelled
	Step    string     `json:"step,omitempty"`    // while it runs: units, rows, constraints or cleanup, in this order
	Version int64      `json:"version,omitempty"` // that was made, and serves
	AsOf    *time.Time `json:"as_of,omitempty"`   // of which time its rows are
	Problem string     `json:"problem,omitempty"` // why there is no new version, or what is left over beside it
}
