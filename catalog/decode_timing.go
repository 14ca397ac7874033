package catalog

import (
	"math/big"
	"time"

	"noisegate.example/mechanisms"
)

// Timing puts the time that an answer takes into the guarantee: answers are delayed at random, and charged for that.
// Unit is the steward's word: adding or removing one unit changes the time of one question's work by at most that much.
type Timing struct {
	Unit    time.Duration // whole microseconds
	Epsilon mechanisms.PicoEpsilon
	Delta   mechanisms.AttoDelta
}

// maxDelay bounds the delay on average: a longer one is a slip, not a service.
const maxDelay = 10 * time.Second

// Delay is the delay that the policy asks for, in microseconds; nil for none.
func (t *Timing) Delay() (*mechanisms.Delay, error) {
	if t == nil {
		return nil, nil
	}
	return mechanisms.NewDelay(mechanisms.DelayParameters{Unit: t.Unit.Microseconds(), Epsilon: t.Epsilon, Delta: t.Delta})
}

// timing reads what is charged for hiding how long answers take.
func (d *decoder) timing(n *node) *Timing {
	t, before := &Timing{}, len(d.problems)
	amount := func(n *node, name, lo, hi string) string {
		if v := d.amount(n, name, lo, hi); v != nil {
			return n.text
		}
		return "0.001" // any that can be read
	}
	var err error
	d.fields(n, "timing", map[string]func(*node){
		"unit_ms": func(n *node) {
			v := d.amount(n, "unit_ms", "0.001", "10000")
			if v == nil {
				return
			}
			if v.Mul(v, big.NewRat(1000, 1)); !v.IsInt() {
				d.problem(n.pos, "", "unit_ms must be a whole number of microseconds, such as 5 or 0.25")
				return
			}
			t.Unit = time.Duration(v.Num().Int64()) * time.Microsecond
		},
		"epsilon": func(n *node) {
			if t.Epsilon, err = mechanisms.ParseEpsilon(amount(n, "epsilon", "0.001", "10")); err != nil {
				d.problem(n.pos, "", "epsilon must have at most 12 decimals")
			}
		},
		"delta": func(n *node) {
			if t.Delta, err = mechanisms.ParseDelta(amount(n, "delta", minDelta, maxDelta)); err != nil {
				d.problem(n.pos, "", "delta must have at most 18 decimals")
			}
		},
	})
	if len(d.problems) > before {
		return nil
	}
	if t.Unit == 0 || t.Epsilon == 0 || t.Delta == 0 {
		d.problem(n.pos, "", "timing has unit_ms, epsilon and delta, such as {unit_ms: 5, epsilon: 0.5, delta: 1e-9}")
		return nil
	}
	delay, err := t.Delay()
	if err != nil || delay.Shift() > maxDelay.Microseconds() {
		d.problem(n.pos, "give more epsilon, or a smaller unit_ms", "timing would delay each answer by more than %s on average", maxDelay)
		return nil
	}
	return t
}

// checkTiming holds timing against the budgets: it costs δ, which pure ones have not.
func (d *decoder) checkTiming(root *node, p *Policy) {
	if p.Timing == nil || len(d.problems) > 0 {
		return
	}
	for _, e := range root.entries {
		if e.key.text != "budgets" {
			continue
		}
		for i, b := range p.Budgets {
			if b.Form != "" && (b.Form == Pure || b.Delta == nil) {
				d.problem(e.value.items[i].pos, "give it the form approx, or zcdp with a delta, or leave timing out",
					"this budget cannot pay for timing, which costs delta")
			}
		}
	}
}
