package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
)

// policyShelf is a [PolicyStore] of one policy, and its [Schemas], that counts what it is asked for.
type policyShelf struct {
	PolicyStore
	Schemas
	version         int64
	digest          byte
	missing         bool
	unreadable      error
	listed          func()
	broken          error
	loads, rechecks int
}

func (s *policyShelf) Versions(context.Context) (map[string]catalog.Applied, error) {
	if s.listed != nil {
		s.listed()
	}
	if s.missing {
		return nil, s.broken
	}
	return map[string]catalog.Applied{"d": {Version: s.version, Digest: [32]byte{s.digest}}}, s.broken
}

func (s *policyShelf) Load(context.Context, string) (*catalog.Revision, error) {
	s.loads++
	if s.unreadable != nil {
		return nil, s.unreadable
	}
	return &catalog.Revision{Snapshot: &catalog.Snapshot{Dataset: "d", Version: s.version, Digest: [32]byte{s.digest}}}, s.broken
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
		if held, err := live.Current("d"); err != nil || held.Version != version {
			t.Errorf("version %d: %+v is in force, %v", version, held, err)
		}
	}
	refresh(1, 1)
	refresh(1, 0)
	refresh(2, 1)
	refresh(2, 0)
	for range loadsAll - 5 {
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

// slowCheck counts the checks that run at once.
type slowCheck struct {
	policyShelf
	running, most, done atomic.Int64
}

func (s *slowCheck) Inspect(context.Context, *catalog.Policy) (*catalog.Schema, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	time.Sleep(time.Millisecond)
	return &catalog.Schema{}, nil
}

func (s *slowCheck) Review(context.Context, *catalog.Policy, *catalog.Schema) (*catalog.Review, error) {
	s.running.Add(-1)
	s.done.Add(1)
	return &catalog.Review{}, nil
}

// Checks of a gateway run one after another, and one that waits ends with its client.
func TestPoliciesAreCheckedOneAtATime(t *testing.T) {
	const text = "version: 1\ndataset: d\ntables: {people: {unit: {row: id}}}\nbudgets: [{dataset: true, form: pure, epsilon: 1}]\n"
	shelf := &slowCheck{}
	live := NewLivePolicies(shelf, map[string]Schemas{"d": shelf}, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := live.Review(t.Context(), "d", []byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if shelf.most.Load() != 1 || shelf.done.Load() != 8 {
		t.Errorf("%d of 8 checks are done, and %d ran at once", shelf.done.Load(), shelf.most.Load())
	}
	live.checking <- struct{}{}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := live.Review(gone, "d", []byte(text)); fault.CodeOf(err) != fault.CodeRequestGone {
		t.Errorf("a check whose client left: %v", err)
	}
}

// What is stored is in force: where a failover lost a version, a gateway that has it goes back, takes another one of its number, and has
// none where there is none.
func TestRefreshFollowsTheStore(t *testing.T) {
	shelf := &policyShelf{version: 6, digest: 'a'}
	live := NewLivePolicies(shelf, map[string]Schemas{"d": shelf}, slog.New(slog.DiscardHandler))
	for _, stored := range []policyShelf{{version: 6, digest: 'a'}, {version: 5, digest: '5'}, {version: 6, digest: 'b'},
		{version: 7, digest: '7'}, {missing: true}, {version: 1, digest: '1'}} {
		shelf.version, shelf.digest, shelf.missing = stored.version, stored.digest, stored.missing
		if err := live.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		held, err := live.Current("d")
		if stored.missing {
			if fault.CodeOf(err) != fault.CodeUnknownDataset {
				t.Errorf("none is stored: %+v, %v", held, err)
			}
			continue
		}
		if err != nil || held.Version != stored.version || held.Digest[0] != stored.digest {
			t.Errorf("%d %c is stored: %+v is in force, %v", stored.version, stored.digest, held, err)
		}
	}
}

// A version that is not stored any more is not in force either where the one that is cannot be read; and one that is applied while a
// refresh is under way stays.
func TestRefreshWhatCannotBeLoaded(t *testing.T) {
	shelf := &policyShelf{version: 6, digest: 'a'}
	live := NewLivePolicies(shelf, map[string]Schemas{"d": shelf}, slog.New(slog.DiscardHandler))
	if err := live.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	shelf.version, shelf.digest, shelf.unreadable = 5, '5', fault.PolicyStale()
	_ = live.Refresh(t.Context())
	if s, err := live.Current("d"); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("5 is stored, and cannot be read: %+v is in force, %v", s, err)
	}
	shelf.unreadable = nil
	_ = live.Refresh(t.Context())
	if s, err := live.Current("d"); err != nil || s.Version != 5 {
		t.Errorf("5 can be read again: %+v is in force, %v", s, err)
	}

	shelf.version, shelf.digest, shelf.unreadable = 6, 'b', fault.DataUnavailable(nil)
	_ = live.Refresh(t.Context())
	if s, err := live.Current("d"); err != nil || s.Version != 5 {
		t.Errorf("6 is stored, and cannot be read just now: %+v is in force, %v", s, err)
	}
	shelf.version, shelf.digest = 4, '4'
	_ = live.Refresh(t.Context())
	if s, err := live.Current("d"); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("5 is lost: %+v is in force, %v", s, err)
	}

	empty := &policyShelf{missing: true}
	first := NewLivePolicies(empty, map[string]Schemas{"d": empty}, slog.New(slog.DiscardHandler))
	empty.listed = func() {
		first.cache.Put(&catalog.Revision{Snapshot: &catalog.Snapshot{Dataset: "d", Version: 1}}) // as Apply does
	}
	if err := first.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := first.Current("d"); err != nil || s.Version != 1 {
		t.Errorf("applied while a refresh listed what there was: %+v, %v", s, err)
	}
}
