package gateway

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/catalog"
	"noisegate.example/gateway/internal/each"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
)

// repeating counts the replays that were found by their digest.
type repeating struct {
	budget.Ledger
	found int
}

func (l *repeating) Again(ctx context.Context, a budget.Again) ([]budget.Balance, *budget.Stored, error) {
	balances, stored, err := l.Ledger.Again(ctx, a)
	if stored != nil {
		l.found++
	}
	return balances, stored, err
}

// repeats are worlds whose analyst repeats what she asked.
func repeatingWorld(t *testing.T, signer *journal.Signer, kind int) (*world, *repeating) {
	rat := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	w := newWorld(t, signer, []catalog.Budget{
		{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: rat("1000"), Delta: rat("1e-6")},
		{Scope: catalog.AnalystScope, Name: "analysts", PerAnalyst: true, Form: catalog.Approx, Epsilon: rat("5"), Delta: rat("1e-6")},
		{Scope: catalog.AnalystScope, Name: "pure", PerAnalyst: true, Form: catalog.Pure, Epsilon: rat("7")},
	})
	w.policies.snapshot.ShareReleases = kind%2 == 1
	ledger := &repeating{Ledger: w.ledger}
	w.Service.ledger, w.meter.ledger = ledger, ledger
	w.newID = func(time.Time) budget.ReservationID { // none is taken by what comes to nothing
		entries, err := w.ledger.Entries(t.Context(), budget.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		newest := int64(0)
		if len(entries) > 0 {
			newest = entries[0].Seq
		}
		return budget.ReservationID(fmt.Sprintf("%s-%08d", w.asker, newest))
	}
	return w, ledger
}

// steward changes something that decides what a question is, or who may be answered.
func (w *world) steward(t *testing.T, r *rand.Rand) {
	own := budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}
	limit := func(spec budget.LimitSpec) {
		l, err := budget.NewLimit(spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.ledger.SetLimit(t.Context(), "sam", budget.Account{ID: own, Limit: l, Origin: budget.FromSteward}); err != nil {
			t.Fatal(err)
		}
	}
	again := func(change func(*catalog.Snapshot)) {
		next := *w.policies.snapshot
		next.Version++
		change(&next)
		w.policies.snapshot = &next
	}
	switch r.IntN(9) {
	case 0, 1:
		_ = w.ledger.Freeze(t.Context(), "sam", own, r.IntN(2) == 0) // there may be no such account yet
	case 2:
		limit(budget.LimitSpec{Form: budget.Pure, Epsilon: big.NewRat(9, 1)})
	case 3:
		limit(budget.LimitSpec{Form: budget.Approx, Epsilon: big.NewRat(9, 1), Delta: big.NewRat(1, 1_000_000)})
	case 4:
		again(func(s *catalog.Snapshot) { s.DataVersion = fmt.Sprint("data ", r.IntN(2)) })
	case 5:
		again(func(s *catalog.Snapshot) {
			table := *s.Tables[0]
			table.Columns = append([]*catalog.Column{}, table.Columns...)
			age := *table.Columns[1]
			age.Exposed = !age.Exposed
			table.Columns[1], s.Tables = &age, []*catalog.Table{&table}
		})
	case 6:
		w.policies.stale = fault.PolicyStale()
	case 7:
		again(func(s *catalog.Snapshot) { s.ShareReleases = !s.ShareReleases })
	case 8:
		w.clock.now = w.clock.now.Add(24 * time.Hour)
	}
}

// TestRepeatsAreAsPlanned: whatever an analyst asks and asks again, while others ask, an account is frozen or gets another limit, the
// policy, its data or the day change, or the policy is stale: what is found by the digest of a request, or planned for the accounts of the
// last question, is what planning it for the accounts as they are finds, to the letter, and leaves the ledger the same. In the second of
// two worlds nothing is remembered.
func TestRepeatsAreAsPlanned(t *testing.T) {
	text, err := journal.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	worlds, steps, found := randomtest.Part(40, 100), 40, 0
	if testing.Short() {
		worlds = 15
	}
	for seed := range worlds {
		remembers, ledger := repeatingWorld(t, signer, seed)
		forgets, _ := repeatingWorld(t, signer, seed)
		both := []*world{remembers, forgets}
		for step := range steps {
			var seen [2]string
			for i, w := range both {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(step)))
				w.r = r
				if i == 1 {
					w.answered, w.last = each.Analyst[answered]{}, each.Analyst[lastAccounts]{}
				}
				if w.policies.stale = nil; r.IntN(8) == 0 {
					w.steward(t, r)
				}
				who := principal(t, []string{"ana", "ana", "ana", "bob"}[r.IntN(4)], [][]string{{"analysts"}, {"pure"}}[max(0, r.IntN(12)-10)]...)
				a := someAct(r, []string{"query", "query", "query", "query", "query", "budget", "releases", "draw", "plan", "max error", "cancelled",
					"while"})
				a.n, a.epsilon, a.gaussian = 10+r.IntN(2), []string{"0.01", "0.1"}[r.IntN(2)], r.IntN(5) == 0
				if r.IntN(4) > 0 {
					a.key = ""
				}
				w.told = 0
				seen[i], _ = w.do(t, who, a)
				entries, err := w.ledger.Entries(t.Context(), budget.Page{Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(entries) > 0 {
					seen[i] += fmt.Sprintf("\nledger %d %s %s", entries[0].Seq, entries[0].Kind, entries[0].Analyst)
				}
			}
			if seen[0] != seen[1] {
				t.Fatalf("world %d, step %d: remembered\n%s\nplanned\n%s", seed, step, seen[0], seen[1])
			}
		}
		found += ledger.found
	}
	t.Logf("%d answers were found by their digest", found)
	if found < worlds {
		t.Errorf("%d answers were found by their digest in %d worlds: they try too little", found, worlds)
	}
}

// A question that names the day is another one the next day.
func TestRepeatsOfToday(t *testing.T) {
	r := newRig(t)
	today := Request{QueryRequest: api.QueryRequest{Dataset: "d",
		SQL: "SELECT count(*) FROM people WHERE born < current_date", Epsilon: "0.5"}}
	first := r.ask(t, ana(), today)
	if again := r.ask(t, ana(), today); !again.Replayed || again.ID != first.ID {
		t.Errorf("asked again on the same day: %+v", again)
	}
	r.clock.now = r.clock.now.Add(24 * time.Hour)
	if next := r.ask(t, ana(), today); next.Replayed {
		t.Errorf("asked on the next day: %+v", next)
	}
}

// A view of a release that was bought by another question is computed each time: the charge that it names has another answer.
func TestRepeatsOfViews(t *testing.T) {
	r := newRig(t)
	bought := r.ask(t, ana(), counted("n", "0.5"))
	for range 2 {
		view := r.ask(t, ana(), counted("total", "0.5"))
		if !view.Replayed || view.ID != bought.ID || !strings.Contains(string(view.Result), `"total"`) {
			t.Errorf("a view: %+v, %s", view, view.Result)
		}
	}
}

// What is remembered of a caller is bounded: the newest.
func TestRepeatsAreBounded(t *testing.T) {
	var a answered
	name := func(i int) digest { return digest{byte(i), byte(i >> 8), 1} }
	for i := range 10 * mostAnswered {
		a.keep(name(i), answeredBy{charge: budget.ReservationID(fmt.Sprint(i))})
		a.keep(name(i), answeredBy{charge: budget.ReservationID(fmt.Sprint(i))})
	}
	if len(a.of) != mostAnswered || len(a.order) != mostAnswered {
		t.Errorf("%d requests are remembered, in %d places", len(a.of), len(a.order))
	}
	if _, ok := a.find(name(10*mostAnswered - 1)); !ok {
		t.Error("the newest is not remembered")
	}
}

// Two texts that differ in bytes that are no UTF-8 are two requests.
func TestDigestsTellRequestsApart(t *testing.T) {
	seen := map[digest]string{}
	groups := []string{"analysts"}
	ask := func(what string, who string, r Request) {
		t.Helper()
		d := digestOf(principal(t, who, groups...), r)
		if d == (digest{}) {
			return // it is not remembered
		}
		if other, twice := seen[d]; twice {
			t.Errorf("%s and %s have one digest", what, other)
		}
		seen[d] = what
	}
	text := func(sql string) Request {
		return Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: sql, Epsilon: "0.5"}}
	}
	ask("a question", "ana", text("SELECT '\ufffd'"))
	ask("the same of bob's", "bob", text("SELECT '\ufffd'"))
	ask("bytes", "ana", text("SELECT '\xff'"))
	ask("other bytes", "ana", text("SELECT '\xfe'"))
	groups = append(groups, "pure")
	ask("of another group", "ana", text("SELECT '\ufffd'"))
	groups = groups[:1]
	most := text("SELECT '\ufffd'")
	most.AtMost = &api.Price{Epsilon: "1"}
	ask("at most", "ana", most)
}
