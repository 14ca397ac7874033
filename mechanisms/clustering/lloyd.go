package clustering

import "math"

// Lloyd moves centres by noisy sums of the rows that are closest to each. Source: Lloyd 1982; with noise Blum, Dwork, McSherry, Nissim 2005
// (SuLQ), Section 5.
type Lloyd struct {
	// Centres are coordinates; the caller may not change them.
	Centres [][]float64
	// Sizes are how many rows were closest to each centre at the last step, with noise.
	Sizes []float64
	// Sigma is the noise's standard deviation of a size.
	Sigma float64
}

// Step goes on by the sizes of clusters and the sums of their rows' coordinates. A centre of no more rows than the noise stays where it is.
func (l *Lloyd) Step(sizes []float64, sums [][]float64) {
	l.Sizes = sizes
	next := make([][]float64, len(sizes))
	for i, n := range sizes {
		if next[i] = l.Centres[i]; n > max(0.5, l.Sigma) {
			next[i] = scaled(sums[i], 1/n)
			for j, y := range next[i] {
				next[i][j] = max(-1, min(1, y))
			}
		}
	}
	l.Centres = next
}

// WeakAbove is up to which part of the rows' spread the noise of a centre is small.
const WeakAbove = 0.1

// Noise is the variance that the noise gives a centre, relative to that of the rows in its space: sigma is the noise's standard deviation
// of a size, of some rows in as many clusters of one size. Sums of coordinates have sigma·√coordinates, as a row's are 1 at most each.
func Noise(sigma, rows float64, clusters, coordinates int) float64 {
	each := max(1, rows) / float64(clusters)
	return sigma * sigma * Reach * Reach * float64(coordinates) / each / each
}

// Rows is from how many rows on [Noise] is small.
func Rows(sigma float64, clusters, coordinates int) float64 {
	return float64(clusters) * sigma * Reach * math.Sqrt(float64(coordinates)/WeakAbove)
}
