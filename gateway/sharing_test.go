package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// gaussianCount is a count at a price in ρ.
func gaussianCount(rho string) Request {
	return Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT count(*) FROM people", Rho: api.Decimal(rho),
		Mechanism: "gaussian"}}
}

// sharingRig is a service whose policy shares releases; its accounts add up ρ.
func sharingRig(t *testing.T) *rig {
	zcdp := func(scope catalog.Scope, name string) catalog.Budget {
		return catalog.Budget{Scope: scope, Name: name, Form: catalog.ZCDP, Rho: ten()}
	}
	everyone := zcdp(catalog.AnalystScope, "analysts")
	everyone.PerAnalyst = true
	replays := zcdp(catalog.AnalystScope, "bi")
	replays.ReplayOnly = true
	r := newRig(t, zcdp(catalog.DatasetScope, ""), everyone, replays)
	r.policies.snapshot.ShareReleases = true
	return r
}

// spent is what an account has spent in ρ.
func (r *rig) spent(t *testing.T, scope budget.Scope, name string) string {
	t.Helper()
	all, err := r.ledger.Balances(t.Context(), []budget.AccountID{{Dataset: "d", Scope: scope, Name: name}})
	switch {
	case err != nil:
		t.Fatal(err)
	case len(all) == 0:
		return "0"
	case !all[0].Reserved.IsZero():
		t.Fatalf("%+v is reserved", all[0].Reserved)
	}
	return all[0].Spent.Rho.String()
}

func (r *rig) ask(t *testing.T, who auth.Principal, request Request) *Answer {
	t.Helper()
	answer, err := r.Query(t.Context(), who, request)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return answer
}

// An equal or weaker question costs nobody anything, a stronger one costs everybody the difference, to the last unit; each is stored, and
// replayed byte for byte to all who ask it again. A new version of the data starts anew.
func TestSharedAtOtherPrices(t *testing.T) {
	r := sharingRig(t)
	ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
	type step struct {
		who                   auth.Principal
		rho, mechanism, spent string
		note                  string
		runs                  int
		dataset, ana, bob     string // spent afterwards
	}
	steps := []step{
		{ana, "0.01", "gaussian", "0.01", "", 1, "0.01", "0.01", "0"},
		{bob, "0.004", "gaussian", "0", "at least as accurate", 1, "0.01", "0.01", "0"},
		{bob, "0.025000000001", "gaussian", "0.015000000001", "combines", 2, "0.025000000001", "0.01", "0.015000000001"},
		{ana, "0.02", "gaussian", "0", "at least as accurate", 2, "0.025000000001", "0.01", "0.015000000001"},
		{ana, "0.03", "gaussian", "0.004999999999", "combines", 3, "0.03", "0.014999999999", "0.015000000001"},
		{bob, "0.029", "auto", "0", "at least as accurate", 3, "0.03", "0.014999999999", "0.015000000001"},
	}
	for i, s := range steps {
		request := gaussianCount(s.rho)
		request.SQL, request.Mechanism = fmt.Sprintf("SELECT count(*) AS view%d FROM people", i), s.mechanism
		got := r.ask(t, s.who, request)
		if string(got.Spent.Rho) != s.spent || got.Replayed || s.note == "" == strings.Contains(string(got.Result), "earlier release") ||
			!strings.Contains(string(got.Result), s.note) {
			t.Errorf("step %d: %+v %s", i, got, got.Result)
		}
		for _, again := range []auth.Principal{ana, bob} {
			replay := r.ask(t, again, request)
			if !replay.Replayed || replay.ID != got.ID || string(replay.Result) != string(got.Result) || replay.Spent.Rho != "0" {
				t.Errorf("step %d: asked again: %+v", i, replay)
			}
		}
		if d, a, b := r.spent(t, budget.DatasetScope, ""), r.spent(t, budget.AnalystScope, "ana"),
			r.spent(t, budget.AnalystScope, "bob"); d != s.dataset ||
			a != s.ana || b != s.bob || r.data.runs != s.runs {
			t.Errorf("step %d: spent %s, %s, %s in %d runs", i, d, a, b, r.data.runs)
		}
	}
	if _, err := r.Query(t.Context(), principal(t, "bi"), gaussianCount("0.001")); fault.CodeOf(err) != fault.CodeBudgetReplayOnly {
		t.Errorf("an answer that was not given before: %v", err)
	}
	r.policies.snapshot.Version, r.policies.snapshot.DataVersion = 2, "new"
	if got := r.ask(t, bob, gaussianCount("0.004")); got.Spent.Rho != "0.004" {
		t.Errorf("new data: %+v", got)
	}
}

// earlierVectors keep vectors as earlier versions did: under another name.
type earlierVectors struct {
	budget.ReleasedValues
	question [32]byte
}

func (e earlierVectors) KeepReleased(ctx context.Context, v budget.Released) error {
	if v.Rho > 0 {
		v.Identity = e.question
	}
	return e.ReleasedValues.KeepReleased(ctx, v)
}

// What earlier versions kept of a question goes on to answer it at other prices.
func TestVectorsOfEarlierVersions(t *testing.T) {
	for name := range 3 { // of now, of versions before migration 026, and of those before 0032
		r := sharingRig(t)
		r.policies.snapshot.EarlierReleases, r.policies.snapshot.EarlierQuestions = true, true
		ana := principal(t, "ana", "analysts")
		q, err := r.prepare(t.Context(), ana, gaussianCount("0.01"))
		if err != nil {
			t.Fatal(err)
		}
		r.values = earlierVectors{r.ledger, q.plan.BlockQuestions()[name]}
		r.ask(t, ana, gaussianCount("0.01"))
		r.values = r.ledger
		if got := r.ask(t, ana, gaussianCount("0.004")); got.Spent.Rho != "0" || !strings.Contains(string(got.Result), "at least as accurate") {
			t.Errorf("name %d: %+v %s", name, got, got.Result)
		}
	}
}

// Where nothing is shared, and for questions that cannot be combined, each price is a separate question, and nothing is kept.
func TestNotSharedAtOtherPrices(t *testing.T) {
	laplace := func(rho string) Request {
		request := gaussianCount(rho)
		request.Mechanism = "laplace"
		return request
	}
	selected := func(rho string) Request {
		request := gaussianCount(rho)
		request.SQL = "SELECT max(age) FROM people"
		return request
	}
	for name, c := range map[string]struct {
		change  func(*rig)
		request func(string) Request
	}{
		"policy":   {func(r *rig) { r.policies.snapshot.ShareReleases = false }, gaussianCount},
		"no store": {func(r *rig) { r.values = nil }, gaussianCount},
		"laplace":  {func(*rig) {}, laplace},
		"selected": {func(r *rig) { r.data.do = noRows }, selected},
	} {
		r := sharingRig(t)
		c.change(r)
		ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
		for i, rho := range []string{"0.01", "0.005", "0.02"} {
			got := r.ask(t, []auth.Principal{ana, bob}[i%2], c.request(rho))
			if !closeTo(string(got.Spent.Rho), rho) || strings.Contains(string(got.Result), "earlier release") {
				t.Errorf("%s: %s cost %s: %s", name, rho, got.Spent.Rho, got.Result)
			}
		}
		if r.data.runs != 3 {
			t.Errorf("%s: %d runs", name, r.data.runs)
		}
	}
}

func noRows() ([]sqlrewrite.ExactRow, error) { return nil, nil }

// closeTo: Laplace noise and selections round their price down, by less than a part in a million here.
func closeTo(got, want string) bool {
	g, errG := mechanisms.ParseRho(got)
	w, errW := mechanisms.ParseRho(want)
	return errG == nil && errW == nil && g <= w && g > w-w/1000
}

// brokenVectors fail, or cannot be read.
type brokenVectors struct {
	budget.ReleasedValues
	keep, find error
	unreadable bool
}

func (b brokenVectors) KeepReleased(ctx context.Context, v budget.Released) error {
	if b.keep != nil && v.Rho > 0 {
		return b.keep
	}
	return b.ReleasedValues.KeepReleased(ctx, v)
}

func (b brokenVectors) Find(ctx context.Context, l budget.Lookup) (*budget.Earlier, error) {
	if b.find != nil {
		return nil, b.find
	}
	e, err := b.ReleasedValues.Find(ctx, l)
	if b.unreadable {
		e.Best.Values = []byte("{")
	}
	return e, err
}

// An answer that cannot be kept for others is given all the same; if what was kept cannot be looked up, nothing is charged; what cannot be
// read is as if it were not there.
func TestSharesFail(t *testing.T) {
	r := sharingRig(t)
	ana, down := principal(t, "ana", "analysts"), fault.DataUnavailable(errors.New("down"))
	r.values = brokenVectors{ReleasedValues: r.ledger, keep: down}
	if got := r.ask(t, ana, gaussianCount("0.01")); got.Spent.Rho != "0.01" {
		t.Errorf("%+v", got)
	}
	r.values = brokenVectors{ReleasedValues: r.ledger, find: down}
	if _, err := r.Query(t.Context(), ana, gaussianCount("0.02")); fault.CodeOf(err) != fault.CodeDataUnavailable ||
		r.spent(t, budget.DatasetScope, "") != "0.01" {
		t.Errorf("%v", err)
	}
	r.values = r.ledger
	if got := r.ask(t, ana, gaussianCount("0.02")); got.Spent.Rho != "0.02" {
		t.Errorf("what was not kept: %+v", got)
	}
	r.values = brokenVectors{ReleasedValues: r.ledger, unreadable: true}
	if got := r.ask(t, ana, gaussianCount("0.03")); got.Spent.Rho != "0.03" {
		t.Errorf("what cannot be read: %+v", got)
	}
}

// F02: a gateway that dies after it stored what it released, before it settled: what is stored counts once the charge is expired, which is
// spent. Until then, and for a charge that is taken back, it is as if it were not there.
//
// covers: F02
func TestSharedVectorOfUnsettledCharge(t *testing.T) {
	r := sharingRig(t)
	ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
	q, err := r.prepare(t.Context(), ana, gaussianCount("0.01"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.recall(t.Context(), q, r.Schedule("d"))
	q.leave()
	if err == nil {
		err = q.reuse()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ledger.Reserve(t.Context(), q.Charge); err != nil {
		t.Fatal(err)
	}
	finish, err := r.run(t.Context(), q)
	if err == nil {
		_, _, err = finish(t.Context()) // stores the vector; and then nothing more
	}
	if err != nil {
		t.Fatal(err)
	}
	before := r.ask(t, bob, gaussianCount("0.002"))
	if before.Spent.Rho != "0.002" {
		t.Errorf("the charge is open: %+v", before)
	}
	if err := r.ledger.Expire(t.Context(), q.Charge.ID); err != nil {
		t.Fatal(err)
	}
	if got := r.ask(t, bob, gaussianCount("0.009")); got.Spent.Rho != "0" {
		t.Errorf("the charge is spent: %+v", got)
	}
	if got := r.ask(t, ana, gaussianCount("0.01")); got.Spent.Rho != "0" || !got.Replayed || got.ID != q.Charge.ID {
		t.Errorf("who lost the answer has it back: %+v", got)
	}
	if got := r.spent(t, budget.DatasetScope, ""); got != "0.012" {
		t.Errorf("spent %s", got)
	}
}

// reservedTogether waits with what is reserved for others, which have all looked then.
type reservedTogether struct {
	budget.Ledger
	wait func()
}

func (l reservedTogether) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	l.wait()
	return l.Ledger.Reserve(ctx, c)
}

// A66: many who ask for more at once all found the old release: each pays the whole difference to it, for noise of their own, and the next
// question builds on one of theirs.
//
// covers: A66
func TestSharedAtOtherPricesAtOnce(t *testing.T) {
	const askers = 8
	r := sharingRig(t)
	r.ask(t, principal(t, "ana", "analysts"), gaussianCount("0.01"))
	var looked, asked sync.WaitGroup
	looked.Add(askers)
	r.meter.ledger = reservedTogether{r.ledger, func() { looked.Done(); looked.Wait() }}
	ids := make([]string, askers)
	for i := range askers {
		asked.Go(func() {
			got, err := r.Query(t.Context(), principal(t, "analyst"+string(rune('a'+i)), "analysts"), gaussianCount("0.03"))
			if err != nil || got.Replayed || got.Spent.Rho != "0.02" {
				t.Errorf("%+v, %v", got, err)
				return
			}
			ids[i] = string(got.ID)
		})
	}
	asked.Wait()
	r.meter.ledger = r.ledger
	if got := r.spent(t, budget.DatasetScope, ""); got != "0.17" {
		t.Errorf("spent %s", got)
	}
	if got := r.ask(t, principal(t, "ana", "analysts"), gaussianCount("0.035")); got.Spent.Rho != "0.005" {
		t.Errorf("%+v", got)
	}
}

// TestNothingOfOthersAfterFailures: an analyst for whom nothing is run any more is not given what others bought, at the
// same price or at another; what is their own is read again.
//
// covers: L5
func TestNothingOfOthersAfterFailures(t *testing.T) {
	r := sharingRig(t)
	r.policies.snapshot.MaxFailures = 2
	ana, bob, sam := principal(t, "ana", "analysts"), principal(t, "bob", "analysts"), principal(t, "sam")
	own := count("0.5")
	own.SQL += " WHERE sex = 'f'"
	r.ask(t, ana, gaussianCount("0.01"))
	r.ask(t, bob, own)
	r.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, fault.DataUnavailable(nil) }
	for _, city := range []string{"x", "y"} {
		failing := count("0.5")
		failing.SQL += " WHERE city = '" + city + "'"
		if _, err := r.Query(t.Context(), bob, failing); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Fatal(err)
		}
	}
	r.data.do = nil
	for _, rho := range []string{"0.01", "0.002", "0.03"} {
		if got, err := r.Query(t.Context(), bob, gaussianCount(rho)); fault.CodeOf(err) != fault.CodeBudgetFailures {
			t.Errorf("at %s: %+v, %v", rho, got, err)
		}
	}
	if got := r.ask(t, bob, own); !got.Replayed {
		t.Errorf("their own: %+v", got)
	}
	if _, err := r.ResetFailures(t.Context(), sam, "d", "analyst:bob"); err != nil {
		t.Fatal(err)
	}
	if got := r.ask(t, bob, gaussianCount("0.01")); !got.Replayed {
		t.Errorf("after the reset: %+v", got)
	}
}
