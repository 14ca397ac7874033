package answer_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

const reportPolicy = `
version: 1
dataset: town
neighbours: add-remove
tables:
  visits:
    unit: {column: person_id}
    max_rows: 5
    max_groups: 2
    columns:
      region:  {domain: [north, south, east, west]}
      minutes: {bounds: [0, 240]}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
`

const reportTables = `
visits
  visit_id   bigint not null unique
  person_id  integer
  region     text not null
  minutes    integer not null
`

// reported answers a question with a report from true counts: of each region, of the rows that count, and of all rows.
func reported(t *testing.T, p *plan.Plan, s *mechanisms.Sampler, regions []int64, kept, all int64) *answer.Answer {
	t.Helper()
	truth := [][]int64{regions, {kept}, {all}}
	var blocks []*plan.Released
	for i, block := range p.Several.Plans {
		r := &plan.Released{Plan: block}
		err := plan.EachPublicTuple(block.Query, func(j int, keys []catalog.Key) error {
			exact := mechanisms.Seal(big.NewInt(truth[i][j]))
			r.Rows = append(r.Rows, plan.ReleasedRow{Keys: keys, Noisy: []*big.Int{block.Releases[0].Mechanism.Draw(s).Release(exact)}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, r)
	}
	whole, err := pipeline.Whole(p.Given(blocks))
	if err != nil {
		t.Fatal(err)
	}
	rows, types := make([]answer.PostRow, len(regions)), []string{"text", "bigint", "bigint", "bigint", "bigint"}
	for j := range rows {
		number := catalog.Key{Text: fmt.Sprint(j + 1)}
		rows[j].Values = []catalog.Key{{Text: "x"}, {Text: "0"}, number, {Null: true}, {Null: true}}
	}
	answer, err := answer.Complete(whole, rows, types)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func reportPlan(t *testing.T, level float64) *plan.Plan {
	t.Helper()
	o := plan.Options{Epsilon: 3 * mechanisms.EpsilonUnit, Mechanism: plan.MechanismLaplace, Currency: catalog.Approx,
		Confidence: mechanisms.Confidence(level), Report: plan.ReportKept}
	p, err := pipeline.Rewrite("SELECT region, count(*) FROM visits GROUP BY region",
		rewritetest.ParseSnapshot(t, reportTables, reportPolicy), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The interval of the part of the rows that count holds as often as it says, where the noise is small against the rows and where it is not.
// The randomness is fixed.
func TestReportedShareCovers(t *testing.T) {
	repeats := randomtest.Times(200, 500)
	if testing.Short() {
		repeats = 50
	}
	for _, truth := range [][2]int64{{3600, 10_000}, {60, 400}, {0, 300}, {500, 500}, {0, 0}} {
		for _, level := range []float64{0.8, 0.95} {
			s, p, misses := rewritetest.FixedSampler(t), reportPlan(t, level), 0
			share := new(big.Rat)
			if truth[1] > 0 {
				share.SetFrac64(truth[0], truth[1])
			}
			for range repeats {
				r := reported(t, p, s, []int64{truth[0], 0, 0, 0}, truth[0], truth[1]).Report
				if share.Cmp(r.Span.Lo) < 0 || share.Cmp(r.Span.Hi) > 0 {
					misses++
				}
				if r.Share != nil && (r.Share.Cmp(r.Span.Lo) < 0 || r.Share.Cmp(r.Span.Hi) > 0) {
					t.Fatalf("%v: the share %v is not in its interval %v", truth, r.Share, r.Span)
				}
			}
			if rewritetest.Beyond(misses, repeats, level) {
				t.Errorf("%v at %v: %d of %d intervals miss", truth, level, misses, repeats)
			}
		}
	}
}

// A report says in words what it says in numbers, and where it cannot tell.
func TestReportedShareInWords(t *testing.T) {
	for _, c := range []struct {
		kept, all int64
		want      string
	}{
		{360_000, 1_000_000, "about 36 % of rows are in these figures [35.9, 36.1]; of one person_id at most 40 rows are looked at for that " +
			"(kept_cap)"},
		{1, 2, "which part of the rows is in these figures cannot be told: there are too few of them for this noise"},
	} {
		a := reported(t, reportPlan(t, 0.95), rewritetest.FixedSampler(t), []int64{c.kept, 0, 0, 0}, c.kept, c.all)
		found := ""
		for _, n := range a.Notes {
			if n.Code == "kept" {
				found = n.Text
			}
		}
		if found != c.want {
			t.Errorf("%q, not %q", found, c.want)
		}
		if a.Report.Cap != 40 {
			t.Errorf("kept_cap %d", a.Report.Cap)
		}
	}
}

// What is reported is made from the groups that the answer's rows are in: all statements have one seed.
func TestReportHasOneSeed(t *testing.T) {
	p := reportPlan(t, 0.95)
	var seeds []any
	for at, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
		if block := p.Different()[at]; block.Parts[0].SeedArg > 0 {
			seeds = append(seeds, s.Args[block.Parts[0].SeedArg-1])
		}
	}
	if len(seeds) != 2 || seeds[0] != seeds[1] || seeds[0] == int64(0) {
		t.Errorf("seeds %v", seeds)
	}
}

// The answer's own release is the one of the question without a report at its share of the price, so that each replays for the other; the
// question is another one.
func TestReportLeavesTheReleaseAsItIs(t *testing.T) {
	p := reportPlan(t, 0.95)
	o := p.Options
	o.Report, o.Epsilon = "", o.Epsilon/3
	plain, err := pipeline.Rewrite("SELECT region, count(*) FROM visits GROUP BY region", p.Snapshot, o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Different()[0].Forms()[0].ReleaseIdentity() != plain.Forms()[0].ReleaseIdentity() {
		t.Error("the release is another one")
	}
	if p.Fingerprint() == plain.Fingerprint() {
		t.Error("the question is the same")
	}
	if p.Loss().Epsilon != p.Options.Epsilon {
		t.Errorf("the price is %v", p.Loss().Epsilon)
	}
}

// What is proven of a report is no less than what it claims, and no more: with a larger sensitivity than claimed a statement is refused.
func TestReportIsProvenTight(t *testing.T) {
	for i, block := range reportPlan(t, 0.95).Different() {
		if block.Query.Part == algebra.NoPart {
			continue
		}
		s := block.Parts[0].Statement
		claim := s.Claim
		one := big.NewInt(1)
		claim.PerGroup = []*big.Int{new(big.Int).Sub(claim.PerGroup[0], one)}
		s.Claim = claim
		if err := s.WithSeed(0).Prove(new(sqlprint.Proofs)); err == nil || !strings.Contains(err.Error(), "unverified") {
			t.Errorf("part %d: %v", i, err)
		}
	}
}
