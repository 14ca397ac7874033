package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/mechanisms"
)

// brokenGateway answers the questions of an audit with noise that is too small by a factor, and charges what was asked.
type brokenGateway struct {
	factor   int64
	mu       sync.Mutex
	samplers map[string]*mechanisms.Sampler // of each table, about which an audit asks at the same time
}

// newBrokenGateway draws the same in each run.
func newBrokenGateway(factor int64) *brokenGateway {
	seeded := func(n byte) *mechanisms.Sampler {
		return mechanisms.NewSamplerFrom(rand.NewChaCha8([32]byte{byte(factor), n}))
	}
	return &brokenGateway{factor: factor, samplers: map[string]*mechanisms.Sampler{withUnit: seeded(1), withoutUnit: seeded(2)}}
}

var auditQuestion = regexp.MustCompile(`^SELECT (\S+(?:, \S+)?) FROM \w+\.(\w+) WHERE rank <= (\d+) `)

func (g *brokenGateway) answer(_ context.Context, q api.QueryRequest) (*api.QueryResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := auditQuestion.FindStringSubmatch(q.SQL)
	if parts == nil {
		return nil, fmt.Errorf("not an audit's question: %s", q.SQL)
	}
	units, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return nil, err
	}
	if parts[2] == withUnit {
		units++
	}
	price, err := mechanisms.ParseEpsilon(string(q.Epsilon))
	if err != nil {
		return nil, err
	}
	answer := &api.QueryResponse{Spent: api.Amounts{Epsilon: q.Epsilon}}
	show, err := g.shows(g.samplers[parts[2]], parts[1], price*mechanisms.PicoEpsilon(g.factor), units)
	if err != nil {
		return nil, err
	}
	for key := range auditKeys {
		if row, shown := show(); shown {
			answer.Rows = append(answer.Rows, append([]api.Value{api.Number(strconv.Itoa(key))}, row...))
		}
	}
	return answer, nil
}

// shows makes the answer for one group.
func (g *brokenGateway) shows(sampler *mechanisms.Sampler, selected string, price mechanisms.PicoEpsilon,
	units int64) (func() ([]api.Value, bool), error) {
	if selected == "s" {
		m, err := mechanisms.NewPartitionSelection(mechanisms.GroupSelectionParameters{Epsilon: price,
			Delta: mechanisms.DeltaUnit / 100_000_000, L0: 1})
		return func() ([]api.Value, bool) { return nil, m.Keep(sampler, mechanisms.SealInt64(units)) }, err
	}
	if selected == "s, count(*)" {
		m, err := mechanisms.NewShownCount(mechanisms.ShownCountParameters{Epsilon: price, Delta: mechanisms.DeltaUnit / 100_000_000,
			PerGroup: big.NewInt(1), Total: big.NewInt(1)})
		return func() ([]api.Value, bool) {
			noisy, shown := m.Release(sampler, mechanisms.SealInt64(units))
			return []api.Value{api.Number(fmt.Sprint(noisy))}, shown
		}, err
	}
	m, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(100), Epsilon: price})
	return func() ([]api.Value, bool) {
		return []api.Value{api.Number(m.Draw(sampler).Release(mechanisms.SealInt64(100 * units)).String())}, true
	}, err
}

// TestAuditCatchesHalvedNoise: a gateway with the right noise passes with a bound close to the claim, one with half of it does not
// pass, for additive noise and for selection. The seed is fixed.
func TestAuditCatchesHalvedNoise(t *testing.T) {
	for _, p := range auditProbes() {
		if p.mechanism == "gaussian" || p.output == "avg(v)" {
			continue // the gateway of this test has no such noise; internal/stattest has
		}
		for factor, want := range map[int64]bool{1: false, 2: true} {
			t.Run(fmt.Sprintf("%s noise/%d", p.name, factor), func(t *testing.T) {
				g := newBrokenGateway(factor)
				u := &auditor{dataset: "audit", schema: "scratch", maxUnits: selectionUnits(1), ask: g.answer, rate: 0.001}
				line, err := u.audit(t.Context(), p, "1", 10_000)
				if err != nil {
					t.Fatal(err)
				}
				if line.Above != want || line.Certified.Epsilon < 0.75*float64(factor) || line.Certified.Epsilon > float64(factor) {
					t.Errorf("%s: above the claim is %t, want %t", line, line.Above, want)
				}
			})
		}
	}
}

// TestAuditExitCode: a finding is exit code 1, and says how many lines it concerns.
func TestAuditExitCode(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{Streams: Streams{nil, &out, &errs}}
	g := newBrokenGateway(4)
	u := &auditor{dataset: "audit", schema: "scratch", maxUnits: selectionUnits(1), ask: g.answer}
	c := &auditDPCommand{Epsilon: []string{"1"}, Draws: 2000, Confidence: 0.999}
	if code := a.report(c.report(t.Context(), a, u)); code != exitAbove || !strings.Contains(errs.String(), "of 6 lines lose more") {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
	if strings.Count(out.String(), "ABOVE THE CLAIM") < 4 {
		t.Errorf("not every line that is above its claim is marked:\n%s", &out)
	}
}

// auditRarely lets an audit of a right gateway find something once in 10⁹ bounds; a test has 56 at most.
const auditRarely = "--confidence=0.999999999"

// TestAuditPrivate runs the command as it comes: no configuration, a private gateway.
func TestAuditPrivate(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	var out, errs bytes.Buffer
	prices, draws := 2, "4000"
	if testing.Short() {
		prices, draws = 1, "1000"
	}
	args := []string{"audit", "dp", "--json", "--epsilon=" + []string{"4", "1,4"}[prices-1], "--draws=" + draws, auditRarely}
	code := Run(t.Context(), args, Streams{nil, &out, &errs}, surroundings())
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	var report struct {
		Confidence float64
		Lines      []auditLine
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Lines) != prices*len(auditProbes()) || report.Confidence != 0.999999999 {
		t.Fatalf("got %s", &out)
	}
	for _, line := range report.Lines {
		t.Log(line)
		// Laplace noise gives 2.5 and more away at ε = 4; what reveals most about the others is too rare for so few draws and such confidence.
		if line.Claim.Epsilon == 4 && line.Claim.Delta == 0 && line.Certified.Epsilon < 1 {
			t.Errorf("%s: the audit is blind", line)
		}
	}
}

// TestAuditOfRunningGateway: an operator adds a dataset for audits, and may audit again and again; nothing of it stays in the
// protected database, and no other dataset's policy is ever replaced.
func TestAuditOfRunningGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	s := newSite(t)
	s.expect(t, nil, exitOK, "applied", "migrate")
	s.expect(t, nil, exitOK, "applied", "policy", "apply", s.policy)
	reader := s.database.dsn("noisegate_reader", demoProtected).Reveal()
	stop := s.serve(t, config.Environment{"NOISEGATE_DATASETS_AUDIT_DSN": reader, "NOISEGATE_DATASETS_AUDIT_QUANTUM": "0s"})
	env := config.Environment{"NOISEGATE_URL": "http://" + s.address, "NOISEGATE_TOKEN": s.token(t, "ana", "analyst")}
	env["NOISEGATE_AUDIT_DSN"] = s.database.dsn(s.database.super, demoProtected).Reveal()
	audit := func(args ...string) []string {
		return append([]string{"audit", "dp", "--epsilon=1", "--draws=1000", auditRarely}, args...)
	}

	s.expect(t, env, exitUsage, "no steward's token", audit()...)
	env["NOISEGATE_STEWARD_TOKEN"] = s.token(t, "sam", "steward")
	s.expect(t, env, exitOK, "partition selection", audit()...)
	s.expect(t, env, exitOK, "partition selection", audit()...)
	s.expect(t, env, exitUsage, "has a policy that no audit made", audit("--dataset="+demoDataset)...)
	s.expect(t, nil, exitUsage, "--confidence", "audit", "dp", "--confidence=1")
	s.expect(t, nil, exitUsage, "--draws", "audit", "dp", "--draws=0")
	s.expect(t, nil, exitUsage, "--epsilon", "audit", "dp", "--epsilon=1,x")

	left := -1
	if err := s.database.as(t.Context(), s.database.super, demoProtected, func(conn *pgx.Conn) error {
		const scratch = `SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname LIKE 'noisegate%'
			AND nspname <> 'noisegate_prepared'` // which deploy/roles.sql makes
		return conn.QueryRow(t.Context(), scratch).Scan(&left)
	}); err != nil || left != 0 {
		t.Errorf("%d scratch schemas are left: %v", left, err)
	}
	if code, log := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, log)
	}
}
