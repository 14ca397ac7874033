package fit

import (
	"math/big"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/clustering"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// ClusterRun is a release of a clustering under way: first the moments, then one step of the centres after the other. It serves one
// request, and one goroutine.
type ClusterRun struct {
	plan    *Clustering
	noise   [][]mechanisms.Noise // by statement
	seed    int64                // of what the statements keep of each unit: the same in all
	done    int
	moments clustering.Moments
	space   clustering.Space
	lloyd   clustering.Lloyd
}

// Start draws all noise and the secret seed, which depend on no data, and begins. Without a sampler there is no noise, and nothing can be
// released: for tests, which give sums to [ClusterRun.Advance].
func (p *Clustering) Start(s *mechanisms.Sampler) *ClusterRun {
	r := &ClusterRun{plan: p}
	d := len(p.columns)
	r.moments = clustering.Moments{Sums: make([]float64, d), Second: make([][]float64, d)}
	for i := range d {
		r.moments.Second[i] = make([]float64, d)
	}
	if s == nil {
		return r
	}
	if p.step.part.SeedArg > 0 {
		r.seed = int64(s.Uniform(1 << 63))
	}
	r.moments.Sigma, r.lloyd.Sigma = p.deviation(&p.moments[0]), p.deviation(&p.step)
	for i := range p.Statements() {
		r.noise = append(r.noise, p.statement(i).noise.Draw(s))
	}
	return r
}

// Next is the statement to run now; false after the last step.
func (r *ClusterRun) Next() (sqlprint.Statement, bool) {
	if r.done == r.Len() {
		return sqlprint.Statement{}, false
	}
	s := r.plan.statement(r.done).part.Statement.WithSeed(r.seed)
	if r.done >= len(r.plan.moments) {
		s.Args = slices.Clone(s.Args)
		r.place(s.Args)
	}
	return s, true
}

// Len is how many statements there are.
func (r *ClusterRun) Len() int { return r.plan.Statements() }

// Release adds the noise of the statement to its row, and goes on.
func (r *ClusterRun) Release(row plan.ExactRow) error {
	return withNoise(row, r.noise, r.done, r.Advance)
}

// Advance goes on with the released integers of a statement.
func (r *ClusterRun) Advance(released []*big.Int) error {
	if r.done >= r.Len() || len(released) != len(r.plan.statement(r.done).scales) {
		return fault.Internal(plan.ErrShape)
	}
	at := r.done
	r.done++
	if at < len(r.plan.moments) {
		return r.took(at, released)
	}
	r.stepped(released)
	return nil
}
