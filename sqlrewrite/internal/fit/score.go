package fit

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/clustering"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/steps"
)

// ScoreQuestion asks how well centres group rows.
type ScoreQuestion struct {
	From    string
	Where   string      // "": all rows
	Columns []Feature   // as of a [ClusterQuestion]
	Centres [][]float64 // in the units of the columns
	// Which scores are asked for, of which there is one at least.
	CalinskiHarabasz, Silhouette bool
}

// ScoreOptions are the choices of one request, already checked for range by the caller.
type ScoreOptions struct {
	Rho        mechanisms.PicoRho    // the price, positive
	MaxRows    int64                 // tightens the policy's bound; 0: the policy's
	Confidence mechanisms.Confidence // level of the intervals, in (0, 1)
	Proofs     *sqlprint.Proofs      // remember what was proven before; nil: nothing is
	Steps      *steps.Count          // what planning takes; nil: it is not bounded
}

// Scoring are scores of a grouping, ready to be paid for and run. It is immutable and safe for concurrent use.
//
// With z a row's columns, each divided by the end of its range, times its weight over the root of the sum of squared weights, a row of the
// closest centre c and at the distances a and b from that and the next one adds (1, z) to the sums of c, z_j² to those of squares, and
// 2a/b - 1 to that of silhouettes. With v_j the largest z_j² the squares are divided by the root of v_j, so that each of the four has a
// length of 1 at most. Without Calinski-Harabasz the vector is (1, 2a/b - 1). A unit with m rows moves it by m times as much.
type Scoring struct {
	rowSums
	question ScoreQuestion
	options  ScoreOptions
	scores   sqlprint.Scores
	sums     release
}

// silhouetteWork is what the silhouette of a row costs at most beside its distances, in ns, without the comparisons of centres.
const silhouetteWork = 1000

// NewScoring plans scores. Its errors are those of a query over the same expressions and plan/*; it touches neither data nor budget.
func NewScoring(q ScoreQuestion, on *catalog.Snapshot, o ScoreOptions) (*Scoring, error) {
	if o.Proofs == nil {
		o.Proofs = new(sqlprint.Proofs)
	}
	switch {
	case len(q.Columns) == 0:
		return nil, fault.FitInvalid("columns", "one at least")
	case len(q.Centres) < 2 || len(q.Centres) > MaxCentres:
		return nil, fault.FitInvalid("centers", fmt.Sprintf("from 2 to %d", MaxCentres))
	case slices.ContainsFunc(q.Centres, func(c []float64) bool {
		return len(c) != len(q.Columns) || slices.ContainsFunc(c, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	}):
		return nil, fault.FitInvalid("centers", "a number for each column each")
	case q.CalinskiHarabasz && o.Confidence > clustering.MostConfidence:
		return nil, fault.FitInvalid("confidence", fmt.Sprintf("at most %g for calinski_harabasz, whose interval is by simulation",
			clustering.MostConfidence))
	case !q.CalinskiHarabasz && !q.Silhouette:
		return nil, fault.FitInvalid("score", "one at least")
	}
	p := &Scoring{rowSums: sumsOf(q.From, q.Where, q.Columns, o.Steps), question: q, options: o}
	p.scores = sqlprint.Scores{Spreads: q.CalinskiHarabasz, Silhouettes: q.Silhouette}
	var err error
	if p.scores.Factors, err = p.factors(on, p.load, "ask for one score, or give fewer centers or columns", o.MaxRows); err != nil {
		return nil, err
	}
	p.place()
	p.sums = p.scoreSums()
	if most := int64(len(p.sums.scales)); most > maxOutputs {
		return nil, fault.FitTooMany("sums, one of each column for each center", most, maxOutputs)
	}
	if err := p.price(&p.sums, o.Rho); err != nil {
		return nil, err
	}
	if err := p.prove(&p.sums, on, o.Proofs, func(s *sqlprint.StatementPrinter) { s.PrintScores(p.scores) }); err != nil {
		return nil, err
	}
	return p, nil
}

// load is what the statement does beside adding up columns, once these are known.
func (p *Scoring) load() (algebra.Load, error) {
	d, centres := int64(len(p.columns)), int64(len(p.question.Centres))
	row := (d+1)*factorWork + d*directionWork + centres*(d*distanceWork+nearestWork)
	if p.question.CalinskiHarabasz {
		row += (centres*(d+1) + d) * productWork
	}
	if p.question.Silhouette {
		row += silhouetteWork + centres*nearestWork
	}
	return algebra.Load{Runs: 1, Row: row}, nil
}

// place gives the columns their weights in distances, and the centres their coordinates. A centre beyond the bounds is moved to them.
func (p *Scoring) place() {
	widest := 0.0
	for i := range p.columns {
		widest = max(widest, p.part(i))
	}
	for i := range p.columns {
		p.scores.Counts = append(p.scores.Counts, p.part(i)/widest)
	}
	for _, centre := range p.question.Centres {
		var at []int64
		for i, x := range centre {
			g := p.columns[i].factor.Grid
			step, _ := g.Step.Float64()
			k := (2*x/step - float(new(big.Int).Add(g.Lo, g.Hi))) / float(p.columns[i].factor.Most())
			at = append(at, int64(math.RoundToEven(max(-1, min(1, k))*p.scores.Counts[i]*sqlprint.CoordinateSteps)))
		}
		p.scores.Centres = append(p.scores.Centres, at)
	}
}

// scoreSums are the columns of the statement: with D the end of a factor's range and v the largest z² of its column, sums of z have the
// scale D²/v, and of z² D⁴/v.
func (p *Scoring) scoreSums() release {
	r := release{length: new(big.Rat)}
	one, steps := big.NewInt(1), big.NewInt(sqlprint.SilhouetteSteps)
	for _, c := range p.scores.Columns() {
		most, scale := one, big.NewRat(1, 1)
		switch {
		case c[0] == sqlprint.RowSilhouette:
			most, scale = steps, new(big.Rat).SetInt(new(big.Int).Mul(steps, steps))
		case c[1] != sqlprint.RowCount:
			most = p.columns[c[1]].factor.Most()
			if c[0] == c[1] {
				most = new(big.Int).Mul(most, most)
			}
			scale.SetInt(new(big.Int).Mul(most, most))
			scale.Mul(scale, new(big.Rat).Quo(p.norm, p.columns[c[1]].weight))
		}
		r.most, r.scales = append(r.most, most), append(r.scales, scale)
	}
	for _, asked := range []bool{true, p.scores.Spreads, p.scores.Spreads, p.scores.Silhouettes} {
		if asked {
			r.length.Add(r.length, big.NewRat(1, 1))
		}
	}
	return r
}

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Scoring) Loss() mechanisms.Loss { return p.sums.noise.Loss() }

// LossOfPass is the price: there is one pass.
func (p *Scoring) LossOfPass() mechanisms.Loss { return p.Loss() }

// Statements is how often the rows are read.
func (p *Scoring) Statements() int { return 1 }

// Mechanisms are the parameters of the release, for the ledger.
func (p *Scoring) Mechanisms() []mechanisms.Parameters {
	return []mechanisms.Parameters{p.sums.noise.Parameters()}
}

// DryRuns are the statement over made-up rows.
func (p *Scoring) DryRuns() []sqlprint.DryRun { return []sqlprint.DryRun{p.dryRun(&p.sums)} }

// Deviation is the standard deviation of the noise of the number of rows, or of each cluster's where these are released.
func (p *Scoring) Deviation() float64 { return p.deviation(&p.sums) }

// Notes are what is known before there is data.
func (p *Scoring) Notes() []algebra.Note { return p.knownNotes("a column") }

// Score is a score of a grouping and its interval for the noise alone.
type Score = clustering.Score

// Scored are scores; nil where they are not asked for, or not resolvable.
type Scored struct {
	CalinskiHarabasz, Silhouette *Score
	Notes                        []algebra.Note
}

// Scored are the scores once the statement ran.
func (r *ScoreRun) Scored() (*Scored, error) {
	if r.released == nil {
		return nil, fault.Internal(plan.ErrShape)
	}
	p, left := r.plan, r.released
	take := func() float64 {
		n := float(left[0])
		left = left[1:]
		return n
	}
	out, confidence, sigma := &Scored{Notes: p.Notes()}, float64(p.options.Confidence), 0.0
	if len(r.noise) > 0 {
		sigma = p.Deviation()
	}
	unresolved := func(name string) {
		out.Notes = append(out.Notes, algebra.Note{Code: "not-resolvable", Text: name + " is not resolvable: the noise is too large beside " +
			"what it is made of; pay more, or score fewer centers"})
	}
	rows, rowsSigma := 0.0, sigma
	if !p.scores.Spreads {
		rows = take()
	} else {
		g := clustering.Groups{Sigma: sigma}
		for range p.scores.Centres {
			g.Sizes = append(g.Sizes, take())
			rows += g.Sizes[len(g.Sizes)-1]
			var sum []float64
			for j, f := range p.scores.Factors {
				sum = append(sum, take()/float(f.Most())*p.part(j))
			}
			g.Sums = append(g.Sums, sum)
		}
		for j, f := range p.scores.Factors {
			unit := p.part(j) / float(f.Most())
			g.Squares += take() * unit * unit
		}
		rowsSigma *= math.Sqrt(float64(len(g.Sizes)))
		if score, ok := g.CalinskiHarabasz(confidence); ok {
			out.CalinskiHarabasz = &score
		} else {
			unresolved("calinski_harabasz")
		}
	}
	if p.scores.Silhouettes {
		if score, ok := clustering.Silhouette(rows, rowsSigma, take()/sqlprint.SilhouetteSteps, sigma, confidence); ok {
			out.Silhouette = &score
		} else {
			unresolved("simplified_silhouette")
		}
	}
	return out, nil
}
