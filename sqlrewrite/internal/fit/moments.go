package fit

import (
	"crypto/sha256"
	"fmt"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/internal/stability"
)

// Options are the choices of one request, already checked for range by the caller.
type Options struct {
	Rho        mechanisms.PicoRho    // the price, positive
	MaxRows    int64                 // tightens the policy's bound; 0: the policy's
	Confidence mechanisms.Confidence // level of the intervals, in (0, 1)
	Proofs     *sqlprint.Proofs      // remember what was proven before; nil: nothing is
}

// Plan is a fit by second moments, ready to be paid for and run. It is immutable and safe for concurrent use.
//
// With z a row's features, each divided by the end of its factor's range, times the root of its weight over K, and t the target, divided
// likewise, the vector that is released is (zᵢ², √2·zᵢzⱼ for i < j, t·zᵢ). Its squared length is |z|⁴ + t²|z|² <= 2, as |z| <= 1: of
// numeric features and of the intercept by their ranges, of a one-hot feature as one of its columns at most is not 0. A unit with m rows
// moves it by m times as much. Each place has noise of one variance in these units; the statement's integers have their own, by scale.
type Plan struct {
	*bound
	options  Options
	bounding stability.Bounding
	vector   sqlprint.Vector
	scales   []*big.Rat // of each column, what the noise's variance is multiplied by
	noise    *mechanisms.JointGaussian
	part     sqlprint.PlanPart
	identity [32]byte
}

// productWork is what one product of a row costs at most, in ns.
const productWork = 100

// NewPlan plans a fit. Its errors are those of a query over the same expressions, fit/* and plan/*; it touches neither data nor budget.
func NewPlan(q Question, on *catalog.Snapshot, o Options) (*Plan, error) {
	if o.Proofs == nil {
		o.Proofs = new(sqlprint.Proofs)
	}
	b, err := bindQuestion(q, on)
	if err != nil {
		return nil, err
	}
	p := &Plan{bound: b, options: o}
	if p.bounding, err = stability.ChooseBounding(b.query, stability.Bounds{MaxRows: o.MaxRows}); err != nil {
		return nil, err
	}
	p.products()
	if p.bounding.Kind != stability.Flat && int64(len(p.vector.Columns))*productWork > b.query.Spare {
		return nil, fault.FitTooMany("products of features of a table in which people have several rows", int64(len(p.vector.Columns)),
			b.query.Spare/productWork)
	}
	if p.noise, err = p.noiseFor(o.Rho); err != nil {
		return nil, err
	}
	for i := range b.query.Statistics {
		p.part.Releases = append(p.part.Releases, i) // whose expressions the factors are
	}
	sqlprint.NewStatementPrinter(b.query, p.bounding, &p.part).PrintVector(p.vector)
	if p.part.RowByRow {
		return nil, fault.RowByRow()
	}
	s := &p.part.Statement
	s.Claim, s.On = p.claim(), on
	if err := s.Prove(o.Proofs); err != nil {
		return nil, err
	}
	p.identity = p.fingerprint(on)
	return p, nil
}

// fingerprint hashes all that decides the answer's distribution and its form.
func (p *Plan) fingerprint(on *catalog.Snapshot) [32]byte {
	h := sqlprint.Identity{Hash: sha256.New()}
	h.Add("noisegate fit 1", on.Dataset, fmt.Sprint(on.Version), string(on.Digest[:]), string(p.Question.Model), "moments",
		fmt.Sprint(p.options.Rho), fmt.Sprint(float64(p.options.Confidence)), p.part.Statement.SQL)
	h.Args(p.part.Statement.Args)
	for i, c := range p.columns {
		h.Add(c.name, p.scales[i].RatString(), fmt.Sprint(c.oneHot))
	}
	for _, s := range p.scales {
		h.Add(s.RatString())
	}
	return [32]byte(h.Sum(nil))
}

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Plan) Loss() mechanisms.Loss { return p.noise.Loss() }

// Mechanisms are the parameters of the release, for the ledger.
func (p *Plan) Mechanisms() []mechanisms.Parameters {
	return []mechanisms.Parameters{p.noise.Parameters()}
}

// Fingerprint identifies the question: two plans with equal fingerprints give equal answers when replayed.
func (p *Plan) Fingerprint() [32]byte { return p.identity }

// Statement is what runs on the protected database.
func (p *Plan) Statement() sqlprint.Statement { return p.part.Statement }

// DryRun is the statement over made-up rows.
func (p *Plan) DryRun() sqlprint.DryRun { return sqlprint.DryRunOf(p.query, &p.part) }

// Draw samples the noise, which depends on no data, before the statement runs. It serves one release.
func (p *Plan) Draw(s *mechanisms.Sampler) []mechanisms.Noise { return p.noise.Draw(s) }
