package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// tooDear is a question that takes one person's row longer than an answer may show.
func tooDear(epsilon string) Request {
	r := count(epsilon)
	pattern := "city LIKE '%" + strings.Repeat("a", 190) + "b%'"
	r.SQL += " WHERE " + strings.Repeat(pattern+" OR ", 5) + pattern
	return r
}

// bought puts a settled charge into the ledger, as an older version left it, whose prices were lower.
func (r *rig) bought(t *testing.T, who auth.Principal, request Request, answer string) budget.ReservationID {
	t.Helper()
	snapshot := r.policies.snapshot
	accounts, err := r.AccountsOf(t.Context(), who, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(asAsked(request.QueryRequest))
	if err != nil {
		t.Fatal(err)
	}
	id := r.newID(r.clock.Now())
	loss := mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 2}
	outcome, err := r.ledger.Reserve(t.Context(), budget.Charge{ID: id, Dataset: "d", Analyst: who.Subject, Accounts: accounts.All(),
		Loss: loss, Fingerprint: sha256.Sum256([]byte(id)), IdempotencyKey: request.IdempotencyKey, Request: text,
		RequestDigest: sha256.Sum256(text), Policy: policyOf(snapshot)})
	if err != nil || outcome.Reserved == nil {
		t.Fatal(outcome, err)
	}
	if err := r.ledger.Settle(t.Context(), id, loss, []byte(answer)); err != nil {
		t.Fatal(err)
	}
	return id
}

// apply puts the rig's policy in force as a version.
func (r *rig) apply(t *testing.T, version int64) {
	t.Helper()
	next := *r.policies.snapshot
	next.Version, next.Digest = version, sha256.Sum256([]byte{byte(version)})
	r.policies.snapshot = &next
	if _, err := r.ledger.RecordPolicy(t.Context(), budget.NewPolicy{PolicyVersion: budget.PolicyVersion{Dataset: "d",
		PolicyRow: budget.PolicyRow{Version: version, Digest: next.Digest, AppliedBy: "sam"}}}); err != nil {
		t.Fatal(err)
	}
}

// What an analyst bought is given again, free, though its text is now refused: the answer to the same request, of the same analyst, under
// the policy in force, and no other.
func TestRefusedTextsAreGivenTheAnswersThatWereBought(t *testing.T) {
	const answer = `{"columns":[],"rows":[]}`
	refused := func(t *testing.T, r *rig, who auth.Principal, request Request) bool {
		t.Helper()
		entries, err := r.ledger.Entries(t.Context(), budget.Page{})
		if err != nil {
			t.Fatal(err)
		}
		given, err := r.Query(t.Context(), who, request)
		after, _ := r.ledger.Entries(t.Context(), budget.Page{})
		if r.data.runs != 0 || len(after) != len(entries) {
			t.Errorf("rows were read, or the ledger was changed")
		}
		if err != nil {
			if fault.CodeOf(err) != fault.CodeFanOut && fault.CodeOf(err) != fault.CodeTimeZone {
				t.Error(err)
			}
			return true
		}
		if !given.Replayed || string(given.Result) != answer || given.Spent.Epsilon != "0" || given.Note == nil {
			t.Errorf("%+v", given)
		}
		return false
	}
	tests := map[string]struct {
		who    auth.Principal
		change func(r *rig, bought, asked *Request)
		later  func(r *rig)
		given  bool
	}{
		"the same":        {given: true},
		"at most nothing": {change: func(_ *rig, _, asked *Request) { asked.AtMost = &api.Price{Epsilon: "0.1"} }, given: true},
		"asked later":     {later: func(r *rig) { r.clock.Sleep(t.Context(), 400*24*time.Hour) }, given: true},
		"frozen": {later: func(r *rig) {
			_ = r.ledger.Freeze(t.Context(), "sam", budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}, true)
		}, given: true},
		"under its key":   {change: func(_ *rig, bought, asked *Request) { bought.IdempotencyKey, asked.IdempotencyKey = "k", "k" }, given: true},
		"under a new key": {change: func(_ *rig, _, asked *Request) { asked.IdempotencyKey = "k" }, given: true},
		"under the key of another": {change: func(r *rig, _, asked *Request) {
			other := tooDear("0.1")
			other.IdempotencyKey, asked.IdempotencyKey = "k", "k"
			r.bought(t, ana(), other, answer)
		}},
		"nothing was bought":   {change: func(_ *rig, bought, _ *Request) { bought.SQL += " " }},
		"another price":        {change: func(_ *rig, _, asked *Request) { asked.Epsilon = "0.4" }},
		"of somebody else":     {who: principal(t, "bob", "analysts")},
		"newer rows":           {change: func(_ *rig, bought, asked *Request) { bought.Version, asked.Version = versionLatest, versionLatest }},
		"another time zone":    {change: func(_ *rig, _, asked *Request) { asked.TimeZone = "America/New_York" }},
		"another policy":       {later: func(r *rig) { r.apply(t, 2) }},
		"a policy of just now": {change: func(r *rig, _, _ *Request) { r.apply(t, 2) }},
		"the day": {change: func(_ *rig, bought, asked *Request) {
			bought.SQL += " AND born < current_date"
			asked.SQL = bought.SQL
		}},
		"a day by a function": {change: func(_ *rig, bought, asked *Request) {
			bought.SQL += " AND born < now()::date"
			asked.SQL = bought.SQL
		}},
		"a prepared copy": {later: func(r *rig) {
			next, table := *r.policies.snapshot, *r.policies.snapshot.Tables[0]
			table.Prepare, next.Tables = 10, []*catalog.Table{&table}
			r.policies.snapshot = &next
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.apply(t, 1)
			r.clock.Sleep(t.Context(), 2*sinceApplied)
			bought, asked := tooDear("0.5"), tooDear("0.5")
			if test.change != nil {
				test.change(r, &bought, &asked)
			}
			who := ana()
			if test.who.Subject != "" {
				who = test.who
			}
			if !refused(t, r, who, asked) {
				t.Fatal("it is answered before it was bought")
			}
			r.bought(t, ana(), bought, answer)
			if test.later != nil {
				test.later(r)
			}
			if got := !refused(t, r, who, asked); got != test.given {
				t.Errorf("given: %t", got)
			}
		})
	}
}
