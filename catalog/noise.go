package catalog

import (
	"fmt"
	"math/big"

	"noisegate/mechanisms"
)

// shownKeys is for how many groups the noise of a table is shown.
const shownKeys = 12

// NoiseText says what bounds of contributions do to a count, in public figures; "" without bounds.
func NoiseText(rows, groups int64) string {
	if rows == 0 || groups == 0 {
		return ""
	}
	width, err := countNoise(rows, groups)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("count(*) by %d keys at epsilon 0.1: ± %s", shownKeys, thousands(width))
}

// countNoise is the half-width, at 95 %, of a count in each of twelve groups, where one unit adds at most rows to each of
// at most groups of them: Laplace noise of sensitivity rows·min(groups, 12) at ε 0.1.
func countNoise(rows, groups int64) (*big.Int, error) {
	l1 := new(big.Int).Mul(big.NewInt(rows), big.NewInt(min(groups, shownKeys)))
	noise, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: l1, Epsilon: mechanisms.EpsilonUnit / 10})
	if err != nil {
		return nil, err
	}
	return noise.HalfWidth(0.95), nil
}

// thousands writes a number with commas.
func thousands(x *big.Int) string {
	text := x.String()
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
