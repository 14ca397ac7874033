package budget

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/mechanisms"
)

func anyLoss(t *rapid.T, name string, most int64) mechanisms.Loss {
	l := mechanisms.Loss{
		Epsilon: mechanisms.PicoEpsilon(rapid.Int64Range(0, most).Draw(t, name+" ε")),
		Rho:     mechanisms.PicoRho(rapid.Int64Range(0, most).Draw(t, name+" ρ")),
		Delta:   mechanisms.AttoDelta(rapid.Int64Range(0, most).Draw(t, name+" δ")),
	}
	if l.Unbounded = rapid.Bool().Draw(t, name+" unbounded"); l.Unbounded {
		l.Epsilon = 0
	} else if rapid.Bool().Draw(t, name+" with a tail") {
		l.Tail = mechanisms.AttoDelta(rapid.Int64Range(1, 4).Draw(t, name+" tail"))
	}
	return l
}

func anyLimit(t *rapid.T, most int64) Limit {
	return Limit{
		Form:    Approx,
		Epsilon: mechanisms.PicoEpsilon(rapid.Int64Range(Never, most).Draw(t, "cap ε")),
		Rho:     mechanisms.PicoRho(rapid.Int64Range(Never, most).Draw(t, "cap ρ")),
		Delta:   mechanisms.AttoDelta(rapid.Int64Range(10, most+10).Draw(t, "cap δ")),
		// Room for up to 10 tails.
		TotalDelta: mechanisms.AttoDelta(rapid.Int64Range(0, 10*32).Draw(t, "declared δ")),
	}
}

// What is admitted keeps the rule, and admission is monotone: less used, a smaller charge or a larger cap never hurts.
func TestAdmission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, used, charge := anyLimit(t, 20), anyLoss(t, "used", 15), anyLoss(t, "charge", 15)
		after := used.Plus(charge)
		room := limit.TotalDelta / 32
		pureHolds := !after.Unbounded && limit.Epsilon != Never && after.Epsilon <= limit.Epsilon && after.Tail <= room
		rhoHolds := limit.Rho != Never && after.Rho <= limit.Rho
		want := after.Delta+min(after.Tail, room) <= limit.Delta && (pureHolds || rhoHolds)
		if got := limit.Admits(used, charge); got != want {
			t.Fatalf("%+v, used %+v, charge %+v: got %v", limit, used, charge, got)
		}
		if !want {
			return
		}
		less := anyLoss(t, "less", 15)
		less = mechanisms.Loss{Epsilon: min(less.Epsilon, charge.Epsilon), Rho: min(less.Rho, charge.Rho), Delta: min(less.Delta, charge.Delta),
			Unbounded: less.Unbounded && charge.Unbounded, Tail: min(less.Tail, charge.Tail)}
		if !limit.Admits(used, less) || !limit.Admits(less, used) {
			t.Fatalf("%+v, used %+v: %+v is admitted, the smaller %+v is not", limit, used, charge, less)
		}
	})
}

func TestAdmissionNeverWrapsAround(t *testing.T) {
	limit := Limit{Form: Approx, Epsilon: math.MaxInt64, Rho: math.MaxInt64, Delta: math.MaxInt64}
	for _, l := range []mechanisms.Loss{{Epsilon: math.MaxInt64}, {Rho: math.MaxInt64}, {Delta: math.MaxInt64}} {
		if limit.Admits(mechanisms.Loss{}, l) || limit.Admits(l, mechanisms.Loss{Epsilon: 1}) || limit.Admits(l, l) {
			t.Errorf("%+v is admitted", l)
		}
	}
}

// Times is what counting would give.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, used, charge := anyLimit(t, 60), anyLoss(t, "used", 15), anyLoss(t, "charge", 10)
		charge.Rho++ // else it may fit for ever
		charge.Epsilon++
		charge = InLedger(charge)
		want, sum := int64(0), used
		for limit.Admits(sum, charge) {
			sum = sum.Plus(charge)
			want++
		}
		if got := Times(limit, used, charge); got != want {
			t.Fatalf("%+v, used %+v, charge %+v: got %d, want %d", limit, used, charge, got, want)
		}
	})
	if n := Times(Limit{Form: Pure, Epsilon: 10, Rho: Never, ReplayOnly: true}, mechanisms.Loss{}, mechanisms.Loss{Epsilon: 1}); n != 0 {
		t.Errorf("replay only: %d", n)
	}
	if n := Times(Limit{Form: Pure, Epsilon: 10, Rho: Never, PerQuery: 1}, mechanisms.Loss{}, mechanisms.Loss{Epsilon: 2}); n != 0 {
		t.Errorf("above the cap on a query: %d", n)
	}
	if n := Times(Limit{Form: Pure, Epsilon: 10, Rho: Never}, mechanisms.Loss{}, mechanisms.Loss{}); n != math.MaxInt64 {
		t.Errorf("for free: %d", n)
	}
}

// An affordable ε is one that is admitted, as any pure mechanism, and a little more is not.
func TestAffordable(t *testing.T) {
	pureLoss := func(eps mechanisms.PicoEpsilon) mechanisms.Loss {
		e := float64(eps) / float64(mechanisms.EpsilonUnit)
		return mechanisms.Loss{Epsilon: eps, Rho: mechanisms.PicoRho(math.Ceil(e * math.Tanh(e/2) * float64(mechanisms.RhoUnit)))}
	}
	amount := func(t *rapid.T, name string) int64 {
		if rapid.Bool().Draw(t, name+" closed") {
			return Never
		}
		return int64(math.Pow(10, rapid.Float64Range(6, 15).Draw(t, "log10 "+name)))
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{Form: Approx, Epsilon: mechanisms.PicoEpsilon(amount(t, "ε")), Rho: mechanisms.PicoRho(amount(t, "ρ"))}
		used := mechanisms.Loss{Unbounded: rapid.Bool().Draw(t, "unbounded"),
			Rho: mechanisms.PicoRho(rapid.Int64Range(0, 1_000_000).Draw(t, "used"))}
		if used.Rho > limit.Rho && (used.Unbounded || limit.Epsilon == Never) {
			return
		}
		eps := Affordable(limit, used)
		if !limit.Admits(used, pureLoss(eps)) {
			t.Fatalf("%+v, used %+v: ε %d is not admitted", limit, used, eps)
		}
		// 10⁻¹² of ρ is as much as 1.4·10⁻⁶ of ε when there is hardly any.
		if more := eps + eps/1000 + 2_000_000; limit.Admits(used, pureLoss(more)) {
			t.Fatalf("%+v, used %+v: ε %d is admitted as well as %d", limit, used, more, eps)
		}
		least := mechanisms.PicoEpsilon(rapid.Int64Range(0, 2*int64(eps)).Draw(t, "least"))
		said := shortage(limit, used, Charge{Loss: pureLoss(eps + 1), Least: least}).AffordableEpsilon
		if want := eps.String(); said != want && (said != "0" || eps >= least) || said == want && eps > 0 && eps < least {
			t.Fatalf("%+v, used %+v: ε %s is said to fit, %d does, and %d is the least", limit, used, said, eps, least)
		}
	})
	if eps := Affordable(Limit{Form: Pure, Epsilon: 10, Rho: Never, PerQuery: 3}, mechanisms.Loss{}); eps != 3 {
		t.Errorf("above the cap on a query: %d", eps)
	}
	if eps := Affordable(Limit{Form: Pure, Epsilon: 10, Rho: Never, ReplayOnly: true}, mechanisms.Loss{}); eps != 0 {
		t.Errorf("replay only: %d", eps)
	}
	if eps := Affordable(Limit{Form: Pure, Epsilon: 10, Rho: Never}, mechanisms.Loss{Delta: 1}); eps != 0 {
		t.Errorf("with more δ spent than there is: %d", eps)
	}
}

// TestOneGaussianReleaseLeavesTheRest: the table of docs/accounting.md, of what one Gaussian release of somebody else
// leaves to those who use Laplace noise.
//
// covers: L3
func TestOneGaussianReleaseLeavesTheRest(t *testing.T) {
	of := func(epsilon, delta *big.Rat) Limit {
		limit, err := NewLimit(LimitSpec{Form: Approx, Epsilon: epsilon, Delta: delta})
		if err != nil {
			t.Fatal(err)
		}
		return limit
	}
	large, small := of(big.NewRat(20, 1), big.NewRat(1, 1_000_000)), of(big.NewRat(3, 1), big.NewRat(1, 10_000_000))
	at := func(epsilon mechanisms.PicoEpsilon) mechanisms.Loss { // by its Σε alone
		return mechanisms.Loss{Epsilon: epsilon, Rho: math.MaxInt64 / 100}
	}
	for _, c := range []struct {
		rho         mechanisms.PicoRho
		ones, halfs int64
	}{
		{1, 19, 5},
		{mechanisms.RhoUnit / 10_000, 19, 5},
		{mechanisms.RhoUnit / 100, 18, 3},
	} {
		used := InLedger(mechanisms.Loss{Rho: c.rho, Unbounded: true})
		if n := Times(large, used, at(mechanisms.EpsilonUnit)); n != c.ones {
			t.Errorf("after ρ %s (20, 10⁻⁶) gives %d answers at ε 1, want %d", c.rho, n, c.ones)
		}
		if n := Times(small, used, at(mechanisms.EpsilonUnit/2)); n != c.halfs {
			t.Errorf("after ρ %s (3, 10⁻⁷) gives %d answers at ε 0.5, want %d", c.rho, n, c.halfs)
		}
	}
}
