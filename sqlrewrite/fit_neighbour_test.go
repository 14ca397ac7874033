package sqlrewrite

import (
	"errors"
	"math/big"
	"testing"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// fitsOfWorld are relations of a [world], and features over their rows, by what they are.
var (
	fitRelations = []string{"people", "events",
		"(SELECT e.nn, p.n4, e.k_num, p.f8, e.money, e.k_text, p.n2 FROM events AS e JOIN people AS p ON p.id = e.unit) AS j",
		"(SELECT i.nn, o.n4, o.k_num, i.f8, i.money, i.k_text FROM orders AS o JOIN items AS i ON i.order_id = o.order_id) AS j",
		"(SELECT unit, max(nn) AS nn, min(n4) AS n4, min(k_num) AS k_num, max(money) AS money FROM events GROUP BY unit) AS d"}
	fitNumbers = []string{"n4", "nn", "money", "f8", "n2", "free", "coarse", "odd", "f4", "n8", "nn * n4", "ln(1 + abs(n4))",
		"CASE WHEN k_num = 2 THEN 1 ELSE 0 END", "CASE WHEN nn > 4 THEN n4 END", "sqrt(abs(money))"}
	fitConditions = []string{"", "nn > 3", "k_num = 2 OR n4 IS NULL", "n4 > -3 AND nn < 9"}
)

// randomFit writes a fit over a relation of the world.
func (w *world) randomFit() FitQuestion {
	pick := func(list []string) string { return list[w.r.IntN(len(list))] }
	q := FitQuestion{From: pick(fitRelations), Where: pick(fitConditions), Model: []FitModel{FitLinear, FitRidge}[w.r.IntN(2)]}
	q.Target = pick(fitNumbers)
	for range 1 + w.r.IntN(4) {
		f := FitFeature{Expr: pick(fitNumbers)}
		if w.r.IntN(3) == 0 {
			f = FitFeature{Expr: pick([]string{"k_num", "k_text"}), OneHot: true}
		}
		if w.r.IntN(4) == 0 {
			f.Weight = big.NewRat(int64(1+w.r.IntN(5)), 2)
		}
		q.Features = append(q.Features, f)
	}
	return q
}

// TestNeighboursOfFits: taking one unit out of a random database moves the integers of a random fit by at most what its noise is made for,
// as a vector and one by one.
func TestNeighboursOfFits(t *testing.T) {
	w := newWorld(t, 15, wild, 4)
	reached, ran, several := new(big.Rat), 0, 0
	refusals := map[fault.Code]int{}
	for tried := 0; ran < 240/oneIn(4) && tried < 5000; tried++ {
		if tried%20 == 0 {
			w.fill(t, tried%40 == 0)
		}
		p, err := NewFit(w.randomFit(), w.snapshot, FitOptions{Rho: mechanisms.RhoUnit, MaxRows: int64(w.r.IntN(3)), Confidence: 0.95})
		if err != nil {
			refusals[fault.CodeOf(err)]++
			if fault.CodeOf(err) == fault.CodeUnverified || fault.CodeOf(err) == fault.CodeInternal {
				t.Fatal(err, errors.Unwrap(err))
			}
			continue
		}
		ran++
		s := p.Statement()
		tables, err := runOnAll(t.Context(), w.conn, s, neighbourhood())
		if err != nil {
			t.Fatalf("%s\n%v\n%v", s.SQL, s.Args, err)
		}
		joint := s.Claim.Joint[0]
		if joint.L2Squared.Cmp(big.NewRat(2, 1)) > 0 {
			several++
		}
		for i, neighbour := range tables[1:] {
			moved := new(big.Rat)
			for key, sums := range tables[0] {
				for at, sum := range sums {
					d := new(big.Int).Sub(sum, neighbour[key][at])
					if d.CmpAbs(s.Claim.PerGroup[at]) > 0 {
						t.Errorf("%s\n%v\nwithout unit %s: column %d moves by %s", s.SQL, s.Args, neighbourhood()[i+1], at, d)
					}
					square := new(big.Rat).SetInt(d.Mul(d, d))
					moved.Add(moved, square.Mul(square, joint.Weights[at]))
				}
			}
			if moved.Quo(moved, joint.L2Squared).Cmp(big.NewRat(1, 1)) > 0 {
				t.Errorf("%s\n%v\nwithout unit %s: moves by %s of the claim", s.SQL, s.Args, neighbourhood()[i+1], moved.FloatString(4))
			}
			if moved.Cmp(reached) > 0 {
				reached = moved
			}
		}
	}
	t.Logf("%d fits, %d of units with several rows; the largest move is %s of its claim; refused: %v", ran, several, reached.FloatString(3),
		refusals)
	if reached.Cmp(big.NewRat(9, 10)) < 0 || several < ran/5 {
		t.Errorf("the largest move of %d fits is %s of its claim, and %d have units with several rows: the test has no power", ran,
			reached.FloatString(3), several)
	}
}
