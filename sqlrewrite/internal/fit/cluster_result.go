package fit

import (
	"math"
	"math/big"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms/clustering"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// place puts the space and the centres among the arguments of a step.
func (r *ClusterRun) place(args []any) {
	p, c := r.plan.places, r.plan.clusters
	weights := r.space.Weights()
	for j, direction := range r.space.Directions {
		unit, origin := 1/(clustering.Reach*r.space.Spread[j]), 0.0
		for i, v := range direction {
			args[p.Directions[j][i]] = c.Factors[i].Direction(v * r.plan.part(i) * unit)
			origin += v * r.space.Mean[i] * unit
		}
		args[p.Origin[j]] = c.Origin(origin)
		args[p.Weights[j]] = c.Weight(weights[j])
	}
	for i, centre := range r.lloyd.Centres {
		for j, y := range centre {
			args[p.Centres[i][j]] = c.Centre(y)
		}
	}
}

// part is what the end of a column's range is of z.
func (b *bound) part(column int) float64 {
	squared, _ := new(big.Rat).Quo(b.columns[column].weight, b.norm).Float64()
	return math.Sqrt(squared)
}

// stepped moves the centres by the sums of a step.
func (r *ClusterRun) stepped(released []*big.Int) {
	width := 1 + r.plan.clusters.Coordinates
	var sizes []float64
	var sums [][]float64
	for ; len(released) > 0; released = released[width:] {
		sizes = append(sizes, float(released[0]))
		var sum []float64
		for _, n := range released[1:width] {
			sum = append(sum, float(n)/sqlprint.CoordinateSteps)
		}
		sums = append(sums, sum)
	}
	r.lloyd.Step(sizes, sums)
}

// took keeps a statement's moments, and begins with the centres after the last of them.
func (r *ClusterRun) took(at int, released []*big.Int) error {
	for n, c := range r.plan.moments[at].vector.Columns {
		i, j, v := c[0]-1, c[1]-1, float(released[n])
		switch {
		case j < 0:
			r.moments.Rows = v
		case i < 0:
			r.moments.Sums[j] = v * r.plan.unit(j)
		default:
			v *= r.plan.unit(i) * r.plan.unit(j)
			r.moments.Second[i][j], r.moments.Second[j][i] = v, v
		}
	}
	if r.done < len(r.plan.moments) {
		return nil
	}
	space, err := r.moments.Space(r.plan.clusters.Coordinates)
	if err != nil {
		return fault.Internal(err)
	}
	r.space = space
	r.lloyd.Centres = space.Start(r.plan.clusters.Centres)
	return nil
}

// unit is what a column's factor is multiplied by in z.
func (p *Clustering) unit(column int) float64 {
	return p.part(column) / float(p.clusters.Factors[column].Most())
}

// Clustered are centres in the units of the columns.
type Clustered struct {
	Columns []string
	Centres []Centre
	// Deviation is the standard deviation of the noise of each size.
	Deviation float64
	Notes     []algebra.Note
}

// Centre is one centre.
type Centre struct {
	Values []float64 // by column, within its bounds
	Size   float64   // how many rows were closest to it before its last step, with noise
}

// Clustered are the centres once all steps are done, the largest first.
func (r *ClusterRun) Clustered() (*Clustered, error) {
	p := r.plan
	if r.done != r.Len() {
		return nil, fault.Internal(plan.ErrShape)
	}
	out := &Clustered{Columns: p.Columns(), Deviation: r.lloyd.Sigma, Notes: p.Notes()}
	for i, c := range r.lloyd.Centres {
		centre := Centre{Size: max(0, r.lloyd.Sizes[i])}
		for at, z := range r.space.Point(c) {
			g := p.columns[at].factor.Grid
			step, _ := g.Step.Float64()
			half := float(p.clusters.Factors[at].Most()) * step / 2
			middle := float(new(big.Int).Add(g.Lo, g.Hi)) * step / 2
			centre.Values = append(centre.Values, middle+half*max(-1, min(1, z/p.part(at))))
		}
		out.Centres = append(out.Centres, centre)
	}
	slices.SortStableFunc(out.Centres, func(a, b Centre) int {
		switch {
		case a.Size > b.Size:
			return -1
		case a.Size < b.Size:
			return 1
		}
		return 0
	})
	noise := clustering.Noise(r.lloyd.Sigma, r.moments.Rows, p.clusters.Centres, p.clusters.Coordinates)
	if noise > clustering.WeakAbove {
		out.Notes = append(out.Notes, algebra.Note{Code: "too-few-people", Text: "there are too few people for this price: the noise of " +
			"centres is not small beside the spread of the rows; pay more, or ask for fewer centres or columns"})
	}
	return out, nil
}

// Columns are the names of the columns.
func (p *Clustering) Columns() (names []string) {
	for _, c := range p.columns {
		names = append(names, c.name)
	}
	return names
}

// People is from how many people on the noise of centres is small beside the spread of the rows, in clusters of one size.
func (p *Clustering) People() int64 {
	return int64(math.Ceil(min(1<<53, clustering.Rows(p.deviation(&p.step), p.clusters.Centres, p.clusters.Coordinates))))
}

// Deviation is the standard deviation of the noise of each cluster's size.
func (p *Clustering) Deviation() float64 { return p.deviation(&p.step) }

// Notes are what is known before there is data.
func (p *Clustering) Notes() []algebra.Note {
	notes := p.knownNotes("a column")
	if p.clusters.Coordinates < len(p.columns) {
		notes = append(notes, algebra.Note{Code: "projected", Text: "rows are grouped by the directions in which they spread most, which are " +
			"fewer than the columns: more would have more noise than they tell"})
	}
	return notes
}
