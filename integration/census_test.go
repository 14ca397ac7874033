package integration

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// confidence of the intervals that these tests ask for. Every non-null interval of every answer must contain what
// PostgreSQL itself computes, or be off by no more than its width: Laplace noise of a right gateway is beyond that once
// in 10¹⁸ cells, Gaussian noise more rarely, and there are some 1,200.
const confidence = 1 - 1e-9

// TestCorpus asks every query of the corpus. What is answered at ε = 100 must agree with plain PostgreSQL on the same text, what is free
// must be equal to it, and what is refused must be refused with the corpus's code, at no charge. testdata/corpus_verdicts lists the
// verdicts that differ, with the reason.
func TestCorpus(t *testing.T) {
	t.Parallel()
	s := newStack(t, census(t), pums(t), pagila(t))
	other := verdicts(t)
	for _, q := range corpus(t, "queries.sql") {
		t.Run(q.id, func(t *testing.T) {
			verdict := q.verdict
			if v, ok := other[q.id]; ok {
				verdict = v
			}
			s.ask(t, q, verdict)
		})
	}
}

// ask sends one query as a new analyst, so that each starts with a full budget.
func (s *stack) ask(t *testing.T, q corpusQuery, verdict string) {
	t.Helper()
	client := s.analyst(t, "corpus-"+strings.ToLower(q.id))
	before := s.entries(t)
	answer, err := client.Query(t.Context(), api.QueryRequest{
		Dataset: q.dataset, SQL: q.sql, Epsilon: "100", Delta: "1e-6", Confidence: api.Level(confidence)}, "")
	if code, refused := strings.CutPrefix(verdict, "refuse "); refused {
		p := problemOf(t, err)
		if p.Code != code {
			t.Errorf("%s\nrefused with %v, want %s", q.sql, p, code)
		}
		if p.Detail == "" || strings.HasPrefix(code, "sql/") && p.Position == nil {
			t.Errorf("the refusal does not say what is wrong, or where: %+v", p)
		}
		if after := s.entries(t); after != before {
			t.Errorf("a refused query wrote %d entries into the ledger", after-before)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s\n%v, want %s", q.sql, err, verdict)
	}
	if free := answer.Spent.Epsilon == "0" && answer.Spent.Rho == "0"; free != (verdict == "free") {
		t.Errorf("%s\nspent %+v, want %s", q.sql, answer.Spent, verdict)
	}
	if len(answer.Columns) > 0 && answer.Columns[0].Kind == "public" {
		if after := s.entries(t); after != before {
			t.Errorf("a query that reads nothing private wrote %d entries into the ledger", after-before)
		}
		s.compareExactly(t, q, answer)
		return
	}
	s.compare(t, q, answer)
}

// compareExactly requires PostgreSQL's own rows, in its order. A probe without rows has its columns.
func (s *stack) compareExactly(t *testing.T, q corpusQuery, answer *api.QueryResponse) {
	t.Helper()
	exact := s.plain(t, q.dataset, q.sql)
	got := make([][]string, 0, len(answer.Rows))
	for _, row := range answer.Rows {
		got = append(got, texts(row))
	}
	if !slices.EqualFunc(got, exact, slices.Equal) {
		t.Errorf("%s\n%v\nplain SQL gives\n%v", q.sql, got, exact)
	}
}

// compare holds an answer against PostgreSQL's own result for the same text.
func (s *stack) compare(t *testing.T, q corpusQuery, answer *api.QueryResponse) {
	t.Helper()
	sql := q.sql
	if text, ok := plainText()[q.id]; ok {
		sql = text
	}
	exact := s.plain(t, q.dataset, sql)
	byKey := map[string][][]string{}
	for _, row := range exact {
		key := keyOf(answer.Columns, row)
		byKey[key] = append(byKey[key], row)
	}
	found := 0
	for r, row := range answer.Rows {
		key := keyOf(answer.Columns, texts(row))
		// A public key without rows appears all the same, near 0.
		want, ok := slices.Repeat([]string{"0"}, len(row)), len(byKey[key]) > 0
		if ok {
			found++
			at := nearest(answer.Columns, texts(row), byKey[key])
			want, byKey[key] = byKey[key][at], slices.Delete(slices.Clone(byKey[key]), at, at+1)
		}
		for c, column := range answer.Columns {
			if column.Kind != "key" && !bindsGroups()[q.id] && (ok || column.Kind == "aggregate") {
				checkCell(t, q.sql+"\n"+key+" "+column.Name, row[c].String(), want[c], answer.Intervals[r][c])
			}
		}
	}
	if found < len(exact) {
		t.Errorf("%s\n%d of plain SQL's %d rows are missing\n%v\n%v", q.sql, len(exact)-found, len(exact), answer.Rows, exact)
	}
}

// nearest is the place of the row among those with the same keys whose first number is nearest: totals show the keys of their groups.
func nearest(columns []api.Column, row []string, among [][]string) int {
	c := slices.IndexFunc(columns, func(c api.Column) bool { return c.Kind != "key" })
	best, least := 0, (*big.Rat)(nil)
	for i, other := range among {
		if c < 0 {
			break
		}
		a, ok1 := number(row[c])
		b, ok2 := number(other[c])
		if !ok1 || !ok2 {
			continue
		}
		if off := new(big.Rat).Sub(a, b); least == nil || off.Abs(off).Cmp(least) < 0 {
			best, least = i, off.Abs(off)
		}
	}
	return best
}

// bindsGroups are the queries where a bound of the policy binds, so that only the keys can be compared.
func bindsGroups() map[string]bool {
	return map[string]bool{
		"C103": true, // a customer counts in 8 categories, and rents films of 16
	}
}

// plainText is what to compare with where a documented bound binds, so that the text itself gives something else.
func plainText() map[string]string {
	return map[string]string{
		// A quotient with a zero divisor is NULL; PostgreSQL ends the query.
		"C024": "SELECT count(*) FROM people WHERE 1.0 / nullif(age - 42, 0) > 0.1",
		// Rows without a privacy unit are dropped.
		"C203": "SELECT count(*), sum(income), avg(income), count(age) FROM pums_null WHERE pid IS NOT NULL",
	}
}

// checkCell requires the exact value inside the interval, and the interval to be worth something at this ε.
func checkCell(t *testing.T, where, got, exact string, interval *api.Bounds) {
	t.Helper()
	if exact == null && got == "" {
		return
	}
	value, ok1 := number(got)
	truth, ok2 := number(exact)
	if !ok1 || !ok2 {
		checkOther(t, where, got, exact)
		return
	}
	if interval == nil { // of a function that has none: all that can be said is that it is near
		if far(value, truth) {
			t.Errorf("%s: %s is more than 2 %% and 20 away from plain SQL's %s at ε = 100", where, got, exact)
		}
		return
	}
	lo, ok1 := number(interval[0].String())
	hi, ok2 := number(interval[1].String())
	switch {
	case !ok1 || !ok2:
		t.Errorf("%s: the interval %v is not made of numbers", where, *interval)
	case truth.Cmp(beyond(lo, value)) < 0 || truth.Cmp(beyond(hi, value)) > 0:
		t.Errorf("%s: %s, interval %v: plain SQL's %s is more than its width away", where, got, *interval, exact)
	}
}

// beyond is an end of an interval, as far away again from the value.
func beyond(end, value *big.Rat) *big.Rat {
	return new(big.Rat).Sub(new(big.Rat).Add(end, end), value)
}

// checkOther compares what is no number: an array of numbers element by element, and everything else as it is.
func checkOther(t *testing.T, where, got, exact string) {
	t.Helper()
	if !strings.HasPrefix(exact, "{") {
		if got != exact {
			t.Errorf("%s: %q, plain SQL gives %q", where, got, exact)
		}
		return
	}
	values, truths := strings.Split(strings.Trim(got, "{}"), ","), strings.Split(strings.Trim(exact, "{}"), ",")
	if len(values) != len(truths) {
		t.Errorf("%s: %s, plain SQL gives %s", where, got, exact)
		return
	}
	for i := range values {
		checkCell(t, where, values[i], truths[i], nil)
	}
}

// far is what cells without an interval must not be: selections at ε = 100, which are wrong by one rank once in e¹⁰
// draws or less, and by this much never.
func far(value, truth *big.Rat) bool {
	distance := new(big.Rat).Sub(value, truth)
	distance.Abs(distance)
	allowed := new(big.Rat).Mul(new(big.Rat).Abs(truth), big.NewRat(2, 100))
	return distance.Cmp(big.NewRat(20, 1)) > 0 && distance.Cmp(allowed) > 0
}

func number(text string) (*big.Rat, bool) { return new(big.Rat).SetString(text) }

// null stands for NULL in what plain gives.
const null = "\x00"

// plain runs the text as it is, as the superuser, and gives PostgreSQL's text form of every value.
func (s *stack) plain(t *testing.T, database, sql string) [][]string {
	t.Helper()
	conn := s.superuser(t, database)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), sql, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all [][]string
	for rows.Next() {
		var row []string
		for _, v := range rows.RawValues() {
			if v == nil {
				row = append(row, null)
			} else {
				row = append(row, string(v))
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func texts(row []api.Value) []string {
	out := make([]string, len(row))
	for i, v := range row {
		if out[i] = v.String(); v.IsNull() {
			out[i] = null
		}
	}
	return out
}

// keyOf joins the group keys of a row.
func keyOf(columns []api.Column, row []string) string {
	var key []string
	for i, c := range columns {
		if c.Kind == "key" {
			key = append(key, fmt.Sprintf("%s=%q", c.Name, row[i]))
		}
	}
	return strings.Join(key, " ")
}

// TestCensusKnownAnswer looks at one answer as a whole: every declared key appears, in the order that was asked for, with what
// it cost and what is left.
func TestCensusKnownAnswer(t *testing.T) {
	t.Parallel()
	s := newStack(t, census(t))
	answer, err := s.analyst(t, "ana").Query(t.Context(), api.QueryRequest{Dataset: "census", Epsilon: "1",
		SQL: "SELECT marital_status, count(*) AS n FROM people GROUP BY 1 ORDER BY n DESC"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, row := range answer.Rows {
		keys = append(keys, row[0].String())
	}
	slices.Sort(keys)
	want := []string{"Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Separated", "Widowed"}
	if !slices.Equal(keys, want) {
		t.Errorf("keys %v, want the declared domain %v", keys, want)
	}
	for i := 1; i < len(answer.Rows); i++ {
		above, _ := number(answer.Rows[i-1][1].String())
		below, _ := number(answer.Rows[i][1].String())
		if above.Cmp(below) < 0 {
			t.Errorf("rows are not in the order of the released n: %v", answer.Rows)
		}
	}
	if answer.Spent.Epsilon != "1" || answer.Remaining.Epsilon != "999" {
		t.Errorf("spent %s, remaining %s, want 1 and 999", answer.Spent.Epsilon, answer.Remaining.Epsilon)
	}
	if n := answer.Columns[1]; n.Kind != "aggregate" || n.Mechanism != "discrete_laplace" || n.Sensitivity != "1" || n.Scale != "1" {
		t.Errorf("n is described as %+v", n)
	}
}
