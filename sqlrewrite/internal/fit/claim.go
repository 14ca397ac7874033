package fit

import (
	"math/big"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/verify"
)

// squaredLength bounds that of the released vector of one row.
func (p *Plan) squaredLength() int64 {
	if p.Method() == Gradient {
		return 1
	}
	return 2
}

// l2Squared is that of what one unit moves the vector by, in units of its scales.
func (p *Plan) l2Squared() *big.Rat {
	rows := new(big.Rat).SetInt64(p.bounding.MaxRows)
	return rows.Mul(rows, rows).Mul(rows, big.NewRat(p.squaredLength(), 1))
}

// products lists the columns of the statement, and their scales: with D the end of a factor's range and w the root of its weight,
// (DᵢDⱼK²/wᵢwⱼ)², half of it where i < j, and (DₜDᵢK/wᵢ)² for the target. Products of two columns of one one-hot feature are 0, and left
// out. Of gradients there is a column for each factor but the target, with (2¹⁶DᵢK/wᵢ)².
func (p *Plan) products() {
	p.vector.Factors = append(p.vector.Factors, sqlprint.Factor{})
	for _, c := range p.columns {
		p.vector.Factors = append(p.vector.Factors, c.factor)
	}
	target := len(p.vector.Factors)
	p.vector.Factors = append(p.vector.Factors, p.target.factor)
	p.vector.Logistic = p.Method() == Gradient
	for i := range target {
		if p.vector.Logistic {
			p.vector.Columns = append(p.vector.Columns, [2]int{sqlprint.Residual, i})
			continue
		}
		for j := i; j < target; j++ {
			if i == j || !p.exclude(i, j) {
				p.vector.Columns = append(p.vector.Columns, [2]int{i, j})
			}
		}
		p.vector.Columns = append(p.vector.Columns, [2]int{i, target})
	}
	for _, at := range p.vector.Columns {
		i, j := at[0], at[1]
		d := new(big.Rat).SetInt(p.most(at))
		scale := d.Mul(d, d).Mul(d, p.norm)
		if i == sqlprint.Residual {
			p.scales = append(p.scales, scale.Quo(scale, p.weight(j)))
			continue
		}
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

// most is the largest absolute value of a product.
func (p *Plan) most(column [2]int) *big.Int {
	n := p.vector.Factors[column[1]].Most()
	if column[0] == sqlprint.Residual {
		return n.Mul(n, big.NewInt(sqlprint.ResidualSteps))
	}
	return n.Mul(n, p.vector.Factors[column[0]].Most())
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
		move := p.most(at)
		c.PerGroup = append(c.PerGroup, move.Mul(move, big.NewInt(p.bounding.MaxRows)))
		c.Joint[0].Columns = append(c.Joint[0].Columns, i)
		c.Joint[0].Weights = append(c.Joint[0].Weights, new(big.Rat).Inv(p.scales[i]))
	}
	return c
}

// noiseFor makes the noise of one pass for what is claimed.
func (p *Plan) noiseFor(rho mechanisms.PicoRho) (*mechanisms.JointGaussian, error) {
	m, err := mechanisms.NewJointGaussian(mechanisms.JointGaussianParameters{Scales: p.scales, L2Squared: p.l2Squared(), Rho: rho})
	if err != nil {
		return nil, fault.Internal(err)
	}
	return m, nil
}
