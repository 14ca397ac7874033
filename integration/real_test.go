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

// Questions that people wrote, reduced: keys of type varchar, which once failed after their charge, and the unit's id where it tells
// nothing. Each is answered with PostgreSQL's keys, and with its values to 2 %, which is 30 times the noise at least.
//
// needs: postgres
func TestRealQuestions(t *testing.T) {
	t.Parallel()
	s := newStack(t, realData(t, "star"), realData(t, "ward"), realData(t, "shop"))
	client := s.analyst(t, "ana")
	for _, name := range []string{"varchar-key", "varchar-key-one-row", "varchar-key-joined", "anti-join", "count-unit", "count-unit-when",
		"unit-not-null"} {
		head, sql, _ := strings.Cut(testfiles.Own(t, "corpus/real/"+name+".sql"), "\n")
		of := strings.TrimPrefix(head, "-- dataset: ")
		got, err := client.Query(t.Context(), api.QueryRequest{Dataset: of, SQL: sql, Epsilon: "100", Delta: "1e-7"}, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]float64{}
		for _, row := range s.plain(t, of, strings.TrimSuffix(strings.TrimSpace(sql), ";")) {
			if want[strings.Join(row[:len(row)-1], "|")], err = strconv.ParseFloat(row[len(row)-1], 64); err != nil {
				t.Fatal(err)
			}
		}
		others := 0
		for _, row := range got.Rows {
			texts := make([]string, len(row))
			for i, cell := range row {
				texts[i] = cell.String()
			}
			key := strings.Join(texts[:len(row)-1], "|")
			truth, known := want[key]
			delete(want, key)
			others += map[bool]int{false: 1}[known]
			if value, err := strconv.ParseFloat(texts[len(row)-1], 64); err != nil || math.Abs(value-truth) > truth/50 {
				t.Errorf("%s: %q is %s, want %g", name, key, texts[len(row)-1], truth)
			}
		}
		if len(want) > 0 || others > 0 {
			t.Errorf("%s: %d keys that PostgreSQL does not have, and not %v", name, others, want)
		}
	}
}
