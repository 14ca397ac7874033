package gateway

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
)

// TestSharedAccountsAreListed: who draws on accounts of others sees which they are, and what one question may cost there;
// what is spent of them changes nothing in the list.
func TestSharedAccountsAreListed(t *testing.T) {
	group := line(catalog.GroupScope, "interns", 4)
	group.MaxEpsilonPerQuery = big.NewRat(1, 10)
	r := newRig(t, line(catalog.DatasetScope, "", 9), group, perAnalyst("analysts", 3))
	ana := principal(t, "ana", "interns")
	shared := func() string {
		t.Helper()
		own, err := r.Budget(t.Context(), ana, "d")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(own.Budgets[0].Shared)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := shared()
	if before != `[{"account":"dataset","form":"pure"},{"account":"group:interns","form":"pure","max_epsilon_per_query":"0.1"}]` {
		t.Error(before)
	}
	if _, err := r.Query(t.Context(), principal(t, "bob", "interns"), count("0.1")); err != nil {
		t.Fatal(err)
	}
	if after := shared(); after != before {
		t.Errorf("%s, then %s", before, after)
	}
}

func TestBudgetAndHistory(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	answer, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.Budget(t.Context(), ana, "")
	if err != nil || len(all.Budgets) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	b := all.Budgets[0]
	if b.Account != "analyst:ana" || b.Spent.Epsilon != "0.5" || b.Remaining.Epsilon != "2.5" || b.Limit.Epsilon != "3" ||
		b.Limit.Delta != "1e-7" ||
		b.Limit.MaxEpsilonPerQuery != "1" || !strings.HasPrefix(b.Advice, "about ") {
		t.Errorf("%+v", b)
	}
	if b.Usage.Rule != "rho" && b.Usage.Rule != "epsilon" || b.Usage.Percent == "0" || b.Usage.Percent == "100" {
		t.Errorf("%+v", b.Usage)
	}
	list, err := r.Releases(t.Context(), ana, "")
	if err != nil || len(list.Releases) != 1 || list.NextCursor != "" || list.Releases[0].Request.SQL != "SELECT count(*) FROM people" {
		t.Fatalf("%+v, %v", list, err)
	}
	release, err := r.Release(t.Context(), ana, string(answer.ID))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(release.Result)
	if err != nil || string(stored) != string(answer.Result) {
		t.Errorf("%s, %v", stored, err)
	}
	// A74: what is someone else's does not exist.
	_, foreign := r.Release(t.Context(), principal(t, "bob"), string(answer.ID))
	_, missing := r.Release(t.Context(), principal(t, "bob"), "01AAAAAAAAAAAAAAAAAAAAAAAA")
	if foreign == nil || missing == nil || foreign.Error() != missing.Error() || fault.CodeOf(foreign) != fault.CodeBudgetUnknownRelease {
		t.Errorf("%v, %v", foreign, missing)
	}
	if list, err := r.Releases(t.Context(), principal(t, "bob"), ""); err != nil || len(list.Releases) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, cursor := range []string{"x", "0", "-1", "99999999999999999999"} {
		if _, err := r.Releases(t.Context(), ana, cursor); fault.CodeOf(err) != fault.CodeRequestCursor {
			t.Errorf("cursor %s: %v", cursor, err)
		}
	}
}

func TestHistoryPages(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 1000), perAnalyst("analysts", 1000)), principal(t, "ana")
	for i := range releasesPerPage + 3 {
		request := count("0.1")
		request.SQL += " WHERE age < " + big.NewInt(int64(i)).String()
		if _, err := r.Query(t.Context(), ana, request); err != nil {
			t.Fatal(err)
		}
	}
	first, err := r.Releases(t.Context(), ana, "")
	if err != nil || len(first.Releases) != releasesPerPage || first.NextCursor == "" {
		t.Fatalf("%d, %q, %v", len(first.Releases), first.NextCursor, err)
	}
	second, err := r.Releases(t.Context(), ana, first.NextCursor)
	if err != nil || len(second.Releases) != 3 || second.NextCursor != "" {
		t.Fatalf("%d, %q, %v", len(second.Releases), second.NextCursor, err)
	}
	if last := second.Releases[2].Request.SQL; !strings.HasSuffix(last, "< 0") {
		t.Errorf("the oldest is %s", last)
	}
}

func TestDatasetsShowWhatIsPublic(t *testing.T) {
	r := newRig(t)
	list, err := r.Datasets(ana())
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	want := []api.Dataset{{Name: "d", Version: 1, Tables: []api.Table{{
		Schema: "public", Name: "people", Unit: &api.Unit{Kind: "row", Column: "id"}, MaxRows: 1, MaxGroups: 1,
		Columns: []api.TableColumn{
			{Name: "age", Type: "integer", Bounds: &api.ColumnBounds{Lo: "0", Hi: "100"}},
			{Name: "born", Type: "date", Bounds: &api.ColumnBounds{Lo: "1970-01-01", Hi: "1971-01-02"}},
			{Name: "sex", Type: "text", Keys: "public", Domain: []*string{text("f"), text("m"), nil}},
			{Name: "city", Type: "text", Keys: "private"},
		},
	}}}}
	if diff := cmp.Diff(want, list.Datasets); diff != "" {
		t.Error(diff)
	}
	r.policies.stale = fault.PolicyStale()
	if list, err := r.Datasets(ana()); err != nil || len(list.Datasets) != 0 {
		t.Errorf("a stale dataset: %+v, %v", list, err)
	}
	if _, err := r.Query(t.Context(), principal(t, "ana"), count("0.5")); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("a stale dataset answers: %v", err)
	}
	r.CheckReady(t.Context())
	if ready := r.Ready(); ready["datasets"] == nil || ready["ledger"] != nil {
		t.Errorf("%v", ready)
	}
}

func TestULID(t *testing.T) {
	at := time.UnixMilli(1469918176385) // the example of github.com/ulid/spec
	seen := map[budget.ReservationID]bool{}
	for range 1000 {
		id := NewULID(at)
		if len(id) != 26 || !strings.HasPrefix(string(id), "01ARYZ6S41") || strings.ContainsAny(string(id), "ILOU") || seen[id] {
			t.Fatalf("%s", id)
		}
		seen[id] = true
	}
	if NewULID(at.Add(time.Millisecond)) < NewULID(at) {
		t.Error("a later identifier sorts first")
	}
}
