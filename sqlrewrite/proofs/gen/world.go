// Package gen has what the proofs share: databases with their neighbours, random queries over them, planted defects, and what compares
// plans with what PostgreSQL says. It defines the flags of the proofs, so that each of their packages takes all of them.
//
// It knows the rooms of the rewriter, to look into plans. It does not know what a proof asks: each has a package beside this one.
package gen

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// The flags. proofQueries is how many random queries the neighbour, coupling and oracle tests each run: make test
// runs few, make proofs runs enough to check the tests' power, make neighbours 500,000.
var (
	proofQueries     = flag.Int("proof-queries", 40, "random queries of each proof test")
	ListQueries      = flag.Int("list-queries", 160, "random queries whose lists of keys are held against all rows")
	TotalExpressions = flag.Int("total-expressions", 4000, "random expressions over the worst rows")
	Couplings        = flag.Int("coupling-queries", 5000, "random queries through two gateways, at most; each takes as long as five others")
	AllMutants       = flag.Bool("all-mutants", false, "try every mutant, not some")
	ProofSeed        = flag.Uint64("proof-seed", 1, "which random queries and databases the neighbour tests draw")
	CostQueries      = flag.Int("cost-queries", 80,
		"random queries whose work is counted with and without one unit; make proofs asks 2000, make neighbours 100000")
	MeasureCosts = flag.Bool("measure-costs", false, "measure what rows cost, and hold it against the planner's prices; make timing does")
	ProofTime    = flag.Duration("proof-time", 0, "ends the neighbour test early, after this time; 0: never")
)

// Proofs is the number of random queries of a proof test.
func Proofs() int { return *proofQueries }

// The family of tables that the proofs run on. A unit is a number: people.id, events.unit, orders.buyer; items reach theirs through orders;
// of cards nobody has two with one k_num, and a unique key says so. zones and tags are public: zones has one row per key, tags has several.
//
// The catalog inspects the real tables in schema public. Then they move to schema store, and views take their place that leave one unit
// out of every table, so that each neighbour of a database is one setting away and the statements run as they are printed.
const (
	proofColumns = `k_text text, k_num integer NOT NULL, k_bool boolean, level varchar(9), secret text, brand varchar, note text, code character(5),
  mark bpchar,  n2 smallint, n4 integer, n8 bigint, nn integer NOT NULL, money numeric(10,2), free numeric, f4 real, f8 double precision,
  coarse double precision, odd integer, day date, at timestamp, atz timestamptz, until timestamp`
	ProofDDL = `
CREATE TABLE public.people (id integer PRIMARY KEY, ` + proofColumns + `);
CREATE TABLE public.events (event integer PRIMARY KEY, unit integer, ` + proofColumns + `);
CREATE TABLE public.orders (order_id integer PRIMARY KEY, buyer integer, ` + proofColumns + `);
CREATE INDEX ON public.orders (buyer, order_id) INCLUDE (k_text, k_num, k_bool, level, secret, brand, note, code, mark, n2, n4, n8, nn, money, free,
  f4, f8, coarse, odd, day, at, atz, until);
CREATE TABLE public.items (item integer PRIMARY KEY, order_id integer REFERENCES public.orders, ` + proofColumns + `);
CREATE TABLE public.cards (card integer PRIMARY KEY, unit integer, ` + proofColumns + `, UNIQUE (unit, k_num));
CREATE TABLE public.zones (k_num integer PRIMARY KEY, zone text NOT NULL, weight integer NOT NULL, opened date NOT NULL,
  cost numeric(6,2), rate double precision);
CREATE TABLE public.tags (k_num integer NOT NULL, tag text NOT NULL);
INSERT INTO public.zones VALUES (1, 'inner', 10, '2024-01-01', 1.5, 0.5), (2, 'outer', -3, '2024-06-01', -2.25, -0.25),
  (3, 'inner', 7, '2024-02-29', NULL, 7.25), (9, 'far', 0, '2023-01-01', 99.99, NULL);
INSERT INTO public.tags VALUES (1, 'red'), (1, 'blue'), (1, 'green'), (2, 'red'), (4, 'blue');`
	proofMove = `
CREATE SCHEMA store;
ALTER TABLE public.people SET SCHEMA store; ALTER TABLE public.events SET SCHEMA store;
ALTER TABLE public.orders SET SCHEMA store; ALTER TABLE public.items SET SCHEMA store;
ALTER TABLE public.cards SET SCHEMA store;
ALTER TABLE store.items DROP CONSTRAINT items_order_id_fkey; -- known by now, and slow to check
CREATE VIEW public.people AS SELECT * FROM store.people
  WHERE id::text <> pg_catalog.current_setting('test.without');
CREATE VIEW public.events AS SELECT * FROM store.events
  WHERE COALESCE(unit::text, 'null') <> pg_catalog.current_setting('test.without');
CREATE VIEW public.orders AS SELECT * FROM store.orders
  WHERE COALESCE(buyer::text, 'null') <> pg_catalog.current_setting('test.without');
CREATE VIEW public.cards AS SELECT * FROM store.cards
  WHERE COALESCE(unit::text, 'null') <> pg_catalog.current_setting('test.without');
CREATE VIEW public.items AS SELECT i.* FROM store.items i LEFT JOIN store.orders o USING (order_id)
  WHERE COALESCE(o.buyer::text, 'null') <> pg_catalog.current_setting('test.without');`
	proofColumnPolicy = `
      k_text: {domain: [a, b, c, null]}
      k_num:  {domain: [1, 2, 3]}
      level:  {domain: [low, mid, high, null]}
      secret: {keys: private}
      brand:  {keys: private}
      code:   {keys: private}
      mark:   {max_length: 2000}
      n2:     {bounds: [-32768, 10]}
      n4:     {bounds: [-5, 20]}
      n8:     {bounds: [-4000000000, 9000000000]}
      nn:     {bounds: [3, 9]}
      money:  {bounds: [-1.5, 12], step: 0.01}
      free:   {bounds: [-1, 1]}
      f4:     {bounds: [-0.5, 2.5], step: 0.25}
      f8:     {bounds: [0, 1]}
      coarse: {bounds: [-1000, 1000], step: 10}
      odd:    {bounds: [-7, 13], step: 5}
      day:    {bounds: [2024-01-01, 2024-12-31]}
      at:     {bounds: [2024-01-01, 2024-12-31]}
      atz:    {bounds: [2024-01-01, 2024-12-31]}
      until:  {bounds: [2024-01-01, 2025-06-30]}`
	proofPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  people:
    unit: {row: id, of: person}
    row_security: per-row
    columns:` + proofColumnPolicy + `
  events:
    unit: {column: unit, of: person}
    row_security: per-row
    max_rows: %[1]d
    max_groups: %[1]d
    columns:` + proofColumnPolicy + `
  orders:
    unit: {column: buyer, of: person}
    row_security: per-row
    max_rows: %[1]d
    max_groups: %[1]d
    max_values: %[2]d
    columns:` + proofColumnPolicy + `
  items:
    unit: {via: order_id, to: orders}
    row_security: per-row
    max_rows: %[1]d
    max_groups: %[1]d
    columns:` + proofColumnPolicy + `
  cards:
    unit: {column: unit, of: person}
    row_security: per-row
    max_rows: %[1]d
    max_groups: %[1]d
    columns:` + proofColumnPolicy + `
  zones: {public: true}
  tags: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
	// proofGuard hides units by row security instead, from the gateway's reader: the tables stay the ones that the catalog knows, as what runs
	// through the whole gateway demands.
	proofGuard = `
CREATE SCHEMA store;
CREATE VIEW store.owners AS SELECT order_id, buyer FROM public.orders;
GRANT USAGE ON SCHEMA store TO noisegate_reader;
GRANT SELECT ON store.owners TO noisegate_reader;
GRANT EXECUTE ON FUNCTION pg_catalog.set_config TO noisegate_reader; -- for the test's own session
ALTER TABLE public.people ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.items ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.cards ENABLE ROW LEVEL SECURITY;
CREATE POLICY present ON public.people USING (id::text <> pg_catalog.current_setting('test.without'));
CREATE POLICY present ON public.events USING (COALESCE(unit::text, 'null') <> pg_catalog.current_setting('test.without'));
CREATE POLICY present ON public.orders USING (COALESCE(buyer::text, 'null') <> pg_catalog.current_setting('test.without'));
CREATE POLICY present ON public.cards USING (COALESCE(unit::text, 'null') <> pg_catalog.current_setting('test.without'));
CREATE POLICY present ON public.items USING (COALESCE((SELECT o.buyer::text FROM store.owners o WHERE o.order_id = items.order_id), 'null')
  <> pg_catalog.current_setting('test.without'));`
)

// Wild are the values that a column can hold beyond the ordinary: NULL, NaN, infinities, extremes, both ends of the bounds.
var Wild = map[string][]string{
	"k_text": {"NULL", "'a'", "'b'", "'c'", "'z'", "''", "'A'"},
	"k_num":  {"1", "2", "3", "4", "-2147483648"},
	"k_bool": {"NULL", "true", "false"},
	"level":  {"NULL", "'low'", "'mid'", "'high'", "'Low'", "''", "'low '", "'sonnenhut'"},
	"secret": {"NULL", "'x'", "'y'", "'é'", "'e'", "''"},
	"brand":  {"NULL", "'x'", "'x '", "'é'", "''", "repeat('b', 3000)"},
	"note":   {"NULL", "''", "'12'", "'abc'", "' pad '", "'%_\\'", "'ß'", "repeat('w', 5000)"},
	"code":   {"NULL", "'x'", "'x  '", "'abcde'", "''"},
	"mark":   {"NULL", "'x'", "'x '", "'x  '", "'ab'", "'ab '", "' '", "''", "repeat('m', 1500)", "repeat('m', 5000)"},
	"n2":     {"NULL", "0", "10", "11", "-32768", "32767"},
	"n4":     {"NULL", "0", "-5", "20", "-2147483648", "2147483647"},
	"n8":     {"NULL", "7", "-9223372036854775808", "9223372036854775807", "9000000000"},
	"nn":     {"0", "3", "9", "2147483647", "-2147483648"},
	"money":  {"NULL", "0.1", "-1.5", "12", "'NaN'", "99999999.99", "0.01"},
	"free": {"NULL", "0.333333333333333333333", "'NaN'", "'Infinity'", "'-Infinity'", "1e-130", "1e130", "1e131000", "1e-16380", "-1",
		"1.000", "1"},
	"f4":     {"NULL", "0.1", "'NaN'", "'Infinity'", "'-Infinity'", "1e-45", "3.4e38", "-0.5", "2.5", "'-0'"},
	"f8":     {"NULL", "0.1", "'NaN'", "'Infinity'", "'-Infinity'", "5e-324", "1.7e308", "0", "1", "0.9999999999999999"},
	"coarse": {"NULL", "4.9", "5", "-5", "'NaN'", "'Infinity'", "'-Infinity'", "1e300", "-1e300", "-1000", "1000", "995"},
	"odd":    {"NULL", "0", "2", "3", "-7", "13", "-2147483648", "2147483647"},
	"day":    {"NULL", "'2024-01-01'", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'", "'2024-02-29'"},
	"at":     {"NULL", "'2024-03-10 02:30'", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31 23:59:59.999999'", "'2024-12-31'"},
	"atz":    {"NULL", "'2024-03-10 02:30+00'", "'infinity'", "'-infinity'", "'294276-12-31 23:59:59+00'", "'2024-10-27 01:30:00.5+02'"},
	"until":  {"NULL", "'2024-03-12 01:00'", "'infinity'", "'-infinity'", "'2025-06-30'"},
}

// Calm are values within all bounds and on all grids: with them no bound binds, and an answer without noise is PostgreSQL's own.
var Calm = map[string][]string{
	"k_text": {"NULL", "'a'", "'b'", "'c'"},
	"k_num":  {"1", "2", "3"},
	"k_bool": {"NULL", "true", "false"},
	"level":  {"NULL", "'low'", "'mid'", "'high'"},
	"secret": {"NULL", "'x'", "'y'", "'é'"},
	"brand":  {"NULL", "'x'", "'y '", "'é'"},
	"note":   {"NULL", "''", "'12'", "'abc'", "' pad '"},
	"code":   {"NULL", "'abcde'", "'fghij'"}, // of full length: PostgreSQL's LIKE sees the blanks of others
	"mark":   {"NULL", "''", "'x'", "'ab'"},
	"n2":     {"NULL", "0", "10", "-7", "3"},
	"n4":     {"NULL", "0", "-5", "20", "7"},
	"n8":     {"NULL", "7", "-4000000000", "9000000000"},
	"nn":     {"3", "9", "4"},
	"money":  {"NULL", "0.1", "-1.5", "12", "0.01"},
	"free":   {"NULL", "0.25", "-1", "1", "-0.5"},
	"f4":     {"NULL", "0.25", "-0.5", "2.5", "0"},
	"f8":     {"NULL", "0.125", "0", "1", "0.5"},
	"coarse": {"NULL", "0", "-1000", "1000", "990"},
	"odd":    {"NULL", "-5", "10", "0"},
	"day":    {"NULL", "'2024-01-01'", "'2024-12-31'", "'2024-02-29'"},
	"at":     {"NULL", "'2024-03-10 02:30'", "'2024-12-30 23:59:59.5'"},
	"atz":    {"NULL", "'2024-03-10 02:30+00'", "'2024-10-27 01:30:00.5+02'"},
	"until":  {"NULL", "'2024-03-12 01:00'", "'2025-06-29'"},
}

// Units of a test database; beside them there are rows without a unit.
const Units = 12

// World is a database of the family with the snapshot of its policy.
type World struct {
	Schema   string    // of the tables that fill writes
	Owner    *pgx.Conn // for fill
	Conn     *pgx.Conn
	Plain    *pgx.Conn // for the analyst's own text
	Snapshot *catalog.Snapshot
	Rand     *rand.Rand
	Values   map[string][]string
	fills    int
	copies   []*proofCopy // empty: the tables themselves are asked
	Lists    *Lists
	Twin     *pgx.Conn // of a second database, which is filled as this one; nil: there is none
}

// NewWorld makes a database; bound is max_rows and max_groups of its tables.
func NewWorld(t *testing.T, seed uint64, values map[string][]string, bound int) *World {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, ProofDDL)
	snapshot := familySnapshot(t, db, bound)
	db.Exec(t, proofMove)
	w := &World{Schema: "store", Conn: db.Conn(t, db.DSN), Plain: db.Conn(t, db.DSN), Snapshot: snapshot, Values: values,
		Rand: rand.New(rand.NewPCG(seed, 2))} // reproducible on purpose
	w.Owner = w.Conn
	w.Prepare(t)
	return w
}

// NewGuardedWorld makes a database as an operator would, with [Wild] values, and gives the DSN of its reader.
func NewGuardedWorld(t *testing.T, seed uint64) (*World, string) {
	t.Helper()
	db := pgtest.Protected(t, ProofDDL)
	snapshot := familySnapshot(t, db.Database, 4)
	db.Exec(t, proofGuard)
	w := &World{Schema: "public", Owner: db.Conn(t, db.DSN), Conn: db.Conn(t, db.ReaderDSN), Snapshot: snapshot, Values: Wild,
		Rand: rand.New(rand.NewPCG(seed, 2))} // reproducible on purpose
	w.Plain = w.Conn
	w.Prepare(t)
	return w, db.ReaderDSN
}

func familySnapshot(t *testing.T, db *pgtest.Database, bound int) *catalog.Snapshot {
	t.Helper()
	return SnapshotOf(t, db, fmt.Sprintf(proofPolicy, bound, (bound+1)/2))
}

// SnapshotOf checks a policy against a database.
func SnapshotOf(t *testing.T, db *pgtest.Database, text string) *catalog.Snapshot {
	t.Helper()
	policy, errs := catalog.Parse(text)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	schema, err := catalog.Inspect(t.Context(), db.Pool(t), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, errs := catalog.Check(policy, schema)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return snapshot
}

// Seen is the snapshot, half of the times with public tables that count as large: joins with them are printed so that both sides are read.
func (w *World) Seen() *catalog.Snapshot {
	if w.Rand.IntN(2) == 0 {
		return w.Snapshot
	}
	large := *w.Snapshot
	large.Tables = slices.Clone(large.Tables)
	for i, t := range large.Tables {
		if t.Public {
			many := *t
			many.MostRows = stability.MaxUnitWork/stability.ScanRow + 1
			large.Tables[i] = &many
		}
	}
	return &large
}

// Prepare makes the sessions as the gateway makes its own, but that a statement is planned once for all neighbours; small plans need no
// compiler and no second process.
func (w *World) Prepare(t *testing.T) {
	t.Helper()
	for _, conn := range slices.Compact([]*pgx.Conn{w.Conn, w.Plain}) {
		rewritetest.MustExec(t, conn, `SET jit = off; SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC';
			SET test.without = 'nobody'; PREPARE leave (text) AS SELECT pg_catalog.set_config('test.without', $1, false)`)
	}
	rewritetest.MustExec(t, w.Conn, "SET search_path = ''")
	w.Lists = NewLists(w.Conn)
}

// Fill makes a new database: sparse ones with 0 to 2 rows a unit, dense ones where some units have many.
func (w *World) Fill(t *testing.T, dense bool) {
	t.Helper()
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range w.Values {
			if !yield(name) {
				return
			}
		}
	})
	value := func(name string) string { return w.Values[name][w.Rand.IntN(len(w.Values[name]))] }
	row := func(ids ...string) string {
		for _, name := range names {
			ids = append(ids, value(name))
		}
		return "(" + strings.Join(ids, ", ") + ")"
	}
	count := func() int {
		if dense && w.Rand.IntN(4) == 0 {
			return 15 + w.Rand.IntN(21)
		}
		return w.Rand.IntN(3)
	}
	var people, events, orders, items, cards []string
	for u := range Units + 1 {
		unit := fmt.Sprint(u)
		if u == Units {
			unit = "NULL"
		} else {
			people = append(people, row(unit))
		}
		for range count() {
			events = append(events, row(fmt.Sprint(len(events)), unit))
		}
		for range count() {
			orders = append(orders, row(fmt.Sprint(len(orders)), unit))
		}
		for range count() {
			cards = append(cards, row(fmt.Sprint(len(cards)), unit))
		}
	}
	for range len(orders) * 3 / 2 {
		order := "NULL"
		if w.Rand.IntN(10) > 0 {
			order = fmt.Sprint(w.Rand.IntN(len(orders)))
		}
		items = append(items, row(fmt.Sprint(len(items)), order))
	}
	// TRUNCATE makes new files, which takes longer than some queries: only now and then.
	sql := "DELETE FROM store.items; DELETE FROM store.orders; DELETE FROM store.events; DELETE FROM store.people; DELETE FROM store.cards;"
	if w.fills++; w.fills%16 == 0 {
		sql = "TRUNCATE store.people, store.events, store.orders, store.items, store.cards;"
	}
	insert := func(table, ids string, rows []string) {
		if len(rows) > 0 {
			sql += "INSERT INTO store." + table + " (" + ids + ", " + strings.Join(names, ", ") + ") VALUES " + strings.Join(rows, ", ") +
				" ON CONFLICT DO NOTHING;"
		}
	}
	insert("people", "id", people)
	insert("events", "event, unit", events)
	insert("orders", "order_id, buyer", orders)
	insert("items", "item, order_id", items)
	insert("cards", "card, unit", cards)
	sql = strings.ReplaceAll(sql, " store.", " "+w.Schema+".")
	if rewritetest.MustExec(t, w.Owner, sql); w.Twin != nil {
		rewritetest.MustExec(t, w.Twin, sql)
	}
}

// Neighbourhood is whom each neighbour of a database lacks; the first lacks nobody.
func Neighbourhood() []string {
	all := []string{"nobody", "null"} // A17: all rows without a unit are one more
	for u := range Units {
		all = append(all, fmt.Sprint(u))
	}
	return all
}

// ExactTable are the sealed integers of a statement in the open, as only a test may see them, by key tuple.
type ExactTable map[string][]*big.Int

// ErrNotSQL is a statement that PostgreSQL does not take, whatever the data.
var ErrNotSQL = errors.New("not a statement")

// RunOnAll runs a statement on the database and on its neighbours, in one round trip: the machine's time goes to the statements and not to
// waiting for them. PostgreSQL plans it once (see newWorld).
func RunOnAll(ctx context.Context, conn *pgx.Conn, s sqlprint.Statement, without []string) (_ []ExactTable, err error) {
	const leave, statement = "leave", ""
	pipe := conn.PgConn().StartPipeline(ctx)
	defer func() { err = errors.Join(err, pipe.Close()) }()
	pipe.SendPrepare(statement, s.SQL, nil)
	for i, unit := range without {
		pipe.SendQueryPrepared(leave, [][]byte{[]byte(unit)}, nil, nil)
		var args [][]byte
		for _, arg := range WithEnds(s, i, 5-i, 3*i) {
			args = append(args, argumentText(arg))
		}
		pipe.SendQueryPrepared(statement, args, nil, nil)
	}
	if err := pipe.Sync(); err != nil {
		return nil, err
	}
	if _, err := pipe.GetResults(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSQL, err)
	}
	tables := make([]ExactTable, len(without))
	for i, unit := range without {
		if _, err := pipe.GetResults(); err != nil {
			return nil, err
		}
		if tables[i], err = nextExact(pipe, s); err != nil {
			return nil, fmt.Errorf("A29: without unit %s: %w", unit, err)
		}
	}
	return tables, nil
}

// argumentText is a statement's argument as PostgreSQL reads it.
func argumentText(arg any) []byte {
	switch arg := arg.(type) {
	case nil:
		return nil
	case string:
		return []byte(arg)
	case []string:
		quoted := make([]string, len(arg))
		for i, text := range arg {
			quoted[i] = `"` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`) + `"`
		}
		return []byte("{" + strings.Join(quoted, ",") + "}")
	default:
		return fmt.Append(nil, arg)
	}
}

// WithEnds are a statement's arguments with these ends of its ranges. They come from statistics of the data, so that neighbours have
// others.
func WithEnds(s sqlprint.Statement, ends ...int) []any {
	args := slices.Clone(s.Args)
	if s.Ranges != nil {
		for i, arg := range s.Ranges.Args {
			args[arg-1] = int64(ends[i])
		}
	}
	return args
}

// nextExact reads the rows of the pipeline's next statement.
func nextExact(pipe *pgconn.Pipeline, s sqlprint.Statement) (ExactTable, error) {
	results, err := pipe.GetResults()
	if err != nil {
		return nil, err
	}
	rows, ok := results.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("%T in place of rows", results)
	}
	out := make(ExactTable)
	for rows.NextRow() {
		if err := out.add(rows.Values(), s); err != nil {
			return nil, err
		}
	}
	_, err = rows.Close()
	return out, err
}

// add takes one row of a statement.
func (rows ExactTable) add(raw [][]byte, s sqlprint.Statement) error {
	if len(raw) != s.Keys+s.Values {
		return fmt.Errorf("%d columns", len(raw))
	}
	keys := make([]catalog.Key, s.Keys)
	for i, k := range raw[:s.Keys] {
		keys[i] = catalog.Key{Text: string(k), Null: k == nil}
	}
	id := scalar.KeyIdentity(keys)
	if _, twice := rows[id]; twice {
		return fmt.Errorf("group %v twice", keys)
	}
	rows[id] = nil
	for _, v := range raw[s.Keys:] {
		n, ok := new(big.Int).SetString(string(v), 10)
		if !ok {
			return fmt.Errorf("%q is not an integer", v)
		}
		rows[id] = append(rows[id], n)
	}
	return nil
}

// At is a group's value; a missing group is zero.
func (rows ExactTable) At(id string, i int) *big.Int {
	if row, ok := rows[id]; ok {
		return row[i]
	}
	return new(big.Int)
}
