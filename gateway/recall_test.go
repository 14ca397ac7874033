package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// counted is a view of the count of all people.
func counted(name, epsilon string) Request {
	request := count(epsilon)
	request.SQL = "SELECT count(*) AS " + name + " FROM people"
	return request
}

// A view of what was paid for is free, with or without money; under a key that stands for another request it is refused.
func TestViewsAreRecalled(t *testing.T) {
	r := newRig(t)
	first := r.ask(t, ana(), counted("n", "0.5"))
	for _, name := range []string{"total", "people", "n"} {
		got := r.ask(t, ana(), counted(name, "0.5"))
		if !got.Replayed || got.ID != first.ID || got.Spent.Epsilon != "0" || got.At.IsZero() || !strings.Contains(string(got.Result), name) {
			t.Errorf("%+v %s", got, got.Result)
		}
	}
	keyed := counted("keyed", "0.1")
	keyed.IdempotencyKey = "key"
	r.ask(t, ana(), keyed)
	other := counted("n", "0.5")
	other.SQL, other.IdempotencyKey = "SELECT count(*) AS other FROM people", "key"
	if _, err := r.Query(t.Context(), ana(), other); fault.CodeOf(err) != fault.CodeBudgetReplayMismatch {
		t.Errorf("a key of another request: %v", err)
	}
	if r.data.runs != 2 || r.spentEpsilon(t) != "0.6" {
		t.Errorf("%d runs, spent %s", r.data.runs, r.spentEpsilon(t))
	}
	if err := r.ledger.Freeze(t.Context(), "sam", budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}, true); err != nil {
		t.Fatal(err)
	}
	if got := r.ask(t, ana(), counted("frozen", "0.5")); !got.Replayed {
		t.Errorf("what was paid for before a freeze: %+v", got)
	}
	if _, err := r.Query(t.Context(), ana(), counted("n", "0.2")); fault.CodeOf(err) != fault.CodeBudgetFrozen {
		t.Errorf("another price after a freeze: %v", err)
	}
}

// bothCounts asks for two releases at once, each at half the price; view is what is computed from them.
func bothCounts(view, epsilon string) Request {
	request := count(epsilon)
	request.SQL = "SELECT " + view + " FROM (SELECT count(*) AS n FROM people) a, (SELECT count(*) AS n FROM people WHERE age > 30) b"
	return request
}

// A question with several releases pays for those alone that were not bought before, each is found by itself afterwards, and every view of
// them is free. One charge pays for all.
func TestSeveralReleases(t *testing.T) {
	r := newRig(t)
	r.ask(t, ana(), counted("n", "0.5"))
	got := r.ask(t, ana(), bothCounts("a.n - b.n AS young", "1"))
	if got.Replayed || got.Spent.Epsilon != "0.5" || r.spentEpsilon(t) != "1" {
		t.Errorf("beside one that was bought: %+v, spent %s", got, r.spentEpsilon(t))
	}
	for _, view := range []string{"a.n - b.n AS young", "b.n::numeric / a.n AS share", "b.n"} {
		if again := r.ask(t, ana(), bothCounts(view, "1")); !again.Replayed || again.ID != got.ID || again.Spent.Epsilon != "0" {
			t.Errorf("a view: %+v", again)
		}
	}
	grown := count("0.5")
	grown.SQL = "SELECT count(*) AS grown FROM people WHERE age > 30"
	if again := r.ask(t, ana(), grown); !again.Replayed || again.ID != got.ID {
		t.Errorf("one of the releases by itself: %+v", again)
	}
	if other := r.ask(t, ana(), bothCounts("a.n", "0.4")); other.Replayed || other.Spent.Epsilon != "0.4" || r.spentEpsilon(t) != "1.4" {
		t.Errorf("at another price: %+v, spent %s", other, r.spentEpsilon(t))
	}
	if alone := r.ask(t, ana(), counted("alone", "0.2")); !alone.Replayed || r.spentEpsilon(t) != "1.4" {
		t.Errorf("the other one by itself: %+v", alone)
	}
	if r.data.runs != 3 {
		t.Errorf("%d runs", r.data.runs)
	}
}

// δ is for private keys alone. What was released of them when it was divided among all releases of a question is found: the other release
// alone is paid for.
func TestReleasesOfAnEvenDeltaAreRecalled(t *testing.T) {
	const cities = "SELECT city, count(*) AS n FROM people GROUP BY city"
	ask := func(r *rig, sql string, epsilon, delta api.Decimal, first ...sqlrewrite.ExactRow) *Answer {
		t.Helper()
		r.data.do = func() ([]sqlrewrite.ExactRow, error) { return first, nil }
		return r.ask(t, ana(), Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: sql, Epsilon: epsilon, Delta: delta}})
	}
	n := mechanisms.SealInt64(1000)
	city := sqlrewrite.ExactRow{Keys: []catalog.Key{{Text: "x"}}, Values: []mechanisms.Exact{n, n}} // rows, and people
	everybody := sqlrewrite.ExactRow{Values: []mechanisms.Exact{n}}
	const both = "SELECT a.city, a.n, b.n AS total FROM (" + cities + ") a, (SELECT count(*) AS n FROM people) b"
	if got := ask(newRig(t), both, "0.8", "4e-9", city); got.Spent.Epsilon != "0.8" || got.Spent.Delta != "4e-9" {
		t.Errorf("anew: spent %+v", got.Spent)
	}
	r := newRig(t)
	ask(r, cities, "0.4", "2e-9", city)
	if got := ask(r, both, "0.8", "4e-9", everybody); got.Replayed || got.Spent.Epsilon != "0.4" || got.Spent.Delta != "0" {
		t.Errorf("beside what was released at half of δ: %+v", got)
	}
}

// Blocks that are equal are one release, and the question is still what is computed of both.
func TestEqualReleasesAreOne(t *testing.T) {
	twice := func(list string) Request {
		q := count("0.5")
		q.SQL = "SELECT " + list + " FROM (SELECT count(*) AS n FROM people) a, (SELECT count(*) AS n FROM people) b"
		return q
	}
	columns := func(a *Answer) (names []string) {
		var result api.Result
		if err := json.Unmarshal(a.Result, &result); err != nil {
			t.Fatal(err)
		}
		for _, c := range result.Columns {
			names = append(names, c.Name)
		}
		return names
	}
	asked := twice("a.n + b.n AS twice, 7 AS seven")
	want := columns(newRig(t).ask(t, ana(), asked))
	for name, bought := range map[string]Request{"one block": counted("n", "0.5"), "both blocks": twice("a.n")} {
		r := newRig(t)
		r.ask(t, ana(), bought)
		got := r.ask(t, ana(), asked)
		if diff := cmp.Diff(want, columns(got)); !got.Replayed || r.spentEpsilon(t) != "0.5" || diff != "" {
			t.Errorf("%s was bought: %+v, spent %s, %s", name, got, r.spentEpsilon(t), diff)
		}
	}
}

// An estimate names each release with its price.
func TestSeveralReleasesAreEstimated(t *testing.T) {
	r := newRig(t)
	e, err := r.Estimate(t.Context(), ana(), bothCounts("a.n - b.n AS young", "1").QueryRequest)
	if err != nil || len(e.Outputs) != 2 || e.Outputs[0].Price.Epsilon != "0.5" || e.Outputs[1].Price.Epsilon != "0.5" ||
		e.Price.Epsilon != "1" || !strings.Contains(e.Plan, "release 2:") {
		t.Errorf("%+v, %v", e, err)
	}
}

// What an analyst paid for is another's only where the policy shares releases.
func TestViewsOfOthers(t *testing.T) {
	for name, c := range map[string]struct{ shared, replayed bool }{"apart": {false, false}, "shared": {true, true}} {
		r := newRig(t)
		r.policies.snapshot.ShareReleases = c.shared
		first := r.ask(t, ana(), counted("n", "0.5"))
		got := r.ask(t, principal(t, "bob", "analysts"), counted("total", "0.5"))
		if got.Replayed != c.replayed || (got.ID == first.ID) != c.replayed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A gateway that dies after it kept what it released leaves a charge that expires: the values are given for it, under the key too. One that
// dies before leaves the charge alone.
func TestRecallAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		keeps bool
		spent string
	}{"after values were kept": {true, "0.5"}, "before": {false, "1"}} {
		r := newRig(t)
		r.meter.ledger = unsettled{r.ledger}
		if !c.keeps {
			r.values = brokenValues{ReleasedValues: r.ledger, keep: errors.New("down")}
		}
		request := counted("n", "0.5")
		if request.IdempotencyKey = "key"; !c.keeps {
			request.IdempotencyKey = ""
		}
		if _, err := r.Query(t.Context(), ana(), request); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Fatal(err)
		}
		if _, err := r.Query(t.Context(), ana(), request); fault.CodeOf(err) != fault.CodeRequestInFlight {
			t.Errorf("%s: while it may still be settled: %v", name, err)
		}
		r.meter.ledger, r.values = r.ledger, r.ledger
		r.clock.Sleep(t.Context(), time.Hour)
		if _, err := r.ledger.ExpireOlder(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := r.ask(t, ana(), request); got.Replayed != c.keeps {
			t.Errorf("%s: %+v", name, got)
		}
		if got := r.ask(t, ana(), counted("total", "0.5")); !got.Replayed || r.spentEpsilon(t) != c.spent {
			t.Errorf("%s: %+v, spent %s", name, got, r.spentEpsilon(t))
		}
	}
}

// unsettled is a ledger that is away when a charge is to be settled.
type unsettled struct{ budget.Ledger }

func (unsettled) Settle(context.Context, budget.ReservationID, mechanisms.Loss, []byte) error {
	return fault.DataUnavailable(errors.New("away"))
}

// Whether work had ended when its analyst cancelled it does not show: nothing is kept of it, at its price or at another.
//
// covers: W.3
func TestNothingIsKeptOfWhatWasCancelled(t *testing.T) {
	for name, again := range map[string]string{"the same price": "0.01", "a lower price": "0.004"} {
		r := sharingRig(t)
		r.datasets["d"] = Dataset{Data: r.data, Quantum: testQuantum, Timeout: 30 * time.Second}
		request := gaussianCount("0.01")
		request.IdempotencyKey = "key"
		r.clock.AfterFunc(time.Millisecond, func() { _, _ = r.Cancel(context.Background(), ana(), "key") })
		if _, err := r.Query(t.Context(), ana(), request); fault.CodeOf(err) != fault.CodeBudgetCancelled {
			t.Fatal(err)
		}
		if got := r.ask(t, ana(), gaussianCount(again)); got.Replayed || string(got.Spent.Rho) != again || r.data.runs != 2 {
			t.Errorf("%s: %+v, %d runs", name, got, r.data.runs)
		}
	}
}

// brokenValues are a store of released values that is away.
type brokenValues struct {
	budget.ReleasedValues
	keep, find error
	values     string // is found whatever was kept
}

func (b brokenValues) KeepReleased(ctx context.Context, v budget.Released) error {
	if b.keep != nil {
		return b.keep
	}
	return b.ReleasedValues.KeepReleased(ctx, v)
}

func (b brokenValues) Find(ctx context.Context, l budget.Lookup) (*budget.Earlier, error) {
	if b.find != nil {
		return nil, b.find
	}
	e, err := b.ReleasedValues.Find(ctx, l)
	if err == nil && e.Exact[0] != nil && b.values != "" {
		e.Exact[0].Values = []byte(b.values)
	}
	return e, err
}

// Where the store is away nothing is charged; where a release cannot be kept its answer is given all the same, and where it cannot be read
// the question is charged anew.
func TestReleasedValuesFail(t *testing.T) {
	r, down := newRig(t), fault.DataUnavailable(errors.New("down"))
	r.values = brokenValues{ReleasedValues: r.ledger, find: down}
	if _, err := r.Query(t.Context(), ana(), counted("n", "0.5")); fault.CodeOf(err) != fault.CodeDataUnavailable || r.spentEpsilon(t) != "0" {
		t.Errorf("%v, spent %s", err, r.spentEpsilon(t))
	}
	r.values = brokenValues{ReleasedValues: r.ledger, keep: down}
	r.ask(t, ana(), counted("n", "0.5"))
	if got := r.ask(t, ana(), counted("total", "0.5")); got.Replayed {
		t.Errorf("what was not kept: %+v", got)
	}
	r.values = r.ledger
	r.ask(t, ana(), counted("kept", "0.5"))
	r.values = brokenValues{ReleasedValues: r.ledger, values: `{"rows":[]}`}
	if got := r.ask(t, ana(), counted("unreadable", "0.5")); got.Replayed || r.spentEpsilon(t) != "2" {
		t.Errorf("%+v, spent %s", got, r.spentEpsilon(t))
	}
	r.values = nil
	if got := r.ask(t, ana(), counted("without", "0.5")); got.Replayed {
		t.Errorf("without a store: %+v", got)
	}
}

// A view of what a registered plan paid for draws none of its slots, also when there are none left.
func TestViewsUnderAPlan(t *testing.T) {
	r := newRig(t)
	registered, err := r.RegisterPlan(t.Context(), ana(), PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-9",
		Mechanisms: []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	under := func(name string) Request {
		request := counted(name, "")
		request.Plan = registered.PlanID
		return request
	}
	first := r.ask(t, ana(), under("n"))
	got := r.ask(t, ana(), under("total"))
	if !got.Replayed || got.ID != first.ID || !strings.Contains(string(got.Result), `"scale":"10"`) {
		t.Errorf("%+v %s", got, got.Result)
	}
	if _, err := r.Query(t.Context(), ana(), Request{QueryRequest: api.QueryRequest{Dataset: "d", Plan: registered.PlanID,
		SQL: "SELECT sum(age) FROM people"}}); fault.CodeOf(err) != fault.CodePlanExhausted {
		t.Errorf("another question: %v", err)
	}
	if got := r.ask(t, ana(), counted("n", "0.1")); got.Replayed {
		t.Errorf("the same noise without the plan: %+v", got)
	}
}

// Releases that were bought while the policy did not share are not given to others when it begins to.
func TestReleasesBoughtBeforeSharingStayTheirBuyers(t *testing.T) {
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

type panics struct{ budget.ReleasedValues }

func (panics) Find(context.Context, budget.Lookup) (*budget.Earlier, error) { panic("once") }

func TestPanicLeavesFlight(t *testing.T) {
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
	if err != nil {
		t.Error("the release is blocked for good: ", err)
	}
}

func TestKeyedReplayNamesNoOtherData(t *testing.T) {
	r := newRig(t)
	r.policies.snapshot.DataVersion = "2026-01"
	request := counted("n", "0.5")
	request.IdempotencyKey = "k"
	first := r.ask(t, ana(), request)
	r.policies.snapshot.DataVersion = "2026-02"
	r.policies.snapshot.Version++
	got := r.ask(t, ana(), request)
	if !got.Replayed || got.ID != first.ID || got.Data == "2026-02" {
		t.Error("values of one state of the data are named after another")
	}
}

// Two analysts who ask at once both pay, and draw apart. A view of one's own release shows that release, not the other's draw.
func TestOwnReleaseBeforeOthersAnswer(t *testing.T) {
	r := newRig(t)
	mine := r.ask(t, ana(), counted("a", "0.5"))
	theirs := r.ask(t, principal(t, "bob", "analysts"), counted("q", "0.5")) // not shared yet: stands for a race
	r.policies.snapshot.ShareReleases = true
	got := r.ask(t, ana(), counted("q", "0.5"))
	if got.ID != mine.ID || got.ID == theirs.ID {
		t.Errorf("ana has %s, and is shown bob's %s", mine.ID, got.ID)
	}
}

// byCodes counts people by two codes of a policy, each of 60 texts that are so long.
func byCodes(length int) ([]*catalog.Column, Request) {
	q := count("0.001")
	q.SQL = "SELECT code, part, count(*) AS n FROM people GROUP BY code, part"
	codes := make([]catalog.Key, 60)
	for i := range codes {
		codes[i].Text = fmt.Sprintf("%0*d", length, i)
	}
	column := func(name string, place int16) *catalog.Column {
		return &catalog.Column{Name: name, AttNum: place, Type: catalog.Text, NotNull: true, Exposed: true, Domain: codes}
	}
	return []*catalog.Column{column("code", 8), column("part", 9)}, q
}

// What is too long to be kept is said before the charge where public keys make it sure, and else by the answer, which is then repeated free
// as long as it is the same question. Its views are charged.
func TestTooLongToBeKept(t *testing.T) {
	noted := func(notes []api.Note) bool {
		return slices.ContainsFunc(notes, func(n api.Note) bool { return n.Code == "not-kept" })
	}
	for name, c := range map[string]struct {
		length         int
		foretold, told bool
	}{
		"kept":     {550, false, false}, // 3,600 groups and numbers of one digit take 4,064,400 of 4,194,304 bytes
		"by noise": {567, false, true},  // 4,186,800, and noise of scale 1,000 has 2.8 characters more in the mean: 10,080
		"sure":     {569, true, true},   // 4,201,200
	} {
		r := newRig(t)
		r.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, nil }
		columns, q := byCodes(c.length)
		r.policies.snapshot.Tables[0].Columns = append(r.policies.snapshot.Tables[0].Columns, columns...)
		estimate, err := r.Estimate(t.Context(), ana(), q.QueryRequest)
		if err != nil || noted(estimate.Notes) != c.foretold {
			t.Errorf("%s: the estimate says so: %t, %v", name, !c.foretold, err)
		}
		var result api.Result
		if err := json.Unmarshal(r.ask(t, ana(), q).Result, &result); err != nil || noted(result.Notes) != c.told {
			t.Errorf("%s: the answer says so: %t, %v", name, !c.told, err)
		}
		if again := r.ask(t, ana(), q); !again.Replayed {
			t.Errorf("%s: the same question is charged: %+v", name, again.Spent)
		}
		q.SQL = strings.Replace(q.SQL, "AS n", "AS people", 1)
		if view := r.ask(t, ana(), q); view.Replayed == c.told {
			t.Errorf("%s: a view is free: %t", name, view.Replayed)
		}
		r.values = nil
		q.SQL = strings.Replace(q.SQL, "AS people", "AS others", 1)
		if estimate, err = r.Estimate(t.Context(), ana(), q.QueryRequest); err != nil || noted(estimate.Notes) {
			t.Errorf("%s: nothing is kept of any, and the estimate says so: %v", name, err)
		}
	}
}

// lookUps counts the look-ups of released values.
type lookUps struct {
	budget.ReleasedValues
	made int
}

func (l *lookUps) Find(ctx context.Context, of budget.Lookup) (*budget.Earlier, error) {
	l.made++
	return l.ReleasedValues.Find(ctx, of)
}

// A question asks the store once, however many releases it has, whichever analyst bought them, and whatever their versions are.
func TestEachQuestionLooksUpOnce(t *testing.T) {
	plain, sharing, analyst := newRig(t), sharingRig(t), principal(t, "ana", "analysts")
	prepared, copies := preparedRig(t)
	for _, c := range []struct {
		name string
		*rig
		Request
		free bool
	}{
		{"two releases", plain, bothCounts("a.n, b.n AS other", "1"), false},
		{"a view of two releases", plain, bothCounts("a.n + b.n AS total", "1"), true},
		{"one of others'", sharing, gaussianCount("0.01"), false},
		{"one at another price", sharing, gaussianCount("0.03"), false},
		{"one of a copy", prepared, askVisits(), false},
		{"one of an earlier version", prepared, askVisits(), true},
	} {
		counted := &lookUps{ReleasedValues: c.ledger}
		if c.values = counted; c.name == "one of an earlier version" {
			copies.refreshed(t, prepared, 2)
		}
		if got := c.ask(t, analyst, c.Request); got.Replayed != c.free || counted.made != 1 {
			t.Errorf("%s: free %t, with %d look-ups", c.name, got.Replayed, counted.made)
		}
	}
}
