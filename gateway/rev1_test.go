package gateway

import (
	"context"
	"testing"
	"time"

	"noisegate/budget"

	"noisegate/internal/fault"
)

// Releases that were bought while the policy did not share are not given to others when it begins to.
func TestRev1OldReleasesStayTheirBuyers(t *testing.T) {
	r := newRig(t)
	r.ask(t, ana(), counted("n", "0.5"))
	r.policies.snapshot.ShareReleases = true
	r.policies.snapshot.Version++
	r.policies.snapshot.Digest[0]++
	got := r.ask(t, principal(t, "bob", "analysts"), counted("n", "0.5"))
	if got.Replayed {
		t.Error("bought before sharing was on, given to another")
	}
}

func TestRev1ViewKey(t *testing.T) {
	r := newRig(t)
	r.ask(t, ana(), counted("n", "0.5"))
	v := counted("view", "0.5")
	v.IdempotencyKey = "k1"
	r.ask(t, ana(), v)
	other := counted("n", "0.1")
	other.SQL = "SELECT count(*) FROM people WHERE age > 3"
	other.IdempotencyKey = "k1"
	if _, err := r.Query(t.Context(), ana(), other); fault.CodeOf(err) != fault.CodeBudgetReplayMismatch {
		t.Errorf("key of a view used for another body: %v", err)
	}
}

type panics struct{ budget.ReleasedValues }

func (panics) FindReleased(context.Context, budget.Earlier) (*budget.Found, error) { panic("once") }

func TestRev1PanicLeavesFlight(t *testing.T) {
	r := newRig(t)
	r.values = panics{r.ledger}
	func() {
		defer func() { _ = recover() }()
		_, _ = r.Query(t.Context(), ana(), counted("a", "0.5"))
	}()
	r.values = r.ledger
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	_, err := r.Query(ctx, ana(), counted("b", "0.5"))
	t.Logf("after a panic: %v", err)
	if err != nil {
		t.Error("the release is blocked for good")
	}
}

func TestRev1KeyedReplayNamesItsData(t *testing.T) {
	r := newRig(t)
	r.policies.snapshot.DataVersion = "2026-01"
	request := counted("n", "0.5")
	request.IdempotencyKey = "k"
	first := r.ask(t, ana(), request)
	r.policies.snapshot.DataVersion = "2026-02"
	r.policies.snapshot.Version++
	got := r.ask(t, ana(), request)
	t.Logf("first %s, again replayed %t id same %t data %q", first.Data, got.Replayed, got.ID == first.ID, got.Data)
	if got.Replayed && got.Data != "2026-01" {
		t.Error("values of one state of the data are named after another")
	}
}

// Two analysts who ask at once both pay, and draw apart. A view of one's own release shows that release, not the other's draw.
func TestRev1OwnReleaseBeforeOthersAnswer(t *testing.T) {
	r := newRig(t)
	mine := r.ask(t, ana(), counted("a", "0.5"))
	theirs := r.ask(t, principal(t, "bob", "analysts"), counted("q", "0.5")) // not shared yet: stands for a race
	r.policies.snapshot.ShareReleases = true
	got := r.ask(t, ana(), counted("q", "0.5"))
	if got.ID != mine.ID || got.ID == theirs.ID {
		t.Errorf("ana has %s, and is shown bob's %s", mine.ID, got.ID)
	}
}
