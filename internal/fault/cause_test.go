package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"noisegate.example/internal/fault"
)

// raised is an error of PostgreSQL.
type raised struct{ state, message string }

// Error implements error.
func (r raised) Error() string { return "ERROR: " + r.message + " (SQLSTATE " + r.state + ")" }

// SQLState is its code.
func (r raised) SQLState() string { return r.state }

// The log has PostgreSQL's words where they are about its files, memory and connections, and its code alone where they may quote a
// value.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{raised{"58P01", "could not open file \"base/1/2\""}, "ERROR: could not open file \"base/1/2\" (SQLSTATE 58P01)"},
		{raised{"53100", "could not extend file"}, "ERROR: could not extend file (SQLSTATE 53100)"},
		{raised{"22P02", "invalid input syntax for type integer: \"canary\""}, "SQLSTATE 22P02"},
		{raised{"XX000", "canary"}, "SQLSTATE XX000"},
		{raised{"", "canary"}, "SQLSTATE "},
		{errors.New("dial"), "dial"},
	} {
		if got := fault.Cause(fault.DataUnavailable(fmt.Errorf("ledger: %w", c.err))); got != c.want && got != "ledger: "+c.want {
			t.Errorf("%v: %s", c.err, got)
		}
	}
	if got := fault.Cause(fault.Coded(fmt.Errorf("schema: %w", raised{"58P01", "canary"}))); got != "SQLSTATE 58P01" {
		t.Errorf("coded: %s", got)
	}
	if got := fault.Cause(nil); got != "" {
		t.Errorf("nothing: %s", got)
	}
}
