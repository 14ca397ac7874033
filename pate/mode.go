package pate

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Mode is a way of labelling queries of one ensemble, with fixed noise. Its losses depend on no vote.
//
// With k the number of teachers per person, a query costs at most:
//
//	lnmax        ε = 2k/b, and ρ = 2·ρ(k, b): two counts move by k each, each with independent noise
//	gnmax        ρ = k²/σ² (L2² = 2k²)
//	confident    ρ = k²/2σ1² for the check, whose largest count moves by k; k²/σ2² more if it was answered
//	interactive  as confident: the student's probabilities are public
//	gumbel       ε = 2kγ, ρ = ε²/8: differences of two counts move by 2k
//
// A histogram costs what its argmax costs: both are post-processing of the same noisy vector.
type Mode struct {
	ensemble  Ensemble
	settings  Settings
	returns   Return
	check     mechanisms.Additive // nil in modes without a check
	threshold *big.Int            // the check compares integers
	certainty *big.Rat            // interactive
	noise     mechanisms.Additive // of the answer; nil for gumbel
	softmax   *mechanisms.Softmax // gumbel
	checking  mechanisms.Loss
	answering mechanisms.Loss
}

// NewMode checks settings and makes the mode. It returns a [fault.Error].
func NewMode(e Ensemble, s Settings) (*Mode, error) {
	if e.ClassCount() == 0 {
		return nil, fault.PateEnsemble("classes", "given")
	}
	numbers, err := s.parse()
	if err != nil {
		return nil, err
	}
	m := &Mode{ensemble: e, returns: ReturnLabel}
	switch {
	case s.Return == "" || s.Return == ReturnLabel:
	case s.Return == ReturnHistogram && s.Mode != Gumbel && s.Mode != Interactive:
		m.returns = ReturnHistogram
	case s.Return == ReturnHistogram:
		return nil, fault.PateParameters("there is no noisy histogram for " + string(s.Mode) + "; lnmax, gnmax and confident have one")
	default:
		return nil, fault.PateParameters("return is label or histogram")
	}
	if err := m.make(s.Mode, numbers); err != nil {
		return nil, fault.Internal(err) // what could be wrong was checked before
	}
	m.settings = canonical(s, numbers, m.returns)
	return m, nil
}

// make builds the mechanisms.
func (m *Mode) make(name ModeName, numbers map[string]*big.Rat) error {
	k := big.NewInt(m.ensemble.perPerson)
	var err error
	switch name {
	case LNMax:
		return m.makeLaplace(k, numbers["noise_scale"])
	case GNMax:
		m.noise, err = gaussian(voteL2(k), numbers["sigma"])
	case Confident, Interactive:
		m.certainty = numbers["student_confidence"]
		m.threshold = exact.Ceil(numbers["threshold"])
		if m.check, err = gaussian(new(big.Int).Mul(k, k), numbers["sigma1"]); err != nil {
			return err
		}
		m.checking = m.check.Loss()
		m.noise, err = gaussian(voteL2(k), numbers["sigma2"])
	case Gumbel:
		m.softmax, err = mechanisms.NewSoftmax(mechanisms.SoftmaxParameters{Rate: numbers["gamma"], Range: new(big.Int).Lsh(k, 1)})
		if err != nil {
			return err
		}
		m.answering = m.softmax.Loss()
		return nil
	default:
		return errNotSetting
	}
	if err != nil {
		return err
	}
	m.answering = m.noise.Loss()
	return nil
}

// makeLaplace builds lnmax. Its ρ is that of two counts which move by k each, less than that of one which moves by 2k.
func (m *Mode) makeLaplace(k *big.Int, scale *big.Rat) error {
	whole, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: new(big.Int).Lsh(k, 1), Scale: scale})
	if err != nil {
		return err
	}
	half, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: k, Scale: scale})
	if err != nil {
		return err
	}
	m.noise = whole
	m.answering = mechanisms.Loss{Epsilon: whole.Loss().Epsilon, Rho: half.Loss().Plus(half.Loss()).Rho}
	return nil
}

// voteL2 is 2k²: one person moves k votes from one class to another at most.
func voteL2(k *big.Int) *big.Int {
	square := new(big.Int).Mul(k, k)
	return square.Lsh(square, 1)
}

func gaussian(l2Squared *big.Int, sigma *big.Rat) (*mechanisms.Gaussian, error) {
	return mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: l2Squared, Variance: new(big.Rat).Mul(sigma, sigma)})
}

// canonical are the settings with their numbers as rationals in lowest terms, so that 40 and 40.0 are one question.
func canonical(s Settings, numbers map[string]*big.Rat, returns Return) Settings {
	text := func(name string) string {
		if x := numbers[name]; x != nil {
			return x.RatString()
		}
		return ""
	}
	return Settings{
		Mode: s.Mode, NoiseScale: text("noise_scale"), Sigma: text("sigma"), Sigma1: text("sigma1"), Sigma2: text("sigma2"),
		Threshold: text("threshold"), Gamma: text("gamma"), StudentConfidence: text("student_confidence"), Return: returns,
	}
}

// Name is the mode's name.
func (m *Mode) Name() ModeName { return m.settings.Mode }

// Settings are the settings in canonical form: equal for equal modes, whatever the request's spelling. They belong into the key under which
// answers are stored, with the ensemble's version and [Student.Key].
func (m *Mode) Settings() Settings { return m.settings }

// ReturnsHistogram reports whether an answered query releases every noisy count.
func (m *Mode) ReturnsHistogram() bool { return m.returns == ReturnHistogram }

// NeedsStudent says whether [Mode.Label] needs the student's probabilities.
func (m *Mode) NeedsStudent() bool { return m.settings.Mode == Interactive }

// WorstCase is the largest loss of n queries, n >= 0: what to reserve.
func (m *Mode) WorstCase(n int64) mechanisms.Loss {
	return times(m.checking.Plus(m.answering), n)
}

// Released is the loss of a batch in which checks queries were looked at and answered of them answered by the teachers: what to settle.
// Both numbers are public, because every query's status is released.
func (m *Mode) Released(checks, answered int64) mechanisms.Loss {
	return times(m.checking, checks).Plus(times(m.answering, answered))
}

// times is n equal losses together, saturated.
func times(l mechanisms.Loss, n int64) mechanisms.Loss {
	if n <= 0 {
		return mechanisms.Loss{}
	}
	scale := func(x int64) int64 {
		if x > math.MaxInt64/n {
			return math.MaxInt64
		}
		return x * n
	}
	return mechanisms.Loss{
		Epsilon: mechanisms.PicoEpsilon(scale(int64(l.Epsilon))), Unbounded: l.Unbounded,
		Rho: mechanisms.PicoRho(scale(int64(l.Rho))), Delta: mechanisms.AttoDelta(scale(int64(l.Delta))),
	}
}

// Description is a mode as answers echo it and as the ledger keeps it, so that any accountant can recompute a charge.
type Description struct {
	Settings
	Teachers             int64                  `json:"teachers"`
	Classes              int                    `json:"classes"`
	MaxTeachersPerPerson int64                  `json:"max_teachers_per_person"`
	Check                *mechanisms.Parameters `json:"check,omitempty"` // noise of the check, if there is one
	Answer               mechanisms.Parameters  `json:"answer"`          // noise of the answer
}

// Describe gives the parameters for answers and for the ledger.
func (m *Mode) Describe() Description {
	d := Description{
		Settings: m.settings, Teachers: m.ensemble.teachers, Classes: m.ensemble.ClassCount(), MaxTeachersPerPerson: m.ensemble.perPerson,
	}
	if m.check != nil {
		p := m.check.Parameters()
		d.Check = &p
	}
	if m.softmax != nil {
		d.Answer = m.softmax.Parameters()
	} else {
		d.Answer = m.noise.Parameters()
	}
	return d
}

// Passable reports whether the votes, and not the noise alone, can decide the check: a threshold above teachers + 6·σ₁ is passed with a
// probability below 10⁻⁹ even where all agree, so that nobody asks for the answer.
func (m *Mode) Passable() bool {
	if m.check == nil {
		return true
	}
	f := m.floats()
	return f.threshold <= float64(m.ensemble.teachers)+6*f.check
}
