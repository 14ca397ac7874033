package plan

import (
	"math/big"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Options are the choices of one request, already checked for range by the caller.
type Options struct {
	Dialect parse.Dialect // of the text; empty: PostgreSQL's
	Now     time.Time     // what current_date and its like mean in the text; zero: they are refused
	// Zone is the time zone of the client's session, as messages name it; "": UTC. In another one, what depends on it is refused.
	Zone string
	// Exactly one of Epsilon and Rho is positive: the price of the whole query.
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho
	// Delta pays for partition selection; it may be zero when no key is private. With MechanismGaussian and Epsilon the
	// caller has already turned (ε, δ) into Rho.
	Delta     mechanisms.AttoDelta
	Mechanism MechanismChoice
	// Selection is the selector of quantiles, modes and first groups; empty: the most accurate one. With SelectsOnly it was asked for in the
	// place of the noise, and the query must need none.
	Selection   mechanisms.Name
	SelectsOnly bool
	// Currency is what the analyst's account adds up; [MechanismAuto] chooses the smaller error at equal charge in it.
	Currency   catalog.Form
	Confidence mechanisms.Confidence // level of the intervals, in (0, 1)
	// Simultaneous asks for intervals that hold all together at the level, instead of one by one.
	Simultaneous bool
	MaxGroups    int64              // tightens the policy's bound; 0: the policy's
	MaxRows      int64              // tightens the policy's bound; 0: the policy's
	MaxTotal     int64              // max_rows_total: tightens the policy's bound, if there is one; 0: the policy's
	Proofs       *sqlprint.Proofs   // remember what was proven of earlier plans; nil: those of this plan alone are remembered
	Noises       *mechanisms.Noises // remember the noises of earlier plans; nil: none are
	// Weights say how much the variance of the outputs with these names matters; all positive. Empty: the price is split evenly.
	Weights map[string]*big.Rat
	Report  Report // what is bought beside the answer; empty: nothing
	// Lists are lists of keys that are known; nil: keys are what policy and text give by themselves, and none are asked for.
	Lists *keys.Lists
	// Bounded: the error is. What was released within wider bounds than those of the plan, at its price, need not keep it, and is no answer.
	Bounded bool
	// evenDelta is what earlier versions made Delta, which they divided among all releases of a question; 0: the same.
	evenDelta mechanisms.AttoDelta
	bought    []*Plan          // release the values that the block takes as arguments, by their places
	set       *catalog.RankSet // of a copy: by which groups and rows are left out
}

// MechanismChoice is which noise the request asks for.
type MechanismChoice string

// The choices.
const (
	MechanismAuto     MechanismChoice = "auto"
	MechanismLaplace  MechanismChoice = "laplace"
	MechanismGaussian MechanismChoice = "gaussian"
)

// Repriced is the plan of the same question under other options.
func (p *Plan) Repriced(o Options) (*Plan, error) {
	if o.Proofs == nil {
		o.Proofs, o.Noises = p.Options.Proofs, p.Options.Noises
	}
	again, err := NewPlan(p.asked, p.Snapshot, o)
	if err == nil && p.wide != nil && !o.Bounded {
		again.Widened(p.wide.made)
	}
	return again, err
}

// Price is the price that the plan was made for: an ε or, if that is 0, a ρ.
func (p *Plan) Price() (mechanisms.PicoEpsilon, mechanisms.PicoRho) {
	return p.Options.Epsilon, p.Options.Rho
}
