package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

const (
	ErrorFreeTables = `t
  id     integer not null unique
  n2     smallint
  n4     integer
  n8     bigint
  wide   bigint
  small  integer not null
  money  numeric(10,2)
  free   numeric
  f4     real
  f8     double
  speed  double
  word   text
  other  text
  letter text
  grade  integer
  flag   boolean
  day    date
  at     timestamp
  atz    timestamptz
  far    timestamp`
	ErrorFreePolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  t:
    unit: {row: id}
    columns:
      n2:    {bounds: [-100, 10]}
      n4:    {bounds: [-50000, 20]}
      n8:    {bounds: [-4000000000, 9000000000]}
      small: {bounds: [0, 9]}
      money: {bounds: [-1.5, 12], step: 0.01}
      free:  {bounds: [-1, 1]}
      f4:    {bounds: [-0.5, 2.5], step: 0.25}
      f8:    {bounds: [0, 1]}
      day:   {bounds: [2020-01-01, 2024-12-31]}
      at:    {bounds: [2022-01-01, 2022-12-31]}
      atz:   {bounds: [2022-01-01, 2022-12-31]}
      word:  {keys: private}
      other: {keys: private}
      letter: {domain: [a, bb, 'ç d', null]}
      grade: {domain: [1, 2, 10, null]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
	// Rows with a positive id hold values within their bounds, exact ends included. The others hold what a column can hold at worst.
	ErrorFreeDDL = `
CREATE TABLE public.t (id integer PRIMARY KEY, n2 smallint, n4 integer, n8 bigint, wide bigint, small integer NOT NULL, money numeric(10,2),
  free numeric, f4 real, f8 double precision, speed double precision, word text, other text, letter text, grade integer, flag boolean,
  day date, at timestamp, atz timestamptz, far timestamp);
CREATE FUNCTION public.try(expression text) RETURNS TABLE (row_id integer, value text) LANGUAGE plpgsql AS $$
BEGIN
  FOR row_id IN SELECT id FROM public.t WHERE id > 0 ORDER BY id LOOP
    BEGIN
      EXECUTE 'SELECT (' || expression || ')::text FROM public.t WHERE id = ' || row_id INTO value;
    EXCEPTION WHEN OTHERS THEN
      value := 'error ' || sqlstate;
    END;
    RETURN NEXT;
  END LOOP;
END $$;`
)

// columnValues are, by column, values within the bounds and values beyond them.
var columnValues = map[string][2][]string{
	"n2":    {{"NULL", "0", "10", "-100", "7", "-1"}, {"11", "-32768", "32767", "-101"}},
	"n4":    {{"NULL", "0", "20", "-50000", "1", "-7"}, {"-2147483648", "2147483647", "21"}},
	"n8":    {{"NULL", "0", "-4000000000", "9000000000", "123456789"}, {"-9223372036854775808", "9223372036854775807"}},
	"wide":  {{"NULL", "0", "3", "-9223372036854775808", "9223372036854775807", "-1"}, {"4611686018427387904"}},
	"small": {{"0", "9", "1", "5"}, {"-2147483648", "2147483647"}},
	"money": {{"NULL", "0", "-1.5", "12", "0.01", "3.33"}, {"'NaN'", "99999999.99", "-99999999.99"}},
	"free": {{"NULL", "0", "-1", "1", "0.333", "-0.00001"}, {"'NaN'", "'Infinity'", "'-Infinity'", "1e130", "1e-130", "-1e131071",
		"0.00000000000000000000000001"}},
	"f4": {{"NULL", "0", "-0.5", "2.5", "0.25"}, {"'NaN'", "'Infinity'", "'-Infinity'", "1e-45", "3.4e38", "'-0'", "-3.4e38"}},
	"f8": {{"NULL", "0", "1", "0.1", "0.9999999999999999"}, {"'NaN'", "'Infinity'", "'-Infinity'", "5e-324", "1.7e308", "'-0'", "-5e-324",
		"2.3e-308"}},
	"speed":  {{"NULL", "0", "1", "-12.5", "1e10", "3e-20"}, {"'NaN'", "'Infinity'", "'-Infinity'", "5e-324", "1.7e308", "-1.7e308", "'-0'"}},
	"word":   {{"NULL", "''", "'abc'", "'É xx é'", "'x'", "'  b '"}, {"pg_catalog.repeat('ab', 5000)", "pg_catalog.repeat('é', 1000000)"}},
	"other":  {{"NULL", "''", "'b'", "'x'"}, {"pg_catalog.repeat('x', 100000)"}},
	"letter": {{"NULL", "'a'", "'bb'", "'ç d'"}, {"'z'", "pg_catalog.repeat('z', 100000)"}},
	"grade":  {{"NULL", "1", "2", "10"}, {"3", "-2147483648", "2147483647"}},
	"flag":   {{"NULL", "true", "false"}, {"true"}},
	"day": {{"NULL", "'2020-01-01'", "'2024-12-31'", "'2024-02-29'", "'2021-12-31'"},
		{"'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'", "'0001-01-01 BC'"}},
	"at": {{"NULL", "'2022-01-01'", "'2022-12-31'", "'2022-02-28 23:59:59.999999'", "'2022-07-04 12:34:56.5'"},
		{"'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'"}},
	"atz": {{"NULL", "'2022-01-01+00'", "'2022-12-31+00'", "'2022-03-27 01:30:00+00'"},
		{"'infinity'", "'-infinity'", "'4713-01-02 BC'", "'294276-12-31'"}},
	"far": {{"NULL", "'0001-01-01'", "'9999-12-31'", "'1969-12-31 23:00:00.000001'"},
		{"'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'"}},
}

// FillErrorFree inserts n rows of values within bounds and n rows of any.
func FillErrorFree(r *rand.Rand, n int) string {
	var columns, rows []string
	for name := range columnValues {
		columns = append(columns, name)
	}
	for i := -n; i <= n; i++ {
		values := []string{fmt.Sprint(i)}
		for _, name := range columns {
			all := columnValues[name][0]
			if i <= 0 && r.IntN(2) == 0 {
				all = columnValues[name][1]
			}
			values = append(values, all[r.IntN(len(all))])
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	return `INSERT INTO public.t (id, "` + strings.Join(columns, `", "`) + `") VALUES ` + strings.Join(rows, ", ")
}

// ErrorFreeRows are a table of random rows, which a statement may change, and the generator that made them.
func ErrorFreeRows(t *testing.T, seed1, seed2 uint64, rows int, change string) (*pgx.Conn, *catalog.Snapshot, *rand.Rand) {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, ErrorFreeDDL)
	conn := db.Conn(t, db.DSN)
	r := rand.New(rand.NewPCG(seed1, seed2)) // reproducible on purpose
	rewritetest.MustExec(t, conn, FillErrorFree(r, rows)+"; "+change+"SET timezone = 'UTC'; SET jit = off")
	return conn, rewritetest.ParseSnapshot(t, ErrorFreeTables, ErrorFreePolicy), r
}

// OrNull is a value as text.
func OrNull(s *string) string {
	if s == nil {
		return "NULL"
	}
	return *s
}

// CheckDomain holds that the domain of a query's first key has the keys of all rows that the query reads.
func CheckDomain(t *testing.T, conn *pgx.Conn, text string, bound *algebra.BoundQuery) (keys int) {
	t.Helper()
	key := bound.Keys[0]
	p := &sqlprint.StatementPrinter{Printer: sqlprint.NewRowPrinter(), Q: bound}
	query := "SELECT DISTINCT " + p.Key(key.X) + "::text FROM public.t"
	if bound.Where != nil {
		query += " WHERE " + p.Text(bound.Where)
	}
	rows, err := conn.Query(t.Context(), query, p.Args()...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, k := range found {
		want := catalog.Key{Null: k == nil}
		if k != nil {
			want.Text = *k
		}
		if !slices.Contains(key.Domain, want) {
			t.Fatalf("%s: the key %s is not in %v", text, OrNull(k), key.Domain)
		}
	}
	return len(found)
}
