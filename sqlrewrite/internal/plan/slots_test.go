package plan_test

import (
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// Slots decide the noise and nothing else: statement, post-processing query and identity stay what they were.
func TestWithSlots(t *testing.T) {
	o := rewritetest.Sharp()
	o.Mechanism = plan.MechanismAuto
	p := rewritetest.TownPlan(t, "SELECT sex, avg(age) AS a, count(*) AS n FROM people GROUP BY sex ORDER BY n", o)
	slots := []mechanisms.Slot{{Epsilon: mechanisms.EpsilonUnit / 10}, {Rho: mechanisms.RhoUnit / 200}, {Epsilon: 1}}
	fixed, err := pipeline.WithSlots(p, slots)
	if err != nil {
		t.Fatal(err)
	}
	if p.Slots() != 2 || fixed.Fingerprint() != p.Fingerprint() || fixed.Parts[0].Statement.SQL != p.Parts[0].Statement.SQL ||
		fixed.Post != p.Post {
		t.Errorf("%d slots; another question", p.Slots())
	}
	want := mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 10, Unbounded: true, Rho: mechanisms.RhoUnit / 200}
	want.Rho += fixed.Releases[0].Mechanism.Loss().Rho
	if got := fixed.Loss(); got != want {
		t.Errorf("loss %+v, want %+v", got, want)
	}
	// avg is a sum of age-50, which a person moves by 50, and a count.
	if got := fixed.Mechanisms(); got[0].Scale != "500" || got[1].Variance != "100" || len(got) != 2 {
		t.Errorf("%+v", got)
	}
	n := answer.Columns(fixed)[2]
	if n.Mechanism != mechanisms.DiscreteGaussian || n.Scale != "100" || n.HalfWidth == nil ||
		n.HalfWidth.Cmp(answer.Columns(p)[2].HalfWidth) <= 0 {
		t.Errorf("%+v", n)
	}
	if p.Releases[1].Mechanism.Name() != mechanisms.DiscreteLaplace {
		t.Error("the plan that was given changed")
	}
}

func TestWithSlotsRefuses(t *testing.T) {
	laplace, gaussian := mechanisms.Slot{Epsilon: 1}, mechanisms.Slot{Rho: 1}
	for name, c := range map[string]struct {
		sql       string
		mechanism plan.MechanismChoice
		slots     []mechanisms.Slot
		code      fault.Code
	}{
		"too few": {"SELECT avg(age) FROM people", plan.MechanismAuto, []mechanisms.Slot{laplace}, fault.CodePlanExhausted},
		"none":    {"SELECT count(*) FROM people", plan.MechanismAuto, nil, fault.CodePlanExhausted},
		"private keys": {"SELECT country, count(*) FROM people GROUP BY country", plan.MechanismAuto, []mechanisms.Slot{laplace, laplace},
			fault.CodeSlotMismatch},
		"asks for Laplace": {"SELECT avg(age) FROM people", plan.MechanismLaplace, []mechanisms.Slot{laplace, gaussian}, fault.CodeSlotMismatch},
		"no slot at all":   {"SELECT count(*) FROM people", plan.MechanismAuto, []mechanisms.Slot{{}}, fault.CodeInternal},
	} {
		o := rewritetest.Sharp()
		o.Mechanism = c.mechanism
		if _, err := pipeline.WithSlots(rewritetest.TownPlan(t, c.sql, o), c.slots); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
