package pate

import "math"

// This file holds the published bounds on what one query costs. A bound takes ln q, where q bounds the probability that the noisy
// winner is not the true one; all of them are valid for the divergence from the real table to any neighbour.

// Noise says which law the analysis takes the noise to have.
type Noise string

// The laws.
const (
	// Continuous is the noise of the papers and of their reference analyses.
	Continuous Noise = "continuous"
	// Discrete is the noise that this package draws: integers, with ties that may go against the winner. Gaps count as one vote
	// smaller, because P(X >= d) <= P(Z >= d-1) for integers d >= 0: a mass that falls is below the integral of its density over the cell
	// to its left, and the normaliser is above that of the integral (Poisson summation). The difference of two noises has the mass of
	// one with 2σ², but for a factor of 1 ± 2.1·e^-π²σ², which for σ >= 1 is less than the cell adds. Laplace tails are exact.
	Discrete Noise = "discrete"
)

// shift is how many votes a gap loses.
func (n Noise) shift() float64 {
	if n == Discrete {
		return 1
	}
	return 0
}

// gaps calls f with how far each class but the winner is behind it. The first of equal counts wins.
func gaps(counts []uint32, f func(gap float64)) {
	winner := 0
	for i, n := range counts {
		if n > counts[winner] {
			winner = i
		}
	}
	for i, n := range counts {
		if i != winner {
			f(float64(counts[winner]) - float64(n))
		}
	}
}

// capped is min(ln q, ln(1-1/m)): the winner is the likeliest of m classes.
func capped(logq float64, classes int) float64 { return min(logq, math.Log1p(-1/float64(classes))) }

// logqGaussian bounds ln P(winner changes) for Gaussian noise, by the union bound (2018 paper, Proposition 7):
// q <= Σ erfc(gap/2σ)/2.
func logqGaussian(counts []uint32, sigma float64, noise Noise) float64 {
	total, shift := 0.0, noise.shift()
	gaps(counts, func(gap float64) { total += math.Erfc((gap - shift) / (2 * sigma)) })
	if total > 1e-280 {
		return capped(math.Log(total)-math.Ln2, len(counts))
	}
	logs := make([]float64, 0, len(counts))
	gaps(counts, func(gap float64) { logs = append(logs, logErfc((gap-shift)/(2*sigma))) })
	return capped(logSumExp(logs)-math.Ln2, len(counts))
}

// logqLaplace bounds ln P(winner changes) for Laplace noise of rate γ, by the union bound (2017 paper, Lemma 4):
// q <= Σ (2+γ·gap)/(4·e^(γ·gap)).
func logqLaplace(counts []uint32, gamma float64, noise Noise) float64 {
	logs := make([]float64, 0, len(counts))
	gaps(counts, func(gap float64) {
		if noise == Discrete {
			logs = append(logs, logDiscreteLaplaceTail(gap, gamma))
		} else {
			logs = append(logs, math.Log(2+gamma*gap)-2*math.Ln2-gamma*gap)
		}
	})
	return capped(logSumExp(logs), len(counts))
}

// logDiscreteLaplaceTail is ln P(X-Y >= d) for two discrete Laplace noises of ratio q = e^-γ and an integer d >= 0. The difference has
// the mass ((1-q)/(1+q))²·q^n·(n + (1+q²)/(1-q²)) at n >= 0, whose tail is q^d/(1+q)²·((d + (1+q²)/(1-q²))·(1-q) + q).
func logDiscreteLaplaceTail(d, gamma float64) float64 {
	q, less := math.Exp(-gamma), -math.Expm1(-gamma)
	return -gamma*d - 2*math.Log1p(q) + math.Log((d*less+(1+q*q)/(1+q))+q)
}

// lnmaxMoment bounds the moment of order l > 0 of the privacy loss of LNMax with pure ε = 2γ, given ln q (2017 paper, Theorems 2 and
// 3). The third bound holds for q <= 1/(e^2γ+1) only; beyond, it would go below the truth, and even below 0.
func lnmaxMoment(logq, gamma, l float64) float64 {
	pure := 2 * gamma
	bound := min(pure*pure*l*(l+1)/2, pure*l)
	if math.IsInf(logq, -1) {
		return 0
	}
	if logq <= -math.Log1p(math.Exp(pure)) {
		log1q := log1mexp(logq)
		bound = min(bound, logAddExp(log1q+l*(log1q-log1mexp(pure+logq)), logq+pure*l))
	}
	return bound
}

// theorem6 is the data-dependent bound of the 2018 paper on the Rényi divergence of a mechanism that is (λ, λ/σ²)-RDP at all orders
// and gives its most likely outcome but with probability q: GNMax, or with σ√2 in place of σ the threshold check. The two higher
// orders are those of Proposition 10, which minimise A and B.
type theorem6 struct {
	variance   float64
	mu1        float64 // the bound holds for orders below; 0 where it never does
	log1q      float64
	logq       float64
	logA, logB float64
}

func newTheorem6(logq, sigma float64) theorem6 {
	b := theorem6{variance: sigma * sigma, logq: logq}
	if math.IsInf(logq, -1) {
		b.mu1 = math.Inf(1) // the outcome is fixed; rdp sees that
		return b
	}
	mu2 := math.Sqrt(b.variance * -logq)
	mu1 := mu2 + 1
	if mu2 <= 1 {
		return b
	}
	eps1, eps2 := mu1/b.variance, mu2/b.variance
	increasing := logq <= (mu2-1)*eps2-mu2*(math.Log(1+1/(mu1-1))+math.Log(1+1/(mu2-1)))
	if !increasing || -logq <= eps2 {
		return b
	}
	b.mu1 = mu1
	b.log1q = log1mexp(logq)
	b.logA = b.log1q - log1mexp((logq+eps2)*(1-1/mu2))
	b.logB = eps1 - logq/(mu1-1)
	return b
}

// rdp is the bound at one order.
func (b theorem6) rdp(order float64) float64 {
	if math.IsInf(b.logq, -1) {
		return 0
	}
	independent := order / b.variance
	if order >= b.mu1 {
		return independent
	}
	x := order - 1
	most, rest := b.log1q+x*b.logA, b.logq+x*b.logB
	if max(most, rest) >= x*independent {
		return independent
	}
	return min(independent, logAddExp(most, rest)/x)
}

// addTo adds the bound, weighted, at each of the orders.
func (b theorem6) addTo(curve, orders []float64, weight float64) {
	for i, order := range orders {
		curve[i] += weight * b.rdp(order)
	}
}

// check is the noisy threshold of Confident and Interactive: it asks whether a largest value v, with Gaussian noise, reaches threshold.
type check struct {
	threshold, sigma float64
	noise            Noise
}

// logAnswered is ln P(v + noise >= threshold), for expectations. For discrete noise it is that of the cells that count.
func (c check) logAnswered(v float64) float64 {
	return logTail((c.threshold - v - c.noise.shift()/2) / c.sigma)
}

// logq is the logarithm of the probability of the less likely outcome; with discrete noise an upper bound, as in [Discrete]:
// P(noise >= t) <= P(Z >= t-1) for t >= 1, and P(noise < t) = P(noise >= 1-t) <= P(Z >= -t) for t <= 0.
func (c check) logq(v float64) float64 {
	t := c.threshold - v
	if t > 0 {
		return logTail(max(0, t-c.noise.shift()) / c.sigma)
	}
	return logTail(-t / c.sigma)
}

// bound is Theorem 6 for the check: stability 1 where GNMax has √2.
func (c check) bound(v, perPerson float64) theorem6 {
	return newTheorem6(c.logq(v), math.Sqrt2*c.sigma/perPerson)
}
