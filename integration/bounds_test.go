package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// visitors are 2,000 people: of each 100, 90 have 3 visits at 1 place, 9 have 40 at 2, and 1 has 200 at 10; they pay 5 to 50.
func visitors() dataset {
	return dataset{name: "visits", policy: `version: 1
dataset: visits
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 5
    max_groups: 2
    columns:
      place: {domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
      paid:  {bounds: [0, 100]}
budgets:
` + ampleBudget, load: func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, `CREATE TABLE visits (person int, place int, paid int);
			INSERT INTO visits SELECT p, n % CASE WHEN p % 100 = 0 THEN 10 WHEN p % 100 < 10 THEN 2 ELSE 1 END, 5 + n % 46
			FROM generate_series(1, 2000) p, generate_series(1, CASE WHEN p % 100 = 0 THEN 200 WHEN p % 100 < 10 THEN 40 ELSE 3 END) n`)
	}}
}

// TestBoundsOfVisits: what the commands of docs/policy.md print of visitors, whose truth is known, at a price whose noise shows in no
// digit: in a bin of 2,000 units it is beyond 1 with a probability of e⁻²⁰ (scale 1/20), and there are 300 bins.
func TestBoundsOfVisits(t *testing.T) {
	t.Parallel()
	s := newStack(t, visitors())
	page := read(t, "../docs/policy.md")
	bounds := func(shown string) string { // a command of the page, at another price
		if !strings.Contains(page, "\n$ noisegate "+shown+"\n") {
			t.Errorf("docs/policy.md does not show %q", shown)
		}
		shown = strings.TrimSuffix(strings.Replace(shown, "--epsilon 2.5", "--epsilon 100", 1), " > visits.json")
		cmd := s.command(append(strings.Fields(shown), "--url", s.url)...)
		cmd.Env = append(cmd.Env, "NOISEGATE_TOKEN="+s.token(t, "ana", "analyst"))
		var out, errs bytes.Buffer
		if cmd.Stdout, cmd.Stderr = &out, &errs; cmd.Run() != nil {
			t.Fatal(out.String(), errs.String())
		}
		return out.String()
	}
	const shown = "bounds visits --epsilon 2.5 --by place --column paid"
	var got []string
	for line := range strings.Lines(bounds(shown)) {
		if strings.Contains(line, "spent epsilon 20 ") { // each a fifth
			line = " spent\n"
		}
		got = append(got, line)
	}
	want := `rows of one person
 bound | keeps whole | 95 % interval
-------+-------------+--------------------
     3 | 90.0 %      | 90.0 % to 90.0 %
    42 | 99.0 %      | 99.0 % to 99.0 %
   211 | 100.0 %     | 100.0 % to 100.0 %
 policy: max_rows_total: 42
 spent

groups of one person by place
 bound | keeps whole | 95 % interval
-------+-------------+--------------------
     1 | 90.0 %      | 90.0 % to 90.0 %
     2 | 99.0 %      | 99.0 % to 99.0 %
    13 | 100.0 %     | 100.0 % to 100.0 %
 policy: max_groups: 2
 spent

rows of one person in one of these groups, at most
 bound | keeps whole | 95 % interval
-------+-------------+--------------------
     3 | 90.0 %      | 90.0 % to 90.0 %
    28 | 100.0 %     | 100.0 % to 100.0 %
 policy: max_rows: 28
 spent

smallest paid of one person
 bound | keeps whole | 95 % interval
-------+-------------+--------------------
     5 | 100.0 %     | 100.0 % to 100.0 %
 policy: paid: {bounds: [5, ...]}
 spent

largest paid of one person
 bound | keeps whole | 95 % interval
-------+-------------+--------------------
    10 | 90.0 %      | 90.0 % to 90.0 %
    50 | 100.0 %     | 100.0 % to 100.0 %
 policy: paid: {bounds: [..., 50]}
 spent

`
	if diff := cmp.Diff(want, strings.Join(got, "")); diff != "" {
		t.Error(diff)
	}

	var report struct {
		Format, Dataset, Schema, Table, Epsilon string
		By                                      []string
		Histograms                              []struct {
			Bounds, Column, Policy string
			Kept                   []struct{ Bound, Share, Low, High float64 }
			Spent                  struct{ Epsilon string }
		}
	}
	if err := json.Unmarshal([]byte(bounds(shown+" --json > visits.json")), &report); err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintln(report.Format, report.Dataset, report.Schema, report.Table, report.By, report.Epsilon)
	for _, h := range report.Histograms {
		said += fmt.Sprintf("%s %s: %s, spent %s", h.Bounds, h.Column, h.Policy, h.Spent.Epsilon)
		for _, k := range h.Kept {
			if k.Low > k.Share || k.Share > k.High {
				t.Errorf("%s: %v", h.Bounds, k)
			}
			if slices.Contains([]float64{2, 3, 10, 42}, k.Bound) {
				said += fmt.Sprintf(", %v keeps %.2f", k.Bound, k.Share)
			}
		}
		said += "\n"
	}
	want = `noisegate bounds/1 visits public visits [place] 100
max_rows_total : max_rows_total: 42, spent 0, 2 keeps 0.00, 3 keeps 0.90, 42 keeps 0.99
max_groups : max_groups: 2, spent 0, 2 keeps 0.99, 3 keeps 0.99, 42 keeps 1.00
max_rows : max_rows: 28, spent 0, 2 keeps 0.00, 3 keeps 0.90, 42 keeps 1.00
least paid: paid: {bounds: [5, ...]}, spent 0, 10 keeps 0.00, 2 keeps 1.00
most paid: paid: {bounds: [..., 50]}, spent 0, 2 keeps 0.00, 10 keeps 0.90
`
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}
