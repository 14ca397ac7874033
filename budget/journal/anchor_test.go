package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
)

// An anchor gives back what was written last; a damaged file is an error, never no file.
func TestAnchor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "anchor")
	anchor := journal.NewAnchor(path)
	if was, err := anchor.Read(); err != nil || was.Heads != nil || was.Server != (journal.Server{}) {
		t.Fatal(was, err)
	}
	want := []budget.Head{{Dataset: "a", Seq: 3, Hash: [32]byte{3}}, {Dataset: "b", Seq: 9, Hash: [32]byte{9}}}
	for n := range 2 {
		server := journal.Server{System: 7, Timeline: int64(n)}
		if err := anchor.Write(journal.Anchored{Server: server, Heads: want[:n+1]}); err != nil {
			t.Fatal(err)
		}
		if got, err := anchor.Read(); err != nil || got.Server != server || !slices.Equal(got.Heads, want[:n+1]) {
			t.Fatal(got, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	for _, damaged := range []string{"", "{", `{"chains": [{"dataset": "a", "seq": 3, "hash": "00"}]}`} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := anchor.Read(); err == nil {
			t.Errorf("%q is read", damaged)
		}
	}
	if err := journal.NewAnchor(filepath.Join(path, "no", "such")).Write(journal.Anchored{Heads: want}); err == nil {
		t.Error("written nowhere")
	}
}

// The newest heads are in the file soon, and those of the end when it ends.
func TestAnchorIsKept(t *testing.T) {
	anchor := journal.NewAnchor(filepath.Join(t.TempDir(), "anchor"))
	var seq atomic.Int64
	seq.Store(1)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		anchor.Keep(ctx, time.Millisecond, func() journal.Anchored {
			return journal.Anchored{Heads: []budget.Head{{Dataset: "d", Seq: seq.Load()}}}
		},
			func(err error) { t.Error(err) })
		close(done)
	}()
	wait := func(want int64) {
		t.Helper()
		for range 1000 {
			if was, err := anchor.Read(); err == nil && len(was.Heads) == 1 && was.Heads[0].Seq == want {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatalf("the file never had %d", want)
	}
	wait(1)
	seq.Store(2)
	wait(2)
	end()
	seq.Store(3)
	<-done
}
