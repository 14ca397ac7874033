package release

import (
	"math/big"
	"strconv"
	"strings"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Sums of products under one noise (**Lemma 2c**). Columns that each add up, over the same rows, a product of two factors: what one unit
// moves them by is bounded as a vector, Σ wᵢ·dᵢ² with given weights, which is less than the sum of the columns' own bounds where factors
// exclude each other.
//
//  1. *A row.* Its product i is at most |f|·|g| for the ends of the factors' ranges. Factors CASE WHEN x = c THEN y ELSE 0 END, of one x
//     and different constants c, are not 0 for one c at most: x = c and x = c' would make c = c'. They are one set; any other factor is a
//     set of its own. Of one set one member at most is not 0 in a row, so that of the columns whose factors are of two given sets one
//     pair of members counts: Σ wᵢ·dᵢ² is at most the sum, over pairs of sets, of the largest such pair's Σ wᵢ·f²·g². Of two different
//     members of one set the product is 0.
//  2. *A unit with n rows.* The vector is a sum of n such rows at most, or of fewer coordinates of them where one is NULL or left out by
//     FILTER: its root is at most n times a row's (triangle inequality).
//  3. *Lemma 2 in common.* Where each column is CASE WHEN c > m THEN div(S·m, c) ELSE S END of a sum of products S, with one counter c and
//     one m: all rows that add to any column are counted, so that before the CASE the root is at most c times a row's; S·m/c makes that m
//     times, and div leaves no coordinate larger.
//
// *Example.* sum(k·k), sum(k·a), sum(k·b) with k = 1, a = CASE WHEN x = 'u' THEN 1 ELSE 0 END and b the same with 'v' move, for one row a
// unit, by 2 in squares with weights of 1, and not by 3.

// Joint bounds the vector of the moves of several value columns that add up products, each square with a weight of its own.
type Joint struct {
	Columns   []int      // places among the value columns, from 0, each once
	Weights   []*big.Rat // of each column, none negative
	L2Squared *big.Rat   // at least Σ wᵢ·dᵢ²
}

// products are what the value columns add up; nil: not the products of this rule.
type products []*product

// product is what a column adds up, of which one unit has so many rows.
type product struct {
	factors [2]factor
	counter int      // of the CASE that all columns must have in common; -1: none
	rows    *big.Rat // for how many rows' products a unit counts at most
}

// factor may be other than 0 in rows of one constant alone.
type factor struct {
	value.Factor
	set, constant string // what tells its set, and it in the set; "": it is a set of its own
}

// productOf reads a sum without groups, of which one unit has n rows; nil where it adds up something else.
func productOf(d *value.Terms, t *value.Tally, n *big.Int) *product {
	if t.Row == nil || n == nil {
		return nil
	}
	p := &product{counter: -1, rows: new(big.Rat).SetInt(n)}
	of := t.Row.Factors
	if c := t.Row.Cut; c != nil && c.Limit != nil && c.Of.Row != nil {
		of, p.counter = c.Of.Row.Factors, c.Counter
		p.rows.Mul(p.rows, c.Limit)
	}
	if of == nil || !of[0].Within.Finite() || !of[1].Within.Finite() {
		return nil
	}
	for i, f := range of {
		p.factors[i].Factor = f
		p.factors[i].set, p.factors[i].constant = choiceOf(d, f.ID)
	}
	return p
}

// Joint is the largest Σ wᵢ·dᵢ²; nil where nothing bounds it.
func (all products) Joint(j Joint) *big.Rat {
	if len(j.Columns) == 0 || len(j.Columns) != len(j.Weights) {
		return nil
	}
	sets := make(exclusions)
	var first *product
	type pair [2]int
	most := make(map[pair]map[pair]*big.Rat) // by sets, then by members
	seen := make(map[int]bool)
	for at, i := range j.Columns {
		if i < 0 || i >= len(all) || seen[i] || all[i] == nil || j.Weights[at] == nil || j.Weights[at].Sign() < 0 {
			return nil
		}
		seen[i] = true
		p := all[i]
		if first == nil {
			first = p
		}
		if p.counter != first.counter || p.rows.Cmp(first.rows) != 0 {
			return nil
		}
		f, g := p.factors[0], p.factors[1]
		a, b := sets.of(f), sets.of(g)
		if a > b {
			a, b, f, g = b, a, g, f
		}
		if a == b && f.ID != g.ID {
			continue // two members of one set
		}
		square := new(big.Rat).Mul(f.Within.Most(), g.Within.Most())
		square.Mul(square, square).Mul(square, j.Weights[at])
		of := most[pair{a, b}]
		if of == nil {
			of = make(map[pair]*big.Rat)
			most[pair{a, b}] = of
		}
		members := pair{f.ID, g.ID}
		if had := of[members]; had != nil {
			square.Add(square, had)
		}
		of[members] = square
	}
	row := new(big.Rat)
	for _, of := range most {
		largest := ranges.Zero
		for _, square := range of {
			largest = ranges.Greater(largest, square)
		}
		row.Add(row, largest)
	}
	return row.Mul(row, first.rows).Mul(row, first.rows)
}

// exclusions are the sets of factors, by what tells the set, and the constants of its members.
type exclusions map[string]map[string]int

// of is the number of the set that a factor belongs to.
func (e exclusions) of(f factor) int {
	if f.set == "" {
		return f.ID
	}
	members := e[f.set]
	if members == nil {
		members = map[string]int{"": f.ID} // the first that was met numbers the set
		e[f.set] = members
	}
	if known, ok := members[f.constant]; ok && known != f.ID {
		return f.ID // of the same constant as another member: both may be other than 0
	}
	members[f.constant] = f.ID
	return -1 - members[""]
}

// choiceOf reads CASE WHEN x = c THEN y ELSE 0 END, cast or not: what tells the set, which is x and the type of c, and c; "" for others.
func choiceOf(d *value.Terms, id int) (set, constant string) {
	for id >= 0 && strings.HasPrefix(d.Term(id).Op, "to:") && len(d.Term(id).Args) == 1 {
		id = d.Term(id).Args[0]
	}
	if id < 0 {
		return "", ""
	}
	t := d.Term(id)
	if t.Op != "case" || len(t.Args) != 3 || t.Args[0] < 0 || t.Args[2] < 0 {
		return "", ""
	}
	if _, other := d.ConstantOf(t.Args[2]); other != "0" {
		return "", ""
	}
	equal := d.Term(t.Args[0])
	if equal.Op != "=" || len(equal.Args) != 2 || equal.Args[0] < 0 || equal.Args[1] < 0 {
		return "", ""
	}
	k, c := d.ConstantOf(equal.Args[1])
	switch k {
	case value.Text:
	case value.Int2, value.Int4:
		n, err := strconv.ParseInt(c, 10, 32)
		if err != nil {
			return "", ""
		}
		c = strconv.FormatInt(n, 10)
	default:
		return "", ""
	}
	return strconv.Itoa(equal.Args[0]) + ":" + value.KindName(k), "=" + c
}
