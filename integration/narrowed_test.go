package integration

import (
	"strconv"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/testfiles"
)

// Values that conditions keep within closer limits than the policy's have the noise of these limits, without that the question writes them
// twice.
//
// needs: postgres
func TestConditionsNarrowBounds(t *testing.T) {
	t.Parallel()
	client := newStack(t, realCorpus(t).sets...).analyst(t, "ana")
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

// Keys that public tables rule out do not appear.
//
// needs: postgres
func TestPublicTablesNarrowKeys(t *testing.T) {
	t.Parallel()
	client := newStack(t, realCorpus(t).sets...).analyst(t, "ana")
	for name, want := range map[string]int{"narrow-dimension": 3, "narrow-or": 2, "narrow-pairs": 280, "narrow-one-table": 25,
		"narrow-year": 12} {
		_, sql, _ := strings.Cut(testfiles.Own(t, "corpus/real/"+name+".sql"), "\n")
		got, err := client.Query(t.Context(), api.QueryRequest{Dataset: "star", SQL: sql, Epsilon: "1", Delta: "1e-7"}, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Rows) != want {
			t.Errorf("%s has %d rows, want %d", name, len(got.Rows), want)
		}
	}
}
