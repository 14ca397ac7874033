package integration

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

var probeWith = flag.String("probe-with", "",
	"another binary that TestSharedBalanceIsNotRead looks at: what it finds is logged, and nothing is asserted")

// An ML engineer searches for what is left of the dataset's account, by requests whose check cannot pass (L1), after an analyst
// of an account of their own spent some of it. Then an analyst counts how many answers of ε 1 are left after one Gaussian release
// at the floor (L3). Version 7c2e952 shows the first to ten digits, and gives 7 of 18 answers.
//
// covers: L1 L3
func TestSharedBalanceIsNotRead(t *testing.T) {
	t.Parallel()
	set := dataset{name: "school", policy: `version: 1
dataset: school
neighbours: add-remove
tables:
  pupils:
    unit: {row: id}
    columns: {id: {expose: false}, grade: {bounds: [0, 100]}}
budgets:
  - {dataset: true, form: approx, epsilon: 20, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 100, delta: 1e-5}
  - {group: ml, per: analyst, form: approx, epsilon: 100, delta: 1e-5}
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE TABLE pupils (id int PRIMARY KEY, grade int);
			INSERT INTO pupils SELECT i, i FROM generate_series(1, 100) i`)
		return err
	}}
	s := prepareStackBeside(t, common.running(t), set)
	s.program = *probeWith
	s.started(t, []dataset{set})
	votes := filepath.Join(s.dir, "votes.csv")
	write(t, votes, "query,cat,dog\na,58,2\n")
	for _, args := range [][]string{
		{"define", "pets", "--dataset", "school", "--teachers", "60", "--classes", "cat,dog", "--epsilon", "600", "--delta", "1e-5"},
		{"import", "pets", votes, "--seal"},
	} {
		cmd := s.command(append([]string{"pate"}, args...)...)
		cmd.Env = append(cmd.Env, "NOISEGATE_URL="+s.url, "NOISEGATE_TOKEN="+s.token(t, "sam", "steward"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	n := 0
	query := func(who, price string) int {
		n++
		status, _ := s.post(t, asked{As: who, Role: "analyst", Path: "/v1/query", Body: json.RawMessage(fmt.Sprintf(
			`{"dataset":"school","sql":"SELECT count(*) FROM pupils WHERE grade > %d",%s}`, n, price))})
		return status
	}
	if status := query("ana", `"epsilon":"1.7"`); status != http.StatusOK {
		t.Fatal(status)
	}

	// Each request would cost rho if its check passed, which it cannot.
	fits := func(rho float64) (fits bool, spent float64, code string) {
		body := fmt.Sprintf(`{"queries":["a"],"mechanism":"confident","threshold":"1000000000","sigma1":"10000000","sigma2":"%.12f"}`, 1/math.Sqrt(rho))
		status, answer := s.post(t, asked{As: "mel", Role: "ml", Path: "/v1/pate/pets/labels", Body: json.RawMessage(body)})
		var got struct {
			Code  string
			Spent struct{ Rho string }
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%d %s", status, answer)
		}
		spent, _ = strconv.ParseFloat(got.Spent.Rho, 64)
		return status == http.StatusOK, spent, got.Code
	}
	low, high, cost := 0.0, 10.0, 0.0
	codes := map[string]int{}
	for range 36 {
		middle := (low + high) / 2
		fit, spent, code := fits(middle)
		if codes[code]++; fit {
			low = middle
		} else {
			high = middle
		}
		cost += spent
	}
	steward := api.NewClient(s.url, s.token(t, "sam", "steward"))
	account, err := steward.Account(t.Context(), "school", "dataset")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("36 requests, answered with %v, cost rho %g: rho %.12f fits and %.12f does not; what a steward sees is left: %+v",
		codes, cost, low, high, account.Remaining)

	answers := 0
	price := `"mechanism":"gaussian","rho":"0.0000005"`
	if s.program != "" {
		price = `"mechanism":"gaussian","rho":"0.000000000001"`
	}
	if status := query("bob", price); status != http.StatusOK {
		t.Fatal(status)
	}
	for answers < 30 && query("ana", `"epsilon":"1"`) == http.StatusOK {
		answers++
	}
	t.Logf("after a Gaussian release of %s: %d answers of epsilon 1 under (20, 1e-6), of which 1.7 was spent", price, answers)
	if s.program != "" {
		return
	}
	if len(codes) != 1 || codes["pate/invalid-parameters"] != 36 || cost != 0 {
		t.Errorf("requests whose check cannot pass are answered with %v, for rho %g", codes, cost)
	}
	if answers < 17 {
		t.Errorf("%d answers of epsilon 1", answers)
	}
}
