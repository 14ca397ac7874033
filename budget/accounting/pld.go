package accounting

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	"noisegate.example/mechanisms"
)

// PLD prices a fixed list of releases almost exactly. The law of the sum of their privacy losses is the convolution of their laws (Meiser,
// Mohammadi 2018; Sommer, Meiser, Mohammadi 2019), computed with the fast Fourier transform.
//
// It is not a filter. An analyst who chooses the next release after seeing an answer can spend more than the PLD of every single path says;
// TestPLDIsNoFilter holds an example. It is sound for a plan whose parameters were fixed before its first answer, whatever the queries'
// texts.
//
// All errors go upwards. Laws are discretised pessimistically ([lossGrid]); what is cut off counts as losing everything. Rounding of the
// transform is absolute, which would drown a δ of 10⁻⁹ in a thousand convolutions; so laws are tilted first: multiplied by e^(θ·loss)
// and normalised, with the θ that moves the sum's mean near the ε in question. An error of the tilted law is then an error
// relative to δ, and its bound is added to δ.
type PLD struct {
	list  []Repeated
	grids []*lossGrid
	h     float64
	lost  float64 // probability of losing everything
	drift float64 // bounds the rounding of the grids: of all masses relatively, of the sum of losses absolutely
}

var errUnknownLaw = errors.New("the law of its privacy loss is not known")

// Bounds of the work that a list can cause.
const (
	maxTimes   = 1 << 40 // releases in a list
	maxBuckets = 1 << 22 // masses of all different events together
	maxWindow  = 1 << 22 // length of the transform
)

// NewPLD prepares the list. It refuses events with only a ρ, and lists beyond its means.
func NewPLD(list []Repeated) (*PLD, error) {
	p := &PLD{list: merge(list)}
	var rho, times float64
	for _, r := range p.list {
		if r.Times <= 0 {
			return nil, errEvent
		}
		rho += float64(r.Times) * r.Event.model.rho()
		times += float64(r.Times)
	}
	if len(p.list) == 0 || times > maxTimes {
		return nil, errors.New("budget: an empty list of releases, or more than 2⁴⁰")
	}
	p.h = 24 * math.Sqrt(2*rho) / float64(points(len(p.list)))
	logKept, buckets := 0.0, 0.0
	for _, r := range p.list {
		if buckets += 2 * r.Event.model.reach() / p.h; !(buckets <= maxBuckets) {
			return nil, errors.New("budget: the releases are too different in size for one grid, or lose too much")
		}
		g := r.Event.model.discretise(p.h)
		if g == nil {
			return nil, fmt.Errorf("budget: %s: %w", r.Event, errUnknownLaw)
		}
		n := float64(r.Times)
		logKept += n * math.Log1p(-g.infinite)
		p.drift += n * g.drift
		p.grids = append(p.grids, g)
	}
	p.lost = -math.Expm1(logKept) * (1 + reportSlack)
	return p, nil
}

// points is how many grid points span 24 standard deviations of the sum. Splitting a loss over its two neighbours adds at most h²/4 to its
// variance, so that n losses cost a relative error of about n·(12/points)² in ε: 2·10⁻⁹ for one, 5·10⁻⁵ for a thousand different ones.
func points(different int) int {
	switch {
	case different <= 8:
		return 1 << 18
	case different <= 128:
		return 1 << 17
	default:
		return 1 << 16
	}
}

// merge adds up equal events; names hold all parameters.
func merge(list []Repeated) []Repeated {
	var merged []Repeated
	index := map[string]int{}
	for _, r := range list {
		if i, seen := index[r.Event.name]; seen {
			merged[i].Times += r.Times
			continue
		}
		index[r.Event.name] = len(merged)
		merged = append(merged, r)
	}
	return merged
}

// Epsilon is the list's ε at δ, rounded up: never more than the sum of pure ε or Rényi accounting gives. It returns false if there is none.
func (p *PLD) Epsilon(delta mechanisms.AttoDelta) (mechanisms.PicoEpsilon, bool) {
	return picoUp(p.epsilon(attoFloat(delta)))
}

func (p *PLD) epsilon(delta float64) float64 {
	best, x := rdpEpsilon(p.list, delta)
	if delta > lostOf(p.list) {
		best = min(best, p.pure())
	}
	if delta <= p.lost {
		return best
	}
	curve, err := p.compose(x)
	if err != nil {
		return best // sound, if not tight
	}
	return min(best, curve.epsilon(delta)+p.drift)
}

// pure is the sum of pure ε, rounded up.
func (p *PLD) pure() float64 {
	sum := 0.0
	for _, r := range p.list {
		sum += float64(r.Times) * r.Event.model.epsilon()
	}
	return sum * (1 + reportSlack)
}

// tilt is the tilted laws of a list, before they are put together.
type tilt struct {
	theta    float64
	weights  [][]float64 // normalised
	means    []float64
	mean     float64 // of the sum, as its variance
	variance float64
	logTotal float64 // ln of the product of the normalisers
	norm     float64 // Σ times·‖weights‖₂
	reach    float64 // the largest distance of a loss from its mean
}

func (p *PLD) tilt(theta float64) *tilt {
	t := &tilt{theta: theta}
	for j, g := range p.grids {
		w, top, n := make([]float64, len(g.mass)), g.at(g.buckets()), float64(p.list[j].Times)
		total := 0.0
		for k, m := range g.mass {
			if m > 0 {
				w[k] = m * math.Exp(theta*(g.at(k)-top))
				total += w[k]
			}
		}
		var mean, squares, norm float64
		for k := range w {
			w[k] /= total
			mean += w[k] * g.at(k)
		}
		for k := range w {
			d := g.at(k) - mean
			squares += w[k] * d * d
			norm += w[k] * w[k]
		}
		t.weights, t.means = append(t.weights, w), append(t.means, mean)
		t.mean += n * mean
		t.variance += n * squares
		t.norm += n * math.Sqrt(norm)
		t.logTotal += n * (math.Log(total) + theta*top)
		t.reach = max(t.reach, top-mean, mean-g.at(0))
	}
	return t
}

// aliasing is what may be wrapped around a window: negligible, and added to δ nevertheless.
const aliasing = 1e-13

// window is the half width around the mean that holds all but aliasing of the tilted sum, by Chernoff's bound.
func (p *PLD) window(t *tilt) float64 {
	width := 8.5*math.Sqrt(t.variance) + 4*p.h
	for range 12 {
		s := min(width/t.variance, 300/t.reach)
		above, below := -s*width, -s*width
		for j, g := range p.grids {
			var up, down float64
			for k, w := range t.weights[j] {
				if w > 0 {
					e := math.Exp(s * (g.at(k) - t.means[j]))
					up += w * e
					down += w / e
				}
			}
			above += float64(p.list[j].Times) * math.Log(up)
			below += float64(p.list[j].Times) * math.Log(down)
		}
		if max(above, below) < math.Log(aliasing/4) {
			return width
		}
		width *= 1.3
	}
	return math.Inf(1)
}

// compose is δ(ε) of the list, tilted by theta.
func (p *PLD) compose(theta float64) (*profile, error) {
	theta = min(theta, 0.5/p.h)
	t := p.tilt(theta)
	width := p.window(t)
	needed := 2*width/p.h + 4
	support := 2.0 // the whole sum: nothing can be wrapped around
	for j, g := range p.grids {
		support += float64(p.list[j].Times) * float64(g.buckets())
	}
	if needed = min(needed, support); !(needed <= maxWindow) {
		return nil, errors.New("budget: the window is too wide")
	}
	n := 1 << bits.Len(uint(needed))
	base := int64(math.Floor((t.mean - float64(n)/2*p.h) / p.h))
	if support <= float64(n) {
		base = 0
		for j, g := range p.grids {
			base += p.list[j].Times * int64(g.lo)
		}
	}
	law := p.convolve(t, n, base)
	// Rounding: a transform of length n errs by at most about log₂(n) roundoffs relative to its input's 2-norm, n-fold products by n times
	// that, and the weights of δ, e^(-θ·(loss-ε)) <= 1, have the 2-norm of a geometric series.
	weights := math.Sqrt(min(float64(n), 1+1/(2*theta*p.h)))
	allowance := aliasing + 8*unitRoundoff*math.Log2(float64(n))*(t.norm+1)*weights
	return newProfile(p, t, base, law, allowance), nil
}

// convolve is the tilted law of the sum at the n losses from h·base on; losses outside are wrapped around.
func (p *PLD) convolve(t *tilt, n int, base int64) []float64 {
	transform := fourier.NewFFT(n)
	sequence := make([]float64, n)
	product := make([]complex128, n/2+1)
	for k := range product {
		product[k] = 1
	}
	factor := make([]complex128, n/2+1)
	for j, g := range p.grids {
		clear(sequence)
		at := modulo(int64(g.lo), n)
		for _, w := range t.weights[j] {
			sequence[at] += w
			if at++; at == n {
				at = 0
			}
		}
		transform.Coefficients(factor, sequence)
		for k, f := range factor {
			product[k] *= power(f, p.list[j].Times)
		}
	}
	transform.Sequence(sequence, product)
	law := make([]float64, n)
	for i := range law {
		law[i] = sequence[modulo(base+int64(i), n)] / float64(n)
	}
	return law
}

func modulo(i int64, n int) int { return int(((i % int64(n)) + int64(n)) % int64(n)) }

// power is zⁿ; small results are 0.
func power(z complex128, n int64) complex128 {
	if n == 1 {
		return z
	}
	if r := cmplx.Abs(z); r < 1 && float64(n)*math.Log(r) < -600 {
		return 0
	}
	result := complex(1, 0)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result *= z
		}
		z *= z
	}
	return result
}

// profile is δ(ε) at ε = h·base, h·(base+1), ..., an upper bound.
type profile struct {
	h      float64
	base   int64
	deltas []float64
	above  float64 // δ beyond the last
}

// newProfile sums δ(ε) = Σ law·e^(logTotal-θ·loss)·(1-e^(ε-loss)) over losses above ε. From each ε to the one below, with
// T = Σ law·e^(-(θ+1)(loss-ε)) and D = Σ law·e^(-θ(loss-ε))·(1-e^(ε-loss)), D gains (1-e^-h)·T and both decay.
func newProfile(p *PLD, t *tilt, base int64, law []float64, allowance float64) *profile {
	f := &profile{h: p.h, base: base, deltas: make([]float64, len(law)), above: 1}
	far := max(math.Abs(float64(base)), math.Abs(float64(base+int64(len(law)))))
	slack := 1 + p.drift + reportSlack + 64*unitRoundoff*(math.Abs(t.logTotal)+t.theta*p.h*far)
	decayD, decayT, gain := math.Exp(-t.theta*p.h), math.Exp(-(t.theta+1)*p.h), -math.Expm1(-p.h)
	var sumD, sumT float64
	for k := len(law) - 1; k >= 0; k-- {
		// Both factors' exponents are of different signs; their sum is moderate where δ matters.
		exponent := min(700, t.logTotal-t.theta*p.h*float64(base+int64(k)))
		f.deltas[k] = min(1, p.lost+math.Exp(exponent)*(max(0, sumD)+allowance)*slack)
		sumD, sumT = decayD*(sumD+gain*(sumT+law[k])), decayT*(sumT+law[k])
	}
	f.above = f.deltas[len(law)-1]
	return f
}

// epsilon is the smallest ε >= 0 with delta(ε) <= δ, +Inf if there is none.
func (f *profile) epsilon(delta float64) float64 {
	for k, d := range f.deltas {
		if d > delta {
			continue
		}
		eps := f.h * float64(f.base+int64(k))
		if k > 0 {
			share := (f.deltas[k-1] - delta) / (f.deltas[k-1] - d)
			eps += math.Log1p(share*math.Expm1(f.h)) - f.h
		}
		return max(0, eps+4*unitRoundoff*math.Abs(eps))
	}
	return math.Inf(1)
}
