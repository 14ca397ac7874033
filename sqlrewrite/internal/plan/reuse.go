package sqlrewrite

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Vector is all that was released so far of one question, at whatever accuracy: public, because each part of it is noisy and paid for.
// It keeps sums and not means, so that no rounding adds up.
type Vector struct {
	Rho  [][]mechanisms.PicoRho `json:"rho"`  // by release of the plan: the ρ of each time that it was released, the oldest first
	Sums [][]*big.Int           `json:"sums"` // by group and release: Σ ρ·noisy value over those times, in steps and 10⁻¹²
}

// maxReuseCells bounds the values of a vector that is kept, and maxReuseParts how often it can become more accurate: the half width
// of what many releases have together is computed from each of them.
const (
	maxReuseCells = 10_000
	maxReuseParts = 32
)

// Reusable reports whether answers to the question at other prices help to answer this one, and this answer others: it is a fixed number of
// integers with Gaussian noise. Private keys, selections and Laplace noise are not, nor are units whose groups are chosen at random, which are others each time.
func (p *pricedPlan) Reusable() bool {
	if len(p.releases) == 0 || p.selection != nil || p.query.private() || p.query.top > 0 {
		return false
	}
	for _, r := range p.releases {
		if _, ok := r.mechanism.(*mechanisms.Gaussian); !ok {
			return false
		}
	}
	if slices.ContainsFunc(p.parts, func(part planPart) bool { return part.seedArg > 0 }) {
		return false
	}
	cells := new(big.Int).Mul(p.query.publicTuples(), big.NewInt(int64(len(p.releases))))
	return cells.Cmp(big.NewInt(maxReuseCells)) <= 0
}

// Question identifies what is asked, at any price: equal for two plans with the same snapshot that differ only in ε, ρ, δ and in how the
// noise was chosen. Every other option is a part of it, as it is of [Plan.Fingerprint], and so is the order of the releases.
func (p *pricedPlan) Question() [32]byte {
	free := *p
	o := &free.options
	o.Epsilon, o.Rho, o.Delta, o.Mechanism, o.Currency = 0, 0, 0, "", ""
	same := free.fingerprint(p.snapshot)
	h := identity{sha256.New()}
	h.add("noisegate question 1", string(same[:]))
	for _, r := range p.releases {
		h.add(r.measure.describe(), r.perGroup.String(), r.unit.RatString())
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// reusedPlan is how a question is answered with the help of what was released of it before.
type reusedPlan struct {
	more    *pricedPlan // nil: nothing
	shown   *pricedPlan
	laws    []*mechanisms.Combination
	earlier *Vector
}

// reuseOf finds out whether what was released before helps: nil if it does not.
//
//   - If every release was as accurate as it should be now, or more, nothing new is released: noise on top makes up the difference.
//   - If every release was less accurate, only the difference in ρ is released, and combined with what there was.
func (p *pricedPlan) reuseOf(earlier *Vector) *reusedPlan {
	if !p.Reusable() || !p.fits(earlier) {
		return nil
	}
	u := &reusedPlan{shown: p.copied(), earlier: earlier}
	fresh, more := p.copied(), 0
	for i, r := range p.releases {
		had, wanted := totalRho(earlier.Rho[i]), r.mechanism.Loss().Rho
		_, l2Squared := p.norms(r.perGroup)
		parts := slices.Clone(earlier.Rho[i])
		if wanted > had {
			more++
			difference, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: l2Squared, Rho: wanted - had})
			if err != nil {
				return nil
			}
			fresh.releases[i].mechanism = difference
			parts = append(parts, wanted-had)
		}
		law, err := mechanisms.NewCombination(mechanisms.CombinationParameters{L2Squared: l2Squared, Parts: parts, Rho: wanted})
		if err != nil {
			return nil
		}
		u.laws = append(u.laws, law)
		u.shown.releases[i].mechanism = law
	}
	switch {
	case more == 0:
		u.shown.reused = "an earlier release of the same question was at least as accurate; this answer is that release with noise on top, and cost nothing"
	case more < len(p.releases) || len(earlier.Rho[0]) >= maxReuseParts:
		return nil
	default:
		u.more = fresh
		u.shown.reused = "an earlier release of the same question was less accurate; this answer combines it with a new one, and cost the difference"
	}
	return u
}

// copied is the plan with releases of its own.
func (p *pricedPlan) copied() *pricedPlan {
	own := *p
	own.releases = slices.Clone(p.releases)
	return &own
}

// fits reports whether a vector has the plan's shape; one that was kept under the plan's question has.
func (p *pricedPlan) fits(v *Vector) bool {
	n := len(p.releases)
	if len(v.Rho) != n || int64(len(v.Sums)) != clampInt64(p.query.publicTuples()) {
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

// shownWeaker is the answer if nothing is still to be released: what there was, with noise on top.
func (u *reusedPlan) shownWeaker(s *mechanisms.Sampler) (*releasedPlan, error) {
	if u.more != nil {
		return nil, fault.Internal(errShape)
	}
	return u.released(s, u.earlier)
}

// shownStronger is the answer if something was still to be released, and all that is now known of the question.
func (u *reusedPlan) shownStronger(s *mechanisms.Sampler, released *releasedPlan) (*releasedPlan, *Vector, error) {
	if u.more == nil || released.plan != u.more {
		return nil, nil, fault.Internal(errShape)
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
func (u *reusedPlan) released(s *mechanisms.Sampler, v *Vector) (*releasedPlan, error) {
	out := &releasedPlan{plan: u.shown}
	err := u.shown.query.eachPublicTuple(func(j int, keys []catalog.Key) error {
		row := releasedRow{keys: keys, noisy: make([]*big.Int, len(u.laws))}
		for i, law := range u.laws {
			row.noisy[i] = law.Value(s, v.Sums[j][i])
		}
		out.rows = append(out.rows, row)
		return nil
	})
	return out, err
}

// Vector is what was released, for other questions that differ in price only; the plan must be [Plan.Reusable].
func (r *releasedPlan) Vector() *Vector {
	v := &Vector{}
	for _, made := range r.plan.releases {
		v.Rho = append(v.Rho, []mechanisms.PicoRho{made.mechanism.Loss().Rho})
	}
	for _, row := range r.rows {
		sums := make([]*big.Int, len(row.noisy))
		for i, noisy := range row.noisy {
			sums[i] = new(big.Int).Mul(noisy, big.NewInt(int64(v.Rho[i][0])))
		}
		v.Sums = append(v.Sums, sums)
	}
	return v
}

// Text is the vector as JSON, and the ρ of all its releases together.
func (v *Vector) Text() (text []byte, rho mechanisms.PicoRho, err error) {
	for _, parts := range v.Rho {
		rho += totalRho(parts)
	}
	text, err = json.Marshal(v)
	return text, rho, internal(err)
}

// ReadVector reads what [Vector.Text] wrote.
func ReadVector(text []byte) (*Vector, error) {
	v := &Vector{}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fault.Internal(fmt.Errorf("sqlrewrite: a vector cannot be read: %w", err))
	}
	return v, nil
}
