package gateway

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
)

// refreshed makes a version the only one of the copy of visits, as the policy in force asks for it.
func (f *fakeCopies) refreshed(t *testing.T, r *rig, number int64) {
	t.Helper()
	f.seen = []catalog.Version{versionOf(t, r.policies.snapshot, number)}
	f.now = f.seen
}

// ofVersion checks the version of an answer, and whether it was free.
func ofVersion(t *testing.T, a *Answer, number int64, free bool) {
	t.Helper()
	asOf := time.Date(2026, 11, 20+int(number), 0, 0, 0, 0, time.UTC)
	if !strings.HasPrefix(a.Data, "visits prepared "+string('0'+rune(number))) || !a.AsOf.Equal(asOf) || a.Replayed != free ||
		free && a.Spent.Epsilon != "0" {
		t.Errorf("data %q as of %s, replayed %t, spent %s; want version %d, free %t", a.Data, a.AsOf, a.Replayed, a.Spent.Epsilon, number, free)
	}
}

// A refresh spends nothing: a question gets the answer of the last version that was released, with its date and the price of a new one, in
// every view, until it asks for the latest. That one is the last then.
func TestRefreshesSpendNothing(t *testing.T) {
	r, copies := preparedRig(t)
	first := r.ask(t, ana(), askVisits())
	ofVersion(t, first, 1, false)
	for n := int64(2); n < 4; n++ {
		copies.refreshed(t, r, n)
		view := askVisits()
		view.SQL = "SELECT count(*) AS other FROM visits"
		for _, q := range []Request{askVisits(), view, askVisits()} {
			again := r.ask(t, ana(), q)
			ofVersion(t, again, 1, true)
			if again.ID != first.ID || again.Newer == nil || again.Newer.Price == nil || again.Newer.Price.Epsilon != "0.5" ||
				!strings.HasPrefix(again.Newer.DataVersion, "visits prepared "+string('0'+rune(n))) {
				t.Errorf("version %d: %+v, newer %+v", n, again, again.Newer)
			}
		}
	}
	if r.data.runs != 1 || r.spentEpsilon(t) != "0.5" {
		t.Errorf("%d runs, %s spent by refreshes", r.data.runs, r.spentEpsilon(t))
	}
	latest := askVisits()
	latest.Version = versionLatest
	ofVersion(t, r.ask(t, ana(), latest), 3, false)
	for _, q := range []Request{latest, askVisits()} {
		again := r.ask(t, ana(), q)
		if ofVersion(t, again, 3, true); again.Newer != nil {
			t.Errorf("newer than the newest: %+v", again.Newer)
		}
	}
	copies.refreshed(t, r, 4)
	ofVersion(t, r.ask(t, ana(), askVisits()), 3, true)
	// A gateway that has not seen yet what another one answered from offers nothing older as newer.
	copies.refreshed(t, r, 2)
	behind := r.ask(t, ana(), askVisits())
	if ofVersion(t, behind, 3, true); behind.Newer != nil {
		t.Errorf("newer: %+v", behind.Newer)
	}
	if r.data.runs != 2 || r.spentEpsilon(t) != "1" {
		t.Errorf("%d runs, %s spent", r.data.runs, r.spentEpsilon(t))
	}
}

// Only what is the same release in another version is given again: the policy, the relation, the bounds and the question are as they were.
func TestOnlyOtherVersionsAreGivenAgain(t *testing.T) {
	visits := func(r *rig) *catalog.Table { return r.policies.snapshot.Tables[1] }
	for name, c := range map[string]struct {
		change func(*rig)
		edit   func(*Request)
	}{
		"the policy charges": {change: func(r *rig) { r.policies.snapshot.RefreshCharges = true }},
		"the latest":         {edit: func(q *Request) { q.Version = versionLatest }},
		"another price":      {edit: func(q *Request) { q.Epsilon = "0.4" }},
		"another question":   {edit: func(q *Request) { q.SQL += " WHERE minutes > 3" }},
		"another bound":      {edit: func(q *Request) { q.MaxRows = new(int64(2)) }},
		"another relation":   {change: func(r *rig) { visits(r).OID++ }},
		"other rows kept":    {change: func(r *rig) { visits(r).Prepare++ }},
		"other rows counted": {change: func(r *rig) { visits(r).MaxRows-- }},
		"another type":       {change: func(r *rig) { visits(r).Columns[2].TypeOID, visits(r).Columns[2].Type = 20, catalog.Int8 }},
		"another data name":  {change: func(r *rig) { r.policies.snapshot.DataVersion = "2027" }},
		"other bounds": {change: func(r *rig) { visits(r).Columns[2].Bounds = &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(50, 1)} },
			edit: func(q *Request) { q.SQL = "SELECT sum(minutes) FROM visits" }},
	} {
		t.Run(name, func(t *testing.T) {
			r, copies := preparedRig(t)
			question := askVisits()
			if name == "other bounds" {
				c.edit(&question)
			}
			ofVersion(t, r.ask(t, ana(), question), 1, false)
			other := *r.policies.snapshot // another policy is another snapshot
			tables := *other.Tables[1]
			tables.Columns = append([]*catalog.Column{}, tables.Columns...)
			minutes := *tables.Columns[2]
			tables.Columns[2] = &minutes
			other.Tables = []*catalog.Table{other.Tables[0], &tables}
			r.policies.snapshot = &other
			if c.change != nil {
				c.change(r)
			}
			if c.edit != nil {
				c.edit(&question)
			}
			copies.refreshed(t, r, 2)
			answer := r.ask(t, ana(), question)
			if answer.Replayed || answer.AsOf.Day() != 22 || answer.Newer != nil || r.data.runs != 2 {
				t.Errorf("replayed %t, as of %s, %d runs", answer.Replayed, answer.AsOf, r.data.runs)
			}
		})
	}
}

// What was released of the table itself, or for others, is not the last version of a copy.
func TestWhoseVersionsAreGivenAgain(t *testing.T) {
	for name, shared := range map[string]bool{"own": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			r, copies := preparedRig(t)
			bob := principal(t, "bob", "analysts")
			live := copies.seen
			copies.seen = nil
			if a := r.ask(t, ana(), askVisits()); !a.AsOf.IsZero() {
				t.Fatalf("as of %s without a copy", a.AsOf)
			}
			copies.seen = live
			r.policies.snapshot.ShareReleases = shared
			ofVersion(t, r.ask(t, ana(), askVisits()), 1, false)
			copies.refreshed(t, r, 2)
			ofVersion(t, r.ask(t, bob, askVisits()), map[bool]int64{true: 1, false: 2}[shared], shared)
			ofVersion(t, r.ask(t, ana(), askVisits()), 1, true)
			latest := askVisits()
			latest.Version = versionLatest
			ofVersion(t, r.ask(t, bob, latest), 2, !shared)
			copies.refreshed(t, r, 3)
			ofVersion(t, r.ask(t, ana(), askVisits()), map[bool]int64{true: 2, false: 1}[shared], true)
		})
	}
}

// A question with several releases is answered from one version: the last that has them all.
func TestSeveralReleasesAreOfOneVersion(t *testing.T) {
	r, copies := preparedRig(t)
	both := askVisits()
	both.Epsilon = "1"
	both.SQL = "SELECT a.n - b.n AS short FROM (SELECT count(*) AS n FROM visits) a, (SELECT count(*) AS n FROM visits WHERE minutes > 3) b"
	first := r.ask(t, ana(), both)
	ofVersion(t, first, 1, false)
	copies.refreshed(t, r, 2)
	half := askVisits()
	half.Version = versionLatest
	ofVersion(t, r.ask(t, ana(), half), 2, false)
	for n := int64(2); n < 4; n++ {
		copies.refreshed(t, r, n)
		again := r.ask(t, ana(), both)
		ofVersion(t, again, 1, true)
		price := map[int64]api.Decimal{2: "0.5", 3: "1"}[n]
		if again.Newer == nil || again.Newer.Price == nil || again.Newer.Price.Epsilon != price || again.Newer.Affordable == nil ||
			!*again.Newer.Affordable {
			t.Errorf("version %d: newer %+v, want a price of %s", n, again.Newer, price)
		}
	}
	copies.refreshed(t, r, 2)
	both.Version = versionLatest
	rest := r.ask(t, ana(), both)
	if ofVersion(t, rest, 2, false); rest.Spent.Epsilon != "0.5" || r.spentEpsilon(t) != "2" {
		t.Errorf("the rest of version 2: spent %s, %s in all", rest.Spent.Epsilon, r.spentEpsilon(t))
	}
}

// What cannot be bought any more is given again, without a price of a new one; a version that there is none of is refused.
func TestVersionsOfThoseWhoCannotPay(t *testing.T) {
	r, copies := preparedRig(t)
	ofVersion(t, r.ask(t, ana(), askVisits()), 1, false)
	copies.refreshed(t, r, 2)
	floored, before := *r.policies.snapshot, r.policies.snapshot // a snapshot never changes
	floored.Budgets = slices.Clone(floored.Budgets)
	floored.Budgets[0].MinEpsilon = big.NewRat(3, 5)
	r.policies.snapshot = &floored
	again := r.ask(t, ana(), askVisits())
	if ofVersion(t, again, 1, true); again.Newer == nil || again.Newer.Price != nil || again.Newer.Affordable != nil {
		t.Errorf("newer %+v", again.Newer)
	}
	if r.data.runs != 1 || r.spentEpsilon(t) != "0.5" {
		t.Errorf("%d runs, %s spent", r.data.runs, r.spentEpsilon(t))
	}

	// Whose account is used up is told the price, and that it is more than is left.
	r.policies.snapshot = before
	for n := 0; ; n++ {
		other := askVisits()
		other.SQL, other.Epsilon = fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", n), "0.3"
		if _, err := r.Query(t.Context(), ana(), other); fault.CodeOf(err) == fault.CodeBudgetExhausted {
			break
		} else if err != nil || n > 100 {
			t.Fatalf("question %d: %v", n, err)
		}
	}
	again = r.ask(t, ana(), askVisits())
	ofVersion(t, again, 1, true)
	if again.Newer == nil || again.Newer.Price == nil || again.Newer.Price.Epsilon != "0.5" || again.Newer.Affordable == nil ||
		*again.Newer.Affordable {
		t.Errorf("newer %+v for whom %s are left", again.Newer, again.Remaining.Epsilon)
	}

	oldest := askVisits()
	oldest.Version = "oldest"
	if _, err := r.Query(t.Context(), ana(), oldest); fault.CodeOf(err) != fault.CodeRequestVersion {
		t.Errorf("got %v", err)
	}
}
