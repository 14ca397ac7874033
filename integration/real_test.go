package integration

import (
	"context"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/testfiles"
)

// realData is a dataset of corpus/real.
func realData(t *testing.T, name string) dataset {
	t.Helper()
	tables := testfiles.Own(t, "corpus/real/"+name+".sql")
	policy := testfiles.Own(t, "corpus/real/"+name+".policy.yaml")
	return dataset{name: name, policy: policy, load: func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, tables)
	}}
}

// Questions that people wrote, reduced, which failed after their charge or were refused. Each is answered with PostgreSQL's keys, which are
// all outputs but the last, and with its values to 2 %, which is 30 times the noise at least.
//
// needs: postgres
func TestRealQuestions(t *testing.T) {
	t.Parallel()
	s := newStack(t, realData(t, "star"), realData(t, "ward"), realData(t, "shop"))
	client := s.analyst(t, "ana")
	narrowedBounds(t, client)
	for _, name := range []string{
		"varchar-key", "varchar-key-one-row", "varchar-key-joined",
		"interval-field", "int-times-interval", "constant-subquery", "zone-letter", "utc-literal", "escape", "power-sign",
		"cast-varchar-n", "constant-key", "distinct-pair", "mysql-condition", "distinct-on-person", "md5-public",
		"anti-join", "count-unit", "count-unit-when", "unit-not-null",
	} {
		asked, inPostgres := realQuestion(t, name)
		got, err := client.Query(t.Context(), asked, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]float64{}
		for _, row := range s.plain(t, asked.Dataset, inPostgres) {
			last := len(row) - 1
			if want[strings.Join(row[:last], "|")], err = strconv.ParseFloat(row[last], 64); err != nil {
				t.Fatal(err)
			}
		}
		for _, row := range got.Rows {
			var key []string
			for _, v := range row[:len(row)-1] {
				if v.IsNull() {
					key = append(key, null)
				} else {
					key = append(key, v.String())
				}
			}
			k, shown := strings.Join(key, "|"), row[len(row)-1].String()
			truth, known := want[k]
			if value, err := strconv.ParseFloat(shown, 64); err != nil || !known || math.Abs(value-truth) > truth/50 {
				t.Errorf("%s: %s is %s, want %g", name, k, shown, truth)
			}
		}
		if len(got.Rows) != len(want) {
			t.Errorf("%s: %d keys, want %d", name, len(got.Rows), len(want))
		}
	}
}

// realQuestion is a question of corpus/real, and its text as PostgreSQL reads it.
func realQuestion(t *testing.T, name string) (asked api.QueryRequest, inPostgres string) {
	t.Helper()
	asked = api.QueryRequest{Epsilon: "100", Delta: "1e-7"}
	var lines []string
	for line := range strings.Lines(testfiles.Own(t, "corpus/real/"+name+".sql")) {
		of, isSet := strings.CutPrefix(strings.TrimSpace(line), "-- dataset: ")
		dialect, isDialect := strings.CutPrefix(strings.TrimSpace(line), "-- dialect: ")
		switch {
		case isSet:
			asked.Dataset = of
		case isDialect:
			asked.Dialect = dialect
		default:
			lines = append(lines, line)
		}
	}
	asked.SQL = strings.TrimSuffix(strings.TrimSpace(strings.Join(lines, "")), ";")
	if asked.Dialect == "mysql" { // there a condition is a number
		return asked, strings.Replace(asked.SQL, "longitude > -80", "(longitude > -80)::int", 1)
	}
	return asked, asked.SQL
}

// narrowedBounds asks for values that conditions keep within closer limits than the policy's: they have the noise of these limits, without
// that the question writes them twice.
func narrowedBounds(t *testing.T, client *api.Client) {
	t.Helper()
	ask := func(sql string) (columns []api.Column, values []float64) {
		t.Helper()
		got, err := client.Query(t.Context(), api.QueryRequest{Dataset: "shop", SQL: sql, Epsilon: "1", Delta: "1e-7"}, "")
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		for _, v := range got.Rows[0] {
			value, err := strconv.ParseFloat(v.String(), 64)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return got.Columns, values
	}
	of := func(name string) string {
		_, sql, _ := strings.Cut(testfiles.Own(t, "corpus/real/"+name+".sql"), "\n")
		return sql
	}
	narrow, _ := ask(of("narrow-bounds"))
	written, _ := ask("SELECT sum(least(greatest(total, 20), 25)) FROM purchases WHERE total BETWEEN 20 AND 25")
	if got, want := narrow[0].HalfWidth.String(), written[0].HalfWidth.String(); got != want || got != "1497.87" {
		t.Errorf("the half-width is %s, with the limits written twice %s", got, want)
	}
	filtered, values := ask(of("narrow-bounds-filter"))
	if values[0] < 20 || values[0] > 25 {
		t.Errorf("the mean of values from 20 to 25 is %v", values[0])
	}
	if got := filtered[1].Sensitivity; got != "500" { // 20 rows of 25
		t.Errorf("the sensitivity is %s", got)
	}
}
