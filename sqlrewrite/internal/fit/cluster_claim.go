package fit

import (
	"math/big"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/verify"
)

// momentsShare is the part of the price that moments have, measured together with clustering.Reach.
var momentsShare = big.NewRat(3, 10)

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

// l2Squared is that of what one unit moves the vector by, in units of its scales.
func (p *Clustering) l2Squared(r *release) *big.Rat {
	rows := big.NewRat(p.bounding.MaxRows, 1)
	return rows.Mul(rows, rows).Mul(rows, r.length)
}

// prices gives each release its noise: to moments their share of the price, to each statement of these as much of it as its part of the
// vector's squared length, and the rest to the steps.
func (p *Clustering) prices() error {
	whole := new(big.Rat)
	for i := range p.moments {
		whole.Add(whole, p.moments[i].length)
	}
	total := big.NewRat(int64(p.options.Rho), 1)
	left := int64(p.options.Rho)
	for _, r := range p.releases() {
		var part int64
		if r == &p.step {
			part = left / int64(p.options.Passes)
		} else {
			share := new(big.Rat).Mul(total, momentsShare)
			share.Mul(share, r.length).Quo(share, whole)
			part = new(big.Int).Quo(share.Num(), share.Denom()).Int64()
			left -= part
		}
		if part < 1 {
			return fault.PriceTooSmall(len(p.moments) + p.options.Passes)
		}
		m, err := mechanisms.NewJointGaussian(mechanisms.JointGaussianParameters{Scales: r.scales, L2Squared: p.l2Squared(r),
			Rho: mechanisms.PicoRho(part)})
		if err != nil {
			return fault.Internal(err)
		}
		r.noise = m
	}
	return nil
}

// claim is what a statement is said to move by.
func (p *Clustering) claim(r *release) verify.Claim {
	c := verify.Claim{Groups: big.NewInt(1), PairsPerRow: p.query.Pairs, Joint: []verify.Joint{{L2Squared: p.l2Squared(r)}}}
	rows := big.NewInt(p.bounding.MaxRows)
	for i, most := range r.most {
		c.PerGroup = append(c.PerGroup, new(big.Int).Mul(most, rows))
		c.Joint[0].Columns = append(c.Joint[0].Columns, i)
		c.Joint[0].Weights = append(c.Joint[0].Weights, new(big.Rat).Inv(r.scales[i]))
	}
	return c
}
