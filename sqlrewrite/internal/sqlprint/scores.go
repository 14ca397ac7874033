package sqlprint

import (
	"fmt"
	"math/big"
)

// Scores are sums that scores of a grouping are made of: each row belongs to the closest of some centres.
type Scores struct {
	Factors []Factor
	// Counts are what the largest value of a factor counts in distances, in (0, 1]; a row's coordinate is as much of its factor, in steps of
	// 1/[CoordinateSteps].
	Counts  []float64
	Centres [][]int64 // coordinates, as [Clusters.Centre] gives them; at least 2, and at most MaxCentres
	Spreads bool      // the number of rows and the sums of their factors, by centre, and the sums of squares; if not, the number of all rows
	// Silhouettes: the sum of 2a/b - 1 for the distances a to the closest centre and b to the next one, in steps of 1/[SilhouetteSteps].
	Silhouettes bool
}

// SilhouetteSteps are those of 1.
const SilhouetteSteps = 1 << 16

// Columns are the columns of the statement, of each the factors by place that are multiplied: those of a centre are -1, -2, ..., what
// counts rows is [RowCount], and the silhouette [RowSilhouette].
func (s Scores) Columns() (columns [][2]int) {
	if !s.Spreads {
		columns = append(columns, [2]int{RowCount, RowCount})
	} else {
		for i := range s.Centres {
			columns = append(columns, [2]int{-1 - i, RowCount})
			for j := range s.Factors {
				columns = append(columns, [2]int{-1 - i, j})
			}
		}
		for j := range s.Factors {
			columns = append(columns, [2]int{j, j})
		}
	}
	if s.Silhouettes {
		columns = append(columns, [2]int{RowSilhouette, RowCount})
	}
	return columns
}

// Places of [Scores.Columns] that are no factor's.
const (
	RowCount      = MaxFactors + iota // 1 in each row
	RowSilhouette                     // of a row
)

// MaxFactors caps factors.
const MaxFactors = 1 << 10

// PrintScores prints the statement of [Scores], of rows of a query without keys. Rows as far from two centres belong to the first. A row in
// which b is 0 counts as if b were one step.
func (p *StatementPrinter) PrintScores(s Scores) {
	rows := nested{p, p.factorRows(s.Factors)}
	carried := func(of string) []string {
		list := []string{of + ".unit"}
		for j := range s.Factors {
			list = append(list, fmt.Sprintf("%s.k%d", of, j))
		}
		return list
	}
	fine, one := p.number(new(big.Int).Lsh(big.NewInt(1), fineBits), "bigint"), big.NewInt(CoordinateSteps)
	coordinates := carried("q")
	for j, f := range s.Factors {
		count := p.number(big.NewInt(f.Direction(s.Counts[j])), "bigint")
		coordinates = append(coordinates, p.clamped(fmt.Sprintf("(q.k%d * %s) / %s", j, count, fine), one)+fmt.Sprintf(" AS y%d", j))
	}
	rows.next("q", coordinates)
	distances := carried("y")
	for i, c := range s.Centres {
		distances = append(distances, p.distance(c)+fmt.Sprintf(" AS d%d", i))
	}
	rows.next("y", distances)
	every := func(of string) []string { // what is carried, and the distances
		list := carried(of)
		for i := range s.Centres {
			list = append(list, fmt.Sprintf("%s.d%d", of, i))
		}
		return append(list, of+".least")
	}
	p.closest(&rows, len(s.Centres), func(of string) []string {
		if of == "m" && s.Silhouettes {
			return every(of)
		}
		return carried(of)
	})
	last := append(carried("n"), p.number(big.NewInt(1), "bigint")+" AS k")
	if s.Spreads {
		last = append(last, p.members(len(s.Centres))...)
	}
	if s.Silhouettes {
		last = append(last, p.silhouette(len(s.Centres))+" AS e")
	}
	rows.next("n", last)
	var products []string
	for _, c := range s.Columns() {
		products = append(products, scoreName(c[0])+" * "+scoreName(c[1]))
	}
	p.printSums(rows.text, products)
}

func scoreName(place int) string {
	switch {
	case place == RowCount:
		return "r.k"
	case place == RowSilhouette:
		return "r.e"
	case place < 0:
		return fmt.Sprintf("r.i%d", -1-place)
	}
	return factorName(place)
}

// distance prints that of a row from a centre, squared.
func (p *StatementPrinter) distance(centre []int64) string {
	text := ""
	for j, c := range centre {
		off := fmt.Sprintf("(y.y%d - %s)", j, p.number(big.NewInt(c), "bigint"))
		if text != "" {
			text += " + "
		}
		text += off + " * " + off
	}
	return "(" + text + ")"
}

// silhouette prints 2a/b - 1 of a row: the root of the quotient of squared distances, back in whole numbers, whatever rounding did.
func (p *StatementPrinter) silhouette(centres int) string {
	far := p.number(new(big.Int).Lsh(big.NewInt(1), 2*coordinateBits+farBits), "bigint")
	next := far
	for i := range centres {
		next = fmt.Sprintf("pg_catalog.int8smaller(%s, CASE WHEN n.c = %s THEN %s ELSE n.d%d END)", next,
			p.number(big.NewInt(int64(i)), "integer"), far, i)
	}
	float := func(x string, least int64) string {
		return "pg_catalog.int8larger(" + x + ", " + p.number(big.NewInt(least), "bigint") + ")::double precision"
	}
	root := "pg_catalog.sqrt(" + float("n.least", 0) + " / " + float(next, 1) + ")"
	twice := "pg_catalog.round(" + p.number(big.NewInt(2*SilhouetteSteps), "double precision") + " * " + root + ")::bigint"
	one := big.NewInt(SilhouetteSteps)
	return p.clamped("("+twice+" - "+p.number(one, "bigint")+")", one)
}

// farBits: no distance squared is 2^farBits squares of the range of a coordinate, of 64.
const farBits = 9
