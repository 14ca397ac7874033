package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/catalog"
)

// preparer makes versions of a test.
type preparer func(on *catalog.Snapshot, t *catalog.Table) (*catalog.Version, error)

// Prepare implements [gateway.Preparer].
func (p preparer) Prepare(_ context.Context, on *catalog.Snapshot, t *catalog.Table, _ bool, _ func(string)) (*catalog.Version, error) {
	return p(on, t)
}

// The command prepares each table by the policy that is in force when its turn comes, and none that this policy does not ask for any more.
func TestPrepareCommandByThePolicyInForce(t *testing.T) {
	policy := func(version int64, rows ...int64) *catalog.Snapshot {
		on := &catalog.Snapshot{Dataset: "d", Version: version}
		for i, n := range rows {
			on.Tables = append(on.Tables, &catalog.Table{Schema: catalog.DefaultSchema, Name: []string{"calls", "visits"}[i], Prepare: n})
		}
		return on
	}
	errDown := errors.New("the control database is down")
	for name, c := range map[string]struct {
		later *catalog.Snapshot // in force when the first table is prepared; nil: it cannot be read
		by    []int64
		rows  int64 // of the second table
		says  string
	}{
		"the same policy":      {later: policy(1, 2, 3), by: []int64{1, 1}, rows: 3},
		"another bound":        {later: policy(2, 2, 5), by: []int64{1, 2}, rows: 5},
		"no copy is asked for": {later: policy(2, 2, 0), by: []int64{1}, rows: 2, says: `has prepare for no table "visits"`},
		"no table is left":     {later: policy(2, 2), by: []int64{1}, rows: 2, says: `has prepare for no table "visits"`},
		"it cannot be read":    {by: []int64{1}, rows: 2, says: "visits: " + errDown.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			inForce := policy(1, 2, 3)
			var by []int64
			var rows int64
			makes := preparer(func(on *catalog.Snapshot, of *catalog.Table) (*catalog.Version, error) {
				by, rows, inForce = append(by, on.Version), of.Prepare, c.later
				return &catalog.Version{Number: 1}, nil
			})
			var out bytes.Buffer
			err := new(prepareCommand).prepare(t.Context(), &app{Streams: Streams{Out: &out}, now: time.Now}, makes, inForce,
				func() (*catalog.Snapshot, error) {
					if inForce == nil {
						return nil, errDown
					}
					return inForce, nil
				})
			if !slices.Equal(by, c.by) || rows != c.rows || strings.Count(out.String(), "serves") != len(c.by) {
				t.Errorf("prepared by the policies %v, the last table with %d rows:\n%s", by, rows, &out)
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
