package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/big"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// world is a service in which noise and names depend on nothing but who asks for them, and for the how manieth time.
type world struct {
	*rig
	asker string
	calls map[string]int
	plans map[string]string
	known map[string]map[string]string // opaque texts, by who saw them and the order in which they did
	told  int                          // refusals for the sake of an account that all share, without a figure
	undue string                       // a refusal that what was spent does not explain
	apart int                          // by how much the questions of others are other ones
	r     *rand.Rand
}

func newWorld(t *testing.T, signer *journal.Signer, budgets []catalog.Budget) *world {
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
var opaque = regexp.MustCompile(`"(head|charged|commitment|signature)":"([^"]*)"`)

// note is what an analyst sees: an answer or an error, to the letter, but for texts that are as good as random: of these, only which are
// equal.
func (w *world) note(answer any, err error) string {
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) {
			return "error " + err.Error()
		}
		if f.Code == fault.CodeBudgetExhausted && len(f.Details) == 0 { // by an account that is shared
			w.told++
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
	inner              *act // that the analyst does while it runs
}

func anyAct(r *rand.Rand) act {
	kinds := []string{"query", "query", "query", "estimate", "budget", "releases", "release", "plan", "draw", "show plan", "datasets",
		"cancel", "max error",
		"cancelled", "unread", "while"}
	a := someAct(r, kinds)
	if a.kind == "while" {
		inner := someAct(r, kinds[:13])
		a.inner = &inner
	}
	return a
}

func someAct(r *rand.Rand, kinds []string) act {
	return act{kind: kinds[r.IntN(len(kinds))], key: []string{"", "", "k1", "k2"}[r.IntN(4)],
		epsilon: []string{"0.0005", "0.01", "0.1", "0.5", "2", "40"}[r.IntN(6)],
		n:       r.IntN(4), gaussian: r.IntN(3) == 0}
}

// cost is what an account of an analyst's own has spent or reserved.
type cost struct {
	epsilon mechanisms.PicoEpsilon
	rho     mechanisms.PicoRho
}

func (w *world) cost(t *testing.T, scope budget.Scope, name string) cost {
	all, err := w.ledger.Balances(t.Context(), []budget.AccountID{{Dataset: "d", Scope: scope, Name: name}})
	if err != nil || len(all) == 0 {
		return cost{}
	}
	used := all[0].Used()
	return cost{used.Epsilon, used.Rho}
}

// do does it, and gives what is seen of it, and what it cost.
func (w *world) do(t *testing.T, who auth.Principal, a act) (seen string, spent cost) {
	before, asker := w.cost(t, budget.AnalystScope, who.Subject), w.asker
	w.asker = who.Subject
	defer func() {
		after := w.cost(t, budget.AnalystScope, who.Subject)
		spent = cost{after.epsilon - before.epsilon, after.rho - before.rho}
		w.asker = asker
	}()
	ask := Request{IdempotencyKey: a.key, QueryRequest: api.QueryRequest{Dataset: "d",
		SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", a.n), Epsilon: api.Decimal(a.epsilon)}}
	if a.gaussian {
		ask.Mechanism, ask.Delta = "gaussian", "1e-9"
	}
	var answer any
	var err error
	switch a.kind {
	case "query", "draw", "max error", "cancelled", "unread", "while":
		return w.ask(t, who, a, ask), spent
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
		slots := api.PlanMechanism{Mechanism: "gaussian", Rho: api.Decimal(map[bool]string{true: "0.005", false: "0.00001"}[a.n == 0]),
			Count: new(int64(3))}
		if a.n == 1 && a.key == "k1" { // seldom: its price takes long
			slots = api.PlanMechanism{Mechanism: "laplace", Epsilon: api.Decimal(a.epsilon), Count: new(int64(3))}
		}
		if got, err = w.RegisterPlan(t.Context(), who, PlanRequest{IdempotencyKey: a.key,
			PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-9",
				Mechanisms: []api.PlanMechanism{slots}}}); err == nil {
			w.plans[who.Subject] = got.PlanID
		}
		answer = got
	case "show plan":
		answer, err = w.Plan(t.Context(), who, w.plans[who.Subject])
	case "datasets":
		list, listed := w.Datasets(who)
		one, shown := w.Dataset("d")
		answer, err = []any{list, one}, orElse(listed, shown)
	case "cancel":
		answer, err = w.Cancel(t.Context(), who, "nothing")
	}
	return w.note(answer, err), spent
}

// ask asks a question, which its analyst may cancel while it runs, before a row is read or after, or during which they,
// and others, do something else.
func (w *world) ask(t *testing.T, who auth.Principal, a act, ask Request) (seen string) {
	switch a.kind {
	case "draw":
		ask.Plan, ask.Epsilon, ask.Mechanism, ask.Delta = w.plans[who.Subject], "", "gaussian", ""
	case "max error":
		ask.Epsilon, ask.MaxError = "", map[string]api.Decimal{"count": "30"}
	case "cancelled", "unread", "while":
		if ask.IdempotencyKey == "" {
			ask.IdempotencyKey = "running"
		}
		w.data.takes = func(context.Context) ([]sqlrewrite.ExactRow, error) {
			w.data.takes = nil // not of what is asked meanwhile
			switch a.kind {
			case "cancelled", "unread":
				stopped, err := w.Cancel(t.Context(), who, ask.IdempotencyKey)
				seen += w.note(stopped, err) + "\n"
				err = fault.DataUnavailable(nil)
				if a.kind == "unread" {
					err = fault.Untouched(err)
				}
				return nil, err
			}
			if who.Subject == "ana" {
				w.others(t, w.r, w.r.IntN(3))
			}
			if a.inner != nil {
				inner, _ := w.do(t, who, *a.inner)
				seen += inner + "\n"
			}
			return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, nil
		}
		defer func() { w.data.takes = nil }()
	}
	shared := w.cost(t, budget.DatasetScope, "")
	told := w.told
	answer, err := w.Query(t.Context(), who, ask)
	seen += w.note(answer, err)
	if amount, _ := mechanisms.ParseEpsilon(string(ask.Epsilon)); a.kind == "query" && !a.gaussian && w.told > told {
		if room := w.room(); shared.epsilon+amount <= room {
			w.undue = fmt.Sprintf("ε %s of %s is used, and %s is refused: %v", shared.epsilon, room, amount, err)
		}
	}
	return seen
}

// room is what an account that all share takes whatever there was before: its cap, and at once no more than its rate.
func (w *world) room() mechanisms.PicoEpsilon {
	line := w.policies.snapshot.Budgets[0]
	room, _ := mechanisms.ParseEpsilon(line.Epsilon.FloatString(12))
	if line.Rate != nil {
		most, _ := mechanisms.ParseEpsilon(line.Rate.Epsilon.FloatString(12))
		room = min(room, most)
	}
	return room
}

// others lets two other analysts do what they like, as far as they can, also what fails, and leaves charges open.
func (w *world) others(t *testing.T, r *rand.Rand, acts int) {
	for range acts {
		who := principal(t, []string{"bob", "eve"}[r.IntN(2)], "analysts")
		a := anyAct(r)
		if a.n += w.apart; a.inner != nil {
			a.inner.n += w.apart
		}
		switch r.IntN(8) {
		case 0:
			err := error(fault.DataUnavailable(nil))
			if r.IntN(2) == 0 {
				err = fault.Untouched(err)
			}
			w.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, err }
			w.do(t, who, a)
			w.data.do = nil
		case 1:
			id := budget.AccountID{Dataset: "d", Scope: budget.DatasetScope}
			limit, err := limitOf(w.policies.snapshot.Budgets[0])
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.ledger.Reserve(t.Context(), budget.Charge{ID: budget.ReservationID(fmt.Sprint("open-", r.Uint64())), Dataset: "d",
				Analyst:     who.Subject,
				Accounts:    []budget.Account{{ID: id, Limit: limit, Version: 1}},
				Loss:        mechanisms.Loss{Rho: mechanisms.PicoRho(1 + r.Int64N(1e9)), Unbounded: true},
				Fingerprint: [32]byte{byte(r.Uint64()), byte(r.Uint64())}})
		default:
			w.do(t, who, a)
		}
	}
}

// The kinds of worlds that a pair of histories may be of.
const (
	ordinary = iota
	shares   // releases are shared, and others ask other questions: where they ask the same, that somebody did is told
	frozen   // releases are shared, others ask the same, and the analyst's account is frozen
	halted   // the same, and the analyst's questions failed
)

// newPair makes two worlds of one policy.
func newPair(t *testing.T, signer *journal.Signer, r *rand.Rand) (left, right *world) {
	rat := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	// A cap, and a rate, that others reach in some histories.
	cap := catalog.Budget{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: rat([]string{"1000", "1000", "3", "1"}[r.IntN(4)]),
		Delta: rat("1e-6")}
	if r.IntN(4) == 0 {
		cap.Rate = &catalog.Rate{Epsilon: rat("1"), Per: time.Minute}
	}
	own := catalog.Budget{Scope: catalog.AnalystScope, Name: "analysts", PerAnalyst: true, Form: catalog.Approx, Epsilon: rat("5"),
		Delta: rat("1e-6")}
	switch r.IntN(6) {
	case 0:
		own.Rate = &catalog.Rate{Epsilon: rat("0.6"), Per: time.Minute}
	case 1:
		own.Tranche = &catalog.Tranche{Every: 24 * time.Hour, Epsilon: rat("0.6")}
	}
	kind := max(ordinary, r.IntN(7)-3)
	if kind >= frozen {
		cap.Epsilon, cap.Rate = rat("1000"), nil // nothing but the end itself refuses
	}
	make := func() *world {
		w := newWorld(t, signer, []catalog.Budget{cap, own})
		w.r = r
		w.policies.snapshot.ShareReleases = kind != ordinary
		ana := principal(t, "ana", "analysts")
		switch kind {
		case shares:
			w.apart = 10
		case frozen:
			w.do(t, ana, act{kind: "query", epsilon: "0.1", n: 1})
			if err := w.ledger.Freeze(t.Context(), "sam", budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"},
				true); err != nil {
				t.Fatal(err)
			}
		case halted:
			w.policies.snapshot.MaxFailures = 1
			w.data.do = func() ([]sqlrewrite.ExactRow, error) { return nil, fault.DataUnavailable(nil) }
			w.do(t, ana, act{kind: "query", epsilon: "0.1", n: 1})
			w.data.do = nil
		}
		return w
	}
	return make(), make()
}

// Compare compares pairs of histories of others, in which the services are changed by plant, if it is not nil. It says
// what an analyst sees of the difference, unless that is paid for; and how many steps look the same, and how many told
// something that was.
func compare(t *testing.T, pairs int, plant func(*world)) (leak string, same, bits int) {
	text, err := journal.NewKeyText()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	least := floorAt(defaultFloor)
	for pair := range pairs {
		r := rand.New(rand.NewPCG(7, uint64(pair)))
		left, right := newPair(t, signer, r)
		if plant != nil {
			plant(left)
			plant(right)
		}
		ana := principal(t, "ana", "analysts")
		for step := range 6 {
			a := anyAct(r)
			now := testTime().Add(time.Duration(step) * 20 * time.Second)
			left.clock.now, right.clock.now = now, now
			left.others(t, r, r.IntN(3))
			right.others(t, r, r.IntN(4))
			left.clock.now, right.clock.now = now, now
			left.told, right.told, left.undue, right.undue = 0, 0, "", ""
			one, oneSpent := left.do(t, ana, a)
			other, otherSpent := right.do(t, ana, a)
			if undue := left.undue + right.undue; undue != "" {
				return fmt.Sprintf("pair %d, step %d: %+v: %s", pair, step, a, undue), same, bits
			}
			if one == other {
				same++
				continue
			}
			paid := func(told int, less, more cost) bool {
				return told > 0 && (more.epsilon >= less.epsilon+least.epsilon || more.rho >= less.rho+least.rho)
			}
			if !paid(left.told, oneSpent, otherSpent) && !paid(right.told, otherSpent, oneSpent) {
				return fmt.Sprintf("pair %d, step %d: %+v shows\n%s\nand after other charges of others\n%s", pair, step, a, one, other), same, bits
			}
			bits++
			break // from here on the analyst has another history of their own
		}
	}
	return "", same, bits
}

var historyPairs = flag.Int("history-pairs", 150, "pairs of histories of TestOthersChargesAreNotSeen; make histories tries 2000")

// TestOthersChargesAreNotSeen: for any two histories of other analysts' charges, what an analyst sees is the same, to
// the letter, on every route that an analyst may call, also while a question of theirs runs or is cancelled, until a
// request is refused in one for the sake of an account that all share. That reveals one bit, and is charged in the other at the floor at
// least. What others were given back refuses nobody. Labels, which only PostgreSQL can store, are compared in gateway/httpapi.
//
// covers: L1 L2 L3 L8
func TestOthersChargesAreNotSeen(t *testing.T) {
	pairs := *historyPairs
	if testing.Short() {
		pairs = shortPairs
	}
	leak, same, bits := compare(t, pairs, nil)
	if leak != "" {
		t.Fatal(leak)
	}
	t.Logf("%d pairs: %d steps look the same, %d bits were paid for", pairs, same, bits)
	if same < 3*pairs || bits < pairs/100 {
		t.Errorf("%d steps look the same, %d tell a bit: the histories try too little", same, bits)
	}
}

// shortPairs are the pairs of a short run. Each of the leaks below is seen in them.
const shortPairs = 100

// leaky is a ledger that reveals what it must not.
type leaky struct {
	budget.Ledger
	reserve    func(budget.Ledger, context.Context, budget.Charge) (budget.Outcome, error)
	replay     func(budget.Ledger, context.Context, budget.Charge) (*budget.Stored, error)
	settlement func(budget.Ledger, context.Context, budget.ReservationID) (budget.Settlement, error)
	expire     func(budget.Ledger, context.Context, budget.ReservationID) error
	balances   func(budget.Ledger, context.Context, []budget.AccountID) ([]budget.Balance, error)
}

func (l leaky) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	if l.reserve != nil {
		return l.reserve(l.Ledger, ctx, c)
	}
	return l.Ledger.Reserve(ctx, c)
}

func (l leaky) Replay(ctx context.Context, c budget.Charge) (*budget.Stored, error) {
	if l.replay != nil {
		return l.replay(l.Ledger, ctx, c)
	}
	return l.Ledger.Replay(ctx, c)
}

func (l leaky) Settlement(ctx context.Context, id budget.ReservationID) (budget.Settlement, error) {
	if l.settlement != nil {
		return l.settlement(l.Ledger, ctx, id)
	}
	return l.Ledger.Settlement(ctx, id)
}

func (l leaky) Expire(ctx context.Context, id budget.ReservationID) error {
	if l.expire != nil {
		return l.expire(l.Ledger, ctx, id)
	}
	return l.Ledger.Expire(ctx, id)
}

func (l leaky) Balances(ctx context.Context, ids []budget.AccountID) ([]budget.Balance, error) {
	if l.balances != nil {
		return l.balances(l.Ledger, ctx, ids)
	}
	return l.Ledger.Balances(ctx, ids)
}

func (l leaky) Caller(ctx context.Context, ids []budget.AccountID, dataset, analyst string,
	within time.Duration) ([]budget.Balance, int64, error) {
	balances, err := l.Balances(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	failed, err := l.Failures(ctx, dataset, analyst, within)
	return balances, failed, err
}

// TestPlantedLeaksAreSeen: the property above is no empty one: a service that has one of these leaks fails it within
// the pairs of a short run.
//
// covers: L1 L2 L5 L8
func TestPlantedLeaksAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	dataset := []budget.AccountID{{Dataset: "d", Scope: budget.DatasetScope}}
	for name, plant := range map[string]func() leaky{
		"a refusal with what is left of a shared account": func() leaky {
			return leaky{reserve: func(l budget.Ledger, ctx context.Context, c budget.Charge) (budget.Outcome, error) {
				outcome, err := l.Reserve(ctx, c)
				var f *fault.Error
				if errors.As(err, &f) && f.Code == fault.CodeBudgetExhausted && len(f.Details) == 0 {
					if b, _ := l.Balances(ctx, dataset); len(b) > 0 { // else nobody was charged yet
						err = f.WithHint(f.Hint + b[0].Used().Rho.String())
					}
				}
				return outcome, err
			}}
		},
		"a receipt of where the ledger ends, not of the settlement": func() leaky {
			return leaky{settlement: func(l budget.Ledger, ctx context.Context, id budget.ReservationID) (budget.Settlement, error) {
				s, err := l.Settlement(ctx, id)
				if err == nil {
					s.Head, err = l.Head(ctx, s.Dataset)
				}
				return s, err
			}}
		},
		"a release that is numbered along the ledger": func() leaky {
			return leaky{replay: func(l budget.Ledger, ctx context.Context, c budget.Charge) (*budget.Stored, error) {
				stored, err := l.Replay(ctx, c)
				if stored != nil {
					head, _ := l.Head(ctx, c.Dataset)
					numbered := *stored
					numbered.ID += budget.ReservationID(fmt.Sprint(head.Seq))
					stored = &numbered
				}
				return stored, err
			}}
		},
		"a rate that is not given back": func() leaky {
			held := mechanisms.PicoEpsilon(0)
			return leaky{reserve: func(l budget.Ledger, ctx context.Context, c budget.Charge) (budget.Outcome, error) {
				if held += c.Loss.Epsilon; held > 2*mechanisms.EpsilonUnit && c.Accounts[0].Limit.Rate.Epsilon > 0 {
					return budget.Outcome{}, fault.BudgetRefusedForAll()
				}
				return l.Reserve(ctx, c)
			}}
		},
		"a cancel that gives the charge back": func() leaky {
			return leaky{expire: func(l budget.Ledger, ctx context.Context, id budget.ReservationID) error { return l.Void(ctx, id) }}
		},
		"answers of others for everybody": func() leaky {
			return leaky{replay: func(l budget.Ledger, ctx context.Context, c budget.Charge) (*budget.Stored, error) {
				c.Shared = true
				return l.Replay(ctx, c)
			}}
		},
		"a balance that others move": func() leaky {
			return leaky{balances: func(l budget.Ledger, ctx context.Context, ids []budget.AccountID) ([]budget.Balance, error) {
				all, err := l.Balances(ctx, ids)
				shared, _ := l.Balances(ctx, dataset)
				for i := range all {
					if all[i].ID.Scope == budget.AnalystScope && len(shared) > 0 {
						all[i].Busy = all[i].Busy.Add(time.Duration(shared[0].Used().Rho % 7))
						all[i].Spent.Delta += mechanisms.AttoDelta(shared[0].Used().Tail)
					}
				}
				return all, err
			}}
		},
	} {
		leak, same, _ := compare(t, shortPairs, func(w *world) {
			l := plant()
			l.Ledger = w.ledger
			w.Service.ledger, w.meter.ledger = l, l
		})
		if leak == "" {
			t.Errorf("%s is not seen in %d steps", name, same)
		}
	}
}
