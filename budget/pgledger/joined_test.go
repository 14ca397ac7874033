package pgledger_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
)

// Look-ups that arrive during round trips share the next one, and one that fails there fails alone.
func TestLookUpsJoin(t *testing.T) {
	var do pgledger.Joined
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	var mu sync.Mutex
	var trips [][]string
	exchange := func(_ context.Context, all []string) error {
		mu.Lock()
		trips = append(trips, slices.Clone(all))
		mu.Unlock()
		if all[0] == "first" {
			begun <- struct{}{}
			<-goOn
		}
		if slices.Contains(all, "bad") {
			return errors.New("a text that the server does not take")
		}
		return nil
	}
	results := make(map[string]error)
	var all sync.WaitGroup
	ask := func(name string) {
		all.Go(func() {
			err := do.Do(context.Background(), name, exchange)
			mu.Lock()
			defer mu.Unlock()
			results[name] = err
		})
	}
	for range 2 { // as many round trips as there may be
		ask("first")
		<-begun
	}
	for _, name := range []string{"a", "bad", "b"} {
		ask(name)
	}
	for deadline := time.Now().Add(time.Minute); do.Waiting() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("three look-ups do not wait")
		}
	}
	close(goOn)
	all.Wait()
	for name, err := range results {
		if bad := name == "bad"; bad != (fault.CodeOf(err) == fault.CodeDataUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(trips) != 6 || len(trips[2]) != 3 {
		t.Errorf("the round trips were %q, want one of three after the first two, and each of these alone", trips)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if err := do.Do(gone, "own", exchange); err != nil {
		t.Errorf("a round trip that somebody makes for others too ended with them: %v", err)
	}
}
