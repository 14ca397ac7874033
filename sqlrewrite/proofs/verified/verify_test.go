// Package verified proves that package verify derives what the rewriter claims, and refuses what is wrong.
package verified

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
	"noisegate.example/sqlrewrite/verify"
)

// proposed is a statement with what its plan claims of it.
type proposed struct {
	at        string
	statement sqlprint.Statement
	claim     verify.Claim
	snapshot  *catalog.Snapshot
}

// proposals are the statements of a plan with their claims.
func proposals(at string, p *plan.Plan, snapshot *catalog.Snapshot) []proposed {
	var all []proposed
	for i, s := range p.Statements(p.Draw(mechanisms.NewSamplerFrom(randomtest.Source(at)))) {
		all = append(all, proposed{fmt.Sprintf("%s part %d", at, i), s, s.Claimed(), snapshot})
	}
	return all
}

// eachGolden calls with every statement of the golden files.
func eachGolden(t *testing.T, visit func(proposed)) {
	t.Helper()
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		for _, s := range proposals(d.Pos, p, p.Snapshot) {
			visit(s)
		}
	})
}

func (p proposed) proven(c verify.Claim) error {
	return verify.Statement(p.statement.SQL, p.statement.Args, p.snapshot, c)
}

// Every statement of the golden files is proven, with what its plan claims. What is proven tighter is counted, so that it is noticed when
// the planner grows generous.
func TestGoldenStatementsAreProven(t *testing.T) {
	t.Parallel()
	statements, tighter := 0, 0
	eachGolden(t, func(p proposed) {
		statements++
		if err := p.proven(p.claim); err != nil {
			t.Errorf("%s: %v\n%s\n%v", p.at, err, p.statement.SQL, p.statement.Args)
			return
		}
		got := derivedOf(t, p)
		if got.Groups.Cmp(p.claim.Groups) < 0 {
			tighter++
			return
		}
		for i, n := range got.PerGroup {
			if n.Cmp(p.claim.PerGroup[i]) < 0 {
				tighter++
				return
			}
		}
	})
	t.Logf("%d statements, %d tighter than claimed", statements, tighter)
	if statements < 250 || tighter > 5 {
		t.Errorf("%d statements, %d tighter than claimed", statements, tighter)
	}
}

func derivedOf(t *testing.T, p proposed) verify.Claim {
	t.Helper()
	got, err := verify.Derive(p.statement.SQL, p.statement.Args, p.snapshot, p.claim)
	if err != nil {
		t.Fatalf("%s: %v", p.at, err)
	}
	return got
}

// No wrong claim is proven: of every golden statement (in make test one in three), what is derived less 1, for each
// number that there is.
func TestWrongClaimsAreRefused(t *testing.T) {
	t.Parallel()
	stride := 3 / randomtest.Part(1, 3) * rewritetest.OneIn(2)
	wrong, norms, at := 0, 0, 0
	less := func(n *big.Int) *big.Int { return new(big.Int).Sub(n, big.NewInt(1)) }
	eachGolden(t, func(p proposed) {
		if at++; at%stride > 0 {
			return
		}
		got := derivedOf(t, p)
		refused := func(what string, change func(*verify.Claim)) {
			c := got
			c.PerGroup, c.Spread = slices.Clone(got.PerGroup), slices.Clone(got.Spread)
			change(&c)
			wrong++
			if p.proven(c) == nil {
				t.Errorf("%s: %s less 1 is proven", p.at, what)
			}
		}
		if err := p.proven(got); err != nil {
			t.Errorf("%s: what was derived is not proven: %v", p.at, err)
		}
		refused("L0", func(c *verify.Claim) { c.Groups = less(c.Groups) })
		for i := range got.PerGroup {
			refused("Linf", func(c *verify.Claim) { c.PerGroup[i] = less(c.PerGroup[i]) })
			if got.Histogram == verify.Plain {
				refused("the spread", func(c *verify.Claim) { c.Spread[i] = less(c.Spread[i]) })
			}
		}
		if got.PairsPerRow != nil {
			refused("how many rows one meets", func(c *verify.Claim) { c.PairsPerRow = less(c.PairsPerRow) })
		}
		for _, n := range p.claim.Norms {
			one, two := got.Norm(n.Columns)
			claimed := func(one, two *big.Int) func(*verify.Claim) {
				return func(c *verify.Claim) { c.Norms = []verify.Norm{{Columns: n.Columns, L1: one, L2Squared: two}} }
			}
			refused("L1 of a column", claimed(less(one), two))
			refused("L2² of a column", claimed(one, less(two)))
			norms++
		}
		var all []int
		for i := range got.PerGroup {
			all = append(all, i)
		}
		norm := func(one, two *big.Int) func(*verify.Claim) {
			return func(c *verify.Claim) { c.Norms = []verify.Norm{{Columns: all, L1: one, L2Squared: two}} }
		}
		if l1, l2 := got.Norm(all); got.Histogram == verify.Plain {
			exact := got
			norm(l1, l2)(&exact)
			if err := p.proven(exact); err != nil {
				t.Errorf("%s: the norms are not proven: %v", p.at, err)
			}
			refused("L1", norm(less(l1), l2))
			refused("L2²", norm(l1, less(l2)))
		} else {
			most := new(big.Int).Lsh(big.NewInt(1), 100)
			refused("a histogram's norms", norm(most, most))
		}
		refused("a column", func(c *verify.Claim) { c.PerGroup = c.PerGroup[1:] })
		if got.Keys > 0 {
			refused("a key", func(c *verify.Claim) { c.Keys-- })
		}
	})
	t.Logf("%d wrong claims", wrong)
	if norms < 200/stride {
		t.Errorf("only %d norms are claimed", norms)
	}
}

// A proof rests on preconditions only: without its table's precondition no statement is proven, and a precondition of another table, column
// or type is none.
func TestPreconditionsAreNeeded(t *testing.T) {
	at := 0
	eachGolden(t, func(p proposed) {
		if at++; at%rewritetest.OneIn(5) > 0 {
			return
		}
		for i, pin := range p.claim.Pins {
			change := func(what string, edit func(*verify.Pin)) {
				c := p.claim
				c.Pins = slices.Clone(c.Pins)
				edit(&c.Pins[i])
				if p.proven(c) == nil {
					t.Errorf("%s: proven with %s", p.at, what)
				}
			}
			change("another table", func(x *verify.Pin) { x.OID++ })
			change("no precondition", func(x *verify.Pin) { x.Table += "x" })
			for j := range pin.Columns {
				edit := func(f func(*verify.PinnedColumn)) func(*verify.Pin) {
					return func(x *verify.Pin) { x.Columns = slices.Clone(x.Columns); f(&x.Columns[j]) }
				}
				change("another column", edit(func(c *verify.PinnedColumn) { c.AttNum++ }))
				change("another type", edit(func(c *verify.PinnedColumn) { c.TypeOID++ }))
				change("other digits", edit(func(c *verify.PinnedColumn) { c.TypMod++ }))
			}
		}
	})
}

// A statement is proven under the preconditions that are held while it runs, whatever its claim says: without one it is neither run nor
// explained.
func TestProofsRestOnHeldPreconditions(t *testing.T) {
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		for _, run := range p.DryRuns() {
			run.For.Claim = run.For.Claimed()
			for i := range run.For.Preconditions {
				less := run
				less.For.Preconditions = slices.Delete(slices.Clone(run.For.Preconditions), i, i+1)
				if err := less.For.Prove(new(sqlprint.Proofs)); fault.CodeOf(err) != fault.CodeUnverified {
					t.Errorf("%s: proven without a precondition: %v", d.Pos, err)
				}
				if err := less.Prove(new(sqlprint.Proofs)); fault.CodeOf(err) != fault.CodeUnverified {
					t.Errorf("%s: explained without a precondition: %v", d.Pos, err)
				}
			}
		}
	})
}

// randomProposals are the statements of random queries over the family of tables that the proofs run on; so many of the queries are bounded
// in all groups together.
func randomProposals(t *testing.T, seed uint64, queries int, visit func(proposed)) (bounded int) {
	t.Helper()
	world := gen.NewWorld(t, seed, gen.Wild, 4)
	w := &gen.Writer{Rand: world.Rand, Counts: make(map[string]int)}
	totals := rand.New(rand.NewPCG(seed, 31)) // reproducible on purpose, and apart, so that the queries are those of other tests
	reports := rand.New(rand.NewPCG(seed, 32))
	for i := range queries {
		sql, from := w.Query()
		o := gen.RandomOptions(w.Rand, from)
		if totals.IntN(2) == 0 { // from 1 to more than all groups may have
			o.MaxTotal = 1 + totals.Int64N(2+4*max(o.MaxRows, 1))
		}
		o.Report = gen.RandomReport(reports)
		p, err := pipeline.Rewrite(sql, world.Snapshot, o)
		if fault.CodeOf(err) == fault.CodeRequestReport {
			o.Report = ""
			p, err = pipeline.Rewrite(sql, world.Snapshot, o)
		}
		if err != nil {
			if code := string(fault.CodeOf(err)); !gen.Tolerated[code] && code != "plan/looser-bound" { // groups by one's own keys are few
				t.Errorf("%s\n%v\n%v", sql, err, errors.Unwrap(err))
			}
			continue
		}
		if slices.ContainsFunc(p.Different(), func(block *plan.Plan) bool { return block.Bounding.MaxTotal > 0 }) {
			bounded++
		}
		estimated(t, sql, p)
		for _, s := range proposals(sql, p, world.Snapshot) {
			visit(s)
		}
		if i%10 == 0 {
			dryProven(t, sql, p)
		}
	}
	return bounded
}

// estimated asks for the estimate of a plan, which every question has.
func estimated(t *testing.T, at string, p *plan.Plan) {
	t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			t.Errorf("%s: its estimate panics: %v\n%s", at, reason, debug.Stack())
		}
	}()
	explain.Explain(p)
}

// dryProven proves the dry runs of a plan: what they explain, and that what they compute names no table.
func dryProven(t *testing.T, at string, p *plan.Plan) {
	t.Helper()
	for _, run := range p.DryRuns() {
		if err := run.Prove(new(sqlprint.Proofs)); err != nil {
			t.Errorf("%s: %v", at, errors.Unwrap(err))
		}
	}
}

// Every statement of random queries is proven: -proof-queries says of how many.
func TestRandomStatementsAreProven(t *testing.T) {
	t.Parallel()
	const workers = 2
	var wait sync.WaitGroup
	var statements, bounded [workers]int
	for i := range workers {
		wait.Go(func() {
			bounded[i] = randomProposals(t, *gen.ProofSeed+uint64(i), gen.Proofs()/workers, func(proposed) {
				statements[i]++ // [Rewrite] has proven it
			})
		})
	}
	wait.Wait()
	t.Logf("%d queries, %v statements; max_rows_total bounds %v queries", gen.Proofs(), statements, bounded)
	if n := bounded[0] + bounded[1]; n*20 < gen.Proofs() && gen.Proofs() >= 300 { // of fewer there may be none
		t.Errorf("max_rows_total bounds %d of %d queries, want one in twenty", n, gen.Proofs())
	}
}

// Random expressions over everything that columns can hold are proven wherever the planner takes them: counted, summed, as conditions and
// as keys.
//
// covers: A18 A20 A29 B1 B2 B3
func TestRandomExpressionsAreProven(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, gen.ExtremeTables, gen.ErrorFreePolicy)
	r := rand.New(rand.NewPCG(*gen.ProofSeed, 21)) // reproducible on purpose
	kinds := []string{"number", "number", "number", "condition", "text", "time", "interval", "key", "key"}
	forms := map[string][]string{
		"number": {"SELECT count(%s) FROM t", "SELECT sum(%s) FROM t", "SELECT count(*) FROM t WHERE %s > 2",
			"SELECT count(DISTINCT %s) FROM t"},
		"condition": {"SELECT count(*) FROM t WHERE %s", "SELECT count(*) FILTER (WHERE %s) FROM t",
			"SELECT sum(CASE WHEN %s THEN small ELSE grade END) FROM t"},
		"text":     {"SELECT count(%s) FROM t", "SELECT count(DISTINCT %s) FROM t"},
		"time":     {"SELECT count(%s) FROM t", "SELECT count(DISTINCT %s) FROM t"},
		"interval": {"SELECT count(%s) FROM t", "SELECT sum(extract(epoch FROM %s)) FROM t"},
		"key":      {"SELECT count(*) FROM t GROUP BY %s", "SELECT sum(small) FROM t GROUP BY %s"},
	}
	taken := 0
	for i := range gen.Proofs() {
		kind := kinds[i%len(kinds)]
		query := fmt.Sprintf(forms[kind][r.IntN(len(forms[kind]))], gen.RandomExpression(r, kind, 1+r.IntN(4)))
		p, err := planned(t, query, snapshot)
		if err == nil {
			taken += len(p.Parts)
			dryProven(t, query, p)
		} else if fault.CodeOf(err) == fault.CodeUnverified {
			t.Errorf("%s\n%.1500v", query, errors.Unwrap(err))
		}
	}
	t.Logf("%d expressions, %d statements", gen.Proofs(), taken)
	if taken*5 < gen.Proofs() {
		t.Error("too few are taken")
	}
}

// planned is Rewrite, which must not panic.
func planned(t *testing.T, query string, snapshot *catalog.Snapshot) (*plan.Plan, error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: panic: %v\n%s", query, p, debug.Stack())
		}
	}()
	return pipeline.Rewrite(query, snapshot, rewritetest.Sharp())
}

// unmoving are mutants of the neighbour tests that leave the sensitivities of a statement as they are: what they change is whether a row
// may raise an error in a place where verify proves that none does, or what the answer means.
var unmoving = map[string]string{}

// Mutants of statements die without a database: what a mutant changes is not proven.
func TestMutantStatementsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	type count struct{ changed, refused int }
	counts := map[string]*count{}
	examples := map[string]string{}
	var patterns []*regexp.Regexp
	for _, m := range gen.Mutants() {
		counts[m.Name] = &count{}
		patterns = append(patterns, regexp.MustCompile(m.Pattern))
	}
	visit := func(p proposed) {
		for i, m := range gen.Mutants() {
			sql := patterns[i].ReplaceAllString(p.statement.SQL, m.Replacement)
			if sql == p.statement.SQL {
				continue
			}
			c := counts[m.Name]
			c.changed++
			if verify.Statement(sql, p.statement.Args, p.snapshot, p.claim) != nil {
				c.refused++
			} else if len(sql) < 3000 {
				examples[m.Name] = sql + fmt.Sprint(p.statement.Args)
			}
		}
	}
	parts, at := randomtest.Part(1, 3), 0 // of three, of the golden statements
	eachGolden(t, func(p proposed) {
		if at++; at%3 < parts {
			visit(p)
		}
	})
	randomProposals(t, *gen.ProofSeed, min(1000, randomtest.Part(1, 4)*gen.Proofs()), visit)
	for _, m := range gen.Mutants() {
		c := counts[m.Name]
		t.Logf("%-60s %4d of %4d refused", m.Name, c.refused, c.changed)
		if c.changed > 0 && c.refused == 0 && unmoving[m.Name] == "" {
			t.Errorf("%s: %d of %d refused\n%s", m.Name, c.refused, c.changed, examples[m.Name])
		}
	}
}

var writeCorpus = flag.Bool("write-corpus", false, "write the golden statements to sqlrewrite/verify/testdata/statements.jsonl")

// TestWriteCorpus keeps the golden statements for the tests of package verify, which does not know the rewriter:
// go test ./sqlrewrite/proofs/verified -run WriteCorpus -write-corpus.
func TestWriteCorpus(t *testing.T) {
	type snapshot struct {
		*catalog.Snapshot
		Digest string // in place of the snapshot's: hexadecimal
	}
	type line struct {
		On    *snapshot
		SQL   string
		Args  []any
		Claim *verify.Claim
	}
	var lines []line
	var on *catalog.Snapshot
	seen := map[string]bool{}
	eachGolden(t, func(p proposed) {
		if seen[p.statement.SQL] {
			return
		}
		seen[p.statement.SQL] = true
		if on != p.snapshot {
			on = p.snapshot
			lines = append(lines, line{On: &snapshot{on, hex.EncodeToString(on.Digest[:])}})
		}
		args := slices.Clone(p.statement.Args)
		for i, a := range args {
			if _, changes := a.(int64); changes {
				args[i] = int64(0)
			}
		}
		lines = append(lines, line{nil, p.statement.SQL, args, &p.claim})
	})
	if len(seen) < 200 {
		t.Errorf("only %d statements", len(seen))
	}
	if !*writeCorpus {
		return
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	for _, l := range lines {
		if err := out.Encode(sparse(t, l)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(rewritetest.RepoFile("sqlrewrite/verify/testdata/statements.jsonl"), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sparse is v for an encoder of JSON, without members that are null, false or "": they decode to the same where they are absent. 0 stays,
// as some numbers are pointers.
func sparse(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	var tree any
	if err := numbers.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	var prune func(any)
	prune = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			maps.DeleteFunc(v, func(_ string, e any) bool { return e == nil || e == false || e == "" })
			for _, e := range v {
				prune(e)
			}
		case []any:
			for _, e := range v {
				prune(e)
			}
		}
	}
	prune(tree)
	return tree
}

// What a condition says of a key is known of it in its group too: a product of the float that is counted cannot underflow.
func TestKeysAreNarrowed(t *testing.T) {
	on := rewritetest.ParseSnapshot(t, "visits\n  visit_id integer not null unique\n  person integer not null\n  weight double\n", `version: 1
dataset: test
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 3
    max_groups: 2
    columns:
      weight: {bounds: [0, 1]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	const sql = "SELECT weight * weight < 0.5 AS light, count(DISTINCT weight) FROM visits GROUP BY 1"
	if _, err := pipeline.Rewrite(sql, on, rewritetest.Sharp()); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// A report's block groups by the keys of its answer, and its caps are lowered for what these meet.
func TestReportsOfKeysThatAskForRows(t *testing.T) {
	t.Parallel()
	world := gen.NewWorld(t, 1, gen.Wild, 4)
	const sql = `SELECT e.k_text, EXISTS (SELECT 1 FROM zones z WHERE z.k_num = e.odd AND z.weight < e.odd + 5),
		percentile_disc(0.5) WITHIN GROUP (ORDER BY e.free)
		FROM events e JOIN (SELECT unit, k_num, count(*) FROM events GROUP BY unit, k_num) g ON g.unit = e.unit
		GROUP BY e.k_text, EXISTS (SELECT 1 FROM zones z WHERE z.k_num = e.odd AND z.weight < e.odd + 5)`
	o := plan.Options{Epsilon: mechanisms.EpsilonUnit, Delta: 1000, Currency: catalog.Approx, Mechanism: plan.MechanismAuto,
		Confidence: 0.95, Report: plan.ReportKept}
	p, err := pipeline.Rewrite(sql, world.Snapshot, o)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	for _, s := range proposals(sql, p, world.Snapshot) {
		if err := s.proven(s.claim); err != nil {
			t.Error(err)
		}
	}
}
