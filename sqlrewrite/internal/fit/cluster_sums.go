package fit

import (
	"math"
	"math/big"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// momentSums are how many moments some columns have.
func momentSums(d int64) int64 { return (d + 1) * (d + 2) / 2 }

// momentsOf lists the moments, maxOutputs in a statement, and their scales: with D the end of a factor's range, w the root of its weight
// and K² the sum of weights, 1 for the rows, (DᵢK/wᵢ)², and (DᵢDⱼK²/wᵢwⱼ)², half of it where i < j.
func (p *Clustering) momentsOf() (all []release) {
	factors := append([]sqlprint.Factor{{}}, p.clusters.Factors...)
	part := func(i int) (squared, most *big.Rat) { // of z, and the end of the range
		if i == 0 {
			return big.NewRat(1, 1), big.NewRat(1, 1)
		}
		return new(big.Rat).Quo(p.columns[i-1].weight, p.norm), new(big.Rat).SetInt(factors[i].Most())
	}
	for i := range factors {
		for j := i; j < len(factors); j++ {
			if len(all) == 0 || len(all[len(all)-1].scales) == maxOutputs {
				all = append(all, release{vector: sqlprint.Vector{Factors: factors}, length: new(big.Rat)})
			}
			r := &all[len(all)-1]
			a, m := part(i)
			b, n := part(j)
			m.Mul(m, n)
			length := a.Mul(a, b) // of the product, squared
			scale := new(big.Rat).Mul(m, m)
			scale.Quo(scale, length)
			if i > 0 && i < j {
				two := big.NewRat(2, 1)
				scale.Quo(scale, two)
				length.Mul(length, two)
			}
			r.vector.Columns = append(r.vector.Columns, [2]int{i, j})
			r.most = append(r.most, new(big.Int).Set(m.Num()))
			r.scales = append(r.scales, scale)
			r.length.Add(r.length, length)
		}
	}
	return all
}

// stepOf lists the columns of a step.
func (p *Clustering) stepOf() release {
	r := release{length: big.NewRat(2, 1)}
	steps := big.NewInt(sqlprint.CoordinateSteps)
	scale := new(big.Rat).SetInt(new(big.Int).Mul(steps, steps))
	scale.Mul(scale, big.NewRat(int64(p.clusters.Coordinates), 1))
	for range p.clusters.Centres {
		r.scales, r.most = append(r.scales, big.NewRat(1, 1)), append(r.most, big.NewInt(1))
		for range p.clusters.Coordinates {
			r.scales, r.most = append(r.scales, scale), append(r.most, steps)
		}
	}
	return r
}

// statement is the release of a place among all that run.
func (p *Clustering) statement(i int) *release {
	if i < len(p.moments) {
		return &p.moments[i]
	}
	return &p.step
}

// deviation is the standard deviation of the noise of a place whose scale is 1.
func (p *rowSums) deviation(r *release) float64 {
	l2, _ := p.l2Squared(r).Float64()
	return math.Sqrt(l2 / (2 * float64(r.noise.Loss().Rho) / float64(mechanisms.RhoUnit)))
}
