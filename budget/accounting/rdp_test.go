package accounting

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
)

func TestRenyiCurvesMeetGoldenVectors(t *testing.T) {
	vectors(t, "rdp_curve", func(t *testing.T, v vector) {
		var e Event
		switch v.Inputs["mechanism"] {
		case "gaussian":
			e = event(t, continuousGaussianEvent, v.in(t, "noise_multiplier"))
		case "laplace":
			e = event(t, continuousLaplaceEvent, v.in(t, "eps"))
		case "pure_dp_worst_case":
			e = event(t, PureEvent, v.in(t, "eps"))
		case "exponential_mechanism_bounded_range":
			e = event(t, RangeEvent, v.in(t, "eps"))
		case "k_ary_randomized_response":
			var err error
			if e, err = randomizedResponseEvent(v.in(t, "noise_parameter"), v.in(t, "num_buckets").Num().Int64()); err != nil {
				t.Fatal(err)
			}
			above(t, "largest loss", e.model.epsilon(), v.out(t, "eps_pure"), 1e-14)
		default:
			t.Fatal("unknown mechanism")
		}
		curve := v.list(t, v.Outputs["rdp"])
		for i, alpha := range v.list(t, v.Inputs["orders"]) {
			// The curves themselves are float64; what rounding may lose, rdpEpsilon adds.
			if got := e.model.renyi(alpha); math.Abs(got/curve[i]-1) > v.RelTol {
				t.Errorf("order %g: %.15g, want %.15g", alpha, got, curve[i])
			}
		}
	})
}

func TestRDPMeetsGoldenVectors(t *testing.T) {
	vectors(t, "rdp_composed_eps", func(t *testing.T, v vector) {
		list, delta := v.events(t), v.num(t, "delta")
		got, _ := rdpEpsilon(list, delta)
		if want := v.out(t, "eps_continuous_alpha"); v.out(t, "alpha_opt") < 1e6 {
			above(t, "epsilon", got, want, v.RelTol)
		} else if exact := 1 + 2*math.Log1p(-delta); got < exact || got > want {
			// The record looked at orders up to 10⁷ only. It is one Laplace release at ε = 1, whose δ(ε) is 1-e^((ε-1)/2).
			t.Errorf("epsilon = %.15g, exact %.15g, the record has %.15g", got, exact, want)
		}
		rho := 0.0
		for _, r := range list {
			rho += float64(r.Times) * r.Event.model.rho()
		}
		if math.Abs(rho/v.out(t, "rho_sum_tight")-1) > v.RelTol {
			t.Errorf("rho = %.15g, want %.15g", rho, v.out(t, "rho_sum_tight"))
		}
		zcdp, _ := rdpEpsilon([]Repeated{{event(t, ZCDPEvent, new(big.Rat).SetFloat64(rho)), 1}}, delta)
		above(t, "epsilon of rho", zcdp, v.out(t, "eps_via_zcdp_tight"), v.RelTol)
	})
	vectors(t, "zcdp_to_delta", func(t *testing.T, v vector) {
		got, _ := rdpDelta([]Repeated{{event(t, ZCDPEvent, v.in(t, "rho")), 1}}, v.num(t, "eps"))
		above(t, "delta", got, v.out(t, "delta_tight"), v.RelTol)
		if got > v.out(t, "delta_simple") || got < v.out(t, "delta_gaussian_exact") {
			t.Errorf("delta = %g is not between the Gaussian's and the simple bound", got)
		}
	})
}

// Homogeneous pure releases: what all the theorems say, and that ours are the smallest sound figures.
func TestPureCompositionMeetsGoldenVectors(t *testing.T) {
	vectors(t, "composition_pure", func(t *testing.T, v vector) {
		eps, k, delta := v.in(t, "eps"), v.in(t, "k").Num().Int64(), v.num(t, "delta_slack")
		loss := mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(exact.FloorUnits(eps, int64(mechanisms.EpsilonUnit))) * mechanisms.PicoEpsilon(k)}
		above(t, "basic", float64(loss.Epsilon)*1e-12, v.out(t, "basic"), 1e-12)
		e := event(t, PureEvent, eps)
		tight := newPLD(t, Repeated{e, k}).epsilon(delta)
		above(t, "optimal", tight, v.out(t, "optimal_KOV"), pldEpsilonSlack)
		zcdp, _ := rdpEpsilon([]Repeated{{event(t, ZCDPEvent, new(big.Rat).SetFloat64(float64(k)*e.model.rho())), 1}}, delta)
		above(t, "zCDP", zcdp, v.out(t, "zcdp_tight_route"), v.RelTol)
		for _, looser := range []string{"advanced_DRV10", "advanced_tanh", "kov_loglog", "filter_whitehouse_2023"} {
			if zcdp > v.out(t, looser) {
				t.Errorf("zCDP gives %g, %s %g", zcdp, looser, v.out(t, looser))
			}
		}
	})
}

// The closed form of discrete Laplace noise's Rényi divergence, against its sum.
func TestDiscreteLaplaceRenyi(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := discreteLaplaceModel{float64(rapid.IntRange(1, 30).Draw(t, "shift")), rapid.Float64Range(1e-3, 2).Draw(t, "rate")}
		alpha := 1 + math.Exp(rapid.Float64Range(-3, 3).Draw(t, "ln x"))
		sum, tau := 0.0, math.Tanh(m.rate/2)
		far := math.Ceil(40 / m.rate)
		for x := -far; x <= far; x++ {
			loss := m.rate * (math.Abs(x-m.shift) - math.Abs(x))
			sum += tau * math.Exp(-m.rate*math.Abs(x)+(alpha-1)*(loss-m.epsilon()))
		}
		want := m.epsilon() + math.Log(sum)/(alpha-1)
		if got := m.renyi(alpha); got < want-1e-11 || got > want+1e-11 {
			t.Fatalf("D_%g = %.15g, want %.15g", alpha, got, want)
		}
	})
}

// Every accountant's ε is a sound one, so that a tighter accountant is never above a looser one: PLD <= RDP <= zCDP, and all <= Σε.
func TestAccountantsAreOrdered(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	checks := flag.Lookup("rapid.checks").Value
	defer func(before string) { _ = checks.Set(before) }(checks.String())
	if err := checks.Set(fmt.Sprint(randomtest.Part(15, 100))); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var list []Repeated
		for i := range rapid.IntRange(1, 3).Draw(t, "events") {
			shift := big.NewInt(rapid.Int64Range(1, 9).Draw(t, "shift"))
			scale := big.NewRat(rapid.Int64Range(10, 500).Draw(t, "scale"), 10)
			e, err := DiscreteLaplaceEvent(shift, scale)
			if i%2 == 1 {
				e, err = DiscreteGaussianEvent(shift, scale)
			}
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, Repeated{e, rapid.Int64Range(1, 20).Draw(t, "times")})
		}
		delta := math.Exp(rapid.Float64Range(-25, -5).Draw(t, "ln delta"))
		p, err := NewPLD(list)
		if err != nil {
			t.Fatal(err)
		}
		rho := 0.0
		for _, r := range list {
			rho += float64(r.Times) * r.Event.model.rho()
		}
		tight := p.epsilon(delta)
		rdp, _ := rdpEpsilon(list, delta)
		zcdp, _ := rdpEpsilon([]Repeated{{Event{name: "zcdp", model: zcdpModel{rho}}, 1}}, delta)
		if tight > rdp || rdp > zcdp*(1+1e-9) || tight > p.pure() {
			t.Fatalf("%v at %g: PLD %g, RDP %g, zCDP %g, sum %g", list, delta, tight, rdp, zcdp, p.pure())
		}
		if back := p.delta(tight * (1 + 1e-6)); tight > 0 && back > delta*(1+1e-6)+1e-20 {
			t.Fatalf("%v: epsilon(%g) = %g, whose delta is %g", list, delta, tight, back)
		}
	})
}

// What the ledger records is enough to compose again, and gives at least the charge's ρ.
func TestEventsOfRecordedParameters(t *testing.T) {
	laplace, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(3), Epsilon: mechanisms.EpsilonUnit / 7})
	if err != nil {
		t.Fatal(err)
	}
	gauss, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: big.NewInt(3), Variance: big.NewRat(100, 7)})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: big.NewInt(4), Rho: mechanisms.RhoUnit / 10})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := mechanisms.NewShownCount(mechanisms.ShownCountParameters{Epsilon: mechanisms.EpsilonUnit / 3, Delta: 1_000_000_000_007,
		PerGroup: big.NewInt(2), Total: big.NewInt(5)})
	if err != nil {
		t.Fatal(err)
	}
	threshold, err := mechanisms.NewGaussianThreshold(mechanisms.GaussianThresholdParameters{Rho: mechanisms.RhoUnit / 8, Delta: 1000, L0: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []interface {
		Parameters() mechanisms.Parameters
		Loss() mechanisms.Loss
	}{laplace, gauss, whole, threshold, shown} {
		e, err := eventOf(m.Parameters())
		if err != nil {
			t.Fatal(err)
		}
		if got := e.model.rho() * 1e12; math.Abs(got-float64(m.Loss().Rho)) > 1+1e-9*got {
			t.Errorf("%v: rho %g, the charge was %d", e, got, m.Loss().Rho)
		}
		if e.loss.Delta != m.Loss().Delta {
			t.Errorf("%v: delta %v, the charge was %v", e, e.loss.Delta, m.Loss().Delta)
		}
	}
	for _, p := range []mechanisms.Parameters{{}, {Mechanism: "rounding"},
		{Mechanism: mechanisms.DiscreteLaplace, Sensitivity: "x", Scale: "1"},
		{Mechanism: mechanisms.DiscreteLaplace, Sensitivity: "1"}, {Mechanism: mechanisms.DiscreteGaussian, Sensitivity: "1", Variance: "0"},
		{Mechanism: mechanisms.ExponentialMechanism}, {Mechanism: mechanisms.GaussianThresholding, Sensitivity: "1", Variance: "1", Delta: "1"}} {
		if e, err := eventOf(p); err == nil {
			t.Errorf("%+v is %v", p, e)
		}
	}
}

// The δ of a selection comes off the δ of the conversion, and never fits twice.
func TestDeltaOfEventsIsKept(t *testing.T) {
	e, err := ApproxEvent(big.NewRat(1, 10), big.NewRat(1, 1e7))
	if err != nil {
		t.Fatal(err)
	}
	list := []Repeated{{e, 10}}
	for _, delta := range []mechanisms.AttoDelta{mechanisms.DeltaUnit / 1e7, mechanisms.DeltaUnit/1e6 - 1e9} {
		if eps, ok := RDPEpsilon(list, delta); ok {
			t.Errorf("RDP at %d: %d", delta, eps)
		}
		if eps, ok := newPLD(t, list...).Epsilon(delta); ok {
			t.Errorf("PLD at %d: %d", delta, eps)
		}
	}
	rdp, ok := RDPEpsilon(list, 2*mechanisms.DeltaUnit/1e6)
	tight, ok2 := newPLD(t, list...).Epsilon(2 * mechanisms.DeltaUnit / 1e6)
	if !ok || !ok2 || tight > rdp || tight > mechanisms.EpsilonUnit+10 || tight < mechanisms.EpsilonUnit/2 {
		t.Errorf("RDP %d %v, PLD %d %v", rdp, ok, tight, ok2)
	}
	if d := RDPDelta(list, mechanisms.EpsilonUnit); d < mechanisms.DeltaUnit/1e6-1e6 {
		t.Error(fmt.Sprint("RDP's delta is ", d))
	}
}

// Where ε is small, its first order cancels in E[e^L] - 1. At order 2 that is 4·sinh²(ε/2) for randomized response between two answers, and
// (2e^ε + e^-2ε)/3 - 1 = ε² - ε³/3 + ε⁴/4 - ... for Laplace noise.
func TestRenyiCurvesRoundUpForWeakReleases(t *testing.T) {
	const alpha = 2
	for i := range 1000 {
		eps := 1e-6 * math.Exp(float64(i)*0.002)
		sinh := math.Sinh(eps / 2)
		pure := math.Log1p(4 * sinh * sinh)
		if got := (pureModel{eps}).renyi(alpha); math.Abs(got/pure-1) > 16*unitRoundoff {
			t.Fatalf("pure %g: %.17g, want %.17g", eps, got, pure)
		}
		laplace := math.Log1p(eps*eps - eps*eps*eps/3 + eps*eps*eps*eps/4)
		if got := (laplaceModel{eps}).renyi(alpha); got < laplace || got > laplace*(1+1e-8) {
			t.Fatalf("laplace %g: %.17g, want %.17g", eps, got, laplace)
		}
	}
	// An honest answer in 10⁹: ε = ln(1+2·honest/lie).
	lie := big.NewRat(999_999_999, 1_000_000_000)
	response, err := randomizedResponseEvent(lie, 2)
	if err != nil {
		t.Fatal(err)
	}
	above(t, "ε of hardly any truth", response.model.epsilon(), math.Log1p(2.0/999_999_999), 1e-14)
}

// Just below its pure ε, one release of randomized response between two answers is (ε', δ)-DP with δ =
// (1-e^(ε'-ε))/(1+e^-ε) exactly. The best orders are huge there, and multiply rounding errors.
func TestRDPRoundsUpNearPureEpsilon(t *testing.T) {
	for i := range 200 {
		eps, gap := math.Exp(0.05*float64(i)-12), math.Exp(-17-0.03*float64(i%40))*math.Exp(0.05*float64(i)-12)
		list := []Repeated{{Event{name: "pure", model: pureModel{eps}}, 1}}
		below := eps - gap
		delta := -math.Expm1(below-eps) / (1 + math.Exp(-eps))
		if got, order := rdpDelta(list, below); got < delta {
			t.Errorf("ε %g less %g: δ = %.17g, exact %.17g (order %g)", eps, gap, got, delta, order)
		}
		if got, order := rdpEpsilon(list, delta); got < below-unitRoundoff*below {
			t.Errorf("ε %g at δ %g: %.17g, exact %.17g (order %g)", eps, delta, got, below, order)
		}
	}
}
