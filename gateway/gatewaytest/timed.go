package gatewaytest

import (
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/gateway"
	"noisegate.example/mechanisms"
)

// timedPolicies put time into the guarantee of every dataset.
type timedPolicies struct {
	gateway.Policies
	delay *mechanisms.Delay
}

// Timed are policies with time in the guarantee, unit_ms 5 at ε 0.5 and δ 1e-9, and the longest delay that this gives.
func Timed(t testing.TB, p gateway.Policies) (timed gateway.Policies, longest time.Duration) {
	t.Helper()
	timing := &catalog.Timing{Unit: 5 * time.Millisecond, Epsilon: mechanisms.EpsilonUnit / 2, Delta: mechanisms.DeltaUnit / 1_000_000_000}
	delay, err := timing.Delay()
	if err != nil {
		t.Fatal(err)
	}
	return timedPolicies{p, delay}, 2 * time.Duration(delay.Shift()) * time.Microsecond
}

// Current implements [gateway.Policies].
func (p timedPolicies) Current(dataset string) (*catalog.Snapshot, error) {
	s, err := p.Policies.Current(dataset)
	if err != nil {
		return nil, err
	}
	timed := *s
	timed.Delay = p.delay
	return &timed, nil
}
