package sqlrewrite_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/steps"
)

// TestGoldenStatementsRun runs every statement of the golden files, and the post-processing queries above them, as the gateway would: on
// tables that are made of what the file says of them, with a few rows in them, as the reader. Which PostgreSQL that is says the
// environment ("make versions"): functions, casts and types differ between them.
//
// needs: postgres
func TestGoldenStatementsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	calculator, err := pgexec.NewCalculator(t.Context(), pgexec.Config{DSN: pgtest.Control(t).LedgerDSN, Connections: 1,
		StatementTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(calculator.Close)
	ran := 0
	for _, clause := range rewritetest.GoldenClauses() {
		t.Run(clause, func(t *testing.T) {
			var tables string
			var database *pgexec.Database
			var snapshot *catalog.Snapshot
			datadriven.RunTest(t, rewritetest.GoldenFile(clause), func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "tables":
					tables = d.Input
				case "policy":
					database, snapshot = goldenDatabase(t, tables, d.Input)
				case "plan":
					if err := runGolden(t, database, calculator, snapshot, d); err != nil {
						t.Errorf("%s: %v: %s", d.Pos, err, d.Input)
					}
					ran++
				}
				return d.Expected
			})
		})
	}
	if ran < 200 {
		t.Errorf("only %d statements were run", ran)
	}
	t.Log(ran, "questions")
}

func runGolden(t *testing.T, database *pgexec.Database, calculator *pgexec.Calculator, snapshot *catalog.Snapshot,
	d *datadriven.TestData) error {
	t.Helper()
	plan, err := sqlrewrite.Rewrite(steps.WithoutClock(t.Context()), d.Input, snapshot, rewritetest.ParseOptions(t, d))
	if err != nil {
		return err
	}
	sampler := mechanisms.NewSamplerFrom(randomtest.Source(t.Name()))
	draws := plan.Draw(sampler)
	released, err := plan.Release(sampler, draws, database.Run(t.Context(), plan.Statements(draws)...))
	if err != nil {
		return cause(err)
	}
	post, ok := released.Post()
	if !ok {
		return nil
	}
	if len(post.Preconditions()) > 0 {
		_, _, err = database.Read(t.Context(), post)
	} else {
		_, _, err = calculator.Compute(t.Context(), post)
	}
	if err = cause(err); err != nil && strings.Contains(err.Error(), "SQLSTATE 22") {
		return nil // a root of noise below zero, say: the gateway then answers without the post-processing query
	}
	return err
}

// cause names what a refusal hides from clients.
func cause(err error) error {
	if hidden, ok := err.(interface{ Unwrap() error }); ok && hidden.Unwrap() != nil {
		return fmt.Errorf("%w: %w", err, cause(hidden.Unwrap()))
	}
	return err
}

// goldenDatabase makes the tables of a golden file, and checks its policy against them.
func goldenDatabase(t *testing.T, tables, policyText string) (*pgexec.Database, *catalog.Snapshot) {
	t.Helper()
	protected := pgtest.Protected(t, goldenDDL(t, tables))
	database, err := pgexec.Open(t.Context(), pgexec.Config{DSN: protected.ReaderDSN, Connections: 2, StatementTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Close)
	policy, problems := catalog.Parse(policyText)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	schema, err := database.Inspect(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := catalog.Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return database, snapshot
}

// goldenRows is how many rows a table has whose values are not listed.
const goldenRows = 20

// goldenDDL turns the description of tables of a golden file into SQL that makes and fills them. Keys count from 1, so that foreign keys
// meet.
func goldenDDL(t *testing.T, tables string) string {
	t.Helper()
	var sql, last, views strings.Builder
	for paragraph := range goldenTables(tables) {
		var columns, constraints, values []string
		rows, listed := goldenRows, map[string][]string{}
		name := paragraph[0][0]
		if query, isView := strings.CutPrefix(strings.Join(paragraph[1], " "), "view "); isView {
			if strings.Contains(query, "public."+name+" ") || strings.Contains(query, "pg_sleep") { // which PostgreSQL takes for no view
				query = "SELECT 1 AS x"
			}
			fmt.Fprintf(&views, "CREATE VIEW %s AS %s;\n", name, query)
			continue
		}
		for _, line := range paragraph[1:] {
			switch line[0] {
			case "unique":
				constraints = append(constraints, "UNIQUE ("+strings.Join(line[1:], ", ")+")")
			case "index":
				fmt.Fprintf(&last, "CREATE INDEX ON %s (%s);\n", name, strings.Join(line[1:], ", "))
			case "values":
				listed[line[1]] = line[2:]
				rows = len(line) - 2
			}
		}
		for _, line := range paragraph[1:] {
			if slices.Contains([]string{"unique", "index", "values", "rows", "equal"}, line[0]) {
				continue
			}
			column, kind, rest := line[0], line[1], strings.Join(line[2:], " ")
			if labels, isEnum := strings.CutPrefix(kind, "enum("); isEnum {
				create := "CREATE TYPE mood AS ENUM ('" + strings.ReplaceAll(strings.TrimSuffix(labels, ")"), ",", "', '") + "');\n"
				if !strings.Contains(sql.String(), create) {
					sql.WriteString(create)
				}
				kind = "mood"
			}
			definition := column + " " + strings.Replace(kind, "double", "double precision", 1)
			if strings.Contains(rest, "not null") {
				definition += " NOT NULL"
			}
			if strings.Contains(rest, "unique") {
				definition += " UNIQUE"
			}
			if to := regexp.MustCompile(`references (\S+)`).FindStringSubmatch(rest); to != nil {
				fmt.Fprintf(&last, "ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s;\n", name, column, to[1])
			}
			columns = append(columns, definition)
			values = append(values, goldenValue(t, kind, listed[column], strings.Contains(rest, "unique") || strings.Contains(rest, "references") ||
				strings.Contains(strings.Join(constraints, " "), column)))
		}
		fmt.Fprintf(&sql, "CREATE TABLE %s (%s);\n", name, strings.Join(append(columns, constraints...), ", "))
		fmt.Fprintf(&last, "INSERT INTO %s SELECT %s FROM generate_series(1, %d) i;\n", name, strings.Join(values, ", "), rows)
	}
	// Rows first, then foreign keys: tables stand in any order.
	lines := slices.Collect(strings.Lines(last.String()))
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(b[:1], a[:1]) })
	return sql.String() + strings.Join(lines, "") + views.String()
}

// goldenTables yields the paragraphs of a description, word by word.
func goldenTables(tables string) func(yield func([][]string) bool) {
	return func(yield func([][]string) bool) {
		var paragraph [][]string
		for line := range strings.Lines(tables) {
			words := strings.Fields(line)
			isTable := len(words) > 0 && !strings.HasPrefix(line, " ") && !slices.Contains([]string{"unique", "index", "values", "rows", "equal"},
				words[0])
			if isTable && paragraph != nil {
				if !yield(paragraph) {
					return
				}
				paragraph = nil
			}
			if len(words) > 0 {
				paragraph = append(paragraph, words)
			}
		}
		if paragraph != nil {
			yield(paragraph)
		}
	}
}

// goldenValue is the value of row i of a column.
func goldenValue(t *testing.T, kind string, listed []string, key bool) string {
	t.Helper()
	if listed != nil {
		return "(ARRAY['" + strings.Join(listed, "', '") + "'])[i]::" + strings.Replace(kind, "double", "double precision", 1)
	}
	base, _, _ := strings.Cut(kind, "(")
	switch base {
	case "smallint", "integer", "bigint":
		return "i"
	case "numeric", "real", "double":
		if key {
			return "i"
		}
		return "i / 7.0"
	case "text", "varchar":
		if key {
			return "'k' || i"
		}
		return "'k' || i % 3"
	case "char":
		return "substr('xyz', 1 + i % 3, 1)"
	case "boolean":
		return "i % 2 = 0"
	case "date":
		return "date '2000-01-01' + i"
	case "timestamp", "timestamptz":
		return "timestamp '2001-01-01 10:00' + i * interval '7 hours'"
	case "uuid":
		return "('00000000-0000-0000-0000-0000000000' || to_char(i, 'FM00'))::uuid"
	case "mood":
		return "(enum_range(NULL::mood))[1 + i % 2]"
	}
	t.Fatalf("no values for columns of type %s", kind)
	return ""
}
