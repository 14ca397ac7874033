package main

import (
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/mechanisms"
)

// TestTableOfChoosing computes the table of docs/choosing.md: half-widths of counts, by Laplace noise of a price and by Gaussian noise of
// the same ρ.
func TestTableOfChoosing(t *testing.T) {
	page, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, bound := range [][2]int64{{1, 1}, {1, 4}, {5, 3}, {10, 12}, {30, 6}, {50, 8}} {
		rows, groups := bound[0], bound[1]
		line := fmt.Sprintf("| %d | %d |", rows, groups)
		for _, epsilon := range []string{"0.1", "0.5", "1"} {
			price, err := mechanisms.ParseEpsilon(epsilon)
			if err != nil {
				t.Fatal(err)
			}
			laplace, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(rows * groups), Epsilon: price})
			if err != nil {
				t.Fatal(err)
			}
			gaussian, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: big.NewInt(rows * rows * groups),
				Rho: laplace.Loss().Rho})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []mechanisms.Additive{laplace, gaussian} {
				line += " " + inThousands(m.HalfWidth(0.95).String()) + " |"
			}
		}
		if !strings.Contains(string(page), "\n"+line+"\n") {
			t.Errorf("the page lacks the line\n%s", line)
		}
	}
}

// inThousands writes a whole number with separators.
func inThousands(digits string) string {
	if n, err := strconv.Atoi(digits); err == nil && n >= 1000 {
		return fmt.Sprintf("%s,%03d", inThousands(strconv.Itoa(n/1000)), n%1000)
	}
	return digits
}
