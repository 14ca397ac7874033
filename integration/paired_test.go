package integration

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
)

var (
	pairedQuestions = flag.Int("paired", 1, "questions of a block of BenchmarkPaired; it judges blocks of 50 and more")
	pairedMost      = flag.Float64("paired-most", 1.05, "how many times the processor time of base a question may take in BenchmarkPaired")
)

const (
	// pairedRounds is how often base, HEAD, HEAD and base are asked, for each number of clients: what slows the machine down for a while
	// slows both down.
	pairedRounds = 8
	// pairedWarm is how many questions of each are asked before: ledgers that are empty answer faster than any that is used.
	pairedWarm = 4
	// pairedAgain is how many comparisons, each of new rounds, must say that HEAD takes too long. One says so by chance once in a hundred
	// times where HEAD takes 1.02 times base's time and the limit is 1.05, and all of them once in 10⁸ times.
	pairedAgain = 4
)

// used is the time that questions took.
type used struct{ gateway, postgres, wall time.Duration }

func (u used) plus(v used) used {
	return used{u.gateway + v.gateway, u.postgres + v.postgres, u.wall + v.wall}
}

// BenchmarkPaired compares the processor time of gateway and PostgreSQL for a new question with that of another binary (-before), or of
// itself, with 1 and 16 clients, who are as many analysts: one has two places at most. Each binary has its databases on one server, and
// they are asked in blocks of questions, in the order base, HEAD, HEAD, base. It prints a table for docs/performance.md. Where the
// interval of confidence 0.95 for the ratio of HEAD to base lies above -paired-most, they are compared again; it fails after pairedAgain
// such comparisons in a row.
func BenchmarkPaired(b *testing.B) {
	server := ownServer(b, nil)
	set := people(`  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}
`)
	start := func(program string) *stack {
		s := prepareStackBeside(b, server, set)
		s.program = program
		return s.started(b, []dataset{set})
	}
	base, head := start(*benchBefore), start("")
	postmaster := base.postmaster(b) // once: a connection costs as much as a question
	asked := map[*stack]int{}
	analysts := make([]string, 16)
	for i := range analysts {
		analysts[i] = fmt.Sprintf("ana%d", i)
	}
	block := func(s *stack, clients, n int) (u used) {
		from := asked[s]
		asked[s] += n
		gateway, postgres := processorTime(b, s.gateway.Process.Pid), processorTime(b, postmaster)
		rate := s.throughput(b, analysts[:clients], n, func(i int) api.QueryRequest { return younger(from + i) })
		return used{processorTime(b, s.gateway.Process.Pid) - gateway, processorTime(b, postmaster) - postgres,
			time.Duration(float64(n) / rate * float64(time.Second))}
	}
	n := *pairedQuestions
	var table strings.Builder
	for _, s := range []*stack{base, head} {
		block(s, 16, pairedWarm*n)
	}
	for _, clients := range []int{1, 16} {
		slower := 0 // comparisons in a row
		for range pairedAgain {
			var processor, wall []float64
			var ofBase, ofHead used
			for range pairedRounds {
				first := block(base, clients, n)
				heads := block(head, clients, n).plus(block(head, clients, n))
				bases := first.plus(block(base, clients, n))
				processor = append(processor, math.Log(float64(heads.gateway+heads.postgres)/float64(bases.gateway+bases.postgres)))
				wall = append(wall, math.Log(float64(bases.wall)/float64(heads.wall)))
				ofBase, ofHead = ofBase.plus(bases), ofHead.plus(heads)
			}
			ratio, low, high := interval(processor)
			rates, slowest, fastest := interval(wall)
			all := 2 * pairedRounds * n
			fmt.Fprintf(&table, "| %d | %s | %s | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) |\n",
				clients, ofBase.each(all), ofHead.each(all), ratio, low, high, rates, slowest, fastest)
			b.ReportMetric(ratio, fmt.Sprintf("cpu-ratio-%d", clients))
			b.ReportMetric(rates, fmt.Sprintf("rate-ratio-%d", clients))
			if n < 50 || low <= *pairedMost {
				break
			}
			slower++
		}
		if slower == pairedAgain {
			b.Errorf("%d clients: a question takes more than %.2f times the processor time of base in each of %d comparisons",
				clients, *pairedMost, slower)
		}
	}
	for name, s := range map[string]*stack{"base": base, "HEAD": head} {
		var charges int
		if err := s.superuser(b, control).QueryRow(b.Context(), "SELECT count(*) FROM noisegate.charge").Scan(&charges); err != nil {
			b.Fatal(err)
		}
		if charges != asked[s] {
			b.Errorf("%s charged %d questions of %d: some were replays", name, charges, asked[s])
		}
	}
	b.Logf("%s, blocks of %d questions:\n| clients | base: requests/s, gateway / PostgreSQL | HEAD | processor time, of base "+
		"| requests/s, of base |\n|---|---|---|---|---|\n%s", time.Now().UTC().Format(time.DateOnly), n, &table)
}

// younger returns another question for each number.
func younger(i int) api.QueryRequest {
	sql := fmt.Sprintf("SELECT club, count(*) FROM people WHERE age < %d GROUP BY club", i)
	return api.QueryRequest{Dataset: "people", SQL: sql, Epsilon: "0.001"}
}

// each is a cell of the table.
func (u used) each(n int) string {
	of := func(d time.Duration) float64 { return milliseconds(d) / float64(n) }
	return fmt.Sprintf("%.0f, %.2f / %.2f ms", float64(n)/u.wall.Seconds(), of(u.gateway), of(u.postgres))
}

// interval is the geometric mean of ratios, given by their logarithms, and an interval of confidence 0.95 for it (Student's).
func interval(logs []float64) (mean, low, high float64) {
	n := float64(len(logs))
	sum, squares := 0.0, 0.0
	for _, l := range logs {
		sum += l
	}
	middle := sum / n
	for _, l := range logs {
		squares += (l - middle) * (l - middle)
	}
	half := studentQuantile * math.Sqrt(squares/(n-1)/n)
	return math.Exp(middle), math.Exp(middle - half), math.Exp(middle + half)
}

// studentQuantile is the quantile 0.975 of Student's distribution for pairedRounds samples.
const studentQuantile = 2.365
