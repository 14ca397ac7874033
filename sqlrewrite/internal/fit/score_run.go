package fit

import (
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// ScoreRun is a release of scores under way. It serves one request, and one goroutine.
type ScoreRun struct {
	plan     *Scoring
	noise    [][]mechanisms.Noise // of the one statement
	seed     int64                // of what the statement keeps of each unit
	released []*big.Int
}

// Start draws all noise and the secret seed, which depend on no data, and begins. Without a sampler there is no noise, and nothing can be
// released: for tests, which give sums to [ScoreRun.Advance].
func (p *Scoring) Start(s *mechanisms.Sampler) *ScoreRun {
	r := &ScoreRun{plan: p}
	if s == nil {
		return r
	}
	if p.sums.part.SeedArg > 0 {
		r.seed = int64(s.Uniform(1 << 63))
	}
	r.noise = [][]mechanisms.Noise{p.sums.noise.Draw(s)}
	return r
}

// Next is the statement; false once it ran.
func (r *ScoreRun) Next() (sqlprint.Statement, bool) {
	if r.released != nil {
		return sqlprint.Statement{}, false
	}
	return r.plan.sums.part.Statement.WithSeed(r.seed), true
}

// Len is how many statements there are.
func (r *ScoreRun) Len() int { return 1 }

// Release adds the noise to the row of the statement.
func (r *ScoreRun) Release(row plan.ExactRow) error { return withNoise(row, r.noise, 0, r.Advance) }

// Advance takes the released integers of the statement.
func (r *ScoreRun) Advance(released []*big.Int) error {
	if r.released != nil || len(released) != len(r.plan.sums.scales) {
		return fault.Internal(plan.ErrShape)
	}
	r.released = released
	return nil
}
