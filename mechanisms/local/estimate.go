package local

import (
	"math"

	"noisegate.example/mechanisms"
)

// moment is an estimate without bias, and its variance.
type moment struct{ value, variance float64 }

// Estimate is what reports say of a count (choice), or of a mean as part of its range (number, vector). Its randomness is that of the
// devices alone: their values are taken as they are.
type Estimate struct {
	Value     float64 // unbiased; a count may come out below 0 or above the number of reports
	SD        float64 // standard deviation; where it depends on the values, an estimate or an upper bound of it
	Low, High float64 // interval by the normal law
}

// Estimate estimates the counts of a choice's values, the mean of a number or those of a vector's coordinates. It returns nil without
// reports, or if the tally does not fit.
func (p *Protocol) Estimate(t Tally, level mechanisms.Confidence) []Estimate {
	if t.Reports == 0 || !p.Fits(t) {
		return nil
	}
	z := math.Sqrt2 * math.Erfinv(float64(level))
	var list []Estimate
	for _, m := range p.scheme.estimate(t.Cells, t.Reports) {
		sd := math.Sqrt(m.variance)
		list = append(list, Estimate{Value: m.value, SD: sd, Low: m.value - z*sd, High: m.value + z*sd})
	}
	return list
}
