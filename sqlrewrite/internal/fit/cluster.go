package fit

import (
	"fmt"
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/steps"
)

// ClusterQuestion asks for centres of rows, as texts of SQL.
type ClusterQuestion struct {
	From    string
	Where   string    // "": all rows
	Columns []Feature // none of them one-hot; a weight is what half of the column's range counts in distances
	Centres int
	Zone    string // the time zone of the session, where that is not UTC
}

// ClusterOptions are the choices of one request, already checked for range by the caller.
type ClusterOptions struct {
	Passes  int                // steps of the centres, positive
	Rho     mechanisms.PicoRho // the price, positive
	MaxRows int64              // tightens the policy's bound; 0: the policy's
	Proofs  *sqlprint.Proofs   // remember what was proven before; nil: nothing is
	Steps   *steps.Count       // what planning takes; nil: it is not bounded
}

// Clustering is k-means, ready to be paid for and run. It is immutable and safe for concurrent use.
//
// *Moments.* With z a row's columns, each divided by the end of its range, times its weight over the root of the sum of squared weights,
// the vector (1, zᵢ, zᵢ², √2·zᵢzⱼ for i < j) is released first, for [momentsShare] of the price. Its squared length is 1 + |z|² + |z|⁴ <=
// 3. Where that is more sums than a row of PostgreSQL's has, several statements have a part each of the vector, and the part of the price
// that its length is.
//
// *Steps.* The moments give the directions in which rows spread most. Each step releases, of the rows that are closest to each centre,
// their number and the sums of their coordinates y in these directions, of which |yⱼ| <= 1 wherever the directions are, by clamping: a row
// adds to one centre, and its (1, y/√p) of p coordinates has a squared length of 2 at most. A unit with m rows moves each vector by m times
// as much.
type Clustering struct {
	rowSums
	options  ClusterOptions
	clusters sqlprint.Clusters
	moments  []release
	step     release
	places   sqlprint.ClusterArguments
}

// release is a statement whose sums are released together.
type release struct {
	part   sqlprint.PlanPart
	vector sqlprint.Vector // of moments
	scales []*big.Rat      // of each column, what the noise's variance is multiplied by
	most   []*big.Int      // of each column, what a row adds at most
	length *big.Rat        // squared, of what one row moves the vector by, in units of its scales
	noise  *mechanisms.JointGaussian
}

// MaxCentres is how many centres a clustering has at most.
const MaxCentres = sqlprint.MaxCentres

// leastPart is what the squared weight of a column is of the sum of all, at least: columns that count for less are not seen in the
// directions.
var leastPart = big.NewRat(1, 1_000_000)

// leastCoordinates are those of small tables, which keep as many of their columns' directions; others have two fewer than centres.
const leastCoordinates = 3

// What a row costs at most in a step beside its factors, in ns: each coordinate's term, each centre's, and comparing centres.
const (
	directionWork = 150
	distanceWork  = 200
	nearestWork   = 400
)

// NewClustering plans k-means. Its errors are those of a query over the same expressions and plan/*; it touches neither data nor budget.
func NewClustering(q ClusterQuestion, on *catalog.Snapshot, o ClusterOptions) (*Clustering, error) {
	if o.Proofs == nil {
		o.Proofs = new(sqlprint.Proofs)
	}
	switch {
	case o.Passes < 1:
		return nil, fault.FitInvalid("iterations", "at least 1")
	case q.Centres < 2 || q.Centres > MaxCentres:
		return nil, fault.FitInvalid("k", fmt.Sprintf("from 2 to %d", MaxCentres))
	case len(q.Columns) == 0:
		return nil, fault.FitInvalid("columns", "one at least")
	}
	p := &Clustering{options: o, rowSums: sumsOf(q.From, q.Where, q.Columns, o.Steps)}
	p.Zone = q.Zone
	p.clusters = sqlprint.Clusters{Centres: q.Centres}
	p.clusters.Coordinates = min(len(q.Columns), max(leastCoordinates, q.Centres-2), sqlprint.MaxCoordinates)
	var err error
	if p.clusters.Factors, err = p.factors(on, p.load, "ask for fewer iterations, columns or centres", o.MaxRows); err != nil {
		return nil, err
	}
	p.moments = p.momentsOf()
	p.step = p.stepOf()
	if err := p.prices(); err != nil {
		return nil, err
	}
	for _, r := range p.releases() { // the step, which has the places, comes last
		if err := p.prove(r, on, o.Proofs, func(s *sqlprint.StatementPrinter) { p.places = p.print(r, s) }); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// sumsOf are sums over the columns of a question, which has no target.
func sumsOf(from, where string, columns []Feature, n *steps.Count) rowSums {
	return rowSums{bound: &bound{Question: Question{From: from, Where: where, Features: columns}, norm: new(big.Rat), steps: n}}
}

// factors reads a question as [rowSums.read] does, and gives the factors of its columns, none of which counts for nothing.
func (p *rowSums) factors(on *catalog.Snapshot, load loading, hint string, maxRows int64) (all []sqlprint.Factor, err error) {
	if err := p.read(on, load, hint, maxRows); err != nil {
		return nil, err
	}
	for _, c := range p.columns {
		if part := new(big.Rat).Quo(c.weight, p.norm); part.Cmp(leastPart) < 0 {
			return nil, fault.FitInvalid("weights", "at least a thousandth of all weights together: "+c.name+" counts for nothing")
		}
		all = append(all, c.factor)
	}
	return all, nil
}

// print prints the statement of a release; of a step it gives the places of its arguments.
func (p *Clustering) print(r *release, s *sqlprint.StatementPrinter) (places sqlprint.ClusterArguments) {
	if r == &p.step {
		return s.PrintClusters(p.clusters)
	}
	s.PrintVector(r.vector)
	return places
}

// releases are those of the moments, and of a step.
func (p *Clustering) releases() (all []*release) {
	for i := range p.moments {
		all = append(all, &p.moments[i])
	}
	return append(all, &p.step)
}

// load is what the statements do beside adding up columns, once these are known; all together are within the bounds on work.
func (p *Clustering) load() (algebra.Load, error) {
	d, centres, coordinates := int64(len(p.columns)), int64(p.clusters.Centres), int64(p.clusters.Coordinates)
	statements, sums := (momentSums(d)+maxOutputs-1)/maxOutputs, momentSums(d)
	step := coordinates*d*directionWork + centres*(coordinates*(distanceWork+productWork)+nearestWork+productWork)
	passes := int64(p.options.Passes)
	runs := statements + passes
	all := runs*(d+1)*factorWork + sums*productWork + passes*step
	return algebra.Load{Runs: runs, Row: (all + runs - 1) / runs}, nil
}

// Passes is how often the centres move.
func (p *Clustering) Passes() int { return p.options.Passes }

// Loss is the price of the plan, known before any row is read and dependent on none.
func (p *Clustering) Loss() mechanisms.Loss {
	loss := p.step.noise.Loss().Times(int64(p.options.Passes))
	for i := range p.moments {
		loss = loss.Plus(p.moments[i].noise.Loss())
	}
	return loss
}

// LossOfPass is the least that a statement has of the price.
func (p *Clustering) LossOfPass() mechanisms.Loss {
	least := p.step.noise.Loss()
	for i := range p.moments {
		if loss := p.moments[i].noise.Loss(); loss.Rho < least.Rho {
			least = loss
		}
	}
	return least
}

// Statements is how often the rows are read.
func (p *Clustering) Statements() int { return len(p.moments) + p.options.Passes }

// Mechanisms are the parameters of the releases, for the ledger.
func (p *Clustering) Mechanisms() (all []mechanisms.Parameters) {
	for _, r := range p.releases() {
		parameters := r.noise.Parameters()
		if r == &p.step && p.options.Passes > 1 {
			parameters.Times = int64(p.options.Passes)
		}
		all = append(all, parameters)
	}
	return all
}

// DryRuns are the statements over made-up rows.
func (p *Clustering) DryRuns() (all []sqlprint.DryRun) {
	for _, r := range p.releases() {
		all = append(all, p.dryRun(r))
	}
	return all
}
