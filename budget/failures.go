package budget

import (
	"encoding/json"
	"errors"
	"time"

	"noisegate/internal/fault"
)

// FailurePeriod is how long a failure counts.
const FailurePeriod = 24 * time.Hour

// Reset says whose failures count no more.
type Reset struct {
	Dataset, Analyst string
}

func (r Reset) check(by string) error {
	if by == "" || r.Dataset == "" || r.Analyst == "" {
		return fault.Internal(errors.New("budget: a reset names a dataset, an analyst and who does it"))
	}
	return nil
}

// resetRecord is a reset as the journal keeps it.
type resetRecord struct {
	Analyst string `json:"resets_failures_of"`
}

func (r Reset) text() []byte {
	text, err := json.Marshal(resetRecord{r.Analyst})
	if err != nil { // strings always encode
		panic(err)
	}
	return text
}

// account names the analyst as accounts do; there need be no such account.
func (r Reset) account() *AccountID {
	return &AccountID{Dataset: r.Dataset, Scope: AnalystScope, Name: r.Analyst}
}

// resetOf reads a reset; ok is false for an entry that is none.
func resetOf(e Entry) (r Reset, ok bool) {
	var record resetRecord
	if e.Kind != EntryReset || json.Unmarshal(e.AccountText, &record) != nil || record.Analyst == "" || len(e.AccountIDs) != 0 ||
		e.Reservation != "" {
		return Reset{}, false
	}
	return Reset{Dataset: e.Dataset, Analyst: record.Analyst}, true
}

// resetFailures writes down that an analyst's failures count no more.
func (d *desk) resetFailures(by string, r Reset) {
	d.write(Entry{Kind: EntryReset, AccountText: r.text(), Account: r.account()}, r.Dataset, by, nil)
}

// failing ends a charge as expiring does, under another name.
func failing() ending { return ending{to: expired, kind: EntryFail} }
