package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"noisegate/api"
	"noisegate/budget"
	"noisegate/catalog"
	"noisegate/gateway/auth"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite"
)

// world is a service in which noise and names depend on nothing but who asks for them, and for the how manieth time.
type world struct {
	*rig
	asker string
	calls map[string]int
	plans map[string]string
	known map[string]map[string]string // opaque texts, by who saw them and the order in which they did
}

func newWorld(t *testing.T, signer *budget.Signer, budgets []catalog.Budget) *world {
	w := &world{rig: newRig(t, budgets...), calls: map[string]int{}, plans: map[string]string{}, known: map[string]map[string]string{}}
	w.signer = signer
	nth := func(what string) uint64 {
		w.calls[w.asker+what]++
		h := fnv.New64a()
		fmt.Fprint(h, w.asker, what, w.calls[w.asker+what])
		return h.Sum64()
	}
	w.sampler = func() *mechanisms.Sampler {
		var seed [32]byte
		for i := range seed {
			seed[i] = byte(nth("noise"))
		}
		return mechanisms.NewSamplerFrom(rand.NewChaCha8(seed))
	}
	w.newID = func(time.Time) budget.ReservationID {
		return budget.ReservationID(fmt.Sprintf("%s-%016x", w.asker, nth("id")))
	}
	return w
}

// opaque are the parts of a receipt that are as good as random.
var opaque = regexp.MustCompile(`"(head|signature)":"([^"]*)"`)

// note is what an analyst sees: an answer or an error, to the letter, but for texts that are as good as random, of which they see which are equal.
func (w *world) note(answer any, err error) string {
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) {
			return "error " + err.Error()
		}
		return fmt.Sprint("refused ", f.Code, " ", f.Msg, " ", f.Hint, " ", f.Details)
	}
	text, _ := json.Marshal(answer)
	return opaque.ReplaceAllStringFunc(string(text), func(part string) string {
		known := w.known[w.asker]
		if known == nil {
			known = map[string]string{}
			w.known[w.asker] = known
		}
		if _, ok := known[part]; !ok {
			known[part] = fmt.Sprint("opaque ", len(known))
		}
		return known[part]
	})
}

// act is one thing that an analyst may do.
type act struct {
	kind, key, epsilon string
	n                  int
	gaussian           bool
}

func anyAct(r *rand.Rand) act {
	kinds := []string{"query", "query", "query", "estimate", "budget", "releases", "release", "plan", "draw", "show plan", "datasets", "cancel", "max error"}
	return act{kind: kinds[r.IntN(len(kinds))], key: []string{"", "", "k1", "k2"}[r.IntN(4)], epsilon: []string{"0.0005", "0.01", "0.1", "0.5", "2", "40"}[r.IntN(6)],
		n: r.IntN(4), gaussian: r.IntN(3) == 0}
}

// do does it, and gives what is seen of it, and what it cost.
func (w *world) do(t *testing.T, who auth.Principal, a act) (seen string, spent mechanisms.PicoEpsilon, refusal fault.Code) {
	w.asker = who.Subject
	defer func() { w.asker = "" }()
	ask := Request{IdempotencyKey: a.key, QueryRequest: api.QueryRequest{Dataset: "d", SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", a.n), Epsilon: api.Decimal(a.epsilon)}}
	if a.gaussian {
		ask.Mechanism, ask.Delta = "gaussian", "1e-9"
	}
	var answer any
	var err error
	switch a.kind {
	case "query", "draw", "max error":
		switch a.kind {
		case "draw":
			ask.Plan, ask.Epsilon, ask.Mechanism, ask.Delta = w.plans[who.Subject], "", "gaussian", ""
		case "max error":
			ask.Epsilon, ask.MaxError = "", map[string]api.Decimal{"count": "30"}
		}
		var got *Answer
		if got, err = w.Query(t.Context(), who, ask); err == nil {
			spent, _ = mechanisms.ParseEpsilon(string(got.Spent.Epsilon))
			if got.Spent.Epsilon == "" {
				rho, _ := mechanisms.ParseRho(string(got.Spent.Rho))
				spent, _ = budget.EpsilonFor(rho, 1)
			}
		}
		answer = got
	case "estimate":
		answer, err = w.Estimate(t.Context(), who, ask.QueryRequest)
	case "budget":
		answer, err = w.Budget(t.Context(), who, "")
	case "releases":
		answer, err = w.Releases(t.Context(), who, "")
	case "release":
		var list *api.ReleaseList
		if list, err = w.Releases(t.Context(), who, ""); err == nil && len(list.Releases) > 0 {
			answer, err = w.Release(t.Context(), who, list.Releases[a.n%len(list.Releases)].ReleaseID)
		}
	case "plan":
		var got *api.Plan
		slots := api.PlanMechanism{Mechanism: "gaussian", Rho: api.Decimal(map[bool]string{true: "0.005", false: "0.00001"}[a.n == 0]), Count: new(int64(3))}
		if a.n == 1 && a.key == "k1" { // seldom: its price takes long
			slots = api.PlanMechanism{Mechanism: "laplace", Epsilon: api.Decimal(a.epsilon), Count: new(int64(3))}
		}
		if got, err = w.RegisterPlan(t.Context(), who, PlanRequest{IdempotencyKey: a.key, PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-9",
			Mechanisms: []api.PlanMechanism{slots}}}); err == nil {
			w.plans[who.Subject] = got.PlanID
			spent, _ = mechanisms.ParseEpsilon(string(got.Cost.Epsilon))
		}
		answer = got
	case "show plan":
		answer, err = w.Plan(t.Context(), who, w.plans[who.Subject])
	case "datasets":
		list, listed := w.Datasets()
		one, shown := w.Dataset("d")
		answer, err = []any{list, one}, orElse(listed, shown)
	case "cancel":
		answer, err = w.Cancel(t.Context(), who, "nothing")
	}
	return w.note(answer, err), spent, fault.CodeOf(err)
}

// others lets two other analysts do what they like, as far as they can, also what fails, and leaves charges open.
func (w *world) others(t *testing.T, r *rand.Rand, acts int) {
	for range acts {
		who := principal(t, []string{"bob", "eve"}[r.IntN(2)], "analysts")
		switch r.IntN(8) {
		case 0:
			w.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, fault.DataUnavailable(nil) }
			w.do(t, who, anyAct(r))
			w.data.do = nil
		case 1:
			id := budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}
			limit, err := limitOf(w.policies.snapshot.Budgets[0])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.ledger.Reserve(t.Context(), budget.Charge{ID: budget.ReservationID(fmt.Sprint("open-", r.Uint64())), Dataset: "d", Analyst: who.Subject,
				Accounts: []budget.Account{{ID: id, Limit: limit, Version: 1}}, Loss: mechanisms.Loss{Rho: mechanisms.PicoRho(1 + r.Int64N(1e9)), Unbounded: true},
				Fingerprint: [32]byte{byte(r.Uint64()), byte(r.Uint64())}})
		default:
			w.do(t, who, anyAct(r))
		}
	}
}

// TestOthersChargesAreNotSeen: for any two histories of other analysts' charges, what an analyst sees is the same, to the letter, on every route that an analyst may
// call, until a request is refused in one for the sake of an account that all share. That tells one bit, and is answered in the other at a cost of at least the floor.
// Labels, of which there is no store without PostgreSQL, are compared in gateway/httpapi.
//
// covers: L1 L2 L3 L8
func TestOthersChargesAreNotSeen(t *testing.T) {
	pairs := 2000
	if testing.Short() {
		pairs = 100
	}
	text, err := budget.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := budget.NewSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	rat := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	same, bits := 0, 0
	for pair := range pairs {
		r := rand.New(rand.NewPCG(7, uint64(pair)))
		// A cap, and a rate, that others reach in some histories.
		cap := catalog.Budget{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: rat([]string{"1000", "1000", "3", "1"}[r.IntN(4)]), Delta: rat("1e-6")}
		if r.IntN(4) == 0 {
			cap.Rate = &catalog.Rate{Epsilon: rat("1"), Per: time.Minute}
		}
		budgets := []catalog.Budget{cap, {Scope: catalog.AnalystScope, Name: "analysts", PerAnalyst: true, Form: catalog.Approx, Epsilon: rat("5"), Delta: rat("1e-6")}}
		left, right := newWorld(t, signer, budgets), newWorld(t, signer, budgets)
		ana := principal(t, "ana", "analysts")
		for step := range 6 {
			a := anyAct(r)
			now := testTime().Add(time.Duration(step) * 20 * time.Second)
			left.clock.now, right.clock.now = now, now
			left.others(t, r, r.IntN(3))
			right.others(t, r, r.IntN(4))
			left.clock.now, right.clock.now = now, now
			one, oneSpent, oneCode := left.do(t, ana, a)
			other, otherSpent, otherCode := right.do(t, ana, a)
			if one == other {
				same++
				continue
			}
			shared := func(seen string, code fault.Code) bool {
				return (code == fault.CodeBudgetExhausted || code == fault.CodeBudgetRateLimited) && strings.Contains(seen, "dataset") && strings.HasSuffix(seen, "[]")
			}
			least := floorAt(defaultFloor).epsilon
			if !(shared(one, oneCode) && otherCode == "" && otherSpent >= least || shared(other, otherCode) && oneCode == "" && oneSpent >= least) {
				t.Fatalf("pair %d, step %d: %+v shows\n%s\nand after other charges of others\n%s", pair, step, a, one, other)
			}
			bits++
			break // from here on the analyst has another history of their own
		}
	}
	t.Logf("%d pairs: %d steps look the same, %d bits were paid for", pairs, same, bits)
	if same < 3*pairs || bits < pairs/100 {
		t.Errorf("%d steps look the same, %d tell a bit: the histories try too little", same, bits)
	}
}
