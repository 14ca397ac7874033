package fit

import (
	"math/big"

	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// squaredLength bounds that of the released vector of one row.
func (p *Plan) squaredLength() int64 {
	if p.Method() == Gradient {
		return 1
	}
	return 2
}

// products lists the columns of the statement, and their scales: with D the end of a factor's range and w the root of its weight,
// (DᵢDⱼK²/wᵢwⱼ)², half of it where i < j, and (DₜDᵢK/wᵢ)² for the target. Products of two columns of one one-hot feature are 0, and left
// out. Of gradients there is a column for each factor but the target, with (2¹⁶DᵢK/wᵢ)².
func (p *Plan) products() release {
	r := release{length: big.NewRat(p.squaredLength(), 1)}
	v := &r.vector
	v.Factors = append(v.Factors, sqlprint.Factor{})
	for _, c := range p.columns {
		v.Factors = append(v.Factors, c.factor)
	}
	target := len(v.Factors)
	v.Factors = append(v.Factors, p.target.factor)
	v.Logistic = p.Method() == Gradient
	for i := range target {
		if v.Logistic {
			v.Columns = append(v.Columns, [2]int{sqlprint.Residual, i})
			continue
		}
		for j := i; j < target; j++ {
			if i == j || !p.exclude(i, j) {
				v.Columns = append(v.Columns, [2]int{i, j})
			}
		}
		v.Columns = append(v.Columns, [2]int{i, target})
	}
	for _, at := range v.Columns {
		i, j := at[0], at[1]
		most := v.Factors[j].Most()
		if i == sqlprint.Residual {
			most.Mul(most, big.NewInt(sqlprint.ResidualSteps))
		} else {
			most.Mul(most, v.Factors[i].Most())
		}
		r.most = append(r.most, most)
		d := new(big.Rat).SetInt(most)
		scale := d.Mul(d, d).Mul(d, p.norm)
		if i == sqlprint.Residual {
			r.scales = append(r.scales, scale.Quo(scale, p.weight(j)))
			continue
		}
		scale.Quo(scale, p.weight(i))
		if j < target {
			scale.Mul(scale, p.norm).Quo(scale, p.weight(j))
		}
		if i < j && j < target {
			scale.Quo(scale, big.NewRat(2, 1))
		}
		r.scales = append(r.scales, scale)
	}
	return r
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
