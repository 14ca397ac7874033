package budget

import (
	"fmt"
	"math"
	"testing"

	"noisegate.example/mechanisms"
)

// A menu item is a mechanism with two neighbours' laws of its answer, and the loss that it is charged with.
type menuItem struct {
	name    string
	p, q    []float64
	loss    mechanisms.Loss
	settles []mechanisms.Loss // by answer, where that decides what is spent: at most loss; nil: loss
}

// spends is what is counted once there is an answer.
func (m menuItem) spends(answer int) mechanisms.Loss {
	if m.settles != nil {
		return m.settles[answer]
	}
	return m.loss
}

// mostOfEach bounds how often a mechanism is asked, for rules that would let it be asked for ever.
const mostOfEach = 2

// searcher finds the worst of all analysts who choose each of the next mechanisms in the light of earlier answers, as
// long as a rule admits it: the largest P(S) - e^E·Q(S) over events S. It is exact but for floating point, as it tries
// every choice at every point, each mechanism at most mostOfEach times.
type searcher struct {
	epsilon float64
	menu    []menuItem
	admits  func(used, charge mechanisms.Loss) bool
	known   map[string]float64
}

// worst is what the analyst can gain from here on, for each unit of P that leads here: used is what was charged so far,
// lost the loss of the answers.
func (s *searcher) worst(counts []int, used mechanisms.Loss, lost float64) float64 {
	if math.IsInf(lost, 1) {
		return 1 // the answer told which neighbour it is
	}
	key := fmt.Sprintf("%v %.9f %v", counts, lost, used)
	if v, ok := s.known[key]; ok {
		return v
	}
	best := max(0, -math.Expm1(s.epsilon-lost)) // who stops here
	for i, m := range s.menu {
		if counts[i] == mostOfEach || !s.admits(used, m.loss) {
			continue
		}
		next := append([]int{}, counts...)
		next[i]++
		sum := 0.0
		for o, p := range m.p {
			if p > 0 {
				sum += p * s.worst(next, used.Plus(m.spends(o)), lost+math.Log(p/m.q[o]))
			}
		}
		best = max(best, sum)
	}
	s.known[key] = best
	return best
}

// randomizedResponse is the worst ε-DP mechanism. With the probability of its second number (a δ or a tail) it reveals everything instead.
func randomizedResponse(name string, epsilon, tells float64, loss mechanisms.Loss) menuItem {
	p := (1 - tells) / (1 + math.Exp(-epsilon))
	return menuItem{name: name, p: []float64{tells, p, 1 - tells - p, 0}, q: []float64{0, 1 - tells - p, p, tells}, loss: loss}
}

// rareLoss loses much, seldom: with probability tail the answer has a loss of large.
func rareLoss(name string, tail, large float64, loss mechanisms.Loss) menuItem {
	rare := tail * math.Exp(-large)
	return menuItem{name: name, p: []float64{tail, rare, 1 - tail - rare}, q: []float64{rare, tail, 1 - tail - rare}, loss: loss}
}

// checked is a check and, if that passes, an answer: the answers decide what is spent, nothing or epsilon. Each by
// itself keeps what it is charged but for a tail: of those whose check fails one has lost epsilon, which is more than
// nothing; of the others one has lost far more.
func checked(name string, epsilon, tail float64, loss mechanisms.Loss) menuItem {
	m := menuItem{name: name, loss: loss}
	failed := loss
	failed.Epsilon = 0
	for _, level := range []struct {
		large float64
		loss  mechanisms.Loss
	}{{epsilon, failed}, {epsilon + 20, loss}} {
		rare := tail * math.Exp(-level.large)
		rest := 0.5 - tail - rare
		m.p, m.q = append(m.p, tail, rare, rest), append(m.q, rare, tail, rest)
		m.settles = append(m.settles, level.loss, level.loss, level.loss)
	}
	return m
}

// rhoOf is the smallest ρ with which a pair of laws is ρ-zCDP, on a grid of orders, and a little more for what lies between.
func rhoOf(m menuItem) float64 {
	most := 0.0
	for order := 1.001; order < 400; order *= 1.01 {
		forward, backward := 0.0, 0.0
		for o := range m.p {
			if m.p[o] > 0 {
				forward += m.p[o] * math.Exp((order-1)*math.Log(m.p[o]/m.q[o]))
				backward += m.q[o] * math.Exp((order-1)*math.Log(m.q[o]/m.p[o]))
			}
		}
		most = max(most, math.Log(max(forward, backward))/(order-1)/order)
	}
	return most * 1.02
}

// No analyst who chooses each mechanism in the light of earlier answers gets more out of an approx account than (E, δ). [searcher] searches
// exhaustively, over mechanisms that are as bad as their losses let them be in one currency each. It finds rules broken that leave out one
// of the conditions.
//
// covers: L3
func TestNoAdaptiveAnalystBreaksTheRule(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	atto := func(x float64) mechanisms.AttoDelta { return mechanisms.AttoDelta(math.Round(x * 1e18)) }
	pico := func(x float64) int64 { return int64(math.Ceil(x * 1e12)) }
	const never = 1_000_000_000_000_000_000 // of ρ, for what has none
	delta, seen := 0.32, map[string]float64{}
	for _, epsilon := range []float64{1, 2.5, 4} {
		limit := Limit{Form: Approx, Epsilon: mechanisms.PicoEpsilon(pico(epsilon)), TotalDelta: atto(delta)}.derived()
		room := float64(limit.tails()) / 1e18
		half := epsilon / 2
		menu := []menuItem{
			// (ε, 0), (ε, τ) where all of τ reveals everything, and a coin that does.
			randomizedResponse("pure", half, 0, mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(pico(half)),
				Rho: mechanisms.PicoRho(pico(half * math.Tanh(half/2)))}),
			randomizedResponse("tail", half, room/2, mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(pico(half)), Rho: never, Tail: atto(room / 2)}),
			randomizedResponse("wide tail", 0, 0.1, mechanisms.Loss{Rho: never, Tail: atto(0.1)}),
			randomizedResponse("all coins", 0, delta/2, mechanisms.Loss{Delta: atto(delta / 2)}),
		}
		// What is ρ-zCDP and seldom loses much: as the ledger counts it, but with a tail that can be seen, and, in another account, with none.
		for _, tail := range []float64{room / 2, 0.1} {
			m := rareLoss(fmt.Sprintf("rare %.3f", tail), tail, epsilon+1, mechanisms.Loss{})
			m.loss.Rho = mechanisms.PicoRho(pico(rhoOf(m)))
			if m.loss.Unbounded = tail > room; !m.loss.Unbounded {
				m.loss.Tail = atto(tail) // with no loss at all outside of it
			}
			menu = append(menu, m)
		}
		// Half of the ρ, at once lost or nearly so.
		gauss := math.Sqrt(float64(limit.Rho) / 1e12)
		menu = append(menu, randomizedResponse("half of rho", gauss, 0,
			mechanisms.Loss{Unbounded: true, Rho: mechanisms.PicoRho(pico(gauss * math.Tanh(gauss/2)))}))

		search := func(admits func(used, charge mechanisms.Loss) bool) float64 {
			s := searcher{epsilon, menu, func(used, charge mechanisms.Loss) bool {
				return !charge.IsZero() && admits(used, charge)
			}, map[string]float64{}}
			return s.worst(make([]int, len(menu)), mechanisms.Loss{}, 0)
		}
		kept := search(limit.Admits)
		if kept > delta*(1+1e-9) {
			t.Errorf("ε %g: an analyst gets a δ of %.6f out of %g", epsilon, kept, delta)
		}
		without := map[string]func(used, charge mechanisms.Loss) bool{
			"tails without bound": func(used, charge mechanisms.Loss) bool {
				after := used.Plus(charge)
				after.Tail = 0
				return limit.covers(after)
			},
			"the whole of δ for coins": func(used, charge mechanisms.Loss) bool {
				wide := limit
				wide.Delta = limit.TotalDelta
				return wide.Admits(used, charge)
			},
			"both clauses apart": func(used, charge mechanisms.Loss) bool {
				after := used.Plus(charge)
				return after.Delta <= limit.Delta && (after.Epsilon <= 2*limit.Epsilon || after.Rho <= limit.Rho)
			},
		}
		for name, rule := range without {
			broken := search(rule)
			t.Logf("ε %g: the rule gives %.6f of %g, %s %.6f", epsilon, kept, delta, name, broken)
			seen[name] = max(seen[name], broken)
		}
	}
	for name, broken := range seen {
		if broken <= delta {
			t.Errorf("%s gives %.6f: the search cannot see a rule that is broken", name, broken)
		}
	}
}

// The ε clause alone, Σε <= E and Στ <= T, is (E, T)-DP, also where answers decide what is spent, if such a charge has
// a tail for each level that it may settle at. With one for all of them an analyst gets more than T.
//
// covers: L3
func TestEachLevelHasATail(t *testing.T) {
	const tails = 0.01
	for _, epsilon := range []float64{1, 2.5, 4} {
		loss := func(epsilon, tail float64) mechanisms.Loss {
			return mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(math.Ceil(epsilon * 1e12)), Tail: mechanisms.AttoDelta(math.Round(tail * 1e18))}
		}
		menu := []menuItem{randomizedResponse("pure", epsilon, 0, loss(epsilon, 0)), randomizedResponse("half", epsilon/2, 0, loss(epsilon/2, 0))}
		for _, tail := range []float64{tails, tails / 2, tails / 4} {
			menu = append(menu, checked(fmt.Sprint("checked ", tail), epsilon/2, tail, loss(epsilon/2, 2*tail)))
		}
		search := func(tailsAt int64) float64 {
			s := searcher{epsilon, menu, func(used, charge mechanisms.Loss) bool {
				after := used.Plus(charge)
				return after.Epsilon <= loss(epsilon, 0).Epsilon && int64(after.Tail)*tailsAt <= int64(loss(0, tails).Tail)*2
			}, map[string]float64{}}
			return s.worst(make([]int, len(menu)), mechanisms.Loss{}, 0)
		}
		kept, broken := search(2), search(1)
		t.Logf("ε %g: %.6f of %g with a tail for each level, %.6f with one for both", epsilon, kept, tails, broken)
		if kept > tails*(1+1e-9) || broken <= tails {
			t.Errorf("ε %g: an analyst gets a δ of %.6f out of %g, and %.6f where levels do not count", epsilon, kept, tails, broken)
		}
	}
}
