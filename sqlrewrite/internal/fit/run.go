package fit

import (
	"math/big"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/regression"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Run is a release of a fit under way: the statement of each pass is made of what was released of the passes before it. It serves one
// request, and one goroutine.
type Run struct {
	plan  *Plan
	noise [][]mechanisms.Noise // by pass
	seed  int64                // of what the statements keep of each unit: the same in all passes
	done  int
	sums  []*big.Int       // of the last pass
	walk  *regression.Adam // nil: by moments
	weak  bool             // the first gradient is not large beside the noise
}

// Start draws all noise and the secret seed, which depend on no data, and begins. Without a sampler there is no noise, and nothing can be
// released: for tests, which give sums to [Run.Advance].
func (p *Plan) Start(s *mechanisms.Sampler) *Run {
	r := &Run{plan: p}
	if s != nil && p.sums.part.SeedArg > 0 {
		r.seed = int64(s.Uniform(1 << 63))
	}
	for range p.passes {
		if s != nil {
			r.noise = append(r.noise, p.sums.noise.Draw(s))
		}
	}
	if p.Method() == Gradient {
		r.walk = regression.NewAdam(len(p.columns)+1, p.passes)
	}
	return r
}

// Next is the statement to run now; false after the last pass.
func (r *Run) Next() (sqlprint.Statement, bool) {
	s := r.plan.sums.part.Statement.WithSeed(r.seed)
	if r.done == r.plan.passes {
		return sqlprint.Statement{}, false
	}
	if r.walk != nil {
		s.Args = slices.Clone(s.Args)
		for i, place := range r.plan.coefficients {
			s.Args[place] = r.plan.sums.vector.Factors[i].Coefficient(r.walk.Point()[i])
		}
	}
	return s, true
}

// Len is how many statements there are.
func (r *Run) Len() int { return r.plan.passes }

// Release adds the noise of the pass to the row of its statement, and goes on.
func (r *Run) Release(row plan.ExactRow) error {
	return withNoise(row, r.noise, r.done, r.Advance)
}

// withNoise goes on with the row of a statement and the noise that was drawn for it.
func withNoise(row plan.ExactRow, noise [][]mechanisms.Noise, statement int, advance func([]*big.Int) error) error {
	if statement >= len(noise) || len(row.Keys) > 0 || len(row.Values) != len(noise[statement]) {
		return fault.Internal(plan.ErrShape)
	}
	var released []*big.Int
	for i, v := range row.Values {
		released = append(released, noise[statement][i].Release(v))
	}
	return advance(released)
}

// Advance goes on with the released integers of a pass.
func (r *Run) Advance(released []*big.Int) error {
	if len(released) != len(r.plan.sums.vector.Columns) || r.done >= r.plan.passes {
		return fault.Internal(plan.ErrShape)
	}
	r.sums = released
	if r.walk != nil && r.done == 0 && len(r.noise) > 0 {
		r.weak = r.plan.weakGradient(released)
	}
	r.done++
	if r.walk != nil {
		gradient := make([]float64, len(released))
		for i, n := range released {
			gradient[i] = float(n) / sqlprint.ResidualSteps / float(r.plan.sums.vector.Factors[i].Most())
		}
		r.walk.Step(gradient)
	}
	return nil
}

// Fitted is the model once all passes are done.
func (r *Run) Fitted() (*Fitted, error) {
	if r.done != r.plan.passes {
		return nil, fault.Internal(plan.ErrShape)
	}
	if r.walk == nil {
		return r.plan.solve(r.sums, len(r.noise) == 0)
	}
	s := regression.Solution{Coefficients: r.walk.Mean()}
	for i := range s.Coefficients { // of factors over their largest value, to those times the root of their weight over K
		s.Coefficients[i] /= r.plan.unit(i) * float(r.plan.sums.vector.Factors[i].Most())
	}
	s.Weak = r.weak
	return r.plan.inColumns(s), nil
}
