package gateway

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// The journal that stewards read is enough to check the chain by: every field that a hash covers is in it.
//
// covers: F13
func TestAuditShowsWhatIsHashed(t *testing.T) {
	r := newRig(t, line("dataset", "", 20), perAnalyst("analysts", 20))
	for _, epsilon := range []string{"0.1", "0.2", "0.3"} {
		if _, err := r.Query(t.Context(), principal(t, "ana"), count(epsilon)); err != nil {
			t.Fatal(err)
		}
	}
	page, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "d"})
	if err != nil || page.NextCursor != "" || len(page.Entries) != 2+2*3 || len(page.Heads) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	var kinds string
	entries, err := r.ledger.Entries(t.Context(), budget.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range page.Entries {
		kinds += e.Kind + " "
		before := [32]byte{}
		if i+1 < len(entries) {
			before = entries[i+1].Hash
		}
		if hash := journal.HashAfter(entries[i], before); e.Hash != hex.EncodeToString(hash[:]) {
			t.Errorf("entry %d: hash %s", e.Seq, e.Hash)
		}
	}
	if want := "settle reserve settle reserve settle reserve limit limit "; kinds != want {
		t.Errorf("got %s, want %s", kinds, want)
	}
	newest := page.Entries[0]
	if page.Heads[0] != (api.ChainHead{Dataset: "d", Seq: newest.Seq, Hash: newest.Hash, Ledger: budget.NoLedger}) ||
		newest.Amounts.Epsilon != "0.3" {
		t.Errorf("head %+v, newest entry %+v", page.Heads[0], newest)
	}
	if reserve := page.Entries[1]; reserve.Mechanisms == "" || reserve.Subject != "ana" || len(reserve.AccountIDs) != 2 ||
		len(reserve.Digest) != 64 || reserve.Request != nil {
		t.Errorf("%+v", reserve)
	}
	if limit := page.Entries[len(page.Entries)-1]; limit.AccountName != "dataset" || limit.Limit == nil || limit.Limit.Epsilon != "20" {
		t.Errorf("%+v", limit)
	}
}

// TestStewardsReadWhatWasAsked: a reservation shows its question, on request; nothing else does, and nothing shows an answer.
func TestStewardsReadWhatWasAsked(t *testing.T) {
	r := newRig(t)
	answer, err := r.Query(t.Context(), principal(t, "ana"), count("0.3"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "d", Requests: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Kind != "reserve" {
			if e.Request != nil {
				t.Errorf("%+v", e)
			}
			continue
		}
		var asked api.QueryRequest
		if err := json.Unmarshal(e.Request, &asked); err != nil || asked.SQL != "SELECT count(*) FROM people" || asked.Epsilon != "0.3" ||
			e.ReleaseID != string(answer.ID) {
			t.Errorf("%+v, %s, %v", e, e.Request, err)
		}
	}
	if empty, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "d", Cursor: "1", Requests: true}); err != nil ||
		len(empty.Entries) != 0 {
		t.Errorf("%+v, %v", empty, err)
	}
}

// A page of the journal ends where what was asked is as long as a page may be, and the next one goes on there: no entry is missing or there
// twice.
func TestPagesWithLongRequestsEnd(t *testing.T) {
	r := newRig(t)
	const charges, long = 200, 100_000
	for i := range charges {
		c := testCharge(t, fmt.Sprintf("01%024d", i))
		c.Fingerprint, c.Loss.Epsilon = [32]byte{byte(i)}, 1
		c.Request = []byte(`"` + strings.Repeat("x", long) + `"`)
		if _, err := r.ledger.Reserve(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := map[int64]bool{}, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "d", Cursor: cursor, Requests: true})
		if err != nil || len(page.Entries) == 0 {
			t.Fatalf("%+v, %v", page, err)
		}
		size := 0
		for _, e := range page.Entries {
			if size += len(e.Request); seen[e.Seq] || e.Kind == "reserve" && e.Request == nil {
				t.Errorf("entry %d is there again, or without its request", e.Seq)
			}
			seen[e.Seq] = true
		}
		if size >= requestsPerPage+long+2 {
			t.Errorf("a page has %d bytes of requests", size)
		}
		cursor = page.NextCursor
	}
	all, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 1000})
	if err != nil || len(all) != len(seen) || pages < 5 {
		t.Errorf("%d of %d entries on %d pages, %v", len(seen), len(all), pages, err)
	}
}

// forgetful is a ledger of a process that has not heard of what other gateways wrote.
type forgetful struct{ budget.Ledger }

func (forgetful) Head(_ context.Context, dataset string) (budget.Head, error) {
	return budget.Head{Dataset: dataset}, nil
}

// A gateway that has nothing to do shows the end of the chain all the same, which receipts of other gateways are compared with.
//
// covers: F13
func TestAuditOfAnotherGatewaysEntries(t *testing.T) {
	r := newRig(t, line("dataset", "", 20), perAnalyst("analysts", 20))
	if _, err := r.Query(t.Context(), principal(t, "ana"), count("0.1")); err != nil {
		t.Fatal(err)
	}
	r.Service.ledger = forgetful{r.ledger}
	page, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	if newest := page.Entries[0]; page.Heads[0] != (api.ChainHead{Dataset: "d", Seq: newest.Seq, Hash: newest.Hash, Ledger: budget.NoLedger}) {
		t.Errorf("head %+v, newest entry %+v", page.Heads[0], newest)
	}
}

func TestAuditPages(t *testing.T) {
	r := newRig(t, line("dataset", "", 20), perAnalyst("analysts", 20))
	sam := auth.Principal{Subject: "sam"}
	for i := range entriesPerPage + 7 {
		form := []string{"pure", "approx"}[i%2]
		limit := api.LimitChange{BudgetLimit: api.BudgetLimit{Form: form, Epsilon: "1"}}
		if _, err := r.SetAccount(t.Context(), sam, "d", "analyst:bob", limit); err != nil {
			t.Fatal(err)
		}
	}
	first, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{})
	if err != nil || len(first.Entries) != entriesPerPage || first.NextCursor == "" {
		t.Fatalf("%d entries, %v", len(first.Entries), err)
	}
	second, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Cursor: first.NextCursor})
	if err != nil || len(second.Entries) != 7 || second.NextCursor != "" {
		t.Fatalf("%d entries, %v", len(second.Entries), err)
	}
	if _, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Cursor: "yesterday"}); fault.CodeOf(err) != fault.CodeRequestCursor {
		t.Errorf("%v", err)
	}
	if _, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "nowhere"}); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Errorf("%v", err)
	}
}

// A steward refills, freezes and thaws; each is an entry of the journal, with the steward's name.
func TestStewardRefillsAndFreezes(t *testing.T) {
	r := newRig(t, line("dataset", "", 20), perAnalyst("analysts", 1))
	sam, ana := auth.Principal{Subject: "sam"}, principal(t, "ana")
	if _, err := r.Refill(t.Context(), sam, "d", "analyst:ana", api.Refill{Epsilon: "1"}); fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Errorf("an account that is not open: %v", err)
	}
	if _, err := r.Query(t.Context(), ana, count("1")); err != nil {
		t.Fatal(err)
	}
	account, err := r.Refill(t.Context(), sam, "d", "analyst:ana", api.Refill{Epsilon: "0.5", Reason: "second study"})
	if err != nil || account.Limit.Epsilon != "1.5" || account.Lifetime.Epsilon != "1.5" || account.Remaining.Epsilon != "0.5" {
		t.Fatalf("%+v, %v", account, err)
	}
	account, err = r.Freeze(t.Context(), sam, "d", "analyst:ana", true)
	if err != nil || !account.Frozen {
		t.Fatalf("%+v, %v", account, err)
	}
	if _, err := r.Query(t.Context(), ana, count("0.1")); fault.CodeOf(err) != fault.CodeBudgetFrozen {
		t.Errorf("on a frozen account: %v", err)
	}
	if answer, err := r.Query(t.Context(), ana, count("1")); err != nil || !answer.Replayed {
		t.Errorf("a replay on a frozen account: %v", err)
	}
	if _, err = r.Freeze(t.Context(), sam, "d", "analyst:ana", false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Query(t.Context(), ana, count("0.1")); err != nil {
		t.Errorf("after the thaw: %v", err)
	}
	page, err := r.Audit(t.Context(), principal(t, "sam"), JournalPage{Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for _, e := range page.Entries {
		by[e.Kind] = e.Subject
	}
	if by["refill"] != "sam" || by["freeze"] != "sam" || by["thaw"] != "sam" {
		t.Errorf("%v", by)
	}
	for name, refill := range map[string]api.Refill{
		"nothing": {}, "negative": {Epsilon: "-1"}, "wrong currency": {Rho: "1"}, "A71 infinite": {Epsilon: "1e400"},
	} {
		if _, err := r.Refill(t.Context(), sam, "d", "analyst:ana", refill); fault.CodeOf(err) != fault.CodeRequestBudget {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What an account may lose in a lifetime and what it may lose so far differ while tranches are closed.
func TestStewardSeesTranches(t *testing.T) {
	r := newRig(t)
	sam := auth.Principal{Subject: "sam"}
	limit := api.BudgetLimit{Form: "pure", Epsilon: "100", Tranche: &api.Tranche{Every: "30d", Epsilon: "0.5"},
		Rate: &api.Rate{Epsilon: "0.2", Per: "1m"}}
	account, err := r.SetAccount(t.Context(), sam, "d", "analyst:bob", api.LimitChange{BudgetLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	opens := testTime().Add(30 * 24 * time.Hour).UTC()
	if account.Remaining.Epsilon != "0.5" || account.Lifetime.Epsilon != "100" || account.WorstCase.Epsilon != "6.5" ||
		account.NextTranche == nil || !account.NextTranche.Equal(opens) {
		t.Errorf("%+v, next %v", account, account.NextTranche)
	}
	if want := "about 5 more counts at epsilon 0.1, and more from " + opens.Format(time.DateTime) + " UTC"; account.Advice != want {
		t.Errorf("%q, want %q", account.Advice, want)
	}
	if *account.Limit.Tranche != *limit.Tranche || *account.Limit.Rate != *limit.Rate {
		t.Errorf("%+v", account.Limit)
	}
	for name, wrong := range map[string]api.BudgetLimit{
		"a period of another kind": {Form: "pure", Epsilon: "1", Tranche: &api.Tranche{Every: "1 month", Epsilon: "0.5"}},
		"no amount":                {Form: "pure", Epsilon: "1", Tranche: &api.Tranche{Every: "30d"}},
		"two currencies":           {Form: "pure", Epsilon: "1", Tranche: &api.Tranche{Every: "30d", Epsilon: "1", Rho: "1"}},
		"a rate of nothing":        {Form: "pure", Epsilon: "1", Rate: &api.Rate{Epsilon: "0", Per: "1m"}},
		"no number":                {Form: "pure", Epsilon: "1", Rate: &api.Rate{Epsilon: "x", Per: "1m"}},
	} {
		_, err := r.SetAccount(t.Context(), sam, "d", "analyst:bob", api.LimitChange{BudgetLimit: wrong})
		if fault.CodeOf(err) != fault.CodeRequestBudget {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A person who may spend cannot raise, freeze or reset what they spend from, whatever their roles; another steward may, and the dataset's
// account is everybody's.
//
// covers: A76
func TestNobodyActsOnTheirOwnAccount(t *testing.T) {
	r := newRig(t, line("dataset", "", 20), line("group", "research", 5), perAnalyst("analysts", 1))
	both, ok := auth.NewPrincipal("ana", []string{"analyst", "steward"}, []string{"research"})
	alone, fine := auth.NewPrincipal("ana", []string{"steward"}, []string{"research"})
	sam, good := auth.NewPrincipal("sam", []string{"steward"}, []string{"research"})
	if !ok || !fine || !good {
		t.Fatal("no principals")
	}
	if _, err := r.Query(t.Context(), both, count("0.1")); err != nil {
		t.Fatal(err)
	}
	entries := func() int {
		all, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	act := func(who auth.Principal, account string) map[string]error {
		_, set := r.SetAccount(t.Context(), who, "d", account, api.LimitChange{BudgetLimit: api.BudgetLimit{Form: "pure", Epsilon: "3"}})
		_, refill := r.Refill(t.Context(), who, "d", account, api.Refill{Epsilon: "1"})
		_, freeze := r.Freeze(t.Context(), who, "d", account, true)
		_, thaw := r.Freeze(t.Context(), who, "d", account, false)
		errs := map[string]error{"set": set, "refill": refill, "freeze": freeze, "thaw": thaw}
		if account == "analyst:ana" {
			_, errs["reset"] = r.ResetFailures(t.Context(), who, "d", account)
		}
		return errs
	}
	before := entries()
	for _, c := range []struct {
		who     auth.Principal
		account string
	}{{both, "analyst:ana"}, {both, "group:research"}, {both, "group:analysts"}, {alone, "analyst:ana"}} {
		for name, err := range act(c.who, c.account) {
			if fault.CodeOf(err) != fault.CodeAuthForbidden {
				t.Errorf("%s of %s with roles %v: %v", name, c.account, c.who.Roles, err)
			}
		}
	}
	if after := entries(); after != before {
		t.Errorf("%d entries, and there were %d", after, before)
	}
	for _, c := range []struct {
		who     auth.Principal
		account string
	}{{sam, "analyst:ana"}, {sam, "group:research"}, {both, "dataset"}} {
		for name, err := range act(c.who, c.account) {
			if err != nil {
				t.Errorf("%s of %s by %s: %v", name, c.account, c.who.Subject, err)
			}
		}
	}
}
