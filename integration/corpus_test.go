package integration

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/testfiles"
)

// census is the UCI Adult table as people, with the corpus's policy. In a clone alone other tables of their shape stand in for it and for
// those of pums and pagila.
func census(t testing.TB) dataset {
	t.Helper()
	policy, people := testfiles.Own(t, "corpus/census.policy.yaml"), testfiles.FetchedOr(t, "data/adult/adult.csv")
	return dataset{name: "census", policy: policy, load: func(ctx context.Context, conn *pgx.Conn) error {
		return loadCSV(ctx, conn, "people", `person_id int PRIMARY KEY, age int, workclass text, fnlwgt int, education text, education_num int,
			marital_status text, occupation text, relationship text, race text, sex text, capital_gain int, capital_loss int,
			hours_per_week int, native_country text, income text`, people)
	}}
}

// pums is the toy table of the field with several rows per person, and the same with NULLs.
func pums(t testing.TB) dataset {
	t.Helper()
	const columns = "age int, sex int, educ int, race int, income int, married int, pid int"
	policy, dup, null := testfiles.Own(t, "corpus/pums.policy.yaml"), testfiles.FetchedOr(t, "data/pums/PUMS_dup.csv"),
		testfiles.FetchedOr(t, "data/pums/PUMS_null.csv")
	return dataset{name: "pums", policy: policy, load: func(ctx context.Context, conn *pgx.Conn) error {
		if err := loadCSV(ctx, conn, "pums", columns, dup); err != nil {
			return err
		}
		return loadCSV(ctx, conn, "pums_null", columns, null)
	}}
}

// pagila is PostgreSQL's sample of a shop that rents films, with foreign keys, an enum and partitions.
func pagila(t testing.TB) dataset {
	t.Helper()
	policy, schema, data := testfiles.Own(t, "corpus/pagila.policy.yaml"), testfiles.FetchedOr(t, "data/pagila/pagila-schema.sql.gz"),
		testfiles.FetchedOr(t, "data/pagila/pagila-data.sql.gz")
	return dataset{name: "pagila", policy: policy, load: func(ctx context.Context, conn *pgx.Conn) error {
		for _, file := range []string{schema, data} {
			if err := loadDump(ctx, conn, file); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		_, err := conn.Exec(ctx, "REVOKE CREATE ON SCHEMA public FROM PUBLIC") // which the dump grants
		return err
	}}
}

// loadDump runs a compressed dump: statements, and COPY with its rows in place. Owners are roles that do not exist here.
func loadDump(ctx context.Context, conn *pgx.Conn, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	statements := regexp.MustCompile(`(?m)^ALTER .* OWNER TO .*;$`).ReplaceAllString(string(text), "")
	copies := regexp.MustCompile(`(?m)^COPY .* FROM stdin;$`)
	for statements != "" {
		at := copies.FindStringIndex(statements)
		if at == nil {
			return execAll(ctx, conn, statements)
		}
		if err := execAll(ctx, conn, statements[:at[0]]); err != nil {
			return err
		}
		rows, rest, _ := strings.Cut(statements[at[1]+1:], "\\.\n")
		if _, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(rows), statements[at[0]:at[1]]); err != nil {
			return err
		}
		statements = rest
	}
	return nil
}

func execAll(ctx context.Context, conn *pgx.Conn, statements string) error {
	_, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	return err
}

func loadCSV(ctx context.Context, conn *pgx.Conn, table, columns, file string) error {
	if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", table, columns)); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = conn.PgConn().CopyFrom(ctx, f, "COPY "+table+" FROM STDIN (FORMAT csv, HEADER)")
	return err
}

// corpusQuery is one block of corpus/queries.sql or corpus/journeys.sql.
type corpusQuery struct {
	id, dataset string
	verdict     string // "answer", "free" or "refuse CODE"; of a journey "answer" or "hint"
	sql         string
}

// corpus reads all queries of a file.
func corpus(t *testing.T, file string) []corpusQuery {
	t.Helper()
	head := regexp.MustCompile(`(?m)^-- \[(\w+)\] (\w+) (.+)$`)
	text := testfiles.Own(t, "corpus/"+file)
	places := head.FindAllStringSubmatchIndex(text, -1)
	var queries []corpusQuery
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		queries = append(queries, corpusQuery{id: text[p[2]:p[3]], dataset: text[p[4]:p[5]], verdict: text[p[6]:p[7]],
			sql: strings.TrimSpace(text[p[1]:end])})
	}
	return queries
}

// verdicts reads testdata/corpus_verdicts: where this version's verdict is not the corpus's own.
func verdicts(t *testing.T) map[string]string {
	t.Helper()
	table := map[string]string{}
	for line := range strings.Lines(read(t, "testdata/corpus_verdicts")) {
		line, _, _ = strings.Cut(line, "#")
		if id, verdict, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			table[id] = strings.TrimSpace(verdict)
		}
	}
	return table
}
