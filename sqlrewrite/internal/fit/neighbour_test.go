package fit_test

import (
	"errors"
	"math/big"
	"slices"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// fitsOfWorld are relations of a [World], and features over their rows, by what they are.
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
func randomFit(w *gen.World) fit.Question {
	pick := func(list []string) string { return list[w.Rand.IntN(len(list))] }
	q := fit.Question{From: pick(fitRelations), Where: pick(fitConditions), Model: []fit.Model{fit.Linear, fit.Ridge}[w.Rand.IntN(2)]}
	q.Target = pick(fitNumbers)
	if w.Rand.IntN(2) == 0 {
		q.Model, q.Target = fit.Logistic, "CASE WHEN "+pick([]string{"nn > 5", "k_num = 2", "n4 > 3"})+" THEN 1 ELSE 0 END"
	}
	for range 1 + w.Rand.IntN(4) {
		f := fit.Feature{Expr: pick(fitNumbers)}
		if w.Rand.IntN(3) == 0 {
			f = fit.Feature{Expr: pick([]string{"k_num", "k_text"}), OneHot: true}
		}
		if w.Rand.IntN(4) == 0 {
			f.Weight = big.NewRat(int64(1+w.Rand.IntN(5)), 2)
		}
		q.Features = append(q.Features, f)
	}
	return q
}

// TestNeighboursOfFits: taking one unit out of a random database moves the integers of a random fit by at most what its noise is made for,
// as a vector and one by one.
func TestNeighboursOfFits(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	w := gen.NewWorld(t, 15, gen.Wild, 4)
	reached, ran, several, gradients := [2]*big.Rat{new(big.Rat), new(big.Rat)}, 0, 0, 0
	refusals := map[fault.Code]int{}
	for tried := 0; ran < randomtest.Part(60, 240) && tried < 5000; tried++ {
		if tried%20 == 0 {
			w.Fill(t, tried%40 == 0)
		}
		q := randomFit(w)
		o := fit.Options{Passes: 2, Rho: mechanisms.RhoUnit, MaxRows: int64(w.Rand.IntN(3)), Confidence: 0.95}
		if q.Model != fit.Logistic || w.Rand.IntN(3) == 0 {
			o.Method = fit.Moments
		}
		p, err := fit.NewPlan(q, w.Snapshot, o)
		if err != nil {
			refusals[fault.CodeOf(err)]++
			if fault.CodeOf(err) == fault.CodeUnverified || fault.CodeOf(err) == fault.CodeInternal {
				t.Fatal(err, errors.Unwrap(err))
			}
			continue
		}
		ran++
		s := p.Statement()
		if p.Method() == fit.Gradient {
			gradients++
			anyArguments(w, &s)
		}
		joint := s.Claim.Joint[0]
		if joint.L2Squared.Cmp(big.NewRat(2, 1)) > 0 { // more than one row's
			several++
		}
		most := &reached[methodIndex(p)]
		*most = larger(*most, movesWithin(t, w, s))
	}
	t.Logf("%d fits, %d by gradients, %d of units with several rows; the largest moves are %s and %s of their claims; refused: %v", ran,
		gradients, several, reached[0].FloatString(3), reached[1].FloatString(3), refusals)
	if enough := big.NewRat(9, 10); reached[0].Cmp(enough) < 0 || reached[1].Cmp(enough) < 0 || several < ran/5 || gradients < ran/6 {
		t.Error("the test has no power")
	}
}

func larger(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// anyArguments gives the arguments that later passes have values of any size: the text clamps them.
func anyArguments(w *gen.World, s *sqlprint.Statement) {
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		if _, later := a.(int64); later {
			s.Args[i] = int64(w.Rand.Uint64()) >> w.Rand.IntN(64)
		}
	}
}

// movesWithin takes each of some units out of the database, and gives the largest move of a statement's sums as part of its claim, which it
// is within, as a vector and one by one.
func movesWithin(t *testing.T, w *gen.World, s sqlprint.Statement) *big.Rat {
	t.Helper()
	tables, err := gen.RunOnAll(t.Context(), w.Conn, s, gen.Neighbourhood())
	if err != nil {
		t.Fatalf("%s\n%v\n%v", s.SQL, s.Args, err)
	}
	joint, most := s.Claim.Joint[0], new(big.Rat)
	for i, neighbour := range tables[1:] {
		moved := new(big.Rat)
		for key, sums := range tables[0] {
			for at, sum := range sums {
				d := new(big.Int).Sub(sum, neighbour[key][at])
				if d.CmpAbs(s.Claim.PerGroup[at]) > 0 {
					t.Errorf("%s\n%v\nwithout unit %s: column %d moves by %s", s.SQL, s.Args, gen.Neighbourhood()[i+1], at, d)
				}
				square := new(big.Rat).SetInt(d.Mul(d, d))
				moved.Add(moved, square.Mul(square, joint.Weights[at]))
			}
		}
		if moved.Quo(moved, joint.L2Squared).Cmp(big.NewRat(1, 1)) > 0 {
			t.Errorf("%s\n%v\nwithout unit %s: moves by %s of the claim", s.SQL, s.Args, gen.Neighbourhood()[i+1], moved.FloatString(4))
		}
		most = larger(most, moved)
	}
	return most
}

func methodIndex(p *fit.Plan) int {
	if p.Method() == fit.Gradient {
		return 1
	}
	return 0
}

// TestNeighboursOfClusterings: taking one unit out of a random database moves the integers of all statements of a random clustering by at
// most what their noise is made for, whatever the directions and the centres are.
func TestNeighboursOfClusterings(t *testing.T) {
	t.Parallel()
	w := gen.NewWorld(t, 16, gen.Wild, 4)
	reached, ran, several := [2]*big.Rat{new(big.Rat), new(big.Rat)}, 0, 0
	refusals := map[fault.Code]int{}
	for tried := 0; ran < randomtest.Part(30, 160) && tried < 5000; tried++ {
		if tried%20 == 0 {
			w.Fill(t, tried%40 == 0)
		}
		f := randomFit(w)
		q := fit.ClusterQuestion{From: f.From, Where: f.Where, Centres: 2 + w.Rand.IntN(4)}
		for _, c := range f.Features {
			if !c.OneHot {
				q.Columns = append(q.Columns, c)
			}
		}
		p, err := fit.NewClustering(q, w.Snapshot, fit.ClusterOptions{Passes: 2, Rho: mechanisms.RhoUnit, MaxRows: int64(w.Rand.IntN(3))})
		if err != nil {
			refusals[fault.CodeOf(err)]++
			if fault.CodeOf(err) == fault.CodeUnverified || fault.CodeOf(err) == fault.CodeInternal {
				t.Fatal(err, errors.Unwrap(err))
			}
			continue
		}
		ran++
		for i, dry := range p.DryRuns() {
			s := dry.For
			anyArguments(w, &s)
			if one := big.NewRat(3, 1); s.Claim.Joint[0].L2Squared.Cmp(one) > 0 {
				several++
			}
			reached[i] = larger(reached[i], movesWithin(t, w, s))
		}
	}
	t.Logf("%d clusterings, %d statements of units with several rows; the largest moves of moments and of steps are %s and %s of their "+
		"claims; refused: %v", ran, several, reached[0].FloatString(3), reached[1].FloatString(3), refusals)
	if enough := big.NewRat(9, 10); reached[0].Cmp(enough) < 0 || reached[1].Cmp(enough) < 0 || several < ran/5 {
		t.Error("the test has no power")
	}
}
