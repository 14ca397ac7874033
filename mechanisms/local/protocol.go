package local

import (
	"errors"
	"math"
	"math/big"
	"slices"

	"noisegate.example/mechanisms"
)

// Kind is what a device reports.
type Kind string

// The kinds of values.
const (
	Choice Kind = "choice" // one of a list: its place, from 0
	Number Kind = "number" // a step of a grid, from 0 to [Grid]
	Vector Kind = "vector" // probabilities: steps of a grid that add up to [Whole]
)

// Mechanism is a way to randomise.
type Mechanism string

// The mechanisms. [Auto] stands for the one with the least variance.
const (
	Auto      Mechanism = "auto"
	KRR       Mechanism = "krr"       // choice: k-ary randomised response
	SUE       Mechanism = "sue"       // choice: symmetric unary encoding (basic RAPPOR)
	OUE       Mechanism = "oue"       // choice: optimised unary encoding
	OLH       Mechanism = "olh"       // choice: optimised local hashing
	Duchi     Mechanism = "duchi"     // number: one of two values
	Piecewise Mechanism = "piecewise" // number: near the value more often than elsewhere
	Laplace   Mechanism = "laplace"   // number, vector: discrete Laplace noise
)

// Limits of a protocol.
const (
	Grid  = 1 << 17 // steps of a number's range: 2⁻¹⁶ of [-1, 1]
	Whole = 1 << 16 // steps of a probability of 1

	MaxChoices = 10_000
	maxUnary   = 1000 // values of a unary encoding, and from there on auto hashes: a report has 8 bytes
	MaxVector  = 1000
	MaxReports = 1 << 26 // that a [Tally] can count: sums of reports fit 64 bits
	minEpsilon = mechanisms.EpsilonUnit / 100
	maxEpsilon = 16 * mechanisms.EpsilonUnit
	coins      = 1 << 53 // equally likely draws that decide a coin; a float64 holds each
	farthest   = 64      // scales of Laplace noise beyond which a report is clamped: P < e⁻⁶⁴
)

// Parameters are the parameters of a [Protocol].
type Parameters struct {
	Kind      Kind
	Mechanism Mechanism              // one of the kind, or [Auto]
	Epsilon   mechanisms.PicoEpsilon // of one report; 0.01 to 16
	Size      int                    // values of a choice, 2 to [MaxChoices]; coordinates of a vector, 2 to [MaxVector]; 1 for a number
}

// The errors of parameters, values and reports. They name no value.
var (
	ErrKind      = errors.New("kind must be choice, number or vector")
	ErrMechanism = errors.New("mechanism must be auto, or krr, sue, oue or olh for a choice, duchi, piecewise or laplace for a number, " +
		"laplace for a vector")
	ErrEpsilon = errors.New("epsilon must be from 0.01 to 16")
	ErrSize    = errors.New("a choice has 2 to 10000 values, 1000 for sue and oue; a vector 2 to 1000 coordinates; a number is one")
	ErrTruth   = errors.New("the value is not one that the protocol reports")
	ErrReport  = errors.New("this is not a report of the protocol")
)

// Report is what a device sends, as whole numbers: krr the place; sue and oue the places whose bits are set, ascending; olh a, b
// and the class; duchi 0 or 1; piecewise the cell; laplace the noisy steps.
type Report []int64

// Protocol is one way to report and to estimate. It does not change and is safe for concurrent use.
//
// Guarantee of [Protocol.Report]: ε-DP for its truth. Sources: Warner 1965; Kairouz, Oh, Viswanath 2016 (k-RR); Erlingsson,
// Pihur, Korolova 2014 (RAPPOR); Wang, Blocki, Li, Jha 2017 (unary encodings, local hashing); Duchi, Jordan, Wainwright 2018;
// Wang et al. 2019 (piecewise).
type Protocol struct {
	parameters Parameters
	scheme     scheme
}

// scheme is one mechanism. Truths and reports that it sees are valid.
type scheme interface {
	report(s source, truth []int64) Report
	valid(r Report) bool
	cells() int
	add(cells []int64, r Report)
	estimate(cells []int64, reports int64) []moment
	worst() float64 // variance of the estimate of one report, for the worst value (choice: for a value that is never true)
	constants() []Constant
}

// Constant is one exact parameter of a mechanism, for authors of clients.
type Constant struct {
	Name  string
	Value *big.Rat
}

// New makes a protocol. Its errors are [ErrKind], [ErrMechanism], [ErrEpsilon] and [ErrSize].
func New(p Parameters) (*Protocol, error) {
	if p.Epsilon < minEpsilon || p.Epsilon > maxEpsilon {
		return nil, ErrEpsilon
	}
	switch p.Kind {
	case Choice:
		return newChoice(p)
	case Number:
		return newNumber(p)
	case Vector:
		if p.Size < 2 || p.Size > MaxVector {
			return nil, ErrSize
		}
		if p.Mechanism != Auto && p.Mechanism != Laplace {
			return nil, ErrMechanism
		}
		p.Mechanism = Laplace
		s, err := newAdditive(p.Epsilon, p.Size)
		return &Protocol{p, s}, err
	default:
		return nil, ErrKind
	}
}

func newChoice(p Parameters) (*Protocol, error) {
	if p.Size < 2 || p.Size > MaxChoices {
		return nil, ErrSize
	}
	if p.Mechanism == Auto {
		// Wang et al. 2017, section 5: k-RR has the smaller variance for small k.
		switch few := 3*math.Exp(float(p.Epsilon.Rat())) + 2; {
		case float64(p.Size) < few:
			p.Mechanism = KRR
		case p.Size <= maxUnary:
			p.Mechanism = OUE
		default:
			p.Mechanism = OLH
		}
	}
	switch p.Mechanism {
	case KRR:
		return &Protocol{p, newResponse(p)}, nil
	case SUE, OUE:
		if p.Size > maxUnary {
			return nil, ErrSize
		}
		return &Protocol{p, newUnary(p)}, nil
	case OLH:
		return &Protocol{p, newHashed(p)}, nil
	default:
		return nil, ErrMechanism
	}
}

func newNumber(p Parameters) (*Protocol, error) {
	if p.Size != 1 {
		return nil, ErrSize
	}
	noise, err := newAdditive(p.Epsilon, 1)
	if err != nil {
		return nil, err
	}
	all := []struct {
		name Mechanism
		scheme
	}{{Duchi, newSign(p.Epsilon)}, {Piecewise, newPiecewise(p.Epsilon)}, {Laplace, noise}}
	least := all[0]
	for _, m := range all[1:] {
		if p.Mechanism == m.name || p.Mechanism == Auto && m.worst() < least.worst() {
			least = m
		}
	}
	if p.Mechanism != Auto && p.Mechanism != least.name {
		return nil, ErrMechanism
	}
	p.Mechanism = least.name
	return &Protocol{p, least.scheme}, nil
}

// Parameters are those that the protocol was made with, with the mechanism that [Auto] chose.
func (p *Protocol) Parameters() Parameters { return p.parameters }

// Constants are the exact probabilities and scales of the mechanism.
func (p *Protocol) Constants() []Constant { return p.scheme.constants() }

// Report randomises one value. It returns [ErrTruth] for what is not a value of the protocol; what it returns otherwise is ε-DP.
func (p *Protocol) Report(s *mechanisms.Sampler, truth []int64) (Report, error) {
	if !p.isTruth(truth) {
		return nil, ErrTruth
	}
	return p.scheme.report(sampled{s}, truth), nil
}

func (p *Protocol) isTruth(truth []int64) bool {
	switch p.parameters.Kind {
	case Choice:
		return len(truth) == 1 && truth[0] >= 0 && truth[0] < int64(p.parameters.Size)
	case Number:
		return len(truth) == 1 && truth[0] >= 0 && truth[0] <= Grid
	default:
		sum, least := int64(0), int64(0)
		for _, steps := range truth {
			sum += min(steps, Whole+1)
			least = min(least, steps)
		}
		return len(truth) == p.parameters.Size && sum == Whole && least >= 0
	}
}

// Check returns [ErrReport] for what no device that keeps to the protocol sends. Whether a device drew its report by the law, and from
// its own value, nobody can see.
func (p *Protocol) Check(r Report) error {
	if !p.scheme.valid(r) {
		return ErrReport
	}
	return nil
}

// Tally is what is counted of reports: all that estimates need.
type Tally struct {
	Reports int64
	Cells   []int64
}

// NewTally counts nothing yet.
func (p *Protocol) NewTally() Tally { return Tally{Cells: make([]int64, p.scheme.cells())} }

// Fits reports whether a tally is one of this protocol.
func (p *Protocol) Fits(t Tally) bool {
	return t.Reports >= 0 && t.Reports <= MaxReports && len(t.Cells) == p.scheme.cells()
}

// Add counts a report that [Protocol.Check] accepts. A tally holds at most [MaxReports].
func (p *Protocol) Add(t *Tally, r Report) {
	t.Reports++
	p.scheme.add(t.Cells, r)
}

// source is where a report's randomness comes from.
type source interface {
	uniform(n uint64) uint64                               // in [0, n)
	laplace(law *mechanisms.Laplace, value int64) *big.Int // with noise
}

// sampled is randomness for a device.
type sampled struct{ s *mechanisms.Sampler }

func (d sampled) uniform(n uint64) uint64 { return d.s.Uniform(n) }

func (d sampled) laplace(law *mechanisms.Laplace, value int64) *big.Int {
	return law.Draw(d.s).Release(mechanisms.SealInt64(value))
}

// within reports whether a report has so many numbers, each from 0 up to below n.
func (r Report) within(numbers int, n uint64) bool {
	return len(r) == numbers && !slices.ContainsFunc(r, func(x int64) bool { return x < 0 || uint64(x) >= n })
}

func float(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}
