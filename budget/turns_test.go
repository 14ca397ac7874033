package budget

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestTurns: one at a time for each dataset, others do not wait for it, who gives up leaves nothing behind.
func TestTurns(t *testing.T) {
	var turns turns
	inside, most := 0, 0
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			done, err := turns.take(context.Background(), "d")
			if err != nil {
				t.Error(err)
				return
			}
			defer done()
			inside++ // the race detector and the count agree: nobody else is here
			most = max(most, inside)
			inside--
		})
	}
	wait.Wait()
	if most != 1 {
		t.Errorf("%d at a time", most)
	}

	done, err := turns.take(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.take(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	other()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.take(gone, "d"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	done()
	if len(turns.waiting) != 0 {
		t.Errorf("%d datasets are kept", len(turns.waiting))
	}
}
