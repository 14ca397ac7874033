package pate

import (
	"math"
	"slices"
)

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
	winner := winnerOf(counts)
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

// bound is a bound on the moments of the privacy loss of one query, as a function of x = λ-1: the smaller of one that holds for all
// votes and, up to some x, one that depends on q. A moment is x times the Rényi divergence of order λ. All data-dependent bounds of both
// papers have this form.
type bound struct {
	// min(quadratic·x(x+1), linear·x) holds always.
	quadratic, linear float64
	// ln(e^(most+x·logA) + e^(rest+x·logB)) holds for x < until: the likely outcome loses little, and the others are unlikely.
	most, logA float64
	rest, logB float64
	until      float64
	fixed      bool // q = 0: nothing is lost
}

// independent is the bound that holds for all votes.
func (b bound) independent(x float64) float64 { return min(b.quadratic*x*(x+1), b.linear*x) }

// moment is the bound at x > 0.
func (b bound) moment(x float64) float64 {
	switch {
	case b.fixed:
		return 0
	case x >= b.until:
		return b.independent(x)
	}
	return min(b.independent(x), logAddExp(b.most+x*b.logA, b.rest+x*b.logB))
}

// rdp is the bound on the Rényi divergence of an order.
func (b bound) rdp(order float64) float64 { return b.moment(order-1) / (order - 1) }

// curve is a sum of bounds on Rényi divergences, at each order of a grid.
type curve struct {
	*grid
	sum  []float64
	flat float64 // bounds that are this times the order, at every order
}

func newCurve(orders []float64) *curve {
	return &curve{grid: newGrid(orders), sum: make([]float64, len(orders))}
}

// values are the divergences at the orders.
func (c *curve) values() []float64 {
	values := make([]float64, len(c.sum))
	for i, order := range c.orders {
		values[i] = c.sum[i] + c.flat*order
	}
	return values
}

// add adds a bound, weighted. It is the inner loop of the accounting: along evenly spaced orders the exponential is the product of
// the one before, for so few steps that its relative error stays below 10⁻¹⁴.
func (c *curve) add(b bound, weight float64) {
	if b.fixed {
		return
	}
	if b.until <= c.least && math.IsInf(b.linear, 1) {
		c.flat += weight * b.quadratic
		return
	}
	offset, slope := b.rest-b.most, b.logB-b.logA
	for _, r := range c.runs {
		x, over, sum := c.x[r.from:r.to], c.over[r.from:r.to], c.sum[r.from:r.to]
		if !(slope*r.spacing*(maxRun+1) < 600) || !(x[0] < b.until) { // a product could overflow; or nothing depends on q
			for i := range x {
				sum[i] += weight * b.moment(x[i]) * over[i]
			}
			continue
		}
		power, ratio := math.Exp(offset+slope*x[0]), 1.0
		if len(x) > 1 {
			ratio = math.Exp(slope * r.spacing)
		}
		for i := range x {
			moment := b.independent(x[i])
			if x[i] < b.until {
				moment = min(moment, b.most+x[i]*b.logA+log1pPositive(power))
			}
			sum[i] += weight * moment * over[i]
			power *= ratio
		}
	}
}

// grid is a list of Rényi orders λ = x+1, cut into runs of even spacing.
type grid struct {
	orders, x, over []float64 // over is 1/x
	least           float64   // the least x
	runs            []run
}

type run struct {
	from, to int
	spacing  float64
}

// maxRun is how many orders a run has at most.
const maxRun = 64

func newGrid(orders []float64) *grid {
	g := &grid{orders: orders, least: slices.Min(orders) - 1}
	for i, order := range orders {
		g.x, g.over = append(g.x, order-1), append(g.over, 1/(order-1))
		last := len(g.runs) - 1
		switch {
		case i > 0 && g.runs[last].to-g.runs[last].from < maxRun && g.runs[last].spacing == order-orders[i-1]:
			g.runs[last].to++
		case i+1 < len(orders):
			g.runs = append(g.runs, run{i, i + 1, orders[i+1] - order})
		default:
			g.runs = append(g.runs, run{i, i + 1, 0})
		}
	}
	return g
}

// log1pPositive is ln(1+x) for x >= 0, with a relative error below 2·10⁻¹³.
func log1pPositive(x float64) float64 {
	if x < 1e-3 {
		return x * (1 - x*(1./2-x*(1./3-x*(1./4-x*(1./5)))))
	}
	return math.Log(1 + x)
}

// theorem3 is the bound of LNMax with pure ε = 2γ, given ln q (2017 paper, Theorems 2 and 3). Its data-dependent part holds for q <=
// 1/(e^2γ+1) only; beyond, it would go below the truth, and even below 0.
func theorem3(logq, gamma float64) bound {
	pure := 2 * gamma
	b := bound{quadratic: pure * pure / 2, linear: pure, fixed: math.IsInf(logq, -1)}
	if !b.fixed && logq <= -math.Log1p(math.Exp(pure)) {
		log1q := log1mexp(logq)
		b.most, b.logA = log1q, log1q-log1mexp(pure+logq)
		b.rest, b.logB = logq, pure
		b.until = math.Inf(1)
	}
	return b
}

// theorem6 is the bound of a mechanism that is (λ, λ/σ²)-RDP at all orders, given ln q: GNMax, or with σ√2 in place of σ the threshold
// check (2018 paper). The two higher orders are those of Proposition 10, which minimise A and B.
func theorem6(logq, sigma float64) bound {
	variance := sigma * sigma
	b := bound{quadratic: 1 / variance, linear: math.Inf(1), fixed: math.IsInf(logq, -1)}
	mu2 := sigma * math.Sqrt(-logq)
	if b.fixed || mu2 <= 1 {
		return b
	}
	mu1 := mu2 + 1
	eps1, eps2 := mu1/variance, mu2/variance
	increasing := logq <= (mu2-1)*eps2-mu2*(math.Log(1+1/(mu1-1))+math.Log(1+1/(mu2-1)))
	if !increasing || -logq <= eps2 {
		return b
	}
	log1q := log1mexp(logq)
	b.most, b.logA = log1q, log1q-log1mexp((logq+eps2)*(1-1/mu2))
	b.rest, b.logB = logq, eps1-logq/(mu1-1)
	b.until = mu2 // orders below μ1
	return b
}

// check is the noisy threshold of Confident and Interactive: it asks whether a largest value v, with Gaussian noise, reaches threshold,
// which is an integer where the noise is.
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
func (c check) bound(v, perPerson float64) bound {
	return theorem6(c.logq(v), math.Sqrt2*c.sigma/perPerson)
}
