package fit

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/verify"
)

// momentsShare is the part of the price that moments have, measured together with clustering.Reach.
var momentsShare = big.NewRat(3, 10)

// rowSums are what releases add up, over the rows of a bound question.
type rowSums struct {
	*bound
	bounding stability.Bounding
	on       *catalog.Snapshot
}

// l2Squared is that of what one unit moves the vector by, in units of its scales.
func (p *rowSums) l2Squared(r *release) *big.Rat {
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
		if err := p.price(r, mechanisms.PicoRho(part)); err != nil {
			return err
		}
	}
	return nil
}

// price gives a release its noise.
func (p *rowSums) price(r *release, rho mechanisms.PicoRho) (err error) {
	r.noise, err = mechanisms.NewJointGaussian(mechanisms.JointGaussianParameters{Scales: r.scales, L2Squared: p.l2Squared(r), Rho: rho})
	if err != nil {
		return fault.Internal(err)
	}
	return nil
}

// claim is what a statement is said to move by.
func (p *rowSums) claim(r *release) verify.Claim {
	c := verify.Claim{Groups: big.NewInt(1), PairsPerRow: p.query.Pairs, Joint: []verify.Joint{{L2Squared: p.l2Squared(r)}}}
	rows := big.NewInt(p.bounding.MaxRows)
	for i, most := range r.most {
		c.PerGroup = append(c.PerGroup, new(big.Int).Mul(most, rows))
		c.Joint[0].Columns = append(c.Joint[0].Columns, i)
		c.Joint[0].Weights = append(c.Joint[0].Weights, new(big.Rat).Inv(r.scales[i]))
	}
	return c
}
