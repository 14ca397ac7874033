package free_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/free"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Queries that read nothing private: what runs, and what the answer's columns are. "private" says that a query does need a price.
func TestGoldenFree(t *testing.T) {
	rewritetest.RunGoldenFile(t, "free", func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
		options := rewritetest.ParseOptions(t, d)
		if d.Cmd == "mysql" {
			options.Dialect = parse.DialectMySQL
		}
		private, public, err := pipeline.Read(d.Input, snapshot, options)
		if d.Cmd == "refuse" != (err != nil) || d.Cmd == "private" != (private != nil) {
			d.Fatalf(t, "%s: private = %v, err = %v", d.Cmd, private != nil, err)
		}
		switch {
		case err != nil:
			return parsetest.ShowFault(err)
		case private != nil:
			return explain.Explain(private).Tree
		default:
			return showPublic(t, d, public)
		}
	})
}

// Each function of the table that is taken over public tables is one that the proof of what reads nothing private knows, that PostgreSQL
// has for these types, and whose result there is of the type that the answer's columns say: else a question would end as a defect of the
// gateway.
func TestEveryBuiltinIsProvenOverPublicTables(t *testing.T) {
	t.Parallel()
	snapshot := rewritetest.ParseSnapshot(t, "p\n  n integer\n  m numeric\n  f double precision\n  x text\n  b boolean\n  at timestamp\n", `version: 1
dataset: test
neighbours: add-remove
tables: {p: {public: true}}
budgets: [{dataset: true, form: approx, epsilon: 10, delta: 1e-6}]
`)
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE p (n integer, m numeric, f double precision, x text, b boolean, at timestamp)")
	conn := db.Conn(t, db.DSN)
	typeOf := func(p sqlprint.Post) (string, error) {
		rows, err := conn.Query(t.Context(), p.SQL(), p.Args()...)
		if err != nil {
			return "", err
		}
		oid := rows.FieldDescriptions()[0].DataTypeOID
		if rows.Close(); rows.Err() != nil {
			return "", rows.Err()
		}
		return gen.PGTypeName(t, conn, oid), nil
	}
	for _, f := range domain.Builtins {
		taken := 0
		for _, args := range []string{"", "n", "m", "f", "n, n", "m, m", "f, f", "n, m", "m, f", "n, 2", "m, 2", "n, 0, 10, 5", "m, 0, 10, 5",
			"0.5", "x", "x, x", "x, 2", "x IN x", "b", "at", "at, at", "'day', at", "day FROM at", "at, 'YYYY'", "'Asia/Tokyo', at",
			"x, '-', 2", "x, '-', '+'", "'1 day', at, '2001-02-03'"} {
			for _, over := range []string{"", " WITHIN GROUP (ORDER BY n)", " WITHIN GROUP (ORDER BY m)", " OVER (ORDER BY n)"} {
				sql := "SELECT " + f.Name + "(" + args + ")" + over + " FROM p"
				o, err := pipeline.Open(nil, sql, snapshot, plan.Options{Dialect: parse.DialectPostgres})
				if fault.CodeOf(err) == fault.CodeUnverified {
					t.Errorf("%s: %v", sql, errors.Unwrap(err))
				}
				if err != nil {
					continue
				}
				taken++
				post, ok := o.Post()
				if !ok {
					continue
				}
				if got, err := typeOf(post); err != nil || got != o.Columns()[0].Type {
					t.Errorf("%s: PostgreSQL says %q, %v, want type %s", sql, got, err, o.Columns()[0].Type)
				}
			}
		}
		if taken == 0 && (f.Type != nil || f.IsExact() || f.IsRank()) {
			t.Errorf("%s is not taken with any of these arguments", f.Name)
		}
	}
}

func showPublic(t *testing.T, d *datadriven.TestData, p *free.PublicPlan) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(p.Tree())
	var columns []string
	for _, c := range p.Columns() {
		columns = append(columns, c.Name+" "+c.Type)
	}
	fmt.Fprintf(&b, "columns: %s\n", strings.Join(columns, ", "))
	if post, ok := p.Post(); ok {
		rewritetest.CheckArgs(t, d, post.SQL(), post.Args())
		fmt.Fprintf(&b, "sql:\n%s%s", parsetest.Indent(post.SQL()), rewritetest.ShowArgs(post.Args(), 0))
		for _, p := range post.Preconditions() {
			fmt.Fprintf(&b, "pin: %s.%s\n", p.Schema, p.Table)
		}
	}
	return b.String()
}
