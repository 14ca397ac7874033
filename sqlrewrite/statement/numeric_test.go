package statement

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
)

var numericTexts = flag.Int("numeric-texts", 3, "texts of TestNumericTextsEnd; make faults tries 100")

// rewritten gives the text that runs on the twin.
func (w *twin) rewritten(t testing.TB, sql string) string {
	t.Helper()
	all, err := Split(sql, w.view.Names)
	if err != nil || len(all) != 1 {
		t.Fatalf("%.300s: %v", sql, err)
	}
	text, err := Rewrite(all[0], w.view)
	if err != nil {
		t.Fatalf("%.300s: %v", sql, err)
	}
	return text
}

// linear are PostgreSQL's operations on numeric values that take as long as their operands are, by name and arguments: what else analysts
// may call is [twinOperations]'s own.
const linear = `+(numeric,numeric) -(numeric,numeric) =(numeric,numeric) <>(numeric,numeric) <(numeric,numeric) >(numeric,numeric)
	<=(numeric,numeric) >=(numeric,numeric) +(0,numeric) -(0,numeric) abs(numeric) avg(numeric) ceil(numeric) ceiling(numeric)
	float8(numeric) floor(numeric) int4(numeric) int8(numeric) make_interval(numeric) max(numeric) min(numeric) numeric(numeric,int4)
	pg_size_pretty(numeric) +(numeric,pg_lsn) +(pg_lsn,numeric) -(pg_lsn,numeric) scale(numeric) sign(numeric) sum(numeric) trim_scale(numeric)`

// TestNumericOperationsAreBounded: each operation of pg_catalog on numeric values that an analyst may call, in whichever version, resolves
// to the twin's own, unless it is known to be linear.
func TestNumericOperationsAreBounded(t *testing.T) {
	w := newTwin(t)
	tx, _, err := catalog.TwinSession{Snapshot: w.snapshot, SearchPath: []string{"public"}}.Begin(t.Context(), w.conn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	rows, err := tx.Query(t.Context(), `
		SELECT p.proname, p.proname || '(' || replace(pg_catalog.oidvectortypes(p.proargtypes), ' ', '') || ')', EXISTS (
			SELECT FROM pg_proc o JOIN pg_namespace n ON n.oid = o.pronamespace WHERE n.nspname = 'noisegate_ops' AND o.proname = p.proname
				AND o.proargtypes = p.proargtypes AND o.prokind = p.prokind AND pg_get_function_result(o.oid) = pg_get_function_result(p.oid)),
			false
		FROM pg_proc p WHERE p.pronamespace = 11 AND 1700 = ANY (p.proargtypes)
		UNION ALL
		SELECT o.oprname, o.oprname || '(' || CASE WHEN oprleft = 0 THEN '0' ELSE format_type(oprleft, NULL) END || ',' ||
			format_type(oprright, NULL) || ')', (SELECT b.oprnamespace = 'noisegate_ops'::regnamespace FROM pg_operator b
				WHERE b.oid = to_regoperator(o.oprname || '(' || CASE WHEN o.oprleft = 0 THEN 'none' ELSE format_type(o.oprleft, NULL) END
					|| ',' || format_type(o.oprright, NULL) || ')')::oid), true
		FROM pg_operator o WHERE o.oprnamespace = 11 AND 1700 IN (o.oprleft, o.oprright)`)
	if err != nil {
		t.Fatal(err)
	}
	bounded := 0
	var name, signature string
	var ours, isOperator bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &signature, &ours, &isOperator}, func() error {
		signature = strings.NewReplacer("integer", "int4").Replace(signature)
		switch may := !isOperator && passes[name] || isOperator && operators[name]; {
		case !may, slices.Contains(strings.Fields(linear), signature):
		case !ours:
			t.Errorf("%s is PostgreSQL's own", signature)
		case !isOperator && !overlaid[name]:
			t.Errorf("%s is printed with PostgreSQL's schema", signature)
		default:
			bounded++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if bounded < 27 {
		t.Errorf("%d operations are the twin's own, want 27 at least", bounded)
	}
}

// TestLongNumbersAreNoOperands: whatever form a text gives an operation, and whatever type its other operand has, a number of more than
// 1,000 bytes is refused; short ones are computed as ever.
func TestLongNumbersAreNoOperands(t *testing.T) {
	w := newTwin(t)
	const long = "(1e1300 + 1e-1300)"
	for form, want := range map[string]string{
		"%s * 2": "6.0", "2 * %s": "6.0", "%s * 2::int8": "6.0", "%s / 2": "1.5000000000000000", "%s %% 2": "1.0", "%s ^ 2": "9",
		"%s OPERATOR(pg_catalog.*) 2": "6.0", "2 OPERATOR(pg_catalog./) %s": "0.66666666666666666667", "mod(%s, 2)": "1.0",
		"pg_catalog.mod(2, %s)": "2.0", "div(%s, 2)": "1", "power(%s, 2)": "9", "pg_catalog.power(2, %s)": "8", "sqrt(%s + 1)": "2",
		"exp(%s - 3.0)": "1", "ln(%s - 2.0)": "0", "log(%s + 7)": "1", "log(%s, 9)": "2", "log10(%s + 97)": "2",
		"round(%s)": "3", "round(%s, 1)": "3.0",
		"trunc(%s)": "3", "trunc(%s, 1)": "3.0", "to_char(%s, 'FM9.0')": "3.0", "width_bucket(%s, 0, 10, 5)": "2",
		"stddev(%s)": "", "stddev_pop(%s)": "0", "stddev_samp(%s)": "", "variance(%s)": "", "var_pop(%s)": "0", "var_samp(%s)": "",
		"(SELECT max(g) FROM generate_series(1, %s) g)": "3", "(SELECT max(g) FROM pg_catalog.generate_series(1, %s, 2) g)": "3",
	} {
		_, rows, err := w.ask(t, w.rewritten(t, "SELECT "+fmt.Sprintf(form, "3.0")), 0, "public")
		if err != nil || fmt.Sprint(rows) != "[["+want+"]]" {
			t.Errorf("%s gives %v, %v, want %s", form, rows, err, want)
		}
		_, rows, err = w.ask(t, w.rewritten(t, "SELECT "+fmt.Sprintf(form, long)), 0, "public")
		if err == nil || !isTooLong(err) {
			t.Errorf("%s of a long number gives %v, %.300v", form, rows, err)
		}
	}
	for sql, want := range map[string]string{ // what is not numeric is PostgreSQL's own
		"SELECT 2 * 3, power(2, 3), round(2.5::float8), 7 % 4": "[[6 8 2 3]]",
		"SELECT to_char(date '2020-01-02', 'DD'), 5 / 2":       "[[02 2]]",
	} {
		if _, rows, err := w.ask(t, w.rewritten(t, sql), 0, "public"); err != nil || fmt.Sprint(rows) != want {
			t.Errorf("%s: %v, %v", sql, rows, err)
		}
	}
}

// isTooLong reports whether a number was too long, also for float8.
func isTooLong(err error) bool {
	return sqlStateOf(err) == "54000" || sqlStateOf(err) == "22003"
}

// numbers writes expressions of numeric values.
type numbers struct{ *rand.Rand }

func (r numbers) among(texts ...string) string { return texts[r.IntN(len(texts))] }

// small writes a number whose value has few digits, mostly.
func (r numbers) small(depth int) string {
	if depth > 0 && r.IntN(4) == 0 {
		return fmt.Sprintf("trunc(%s, 3)", r.any(depth-1))
	}
	return r.among("9::numeric", "7.5", "1e130000", "-3e-16000", "123456789.987654321e-9000", "2", "130000::numeric",
		strings.Repeat("8765", 500)+".5",
		strings.Repeat("1", 1900)+"e-3000", "70000::numeric", "0.00000000000001")
}

// any writes a number, which may have 147,000 digits.
func (r numbers) any(depth int) string {
	if depth == 0 {
		return r.small(0)
	}
	a, b := r.small(depth), r.small(depth)
	switch r.IntN(12) {
	case 0, 1:
		return "(" + r.any(depth-1) + r.among(" + ", " - ") + r.any(depth-1) + ")"
	case 2, 3, 4:
		return "(" + a + r.among(" * ", " / ", " % ", " ^ ") + b + ")"
	case 5, 6:
		return r.among("div", "mod", "power", "log") + "(" + a + ", " + b + ")"
	case 7:
		return r.among("sqrt", "exp", "ln", "log", "log10", "round", "abs", "ceil") + "(" + a + ")"
	case 8:
		return r.among("round", "trunc") + "(" + a + ", " + r.among("2000", "-20", "16000") + ")"
	case 9:
		return "(SELECT " + r.among("stddev", "variance", "sum", "avg", "stddev_pop") + "(x) FROM unnest(ARRAY[" + r.any(depth-1) + ", " + b +
			"]) x)"
	case 10:
		return "width_bucket(" + a + ", 0.5, " + b + ", 100)"
	default:
		return "(SELECT count(*) FROM generate_series(" + a + ", " + b + ", 1e129990))"
	}
}

// TestNumericTextsEnd: a text of 4,096 tokens over numeric values, however it was made, ends within six seconds: five until the server
// stops it, and the longest operation. Texts are made of expressions that are no error by themselves, which would end the whole early.
func TestNumericTextsEnd(t *testing.T) {
	w := newTwin(t)
	ends := func(sql string) error {
		text := w.rewritten(t, sql)
		began := time.Now()
		_, _, err := w.ask(t, text, 0, "public")
		if took := time.Since(began); took > 6*time.Second {
			t.Fatalf("took %v: %v\n%.2000s", took, err, sql)
		}
		return err
	}
	_ = ends("SELECT " + strings.Repeat("div(power(9::numeric,130000), power(7::numeric,70000)) > 1 AND ", 40) + "true")
	for i := range *numericTexts {
		r := numbers{rand.New(rand.NewPCG(34, uint64(i)))}
		var items []string
		for range 60 {
			if one := "(" + r.any(1+r.IntN(3)) + ") > 1"; ends("SELECT "+one) == nil {
				items = append(items, one)
			}
		}
		text, tokens := "SELECT true", 2
		for tokens < 4000 {
			one := items[r.IntN(len(items))]
			scanned, err := pg.Scan(one)
			if err != nil {
				t.Fatal(err)
			}
			text, tokens = text+", "+one, tokens+len(scanned.Tokens)+1
		}
		_ = ends(text)
	}
}

// TestSchemaIsInNoList: no relation of catalogs that an analyst may read, whole, has the schema's name or a name of what is in it, and the
// functions about names answer as if it were not there.
//
// needs: postgres
func TestSchemaIsInNoList(t *testing.T) {
	w := newTwin(t)
	read := sortedRelations(func(_ string, t treatment) bool { return t == readRelation })
	for _, name := range read {
		_, rows, err := w.ask(t, w.rewritten(t, "SELECT * FROM "+name.Schema+"."+name.Name), 0, "public")
		if state := sqlStateOf(err); state != "" && state != "42P01" && state != "42501" { // of another version, or nobody may read it
			t.Errorf("%v: %v", name, err)
		}
		if text := fmt.Sprint(rows); strings.Contains(text, twinOperations) || strings.Contains(text, "final_stddev") {
			t.Errorf("%v shows %s", name, twinOperations)
		}
	}
	for _, c := range []struct{ sql, want string }{
		{"SELECT current_schema, current_schema()", "[[public public]]"},
		{"SELECT current_schemas(true), current_schemas(false)", "[[{pg_catalog,public} {public}]]"},
		{"SELECT count(*) FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND NOT pg_function_is_visible(oid)", "[[0]]"},
		{"SELECT count(*) FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND NOT pg_operator_is_visible(oid)", "[[0]]"},
		{"SELECT n.xmin IS NOT NULL FROM pg_namespace n WHERE nspname = 'public' GROUP BY n.oid, n.xmin", "[[t]]"},
		{"SELECT nspname FROM pg_namespace n WHERE nspname = 'public' GROUP BY n.oid", "[[public]]"},
		{"SELECT pg_catalog.pg_namespace.nspname FROM pg_catalog.pg_namespace WHERE nspname = 'public'", "[[public]]"},
		{"SELECT a FROM pg_namespace n (o, a) WHERE a IN ('public', '" + twinOperations + "')", "[[public]]"},
	} {
		if _, rows, err := w.ask(t, w.rewritten(t, c.sql), 0, "public"); err != nil || fmt.Sprint(rows) != c.want {
			t.Errorf("%s gives %v, %v, want %s", c.sql, rows, err, c.want)
		}
	}
	named := w.rewritten(t, "SELECT current_schemas(false)")
	if _, rows, err := w.ask(t, named, 0, "pg_catalog"); err != nil || fmt.Sprint(rows) != "[[{pg_catalog}]]" {
		t.Errorf("where the path names pg_catalog: %v, %v", rows, err)
	}
}

// TestOthersTransactionsAreNotSeen: no relation and no function of one argument that an analyst may ask shows that somebody else wrote
// on the twin's server, in another transaction.
//
// needs: postgres
// covers: A54
func TestOthersTransactionsAreNotSeen(t *testing.T) {
	w := newTwin(t)
	var texts []string
	for _, name := range sortedRelations(func(_ string, t treatment) bool { return t == readRelation }) {
		if !strings.HasPrefix(name.Name, "pg_stat") { // these count reads of the twin's tables, which are only read when it is made
			texts = append(texts, "SELECT * FROM "+name.Schema+"."+name.Name)
		}
	}
	rows, err := w.conn.Query(t.Context(), `SELECT p.proname, a.typname FROM pg_proc p JOIN pg_type a ON a.oid = p.proargtypes[0]
		WHERE p.pronargs = 1 AND p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' ORDER BY 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	var function, argument string
	if _, err := pgx.ForEachRow(rows, []any{&function, &argument}, func() error {
		if passes[function] && types[argument] {
			texts = append(texts, "SELECT "+function+"((SELECT xmin::text FROM pg_class WHERE relname = 'pg_class')::"+argument+")")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	before := w.answersTo(t, texts)
	for range 3 {
		if _, err := w.conn.Exec(t.Context(), "SELECT pg_catalog.pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
	}
	after := w.answersTo(t, texts)
	for text, answer := range before {
		if after[text] != answer {
			t.Errorf("%s gives %.200s, and %.200s after other transactions", text, answer, after[text])
		}
	}
	if len(before) < 250 {
		t.Errorf("%d of %d texts can be asked", len(before), len(texts))
	}
}

// answersTo asks those of the texts that can be asked; an answer may be the state of an error.
func (w *twin) answersTo(t *testing.T, texts []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, text := range texts {
		split, err := Split(text, w.view.Names)
		if err != nil { // the grammar has a few names of functions for itself
			continue
		}
		rewritten, err := Rewrite(split[0], w.view)
		if err != nil {
			continue
		}
		_, rows, err := w.ask(t, rewritten, 0, "public")
		all[text] = fmt.Sprint(rows, sqlStateOf(err))
	}
	return all
}

func sqlStateOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
