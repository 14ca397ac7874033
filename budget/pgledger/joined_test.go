package pgledger_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
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
	untilWait(t, 3, do.Waiting)
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

func untilWait(t *testing.T, n int, waiting func() int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); waiting() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d look-ups do not wait", n)
		}
	}
}

// Where the connection is lost while a row is read, what was read of it stays out of the look-up's next round trip.
func testLookUpsBeginAnew(t *testing.T, d *pgtest.ControlDatabase) {
	ledger := open(t, d)
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	var all sync.WaitGroup
	for range 2 { // as many round trips as there may be
		all.Go(func() {
			if _, err := ledger.LookUp(t.Context(), func(*pgx.Batch, *[]int) { begun <- struct{}{}; <-goOn }); err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	for range 2 {
		all.Go(func() {
			trips := 0
			found, err := ledger.LookUp(t.Context(), func(b *pgx.Batch, into *[]int) {
				trips++
				trip := trips
				b.Queue("SELECT 1").QueryRow(func(pgx.Row) error {
					if *into = append(*into, trip); trip == 1 {
						return errors.New("the connection is lost")
					}
					return nil
				})
			})
			if err != nil || !slices.Equal(found, []int{2}) {
				t.Errorf("found in round trips %d, %v; want the second alone", found, err)
			}
		})
	}
	untilWait(t, 2, ledger.LookUpsWaiting)
	close(goOn)
	all.Wait()
}
