package mechanisms

import "math/big"

// Name is a mechanism's name as it appears in answers, estimates and the ledger.
type Name string

// The mechanisms of this package.
const (
	DiscreteLaplace         Name = "discrete_laplace"
	DiscreteGaussian        Name = "discrete_gaussian"
	PartitionSelection      Name = "partition_selection"
	GaussianThresholding    Name = "gaussian_threshold"
	ExponentialMechanism    Name = "exponential"
	TopKSelection           Name = "top_k"
	PermuteAndFlipMechanism Name = "permute_and_flip"
	ReportNoisyMax          Name = "report_noisy_max"
	QuantileSelection       Name = "quantile"
	ShownCounts             Name = "shown_count"
	RandomDelay             Name = "random_delay"
)

// Gaussian reports whether what a mechanism's scores or sums are noised with is told by a variance and an L2 sensitivity; false: by a scale
// and an L1 sensitivity, or by what its selection divides scores by. It panics for a name that is none of the above: what answers and
// estimates say of a new law is decided here.
func (n Name) Gaussian() bool {
	switch n {
	case DiscreteGaussian:
		return true
	case DiscreteLaplace, PartitionSelection, GaussianThresholding, ExponentialMechanism, TopKSelection, PermuteAndFlipMechanism,
		ReportNoisyMax, QuantileSelection, ShownCounts, RandomDelay:
		return false
	default:
		panic("mechanisms: " + string(n) + " is a law of which nothing is known")
	}
}

// Additive is a mechanism that adds integer noise, whose law depends on no data, to a sealed integer.
type Additive interface {
	// Name is how answers and the ledger call the mechanism.
	Name() Name
	// Loss is the privacy loss of one vector of releases (all the groups that one unit may influence together),
	// for the sensitivity that the mechanism was made for, rounded up in every currency.
	Loss() Loss
	// Draw samples one noise value. It needs no data, so that it can be done before the query runs.
	Draw(*Sampler) Noise
	// HalfWidth is the smallest integer t with P(|noise| > t) <= 1-level.
	HalfWidth(Confidence) *big.Int
	// Parameters are the exact parameters, for answers and for the ledger: rationals as text ("1/3", "4").
	Parameters() Parameters
}

// Confidence is the level of an interval, in (0, 1).
type Confidence float64

// Parameters are a mechanism's exact parameters as text, so that any accountant can recompute a past charge.
type Parameters struct {
	Mechanism Name `json:"mechanism"`
	// Selection names the selector of a quantile or of a top-k; entries of the ledger without it are of [ExponentialMechanism].
	Selection Name `json:"selection,omitempty"`
	// Sensitivity is L1 for Laplace, L2 for Gaussian ("sqrt(3)" when irrational), L0 for selection of groups, that of one score for
	// selection of candidates.
	Sensitivity string `json:"sensitivity"`
	PerGroup    string `json:"per_group,omitempty"` // shown counts: of one group
	Scale       string `json:"scale,omitempty"`     // Laplace: b, a rational; candidates: what scores are divided by
	Variance    string `json:"variance,omitempty"`  // Gaussian: σ², a rational
	Epsilon     string `json:"epsilon,omitempty"`   // selection: ε, a decimal
	Delta       string `json:"delta,omitempty"`     // selection of groups: δ, a decimal
	Count       int64  `json:"count,omitempty"`     // top-k: picks; Gaussian threshold: T; shown counts: k
	Times       int64  `json:"times,omitempty"`     // how many equal releases with fresh noise this stands for; 0 stands for 1
}

// Noise is one integer drawn from a mechanism's law, waiting for the value that it hides. Only the mechanisms of this package make
// noise: a Noise that was not drawn, such as the zero one, opens nothing.
type Noise struct {
	small int64
	big   *big.Int // nil when small holds the noise
	drawn bool
}

// Release opens the sealed value, adds the noise and returns the sum: the only way out for a true value. It panics if the noise
// was not drawn: a program that does so is wrong, and must not go on.
func (n Noise) Release(value Exact) *big.Int {
	switch {
	case !n.drawn:
		panic("mechanisms: noise that was never drawn cannot release a value")
	case n.big != nil:
		return new(big.Int).Add(value.open(), n.big)
	default:
		return new(big.Int).Add(value.open(), big.NewInt(n.small))
	}
}
