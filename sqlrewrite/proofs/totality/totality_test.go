// Package totality proves that no expression over the worst rows raises an error.
package totality

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Random typed expressions over everything that columns can hold, with constants from the ends of every type and intervals that are short
// as a length and long in their parts: nothing that the binder takes raises an error, or makes it panic. make proofs tries 20,000,
// make totality 400,000.
//
// needs: postgres
// covers: A18 A20 A29 B1 B2 B3 E.1 W1 W2 W3 W4 W5 W6 W7
func TestTotality(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db := pgtest.New(t)
	db.Exec(t, gen.ErrorFreeDDL)
	conn := db.Conn(t, db.DSN)
	r := rand.New(rand.NewPCG(10+*gen.ProofSeed, 12)) // reproducible on purpose
	rewritetest.MustExec(t, conn, gen.FillErrorFree(r, 12)+";"+gen.ExtremeDDL+"; SET timezone = 'UTC'; SET jit = off")
	snapshot := rewritetest.ParseSnapshot(t, gen.ExtremeTables, gen.ErrorFreePolicy)
	want := *gen.TotalExpressions
	batch := &totalityBatch{conn: conn}
	taken := 0
	for i := range want {
		text := gen.RandomExpression(r, []string{"number", "number", "condition", "text", "time", "interval"}[i%6], 1+r.IntN(4))
		query := "SELECT count(" + text + ") FROM t"
		if i%6 == 2 {
			query = "SELECT count(*) FROM t WHERE " + text
		}
		x := boundExpression(t, query, snapshot)
		if x == nil {
			continue
		}
		taken++
		batch.add(t, text, x)
	}
	batch.flush(t)
	t.Logf("%d expressions written, %d taken", want, taken)
	if taken*3 < want {
		t.Error("too few are taken")
	}
}

// boundExpression binds a query and gives the expression that it counts or filters by; nil where it is refused.
func boundExpression(t *testing.T, text string, snapshot *catalog.Snapshot) algebra.Expr {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: panic: %v\n%s", text, p, debug.Stack())
		}
	}()
	query, err := parse.Parse(text, "")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
	if err != nil {
		return nil
	}
	if bound.Where != nil {
		return bound.Where
	}
	if len(bound.Statistics) == 0 {
		return nil
	}
	return bound.Statistics[0].X
}

// totalityBatch evaluates many expressions on all rows in one statement.
type totalityBatch struct {
	conn  *pgx.Conn
	texts []string
	all   []algebra.Expr
}

const totalityBatchSize = 60

func (b *totalityBatch) add(t *testing.T, text string, x algebra.Expr) {
	t.Helper()
	if b.texts, b.all = append(b.texts, text), append(b.all, x); len(b.all) == totalityBatchSize {
		b.flush(t)
	}
}

func (b *totalityBatch) flush(t *testing.T) {
	t.Helper()
	if err := b.run(t, b.all); err != nil {
		for i, x := range b.all {
			if err := b.run(t, []algebra.Expr{x}); err != nil {
				p := sqlprint.NewRowPrinter()
				t.Errorf("%s\n%s\n%v\n%v", b.texts[i], p.Text(x), p.Args(), err)
			}
		}
		if !t.Failed() {
			t.Errorf("together: %v", err)
		}
	}
	b.texts, b.all = nil, nil
}

func (b *totalityBatch) run(t *testing.T, all []algebra.Expr) error {
	t.Helper()
	p := sqlprint.NewRowPrinter()
	var outputs []string
	for _, x := range all {
		outputs = append(outputs, "pg_catalog.count(("+p.Text(x)+")::text)")
	}
	if len(outputs) == 0 {
		return nil
	}
	rows, err := b.conn.Query(t.Context(), fmt.Sprintf("SELECT %s FROM public.t", strings.Join(outputs, ", ")), p.Args()...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// Random keys of few values: policy and text bound most of them, and then no row has a key that is not in the domain. NULL among arguments
// is among them.
//
// needs: postgres
// covers: W2
func TestNoKeyVanishes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot, r := gen.ErrorFreeRows(t, 12+*gen.ProofSeed, 14, 400, "UPDATE public.t SET letter = 'a', grade = 1 WHERE id <= 0; ")
	want := *gen.TotalExpressions / 5
	public, nulls := 0, 0
	for i := range want {
		text := "SELECT count(*) FROM t GROUP BY " + gen.RandomExpression(r, "key", 1+r.IntN(3))
		if i%3 == 0 {
			text = "SELECT count(*) FROM t WHERE " + gen.RandomExpression(r, "test", 1) + " GROUP BY " + gen.RandomExpression(r, "key", 1+r.IntN(3))
		}
		query, err := parse.Parse(text, "")
		if err != nil {
			continue
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil || len(bound.Keys) == 0 || bound.Keys[0].Private() || algebra.PlainField(bound.Keys[0].X) != nil {
			continue // a boolean column has the keys true and false
		}
		public++
		if strings.Contains(text, "nullif") {
			nulls++
		}
		gen.CheckDomain(t, conn, text, bound)
	}
	t.Logf("%d queries with public keys, %d of them with nullif", public, nulls)
	if public*6 < want || nulls*150 < want {
		t.Error("too few to tell")
	}
}

// literals are constants in a text.
var literals = regexp.MustCompile(`'[^']*'|\b\d+(\.\d+)?(e-?\d+)?\b`)

// Every query of the golden files with each of its constants replaced by some from the ends of every type: it is taken or refused, and
// nothing panics.
//
// covers: W7
func TestNoConstantPanics(t *testing.T) {
	t.Parallel()
	constants := append([]string{"'NaN'", "'Infinity'", "''", "'x'", "'1e400'", "'2024-02-30'", "'infinity'", "'0001-01-01 BC'", "-1",
		"1e-400", "99999999999999999999999999", "(- 'Infinity'::float8)", "INTERVAL '9600000 hours'", "DATE '9999-12-31'", "true"},
		gen.TotalityGrammar["constant"][0]...)
	r := rand.New(rand.NewPCG(31, 32)) // reproducible on purpose
	tried, taken := 0, 0
	for _, clause := range rewritetest.GoldenClauses() {
		if _, err := os.Stat(rewritetest.GoldenFile("stored/" + clause)); err != nil {
			continue // there were no such statements when these were stored
		}
		rewritetest.RunGoldenFile(t, "stored/"+clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
			for _, at := range literals.FindAllStringIndex(d.Input, -1) {
				for range 3 {
					c := constants[r.IntN(len(constants))]
					tried++
					taken += algebra.BoolIndex(rewrites(t, d.Input[:at[0]]+c+d.Input[at[1]:], snapshot))
				}
			}
			return d.Expected
		})
	}
	t.Logf("%d queries, %d taken", tried, taken)
	if tried < 1000 || taken < 200 {
		t.Error("too few to tell")
	}
}

// rewrites reports whether a query is taken.
func rewrites(t *testing.T, text string, snapshot *catalog.Snapshot) bool {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v\n%s", text, p, debug.Stack())
		}
	}()
	p, err := pipeline.Rewrite(text, snapshot, rewritetest.Sharp())
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.CodeInternal {
		t.Errorf("%s: %v", text, err)
	}
	if err == nil {
		explain.Explain(p)
	}
	return err == nil
}
