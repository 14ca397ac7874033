package integration

import (
	"bytes"
	"context"
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

// TestBoundsOfVisits: what `noisegate bounds` prints of visitors, whose truth is known, at a price of which noise shows in no digit: in a
// bin of 2,000 units it is beyond 1 with a probability of e⁻²⁰ (scale 1/20), and there are 300 bins.
func TestBoundsOfVisits(t *testing.T) {
	s := newStack(t, visitors())
	cmd := s.command("bounds", "visits", "--url", s.url, "--epsilon=100", "--by=place", "--column=paid")
	cmd.Env = append(cmd.Env, "NOISEGATE_TOKEN="+s.token(t, "ana", "analyst"))
	var out, errs bytes.Buffer
	if cmd.Stdout, cmd.Stderr = &out, &errs; cmd.Run() != nil {
		t.Fatal(out.String(), errs.String())
	}
	var got []string
	for line := range strings.Lines(out.String()) {
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
}
