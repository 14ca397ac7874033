package plan

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Vector is the sum of all releases of one question so far, at any price. It is public: each part has noise and is paid for. It keeps sums
// and not means, so that no rounding adds up.
type Vector struct {
	Rho  [][]mechanisms.PicoRho `json:"rho"`  // by release of the plan: the ρ of each time that it was released, oldest first
	Sums [][]*big.Int           `json:"sums"` // by group and release: Σ ρ·noisy value over those times, in steps and 10⁻¹²
}

// maxReuseCells bounds the values of a stored vector. MaxReuseParts bounds the releases in it: the half-width of a combination is computed
// from each of them.
const (
	maxReuseCells = 10_000
	MaxReuseParts = 32
)

// Reusable reports whether this answer and answers to the question at other prices help each other: the plan releases a fixed number of
// integers with Gaussian noise. Private keys, selections and Laplace noise do not qualify. Nor do groups of a unit that are chosen at
// random, since each release chooses others.
func (p *Plan) Reusable() bool {
	if p.Several != nil || len(p.Query.Bought) > 0 || len(p.Releases) == 0 ||
		p.PartitionSelection != nil || p.Query.Private() || p.Query.Top > 0 {
		return false
	}
	for _, r := range p.Releases {
		if _, ok := r.Mechanism.(*mechanisms.Gaussian); !ok {
			return false
		}
	}
	if slices.ContainsFunc(p.Parts, func(part sqlprint.PlanPart) bool { return part.SeedArg > 0 }) {
		return false
	}
	cells := new(big.Int).Mul(p.Query.PublicTuples(), big.NewInt(int64(len(p.Releases))))
	return cells.Cmp(big.NewInt(maxReuseCells)) <= 0
}

// Reuse is a plan that answers a question with the help of its earlier releases.
type Reuse struct {
	More    *Plan // what is still to be released; nil: nothing
	Shown   *Plan // the answer
	laws    []*mechanisms.Combination
	earlier *Vector
}

// ReuseOf returns how an earlier vector helps; nil: it does not.
//
//   - If every release was at least as accurate as it should be now, nothing new is released: noise on top makes up the difference.
//   - If every release was less accurate, the difference in ρ is released, and combined with the earlier releases.
func (p *Plan) ReuseOf(earlier *Vector) *Reuse {
	if !p.Reusable() {
		return nil
	}
	if earlier = p.listed(earlier); !p.fits(earlier) {
		return nil
	}
	u := &Reuse{Shown: p.copied(), earlier: earlier}
	u.Shown.noise = make([]keptLaw, len(p.Releases))
	fresh, more := p.copied(), 0
	for i, r := range p.Releases {
		had, wanted := totalRho(earlier.Rho[i]), r.Mechanism.Loss().Rho
		_, l2Squared := p.Bounding.Norms(r.Statistic)
		parts := slices.Clone(earlier.Rho[i])
		if wanted > had {
			more++
			difference, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: l2Squared, Rho: wanted - had})
			if err != nil {
				return nil
			}
			fresh.Releases[i].Mechanism = difference
			parts = append(parts, wanted-had)
		}
		law, err := mechanisms.NewCombination(mechanisms.CombinationParameters{L2Squared: l2Squared, Parts: parts, Rho: wanted})
		if err != nil {
			return nil
		}
		u.laws = append(u.laws, law)
		u.Shown.Releases[i].Mechanism, u.Shown.noise[i] = law, keptLaw{Parts: parts}
	}
	switch {
	case more == 0:
		u.Shown.Reused = "an earlier release of the same question was at least as accurate; this answer is that release with noise on top, and " +
			"cost nothing"
	case more < len(p.Releases) || len(earlier.Rho[0]) >= MaxReuseParts:
		return nil
	default:
		u.More = fresh
		u.Shown.Reused = "an earlier release of the same question was less accurate; this answer combines it with a new one, and cost the " +
			"difference"
	}
	return u
}

// copied returns the plan with a copy of its releases.
func (p *Plan) copied() *Plan {
	own := *p
	own.Releases = slices.Clone(p.Releases)
	return &own
}

// fits reports whether a vector has the plan's shape. A vector that is stored under the plan's question has.
func (p *Plan) fits(v *Vector) bool {
	n := len(p.Releases)
	if len(v.Rho) != n || int64(len(v.Sums)) != scalar.ClampInt64(p.Query.PublicTuples()) {
		return false
	}
	for _, parts := range v.Rho {
		if len(parts) == 0 || len(parts) != len(v.Rho[0]) {
			return false
		}
		for i, rho := range parts {
			if rho <= 0 || totalRho(parts[:i+1]) <= 0 { // the sum is too large
				return false
			}
		}
	}
	return !slices.ContainsFunc(v.Sums, func(row []*big.Int) bool { return len(row) != n || slices.Contains(row, nil) })
}

func totalRho(parts []mechanisms.PicoRho) (sum mechanisms.PicoRho) {
	for _, rho := range parts {
		sum += rho
	}
	return sum
}

// ShownWeaker returns the answer if nothing is still to be released: the earlier values, with noise on top.
func (u *Reuse) ShownWeaker(s *mechanisms.Sampler) (*Released, error) {
	if u.More != nil {
		return nil, fault.Internal(ErrShape)
	}
	return u.released(s, u.earlier)
}

// ShownStronger returns the answer once [Reuse.More] is released, and the vector of all releases of the question.
func (u *Reuse) ShownStronger(s *mechanisms.Sampler, released *Released) (*Released, *Vector, error) {
	if u.More == nil || released.Plan != u.More {
		return nil, nil, fault.Internal(ErrShape)
	}
	all := released.Vector()
	for i := range all.Rho {
		all.Rho[i] = append(slices.Clone(u.earlier.Rho[i]), all.Rho[i]...)
	}
	for j, row := range all.Sums {
		for i := range row {
			row[i].Add(row[i], u.earlier.Sums[j][i])
		}
	}
	answer, err := u.released(s, all)
	return answer, all, err
}

// released shows a vector.
func (u *Reuse) released(s *mechanisms.Sampler, v *Vector) (*Released, error) {
	out := &Released{Plan: u.Shown}
	err := EachPublicTuple(u.Shown.Query, func(j int, keys []catalog.Key) error {
		row := ReleasedRow{Keys: keys, Noisy: make([]*big.Int, len(u.laws))}
		for i, law := range u.laws {
			row.Noisy[i] = law.Value(s, v.Sums[j][i])
		}
		out.Rows = append(out.Rows, row)
		return nil
	})
	return out, err
}

// Vector returns what was released, for questions that differ in price alone. The plan must be [Plan.Reusable].
func (r *Released) Vector() *Vector {
	v := &Vector{}
	for _, made := range r.Plan.Releases {
		v.Rho = append(v.Rho, []mechanisms.PicoRho{made.Mechanism.Loss().Rho})
	}
	for _, row := range r.Rows {
		sums := make([]*big.Int, len(row.Noisy))
		for i, noisy := range row.Noisy {
			sums[i] = new(big.Int).Mul(noisy, big.NewInt(int64(v.Rho[i][0])))
		}
		v.Sums = append(v.Sums, sums)
	}
	return v
}

// Text returns the vector as JSON, and the sum of ρ over all its releases. Errors are internal.
func (v *Vector) Text() (text []byte, rho mechanisms.PicoRho, err error) {
	for _, parts := range v.Rho {
		rho += totalRho(parts)
	}
	text, err = json.Marshal(v)
	return text, rho, internal(err)
}

// ReadVector reads what [Vector.Text] wrote. Other text is an internal error.
func ReadVector(text []byte) (*Vector, error) {
	v := &Vector{}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fault.Internal(fmt.Errorf("sqlrewrite: a vector cannot be read: %w", err))
	}
	return v, nil
}
