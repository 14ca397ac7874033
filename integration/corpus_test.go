package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared is the folder of data and queries that belongs to no checkout.
const shared = "../../shared"

// needShared skips a test where the folder is absent: a clean clone has generated data only.
func needShared(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(shared); err != nil {
		t.Skip("../shared is absent: it holds the census data and the query corpus")
	}
}

// census is the UCI Adult table as people, with the corpus's policy.
func census(t testing.TB) dataset {
	t.Helper()
	return dataset{name: "census", policy: readShared(t, "corpus/census.policy.yaml"), load: func(ctx context.Context, conn *pgx.Conn) error {
		return loadCSV(ctx, conn, "people", `person_id int PRIMARY KEY, age int, workclass text, fnlwgt int, education text, education_num int,
			marital_status text, occupation text, relationship text, race text, sex text, capital_gain int, capital_loss int,
			hours_per_week int, native_country text, income text`, "data/adult/adult.csv")
	}}
}

// pums is the toy table of the field with several rows per person, and the same with NULLs.
func pums(t testing.TB) dataset {
	t.Helper()
	const columns = "age int, sex int, educ int, race int, income int, married int, pid int"
	return dataset{name: "pums", policy: readShared(t, "corpus/pums.policy.yaml"), load: func(ctx context.Context, conn *pgx.Conn) error {
		if err := loadCSV(ctx, conn, "pums", columns, "data/pums/PUMS_dup.csv"); err != nil {
			return err
		}
		return loadCSV(ctx, conn, "pums_null", columns, "data/pums/PUMS_null.csv")
	}}
}

func loadCSV(ctx context.Context, conn *pgx.Conn, table, columns, file string) error {
	if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", table, columns)); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(shared, file))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = conn.PgConn().CopyFrom(ctx, f, "COPY "+table+" FROM STDIN (FORMAT csv, HEADER)")
	return err
}

func readShared(t testing.TB, name string) string {
	t.Helper()
	return read(t, filepath.Join(shared, name))
}

// corpusQuery is one block of corpus/queries.sql.
type corpusQuery struct {
	id, dataset string
	verdict     string // "answer", "free" or "refuse CODE"
	sql         string
}

// corpus reads the queries of the datasets that are given.
func corpus(t *testing.T, datasets ...string) []corpusQuery {
	t.Helper()
	head := regexp.MustCompile(`(?m)^-- \[(\w+)\] (\w+) (.+)$`)
	text := readShared(t, "corpus/queries.sql")
	places := head.FindAllStringSubmatchIndex(text, -1)
	var queries []corpusQuery
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		q := corpusQuery{id: text[p[2]:p[3]], dataset: text[p[4]:p[5]], verdict: text[p[6]:p[7]], sql: strings.TrimSpace(text[p[1]:end])}
		for _, d := range datasets {
			if q.dataset == d {
				queries = append(queries, q)
			}
		}
	}
	return queries
}

// verdicts reads testdata/census_verdicts: what this version answers, and the code of each refusal.
func verdicts(t *testing.T) map[string]string {
	t.Helper()
	table := map[string]string{}
	for line := range strings.Lines(read(t, "testdata/census_verdicts")) {
		line, _, _ = strings.Cut(line, "#")
		if id, verdict, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			table[id] = strings.TrimSpace(verdict)
		}
	}
	return table
}
