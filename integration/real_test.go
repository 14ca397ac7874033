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

// Questions that people wrote, reduced, which once failed after their charge: keys of type varchar. Each is answered with PostgreSQL's
// keys, and with its values to 2 %, which is more than a hundred times the noise.
//
// needs: postgres
func TestRealQuestions(t *testing.T) {
	t.Parallel()
	s := newStack(t, realData(t, "star"), realData(t, "ward"))
	client := s.analyst(t, "ana")
	for _, name := range []string{"varchar-key", "varchar-key-one-row", "varchar-key-joined"} {
		head, sql, _ := strings.Cut(testfiles.Own(t, "corpus/real/"+name+".sql"), "\n")
		of := strings.TrimPrefix(head, "-- dataset: ")
		got, err := client.Query(t.Context(), api.QueryRequest{Dataset: of, SQL: sql, Epsilon: "100", Delta: "1e-7"}, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]float64{}
		for _, row := range s.plain(t, of, strings.TrimSuffix(strings.TrimSpace(sql), ";")) {
			if want[row[0]], err = strconv.ParseFloat(row[1], 64); err != nil {
				t.Fatal(err)
			}
		}
		for _, row := range got.Rows {
			value, err := strconv.ParseFloat(row[1].String(), 64)
			if truth := want[row[0].String()]; err != nil || math.Abs(value-truth) > truth/50 {
				t.Errorf("%s: %s is %s, want %.0f", name, row[0], row[1], truth)
			}
		}
		if len(got.Rows) != len(want) {
			t.Errorf("%s: %d keys, want %d", name, len(got.Rows), len(want))
		}
	}
}
