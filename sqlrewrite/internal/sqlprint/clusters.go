package sqlprint

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Clusters are sums over the rows that are closest to each of several centres: the number of such rows, and their coordinates, which are
// released together. Coordinate j of a row is Σᵢ kᵢ·aᵢⱼ - oⱼ over its factors k, in steps of 1/[CoordinateSteps], clamped to [-1, 1]; the
// distance to a centre c is Σⱼ wⱼ·(yⱼ - cⱼ)². All of a, o, w and c are arguments of the statement, which the text clamps.
type Clusters struct {
	Factors     []Factor
	Coordinates int // at most MaxCoordinates
	Centres     int // at least 2, and at most MaxCentres
}

// The scales of coordinates. With 64 factors a coordinate is less than 2^(1+6+10+40) before it is clamped, and a distance less than
// 2^(2·21+12+4).
const (
	CoordinateSteps = 1 << coordinateBits
	MaxCoordinates  = 16
	MaxCentres      = 64
	coordinateBits  = 20
	fineBits        = 20 // of steps, in which factors are added up
	weightBits      = 12
	maxDirection    = 1 << 10 // what the largest value of a factor adds to a coordinate, at most
)

// ClusterArguments are places among the arguments of a statement, from 0.
type ClusterArguments struct {
	Directions [][]int // by coordinate, then by factor
	Origin     []int   // by coordinate
	Weights    []int
	Centres    [][]int // by centre, then by coordinate
}

// Direction is what a factor that is divided by its largest value adds to a coordinate, as an argument of the statement.
func (f Factor) Direction(a float64) int64 {
	most, _ := new(big.Float).SetInt(f.Most()).Float64()
	a = max(-maxDirection, min(maxDirection, a))
	return int64(math.RoundToEven(a * (1 << (coordinateBits + fineBits)) / most))
}

// Origin is the o of a coordinate as an argument of a statement.
func (c Clusters) Origin(o float64) int64 {
	most := float64(maxDirection * len(c.Factors))
	return int64(math.RoundToEven(max(-most, min(most, o)) * (1 << (coordinateBits + fineBits))))
}

// Weight is the w of a coordinate, in [0, 1], as an argument of a statement.
func (Clusters) Weight(w float64) int64 {
	return int64(math.RoundToEven(max(0, min(1, w)) * (1 << weightBits)))
}

// Centre is a coordinate of a centre as an argument of a statement.
func (Clusters) Centre(c float64) int64 {
	return int64(math.RoundToEven(max(-1, min(1, c)) * CoordinateSteps))
}

// PrintClusters prints the statement of sums over clusters, of rows of a query without keys. Its columns are, centre by centre, the number
// of rows and the sums of their coordinates. Rows as far from two centres are those of the first.
func (p *StatementPrinter) PrintClusters(c Clusters) ClusterArguments {
	var args ClusterArguments
	rows := nested{p, p.factorRows(c.Factors)}
	coordinates := func(of string) []string {
		list := []string{of + ".unit"}
		for j := range c.Coordinates {
			list = append(list, fmt.Sprintf("%s.y%d", of, j))
		}
		return list
	}
	rows.next("q", append([]string{"q.unit"}, p.coordinates(c, &args)...))
	rows.next("y", append(coordinates("y"), p.distances(c, &args)...))
	p.closest(&rows, c.Centres, coordinates)
	members := append(coordinates("n"), p.number(big.NewInt(1), "bigint")+" AS k")
	members = append(members, p.members(c.Centres)...)
	var sums []string
	for i := range c.Centres {
		sums = append(sums, fmt.Sprintf("r.i%d * r.k", i))
		for j := range c.Coordinates {
			sums = append(sums, fmt.Sprintf("r.i%d * r.y%d", i, j))
		}
	}
	rows.next("n", members)
	p.printSums(rows.text, sums)
	return args
}

// nested is a query over the rows of another.
type nested struct {
	by   *StatementPrinter
	text string
}

// next puts a query with some columns around it, which calls it name.
func (rows *nested) next(name string, columns []string) {
	rows.text = rows.by.over(rows.text, name, columns)
}

// closest adds, to rows with distances d0, d1, ..., the place c of the least of them, and keeps the columns that carried gives.
func (p *StatementPrinter) closest(rows *nested, centres int, carried func(of string) []string) {
	least, columns := "", carried("d")
	for i := range centres {
		d := fmt.Sprintf("d.d%d", i)
		columns = append(columns, d)
		if least == "" {
			least = d
		} else {
			least = "pg_catalog.int8smaller(" + least + ", " + d + ")"
		}
	}
	rows.next("d", append(columns, least+" AS least"))
	cases := "CASE"
	for i := range centres - 1 {
		cases += fmt.Sprintf(" WHEN m.d%d = m.least THEN %s", i, p.number(big.NewInt(int64(i)), "integer"))
	}
	rows.next("m", append(carried("m"), cases+" ELSE "+p.number(big.NewInt(int64(centres-1)), "integer")+" END AS c"))
}

// members print 1 for the centre that a row is closest to, and 0 for the others.
func (p *StatementPrinter) members(centres int) (list []string) {
	for i := range centres {
		list = append(list, fmt.Sprintf("(CASE WHEN n.c = %s THEN 1 ELSE 0 END)::bigint AS i%d", p.number(big.NewInt(int64(i)), "integer"), i))
	}
	return list
}

// coordinates prints those of a row.
func (p *StatementPrinter) coordinates(c Clusters, args *ClusterArguments) (list []string) {
	far := new(big.Int).Lsh(big.NewInt(int64(maxDirection*len(c.Factors))), coordinateBits+fineBits)
	fine := p.number(new(big.Int).Lsh(big.NewInt(1), fineBits), "bigint")
	for j := range c.Coordinates {
		var terms []string
		var places []int
		for i, f := range c.Factors {
			limit := new(big.Int).Lsh(big.NewInt(maxDirection), coordinateBits+fineBits)
			terms = append(terms, fmt.Sprintf("q.k%d * ", i)+p.argument(&places, limit.Quo(limit, f.Most())))
		}
		sum := "(" + strings.Join(terms, " + ") + " - " + p.argument(&args.Origin, far) + ") / " + fine
		args.Directions = append(args.Directions, places)
		list = append(list, p.clamped(sum, big.NewInt(CoordinateSteps))+fmt.Sprintf(" AS y%d", j))
	}
	return list
}

// distances prints those of a row from all centres, squared.
func (p *StatementPrinter) distances(c Clusters, args *ClusterArguments) (list []string) {
	var weights []string
	for range c.Coordinates {
		weights = append(weights, p.argument(&args.Weights, big.NewInt(1<<weightBits)))
	}
	for i := range c.Centres {
		var terms []string
		var places []int
		for j, w := range weights {
			off := fmt.Sprintf("(y.y%d - %s)", j, p.argument(&places, big.NewInt(CoordinateSteps)))
			terms = append(terms, w+" * ("+off+" * "+off+")")
		}
		args.Centres = append(args.Centres, places)
		list = append(list, "("+strings.Join(terms, " + ")+fmt.Sprintf(") AS d%d", i))
	}
	return list
}

// argument prints an argument of the statement that is given later, clamped to [-limit, limit], and adds its place to a list.
func (p *StatementPrinter) argument(places *[]int, limit *big.Int) string {
	place := p.rawArg(int64(0))
	*places = append(*places, place-1)
	return p.clamped(fmt.Sprintf("$%d::bigint", place), limit)
}

// clamped prints a bigint within [-limit, limit].
func (p *StatementPrinter) clamped(x string, limit *big.Int) string {
	return "pg_catalog.int8larger(pg_catalog.int8smaller(" + x + ", " + p.number(limit, "bigint") + "), " +
		p.number(new(big.Int).Neg(limit), "bigint") + ")"
}
