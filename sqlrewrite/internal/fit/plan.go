package fit

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/steps"
)

// Method is how a model is fitted.
type Method string

const (
	Auto     Method = ""         // gradients for a logistic model, moments for others
	Moments  Method = "moments"  // second moments, released once
	Gradient Method = "gradient" // noisy gradients, a pass over the rows for each; logistic models only
)

// Options are the choices of one request, already checked for range by the caller.
type Options struct {
	Method     Method
	Passes     int                   // by gradients, positive
	Rho        mechanisms.PicoRho    // the price, positive
	MaxRows    int64                 // tightens the policy's bound; 0: the policy's
	Confidence mechanisms.Confidence // level of the intervals, in (0, 1)
	Proofs     *sqlprint.Proofs      // remember what was proven before; nil: nothing is
	Steps      *steps.Count          // what planning takes; nil: it is not bounded
}

// Plan is a fit, ready to be paid for and run. It is immutable and safe for concurrent use.
//
// *Moments.* With z a row's features, each divided by the end of its factor's range, times the root of its weight over K, and t the
// target, divided likewise, the vector that is released is (zᵢ², √2·zᵢzⱼ for i < j, t·zᵢ). Its squared length is |z|⁴ + t²|z|² <= 2, as
// |z| <= 1: of numeric features and of the intercept by their ranges, of a one-hot feature as one of its columns at most is not 0. A unit
// with m rows moves it by m times as much. Each place has noise of one variance in these units; the statement's integers have their own, by
// scale.
//
// *Gradients.* With r = 2¹⁶·(p - y) rounded, p the predicted probability of y = 1, each pass releases Σ r·z over 2¹⁶, of which a row's
// squared length is at most 1, as |r| <= 2¹⁶, wherever the walk has come to: the coefficients are arguments that the text clamps. Each pass
// has its part of the price.
type Plan struct {
	rowSums
	options Options
	sums    release // of each pass
	passes  int
	// coefficients are the places of the walk's point among the arguments of the statement.
	coefficients []int
}

// What a row costs at most beside the values of its features, in ns, by the prices of what is printed: each product, each factor, each
// coefficient, and the residual.
const (
	productWork     = 100
	factorWork      = 200
	coefficientWork = 400
	residualWork    = 2000
)

// maxOutputs is how many sums one statement has: PostgreSQL has 1,664 columns in a row, of which a query per unit needs two for itself.
const maxOutputs = 1662

// NewPlan plans a fit. Its errors are those of a query over the same expressions, fit/* and plan/*; it touches neither data nor budget.
func NewPlan(q Question, on *catalog.Snapshot, o Options) (*Plan, error) {
	if o.Proofs == nil {
		o.Proofs = new(sqlprint.Proofs)
	}
	p := &Plan{rowSums: rowSums{bound: &bound{Question: q, norm: big.NewRat(1, 1), steps: o.Steps}}, options: o, passes: 1}
	if p.Method() == Gradient {
		p.passes = o.Passes
	}
	switch {
	case p.passes < 1:
		return nil, fault.FitInvalid("iterations", "at least 1")
	case p.Method() == Gradient && p.Question.Model != Logistic:
		return nil, fault.FitInvalid("method", "moments for a model that is not logistic")
	}
	hint := "use fewer features, or fit groups of rows, one for each person, that a query in FROM makes"
	if p.passes > 1 {
		hint = "ask for fewer iterations, for the method moments, or for fewer features"
	}
	if err := p.read(on, p.load, hint, o.MaxRows); err != nil {
		return nil, err
	}
	p.sums = p.products()
	if o.Rho < mechanisms.PicoRho(p.passes) {
		return nil, fault.PriceTooSmall(p.passes)
	}
	if err := p.price(&p.sums, o.Rho/mechanisms.PicoRho(p.passes)); err != nil {
		return nil, err
	}
	print := func(s *sqlprint.StatementPrinter) { p.coefficients = s.PrintVector(p.sums.vector) }
	if err := p.prove(&p.sums, on, o.Proofs, print); err != nil {
		return nil, err
	}
	return p, nil
}

// Method is how the model is fitted.
func (p *Plan) Method() Method {
	switch {
	case p.options.Method != Auto:
		return p.options.Method
	case p.Question.Model == Logistic:
		return Gradient
	default:
		return Moments
	}
}

// Passes is how often the rows are read.
func (p *Plan) Passes() int { return p.passes }

// load is what the statement does beside adding up features, once the columns are known: all passes together are within the bounds on work.
func (p *Plan) load() (algebra.Load, error) {
	factors := len(p.columns) + 1
	l := algebra.Load{Runs: int64(p.passes), Row: int64(factors+1) * factorWork}
	if p.Method() == Gradient {
		l.Row += residualWork + int64(factors)*(coefficientWork+productWork)
		return l, nil
	}
	outputs := outputsOf(factors)
	sizes := make(map[int]int) // of the one-hot features
	for _, c := range p.columns {
		if c.oneHot {
			outputs -= sizes[c.group] // products of two columns of one are 0
			sizes[c.group]++
		}
	}
	if outputs > maxOutputs {
		fit := 0
		for outputsOf(fit+2) <= maxOutputs {
			fit++
		}
		return l, fault.FitOutputs(outputs, maxOutputs, fit)
	}
	l.Row += int64(outputs) * productWork
	return l, nil
}

// outputsOf is how many products some factors have with each other and with the target.
func outputsOf(factors int) int { return factors * (factors + 3) / 2 }

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Plan) Loss() mechanisms.Loss { return p.sums.noise.Loss().Times(int64(p.passes)) }

// LossOfPass is the part of the price that each pass has.
func (p *Plan) LossOfPass() mechanisms.Loss { return p.sums.noise.Loss() }

// Mechanisms are the parameters of the release, for the ledger.
func (p *Plan) Mechanisms() []mechanisms.Parameters {
	all := p.sums.noise.Parameters()
	if p.passes > 1 {
		all.Times = int64(p.passes)
	}
	return []mechanisms.Parameters{all}
}

// Statement is what runs on the protected database first, once a [Run] gives it its seed.
func (p *Plan) Statement() sqlprint.Statement { return p.sums.part.Statement }

// DryRun is the statement over made-up rows.
func (p *Plan) DryRun() sqlprint.DryRun { return p.dryRun(&p.sums) }
