// Package neighbours proves on random queries over neighbouring databases that no unit moves more than a statement claims.
package neighbours

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Whichever unit is taken out of whichever database, no query raises an error, no sealed integer moves by more than its claim, and no
// more groups move than claimed (A08, A12 to A18, A20, A29). The claims are tight: for every kind of release some unit reaches 0.99 of
// its claim, else the test would have no power. Emitted SQL, claims and charge do not differ between neighbours because the plan is made
// once, before any of them is looked at.
//
// needs: postgres
// covers: A08 A12 A14 A15 A16 A17 A18 A20 A29
func TestNeighbours(t *testing.T) {
	t.Parallel()
	pgtest.NeedServer(t) // its workers cannot skip it
	const workers = 4    // twice the processors: while one waits for its server another one plans
	all := make([]*gen.Neighbours, workers)
	var wait sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		all[i] = &gen.Neighbours{Queries: gen.Proofs() / workers, Seed: *gen.ProofSeed + uint64(i)}
		if *gen.ProofTime > 0 {
			all[i].Until = time.Now().Add(*gen.ProofTime)
		}
		wait.Go(func() { errs[i] = all[i].Run(t) })
	}
	wait.Wait()
	total, ran := &gen.Writer{Counts: make(map[string]int)}, 0
	reached := make(map[string]*big.Rat)
	for i, n := range all {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		ran += n.Ran
		for name, count := range n.Writer.Counts {
			total.Counts[name] += count
		}
		for kind, ratio := range n.Reached {
			if best := reached[kind]; best == nil || ratio.Cmp(best) > 0 {
				reached[kind] = ratio
			}
		}
		t.Logf("worker %d: %d queries x %d databases, refused by size: %v", i, n.Ran, len(gen.Neighbourhood()), n.Refusals)
	}
	t.Logf("%d queries on %d databases each", ran, len(gen.Neighbourhood()))
	if ran < gen.EnoughForPower {
		return // a quick look, which says nothing of what it did not meet
	}
	total.Exercised(t, ran/100) // 50 of 5,000
	if total.Counts[gen.ReportedParts] < ran/50 {
		t.Errorf("%s: exercised %d times", gen.ReportedParts, total.Counts[gen.ReportedParts])
	}
	if total.Counts[gen.OneInEachGroup] < ran/100 {
		t.Errorf("%s: exercised %d times", gen.OneInEachGroup, total.Counts[gen.OneInEachGroup])
	}
	gen.Tight(t, reached)
}

// A statement that takes a value which is released first keeps its claims whatever that value is, so that what it costs is known before.
//
// needs: postgres
// covers: A13
func TestNeighboursOfBoughtValues(t *testing.T) {
	t.Parallel()
	n := &gen.Neighbours{Queries: gen.Proofs() / 4, Seed: *gen.ProofSeed + 100, Bought: true}
	if err := n.Run(t); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d queries of %d that were tried: %v", n.Ran, n.Tried, n.Refusals)
}

// defects are all mutants by name: those of texts, and those that other steps would make.
func defects() map[string]gen.Defect {
	all := map[string]gen.Defect{
		"a key that is none": {Catalog: func(s *catalog.Snapshot) {
			for _, t := range s.Tables {
				if t.Name == "events" || t.Name == "orders" { // unique is (event) and (order_id)
					t.Unique = append(t.Unique, []string{t.Unit.Column, "k_num"})
				}
			}
		}},
		"top groups: half of the sensitivity": {Top: true, Plan: func(p *plan.Plan) {
			retop(p, func(r *plan.Release) {
				r.PerGroup = new(big.Int).Rsh(new(big.Int).Add(r.PerGroup, scalar.One().Num()), 1)
			})
		}},
		"top groups: scores of both signs as of one": {Top: true, Plan: func(p *plan.Plan) {
			retop(p, func(r *plan.Release) { r.Statistic.Kind = algebra.CountRows })
		}},
		"top groups: one unit counted twice": {Top: true, SQL: gen.Replacing(`COALESCE\(pg_catalog\.sum\(`, `COALESCE(2 * pg_catalog.sum(`)},
		"top groups: no cap on rows":         {Top: true, Query: algebraMutants()["no cap on rows"]},
	}
	for _, m := range gen.Mutants() {
		all[m.Name] = gen.Defect{SQL: gen.Replacing(m.Pattern, m.Replacement)}
	}
	for name, mutate := range algebraMutants() {
		all[name] = gen.Defect{Query: mutate}
	}
	return all
}

// harmlessMutants are no mistakes from a version of PostgreSQL on: since 17 there are infinite intervals, so that the difference of
// infinite times is no error.
func harmlessMutants() map[string]int {
	return map[string]int{"infinite times not mapped": 17, "infinite times with zone not mapped": 17}
}

// retop makes the selection of groups again, for a release that is described wrongly.
func retop(p *plan.Plan, wrong func(*plan.Release)) {
	r := p.Releases[0]
	wrong(&r)
	loss := p.Loss()
	top, err := p.NewTop(r, plan.Portion{Epsilon: loss.Epsilon})
	if err != nil {
		panic(err)
	}
	p.Releases = []plan.Release{{Statistic: p.Releases[0].Statistic, PerGroup: r.PerGroup, Selection: top, Unit: r.Unit}}
}

// quickMutants are found within 20 queries. make test tries these; make proofs-mutants tries all, and needs 7,000 queries for one of them.
var quickMutants = []string{"integers not clamped below", "values not capped per unit"}

// Each mutant lacks one defence, and the neighbour test must notice within 1,000 queries whose statements it changes: that is what its
// silence about the product is worth.
func TestNeighboursKillMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	server, all := pgtest.Major(t), defects()
	tried := quickMutants
	if *gen.AllMutants {
		tried = slices.Sorted(maps.Keys(all))
	}
	for _, name := range tried {
		defect, known := all[name]
		if !known {
			t.Fatalf("there is no mutant %q", name)
		}
		if since, harmless := harmlessMutants()[name]; harmless && server >= since {
			t.Logf("%s: no mistake on PostgreSQL %d", name, server)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &gen.Neighbours{Queries: 1000, Seed: *gen.ProofSeed, Defect: defect}
			err := n.Run(t)
			if err == nil {
				t.Fatalf("survived %d queries of %d", n.Ran, n.Tried)
			}
			if errors.Is(err, gen.ErrNotSQL) {
				t.Fatalf("the mutant is not SQL, so it shows nothing: %v", err)
			}
			t.Logf("killed at query %d of %d: %s", n.Ran, n.Tried+1, err.Error()[strings.LastIndexByte(err.Error(), '\n')+1:])
		})
	}
}
