package local

import (
	"math"
	"math/big"
	"slices"

	"noisegate.example/internal/exact"
)

// support is with which probability a report speaks for a value: if it is the device's, and if it is not.
type support struct{ p, q float64 }

// moment estimates how many devices have a value that so many of the reports speak for: (c-n·q)/(p-q), without bias.
func (s support) moment(count, reports int64) moment {
	n := float64(reports)
	value := (float64(count) - n*s.q) / (s.p - s.q)
	share := 0.0
	if reports > 0 {
		share = min(max(value/n, 0), 1)
	}
	return moment{value: value, variance: s.variance(share, n)}
}

// variance of the estimate if that share of the devices has the value.
func (s support) variance(share, reports float64) float64 {
	return reports * (share*s.p*(1-s.p) + (1-share)*s.q*(1-s.q)) / ((s.p - s.q) * (s.p - s.q))
}

func (s support) moments(cells []int64, reports int64) []moment {
	list := make([]moment, len(cells))
	for i, count := range cells {
		list[i] = s.moment(count, reports)
	}
	return list
}

func (s support) worst() float64 { return s.variance(0, 1) }

// response is k-ary randomised response: the truth with probability p = e^ε/(e^ε+k-1), each other value with q = 1/(e^ε+k-1).
type response struct {
	window
	support
}

func newResponse(p Parameters) response {
	w := newWindow(p.Epsilon.Rat(), uint64(p.Size), 1)
	return response{w, support{float(w.hit()), float(w.miss())}}
}

func (m response) report(s source, truth []int64) Report { return Report{m.window.report(s, truth[0])} }
func (m response) valid(r Report) bool                   { return r.within(1, m.classes) }
func (m response) cells() int                            { return int(m.classes) }
func (m response) add(cells []int64, r Report)           { cells[r[0]]++ }
func (m response) estimate(cells []int64, n int64) []moment {
	return m.moments(cells, n)
}

func (m response) constants() []Constant {
	return []Constant{{"uniform", m.uniform()}, {"p", m.hit()}, {"q", m.miss()}}
}

// unary reports a bit for each value: the one of the truth is set with probability set/2⁵³, each other with other/2⁵³.
//
// Guarantee: two truths differ in two bits. Symmetric (SUE): p = 1-q, and (p/q)² <= e^ε for q >= 1/(e^(ε/2)+1). Optimised (OUE):
// p = 1/2, and p(1-q)/(q(1-p)) = (1-q)/q <= e^ε for q >= 1/(e^ε+1). q is rounded up.
type unary struct {
	values, set, other uint64
	support
}

func newUnary(p Parameters) unary {
	epsilon := p.Epsilon.Rat()
	if p.Mechanism == SUE {
		epsilon.Quo(epsilon, big.NewRat(2, 1))
	}
	_, x := exact.ExpNeg(epsilon, coinBits) // x/(1+x) rises with x
	one := new(big.Int).Lsh(big.NewInt(1), coinBits)
	other := exact.CeilQuo(new(big.Int).Mul(x, big.NewInt(coins)), one.Add(one, x)).Uint64()
	m := unary{values: uint64(p.Size), set: coins / 2, other: other}
	if p.Mechanism == SUE {
		m.set = coins - other
	}
	m.support = support{float(m.chance(m.set)), float(m.chance(m.other))}
	return m
}

func (m unary) chance(of uint64) *big.Rat { return big.NewRat(int64(of), coins) }

func (m unary) report(s source, truth []int64) Report {
	r := Report{}
	for i := range int64(m.values) {
		chance := m.other
		if i == truth[0] {
			chance = m.set
		}
		if s.uniform(coins) < chance {
			r = append(r, i)
		}
	}
	return r
}

func (m unary) valid(r Report) bool {
	ascending := slices.IsSorted(r) && len(slices.Compact(slices.Clone(r))) == len(r)
	return ascending && r.within(len(r), m.values)
}

func (m unary) cells() int { return int(m.values) }

func (m unary) add(cells []int64, r Report) {
	for _, place := range r {
		cells[place]++
	}
}

func (m unary) estimate(cells []int64, n int64) []moment { return m.moments(cells, n) }

func (m unary) constants() []Constant {
	return []Constant{{"p", m.chance(m.set)}, {"q", m.chance(m.other)}}
}

// hashed reports the class of a hash function that the device draws, and then the hash of its value by randomised response over g =
// ⌊e^ε+1⌉ classes. The functions h(x) = ((a·x+b) mod 2³¹-1) mod g, a and b uniform below 2³¹-1, are pairwise independent but
// for the last remainder, which moves a probability by less than 2⁻³⁰.
type hashed struct {
	values uint64
	window
	support
}

const prime = 1<<31 - 1

func newHashed(p Parameters) hashed {
	epsilon := p.Epsilon.Rat()
	classes := uint64(math.Round(math.Exp(float(epsilon)) + 1))
	w := newWindow(epsilon, classes, 1)
	return hashed{uint64(p.Size), w, support{float(w.hit()), 1 / float64(classes)}}
}

func (m hashed) hash(a, b, value int64) int64 {
	return int64((uint64(a)*uint64(value) + uint64(b)) % prime % m.classes)
}

func (m hashed) report(s source, truth []int64) Report {
	a, b := int64(s.uniform(prime)), int64(s.uniform(prime))
	return Report{a, b, m.window.report(s, m.hash(a, b, truth[0]))}
}

func (m hashed) valid(r Report) bool { return r.within(3, prime) && uint64(r[2]) < m.classes }

func (m hashed) cells() int { return int(m.values) }

func (m hashed) add(cells []int64, r Report) {
	for i := range cells {
		if m.hash(r[0], r[1], int64(i)) == r[2] {
			cells[i]++
		}
	}
}

func (m hashed) estimate(cells []int64, n int64) []moment { return m.moments(cells, n) }

func (m hashed) constants() []Constant {
	classes := int64(m.classes)
	return []Constant{{"g", big.NewRat(classes, 1)}, {"prime", big.NewRat(prime, 1)}, {"uniform", m.uniform()}, {"p", m.hit()},
		{"q", big.NewRat(1, classes)}}
}
