package catalog

import (
	"fmt"
	"math/big"

	"noisegate.example/mechanisms"
)

// shownKeys is the number of groups whose noise is shown for a table.
const shownKeys = 12

// NoiseText says what bounds of contributions do to a count, in public figures; "" without bounds; total is 0 where there is none.
func NoiseText(rows, groups, total int64) string {
	if rows == 0 || groups == 0 {
		return ""
	}
	width, err := countNoise(rows, groups, total)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("count(*) by %d keys at epsilon 0.1: ± %s", shownKeys, thousands(width))
}

// countNoise is the half-width, at 95 %, of a count in each of twelve groups, where one unit adds at most rows to each of
// at most groups of them, and total to all, unless that is 0: Laplace noise at ε 0.1 of sensitivity rows·min(groups, 12), or
// total where that is less.
func countNoise(rows, groups, total int64) (*big.Int, error) {
	l1 := new(big.Int).Mul(big.NewInt(rows), big.NewInt(min(groups, shownKeys)))
	if all := big.NewInt(total); total > 0 && all.Cmp(l1) < 0 {
		l1 = all
	}
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
