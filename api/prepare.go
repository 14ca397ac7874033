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
	AsOf    *time.Time `json:"as_of,omitempty"`   // the time of its rows
	Problem string     `json:"problem,omitempty"` // why there is no new version, or what is left over besides it
}

// PreparedList is what GET /v1/datasets/{dataset}/prepare answers: the copies of a dataset's tables, as the gateway saw them when it last
// looked, and its runs. No number of rows is in it.
type PreparedList struct {
	Dataset    string          `json:"dataset"`
	CanPrepare bool            `json:"can_prepare"` // whether this gateway makes copies: datasets.NAME.prepare_dsn
	Tables     []PreparedTable `json:"tables"`
	Jobs       []PrepareJob    `json:"jobs"` // the latest 16 of this gateway, newest first
}

// PreparedTable is a table with a copy, or for which the policy in force asks one.
type PreparedTable struct {
	Table    string            `json:"table"`
	MaxRows  int64             `json:"max_rows,omitempty"` // rows of one unit that the copy keeps; absent where the policy asks for none
	Ranks    [][]string        `json:"ranks,omitempty"`    // sets of columns by which it has ranks
	Append   string            `json:"append,omitempty"`   // the column by which new rows are appended; absent where a run makes all anew
	Required bool              `json:"required,omitempty"` // the table itself is never read
	Versions []PreparedVersion `json:"versions"`           // newest first
}

// PreparedVersion is a version of a copy.
type PreparedVersion struct {
	Version int64     `json:"version"`
	AsOf    time.Time `json:"as_of"`  // the time of its rows
	Fits    bool      `json:"fits"`   // it is the copy that the policy in force asks for
	Serves  bool      `json:"serves"` // questions read it: the newest one that fits
}
