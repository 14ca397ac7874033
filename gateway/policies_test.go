package gateway

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"noisegate.example/catalog"
)

// policyShelf is a [PolicyStore] of one policy, and its [Schemas], that counts what it is asked for.
type policyShelf struct {
	PolicyStore
	Schemas
	version         int64
	broken          error
	loads, rechecks int
}

func (s *policyShelf) Versions(context.Context) (map[string]int64, error) {
	return map[string]int64{"d": s.version}, s.broken
}

func (s *policyShelf) Load(context.Context, string) (*catalog.Revision, error) {
	s.loads++
	return &catalog.Revision{Snapshot: &catalog.Snapshot{Dataset: "d", Version: s.version}}, s.broken
}

func (s *policyShelf) Counted(_ context.Context, r *catalog.Revision) (*catalog.Revision, error) {
	return r, nil
}

func (s *policyShelf) Recheck(context.Context, *catalog.Revision) error { s.rechecks++; return nil }

// TestRefreshLoadsWhatIsNew: a policy is loaded when its version is not held, and each 20th time; schemas are rechecked each time.
func TestRefreshLoadsWhatIsNew(t *testing.T) {
	shelf := &policyShelf{version: 1}
	live := NewLivePolicies(shelf, map[string]Schemas{"d": shelf, "without a policy": nil}, slog.New(slog.DiscardHandler))
	refresh := func(version int64, loads int) {
		t.Helper()
		shelf.version = version
		before, rechecked := shelf.loads, shelf.rechecks
		if err := live.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		if shelf.loads-before != loads || shelf.rechecks != rechecked+1 {
			t.Errorf("version %d: %d loads and %d rechecks, want %d and 1", version, shelf.loads-before, shelf.rechecks-rechecked, loads)
		}
		if held, err := live.Current("d"); err != nil || held.Version != max(version, 2) && version > 1 {
			t.Errorf("version %d: %+v is in force, %v", version, held, err)
		}
	}
	refresh(1, 1)
	refresh(1, 0)
	refresh(2, 1)
	refresh(2, 0)
	refresh(1, 0) // versions never go back: the store says what is in force
	for range loadsAll - 6 {
		refresh(2, 0)
	}
	refresh(2, 1)
	refresh(2, 0)
	shelf.broken = errors.New("the control database does not answer")
	loads := shelf.loads
	if err := live.Refresh(t.Context()); err == nil || shelf.loads != loads {
		t.Error("policies were loaded though their versions are not known")
	}
	if held, err := live.Current("d"); err != nil || held.Version != 2 {
		t.Errorf("without the control database: %+v, %v", held, err)
	}
}
