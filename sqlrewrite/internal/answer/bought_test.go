package answer_test

import (
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// Estimates say which values are released first, each once for each release that takes it; other questions have no such note.
func TestBuying(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)":                                             "avg(age)",
		"SELECT count(*) FROM people WHERE age BETWEEN (SELECT min(age) FROM people) AND 2 * (SELECT count(*) FROM people)": "min(age), count(*)",
		"SELECT (SELECT avg(age) FROM people) - avg(age) FROM people WHERE age > 3":                                         "",
		"SELECT count(*) FROM people": "",
	} {
		p, err := pipeline.Rewrite(sql, rewritetest.TownSnapshot(t), rewritetest.Sharp())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range answer.Buying(p) {
			name, _, _ := strings.Cut(n.Text, " is released first")
			got = append(got, name)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", sql, text, want)
		}
	}
}
