package gateway

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// refusing is a server that does not take a statement where err is set.
type refusing struct{ err error }

func (r refusing) Dry(context.Context, string, ...sqlrewrite.DryRun) (bool, error) {
	return true, r.err
}

// ordered is an order for one answer at ε 1.
func (r *rig) ordered(t *testing.T, who auth.Principal) *Order {
	t.Helper()
	o, err := r.Order(t.Context(), who, "d", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Keep("test ", "answer"); err != nil {
		t.Fatal(err)
	}
	o.Charge.Fingerprint = [32]byte{1}
	o.Price(mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit}, nil)
	return o
}

// TestSell sells orders with every set of reasons for a refusal, with and without a stored answer. A stored answer is given again, whatever
// the reasons. A refused order does not change the ledger, and runs nothing.
func TestSell(t *testing.T) {
	ana := principal(t, "ana", "analysts")
	untaken := fault.DataUnavailable(errors.New("the server does not take it"))
	for set := range 64 {
		has := func(bit int) bool { return set>>bit&1 == 1 }
		r, runs := newRig(t), 0
		sell := func(o *Order, looks bool, dry error) (Receipt, error) {
			return Sell(t.Context(), r.Service, r.unscheduled(), Sale[string]{Order: o, Looks: looks, Data: refusing{dry},
				Tries: func(context.Context) ([]sqlrewrite.DryRun, error) { return nil, nil },
				Work: func(context.Context) (Finish[string], error) {
					runs++
					return Done("answer", o.Charge.Loss), nil
				}})
		}
		bought := has(0)
		if bought {
			if _, err := sell(r.ordered(t, ana), false, nil); err != nil {
				t.Fatal(err)
			}
		}
		o, want, dry := r.ordered(t, ana), fault.Code(""), error(nil)
		if has(1) {
			dry, want = untaken, fault.CodeDataUnavailable
		}
		if has(2) {
			o.Charge.Ceiling = &budget.Ceiling{Epsilon: mechanisms.PicoEpsilon(1).Rat()}
			want = fault.CodeBudgetOverAtMost
		}
		if has(3) {
			o.Accounts.failed = o.Accounts.failures
			want = fault.CodeBudgetFailures
		}
		if has(4) {
			o.Refusal, want = fault.PolicyStale(), fault.CodePolicyStale
		}
		before, began := r.entries(t), runs
		paid, err := sell(o, has(5), dry)
		switch changed := !reflect.DeepEqual(before, r.entries(t)); {
		case bought:
			if err != nil || !paid.Replayed || string(paid.Answer) != `"answer"` || !paid.Spent.IsZero() || changed || runs != began {
				t.Errorf("%06b: the stored answer: %+v, %v", set, paid, err)
			}
		case want != "":
			if fault.CodeOf(err) != want || changed || runs != began {
				t.Errorf("%06b: %v, want %v; the ledger changed: %t", set, err, want, changed)
			}
		case err != nil || paid.Replayed || paid.Spent.Epsilon != mechanisms.EpsilonUnit || runs != began+1:
			t.Errorf("%06b: a new answer: %+v, %v", set, paid, err)
		}
	}
}

func (r *rig) entries(t *testing.T) []budget.Entry {
	t.Helper()
	all, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 100, Dataset: "d"})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
