package fit

import (
	"math/big"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/plan"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/verify"
)

// squaredLength bounds that of the released vector of one row.
const squaredLength = 2

// l2Squared is that of what one unit moves the vector by, in units of its scales.
func (p *Plan) l2Squared() *big.Rat {
	rows := new(big.Rat).SetInt64(p.bounding.MaxRows)
	return rows.Mul(rows, rows).Mul(rows, big.NewRat(squaredLength, 1))
}

// products lists the columns of the statement, and their scales: with D the end of a factor's range and w the root of its weight,
// (DᵢDⱼK²/wᵢwⱼ)², half of it where i < j, and (DₜDᵢK/wᵢ)² for the target. Products of two columns of one one-hot feature are 0, and left
// out.
func (p *Plan) products() {
	p.vector.Factors = append(p.vector.Factors, sqlprint.Factor{})
	for _, c := range p.columns {
		p.vector.Factors = append(p.vector.Factors, c.factor)
	}
	target := len(p.vector.Factors)
	p.vector.Factors = append(p.vector.Factors, p.target.factor)
	for i := range target {
		for j := i; j < target; j++ {
			if i == j || !p.exclude(i, j) {
				p.vector.Columns = append(p.vector.Columns, [2]int{i, j})
			}
		}
		p.vector.Columns = append(p.vector.Columns, [2]int{i, target})
	}
	for _, at := range p.vector.Columns {
		i, j := at[0], at[1]
		d := new(big.Rat).SetInt(new(big.Int).Mul(p.vector.Factors[i].Most(), p.vector.Factors[j].Most()))
		scale := d.Mul(d, d).Mul(d, p.norm)
		scale.Quo(scale, p.weight(i))
		if j < target {
			scale.Mul(scale, p.norm).Quo(scale, p.weight(j))
		}
		if i < j && j < target {
			scale.Quo(scale, big.NewRat(2, 1))
		}
		p.scales = append(p.scales, scale)
	}
}

// weight is the squared weight of a factor, the first of which is the intercept.
func (p *Plan) weight(factor int) *big.Rat {
	if factor == 0 {
		return big.NewRat(1, 1)
	}
	return p.columns[factor-1].weight
}

// exclude reports whether two factors are never both other than 0.
func (p *Plan) exclude(i, j int) bool {
	if i == 0 || j == 0 {
		return false
	}
	a, b := p.columns[i-1], p.columns[j-1]
	return a.oneHot && b.oneHot && a.group == b.group
}

// claim is what the statement is said to move by.
func (p *Plan) claim() verify.Claim {
	c := verify.Claim{Groups: big.NewInt(1), PairsPerRow: p.query.Pairs, Joint: []verify.Joint{{L2Squared: p.l2Squared()}}}
	for i, at := range p.vector.Columns {
		move := new(big.Int).Mul(p.vector.Factors[at[0]].Most(), p.vector.Factors[at[1]].Most())
		c.PerGroup = append(c.PerGroup, move.Mul(move, big.NewInt(p.bounding.MaxRows)))
		c.Joint[0].Columns = append(c.Joint[0].Columns, i)
		c.Joint[0].Weights = append(c.Joint[0].Weights, new(big.Rat).Inv(p.scales[i]))
	}
	return c
}

// noiseFor makes the noise for what is claimed.
func (p *Plan) noiseFor(rho mechanisms.PicoRho) (*mechanisms.JointGaussian, error) {
	m, err := mechanisms.NewJointGaussian(mechanisms.JointGaussianParameters{Scales: p.scales, L2Squared: p.l2Squared(), Rho: rho})
	if err != nil {
		return nil, fault.Internal(err)
	}
	return m, nil
}

// Release adds the noise to the one row of the statement. An error of the rows is returned as it is.
func (p *Plan) Release(noise []mechanisms.Noise, rows plan.Rows) ([]*big.Int, error) {
	var noisy []*big.Int
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if noisy != nil || len(row.Keys) > 0 || len(row.Values) != len(noise) {
			return nil, fault.Internal(plan.ErrShape)
		}
		for i, v := range row.Values {
			noisy = append(noisy, noise[i].Release(v))
		}
	}
	if noisy == nil {
		return nil, fault.Internal(plan.ErrShape)
	}
	return noisy, nil
}
