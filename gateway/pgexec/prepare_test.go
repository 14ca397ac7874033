package pgexec_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

const preparedDDL = `CREATE TABLE visits (id bigint PRIMARY KEY, person int, ward int, minutes int, fee numeric, weight float8, kind text,
	seen timestamptz, note text);
CREATE TABLE wards (ward int PRIMARY KEY, floor int NOT NULL);
INSERT INTO wards SELECT g, g % 2 FROM generate_series(1, 5) g;
CREATE TABLE tags (ward int NOT NULL, tag int NOT NULL);
INSERT INTO tags SELECT g, g FROM generate_series(1, 6) g;
GRANT USAGE ON SCHEMA public TO noisegate_prepare; GRANT SELECT ON visits TO noisegate_prepare`

const preparedPolicy = `version: 1
dataset: d
tables:
  visits:
    unit: {column: person}
    max_rows: 4
    max_groups: 4
    prepare: {max_rows: 4}
    columns:
      ward: {domain: [1, 2, 3, 4, 5, 6]}
      minutes: {bounds: [-10, 50]}
      fee: {bounds: [0, 9], step: 0.5}
      weight: {bounds: [0, 4], step: 0.25}
      kind: {domain: [a, b], max_length: 3}
      note: {keys: private}
  wards: {public: true}
  tags: {public: true, columns: {tag: {bounds: [0, 9]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// The units of which a table of visits has the most that a copy keeps: in one group, each in another, and in two.
const inOne, inMany, inTwo = 13, 14, 15

// fillVisits gives people many visits, or few, or one, nobody some, and the values that computations find hardest.
func fillVisits(t *testing.T, p *pgtest.ProtectedDatabase, r *rand.Rand) {
	t.Helper()
	var rows []string
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	for person, id := 0, 0; person <= 12; person++ {
		who := fmt.Sprint(person)
		if person == 0 {
			who = "NULL"
		}
		for range []int{1, 3, 4, 5, 40}[person%5] {
			id++
			rows = append(rows, fmt.Sprintf("(%d, %s, %s, %s, %s, %s, %s, %s, %s)", id, who, pick("1", "1", "2", "3", "7", "NULL"),
				pick("50", "50", "2147483647", "-2147483648", "-10", "NULL", "3"), pick("'NaN'", "9", "9", "1e100", "-7", "0.25"),
				pick("'NaN'", "'Infinity'", "4", "4", "-0.0"), pick("'a'", "'a'", "'b'", "'longer'", "NULL"), pick("now()", "'infinity'", "NULL"),
				pick("'x'", "'y'", "NULL")))
		}
	}
	for i := range 4 { // who moves integers by as much as one may: in one group, in as many as there are rows, and in two with two rows
		rows = append(rows, fmt.Sprintf("(%d, %d, 1, 50, 9, 4, 'a', now(), 'x')", 1000+i, inOne),
			fmt.Sprintf("(%d, %d, %d, %d, %[4]d.5, 0.25, 'a', now(), 'only %[3]d')", 2000+i, inMany, 1+i, 40+i),
			fmt.Sprintf("(%d, %d, %d, 50, 9, 4, '%c', now(), 'x')", 3000+i, inTwo, 1+2*(i/2), 'a'+i/2))
	}
	p.Exec(t, "TRUNCATE visits", "INSERT INTO visits VALUES "+strings.Join(rows, ", "))
}

func prepareConfig(p *pgtest.ProtectedDatabase, seed int64) pgexec.PrepareConfig {
	return pgexec.PrepareConfig{DSN: p.As("noisegate_prepare"), Reader: "noisegate_reader", Seed: func() int64 { return seed }}
}

// prepared makes a version of the copy of visits, and gives the snapshot that it serves in.
func prepared(t *testing.T, p *pgtest.ProtectedDatabase, d *pgexec.Database, on *catalog.Snapshot, seed int64) *catalog.Snapshot {
	t.Helper()
	table, _ := on.Table("", "visits")
	made, err := prepareConfig(p, seed).Prepare(t.Context(), on, table, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := d.Versions(t.Context(), "d")
	if err != nil || len(versions) == 0 || versions[0].Number != made.Number || versions[0].Digest != made.Digest {
		t.Fatalf("versions %+v, %v; made %+v", versions, err, made)
	}
	serving := sqlrewrite.Serving(on, versions[0])
	if serving == nil {
		t.Fatal("a version that was just made does not serve")
	}
	return serving
}

// preparedQueries are questions that copies answer.
var preparedQueries = []string{
	"SELECT count(*) FROM visits",
	"SELECT count(minutes), sum(minutes), avg(minutes) FROM visits",
	"SELECT sum(minutes) FROM visits WHERE minutes > 20",
	"SELECT ward, count(*) FROM visits GROUP BY ward",
	"SELECT ward, sum(minutes), sum(fee), avg(weight) FROM visits GROUP BY ward",
	"SELECT kind, ward, count(*), var_pop(minutes) FROM visits WHERE seen > '2000-01-01' GROUP BY kind, ward",
	"SELECT sum(fee), sum(weight), count(*) FILTER (WHERE kind = 'a') FROM visits",
	"SELECT count(DISTINCT person) FROM visits",
	"SELECT w.floor, sum(v.minutes) FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.floor",
	"SELECT count(*) FROM visits v JOIN wards w ON w.ward = v.ward WHERE w.floor = 1",
	"SELECT count(*), sum(minutes), count(DISTINCT person) FROM visits v JOIN tags t ON t.ward = v.ward",
	"SELECT count(*) FROM visits v LEFT JOIN tags t ON t.ward = v.ward",
	"SELECT count(DISTINCT person), count(*) FROM visits WHERE minutes > 0",
	"SELECT ward, count(DISTINCT person), count(DISTINCT person) FILTER (WHERE minutes > 9) FROM visits GROUP BY ward",
	"SELECT count(DISTINCT minutes) FROM visits",
	"SELECT ward, count(DISTINCT fee) FILTER (WHERE kind = 'a'), count(*) FROM visits GROUP BY ward",
	"SELECT median(minutes), mode() WITHIN GROUP (ORDER BY kind), max(weight) FROM visits",
	"SELECT ward, percentile_cont(0.9) WITHIN GROUP (ORDER BY minutes) FROM visits WHERE seen > '2000-01-01' GROUP BY ward",
	"SELECT ward, mode() WITHIN GROUP (ORDER BY kind) FROM visits GROUP BY ward",
	"SELECT note, count(*), sum(minutes) FROM visits GROUP BY note",
	"SELECT note, ward, count(DISTINCT person), median(minutes) FROM visits GROUP BY note, ward",
	"SELECT note FROM visits GROUP BY note",
	"SELECT w.floor, median(v.minutes) FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.floor",
	"SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 2",
	"SELECT ward FROM visits GROUP BY ward ORDER BY sum(minutes) DESC LIMIT 2",
}

// countedUnits is all that a statement over a copy does with the numbers of units: it counts them, and hands them on to where it does.
var countedUnits = regexp.MustCompile(`count\(DISTINCT (pg_catalog\.int8xor\()?("?t\d+"?\.)?"person"(::bigint, |\))|FROM \(SELECT "person",`)

// planned is the plan of a question over the copy of a snapshot.
func planned(t *testing.T, on *catalog.Snapshot, sql string, total int64) *sqlrewrite.Plan {
	t.Helper()
	plan, err := sqlrewrite.Rewrite(t.Context(), sql, on, sqlrewrite.Options{Epsilon: mechanisms.EpsilonUnit,
		Delta: mechanisms.DeltaUnit / 1_000_000, Currency: catalog.Approx,
		Mechanism: sqlrewrite.MechanismLaplace, Confidence: 0.95, MaxTotal: total})
	if err != nil {
		t.Fatalf("%s: %v (%v)", sql, err, errors.Unwrap(err))
	}
	for _, s := range statementsOf(t, plan) {
		text := strings.ReplaceAll(s.SQL, `PARTITION BY "t2"."ward" ORDER BY "t2"."ward") AS place FROM ONLY "public"."tags"`, "")
		if !strings.Contains(text, `FROM ONLY "noisegate_prepared"."`) || strings.Contains(text, "PARTITION") || strings.Contains(countedUnits.ReplaceAllString(text, ""), "person") {
			t.Fatalf("no flat statement over the copy: %s", text)
		}
	}
	return plan
}

// distributed prints a plan's statements for where they run.
func distributed(t *testing.T, d *pgexec.Database, plan *sqlrewrite.Plan) *sqlrewrite.Plan {
	t.Helper()
	if d.Distributed() {
		if err := plan.Distribute(); err != nil {
			t.Fatal(err)
		}
	}
	return plan
}

// statementsOf are the statements of a plan.
func statementsOf(t *testing.T, plan *sqlrewrite.Plan) []sqlrewrite.Statement {
	t.Helper()
	return plan.Statements(plan.Draw(mechanisms.NewSamplerFrom(randomtest.Source(t.Name()))))
}

// Kinds of verify.Histogram, which these tests do not know.
const plain, together = 0, 1

// integers are the sealed integers of a question's statements, by statement and group, as PostgreSQL gives them.
func integers(t *testing.T, pool *pgxpool.Pool, plan *sqlrewrite.Plan) map[string][]*big.Int {
	t.Helper()
	all := map[string][]*big.Int{}
	for part, s := range statementsOf(t, plan) {
		rows, err := pool.Query(t.Context(), s.SQL, s.Args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				t.Fatal(err)
			}
			group, keys := fmt.Sprint(part, values[:s.Keys]), s.Keys
			if s.Claim.Histogram != plain {
				group += " candidate " + fmt.Sprint(values[keys])
				keys++
			}
			for _, v := range values[keys:] {
				n, _ := new(big.Int).SetString(fmt.Sprint(v), 10)
				all[group] = append(all[group], n)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%v in %s", err, s.SQL)
		}
	}
	return all
}

// withRanks has [preparedPolicy] number groups.
func withRanks() *strings.Replacer {
	return strings.NewReplacer("prepare: {max_rows: 4}", "prepare: {max_rows: 4, ranks: [[ward], [kind], [note, ward]]}",
		"max_rows: 4\n    max_groups: 4", "max_rows: 2\n    max_groups: 2")
}

// Whoever is taken out of the source, copies of both that are made with one seed move no integer by more than the claims of statements over
// them; and of each claim somebody moves one by as much.
//
// needs: postgres
func TestPreparedNeighbours(t *testing.T) {
	for name, change := range map[string]*strings.Replacer{
		"in all": strings.NewReplacer(),
		"ranks":  withRanks(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := randomtest.Part(1, 3)
			if testing.Short() {
				rounds = 1
			}
			neighbours(t, pgtest.Protected(t, preparedDDL), change.Replace(preparedPolicy), rounds)
		})
	}
}

func neighbours(t *testing.T, p *pgtest.ProtectedDatabase, policy string, rounds int) {
	t.Helper()
	d := open(t, p, nil)
	r := rand.New(rand.NewPCG(16, 1))
	fillVisits(t, p, r)
	const tags = "INSERT INTO tags SELECT g, g FROM generate_series(1, 6) g"
	p.Exec(t, "TRUNCATE tags", tags)
	on := provenSnapshot(t, d, policy)
	p.Exec(t, tags, tags) // 3 of each ward, where 2 are approved
	reached, pool := map[string]bool{}, p.Pool(t)
	for round := range rounds {
		fillVisits(t, p, r)
		total := int64(4 - round%3)
		all := prepared(t, p, d, on, int64(round))
		whole := map[string]map[string][]*big.Int{}
		for _, sql := range preparedQueries {
			whole[sql] = integers(t, pool, distributed(t, d, planned(t, all, sql, total)))
		}
		for _, person := range []int{1, 4, 2 + round, inOne, inMany, inTwo} {
			p.Exec(t, "CREATE TABLE kept AS SELECT * FROM visits", fmt.Sprintf("DELETE FROM visits WHERE person = %d", person))
			without := prepared(t, p, d, on, int64(round))
			for _, sql := range preparedQueries {
				plan := distributed(t, d, planned(t, without, sql, total))
				for what, all := range moved(t, sql, plan, whole[sql], integers(t, pool, plan)) {
					reached[what] = reached[what] || all
				}
			}
			p.Exec(t, "TRUNCATE visits", "INSERT INTO visits SELECT * FROM kept", "DROP TABLE kept")
		}
	}
	for what, all := range reached {
		if !all {
			t.Errorf("no unit moved an integer by all of its claim, %s: the test has no power", what)
		}
	}
}

// moved compares two databases with the claim of a plan's statements, and says which bounds were reached.
func moved(t *testing.T, sql string, plan *sqlrewrite.Plan, a, b map[string][]*big.Int) map[string]bool {
	t.Helper()
	reached := map[string]bool{}
	hold := func(what string, have, claimed *big.Int) {
		if have.Cmp(claimed) > 0 {
			t.Errorf("%s: %s moved by %s, claim %s", sql, what, have, claimed)
		}
		what += " of " + sql
		reached[what] = reached[what] || have.Cmp(claimed) == 0
	}
	for part, s := range statementsOf(t, plan) {
		groups, candidates := map[string]bool{}, map[string]*big.Int{}
		for column := range s.Claim.PerGroup {
			l1, l2 := new(big.Int), new(big.Int)
			for group := range merged(a, b) {
				if !strings.HasPrefix(group, fmt.Sprint(part)) {
					continue
				}
				move := new(big.Int).Sub(at(a, group, column), at(b, group, column))
				group, _, chosen := strings.Cut(group, " candidate ")
				if move.Abs(move).Sign() > 0 {
					groups[group] = true
				}
				if chosen && s.Claim.Histogram == together { // all candidates of a group add up
					if candidates[group] == nil {
						candidates[group] = new(big.Int)
					}
					move = candidates[group].Add(candidates[group], move)
				}
				hold("Linf", move, s.Claim.PerGroup[column])
				l1.Add(l1, move)
				l2.Add(l2, new(big.Int).Mul(move, move))
			}
			for _, n := range s.Claim.Norms {
				if len(n.Columns) == 1 && n.Columns[0] == column {
					hold("L1", l1, n.L1)
					hold("L2", l2, n.L2Squared)
				}
			}
		}
		hold("L0", big.NewInt(int64(len(groups))), s.Claim.Groups)
	}
	return reached
}

func merged(a, b map[string][]*big.Int) map[string]bool {
	all := map[string]bool{}
	for _, of := range []map[string][]*big.Int{a, b} {
		for group := range of {
			all[group] = true
		}
	}
	return all
}

func at(of map[string][]*big.Int, group string, column int) *big.Int {
	if values := of[group]; column < len(values) {
		return values[column]
	}
	return new(big.Int)
}

// A copy holds as many rows of a unit as it may, those of nobody not at all, and of no unit more; which ones is decided by the seed.
func TestPreparedRows(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 2)))
	on := provenSnapshot(t, d, preparedPolicy)
	copies := map[string]bool{}
	for seed := range 4 {
		serving := prepared(t, p, d, on, int64(seed))
		var name, rows string
		table, _ := serving.Named("", "visits")
		name = table.Schema + "." + table.Name
		var kept, most int
		if err := p.Pool(t).QueryRow(t.Context(), "SELECT sum(n), max(n) FROM (SELECT count(*) AS n FROM "+name+" GROUP BY person) x").
			Scan(&kept, &most); err != nil {
			t.Fatal(err)
		}
		var want int
		if err := p.Pool(t).QueryRow(t.Context(), `SELECT sum(least(n, 4)) FROM (SELECT count(*) AS n FROM visits
			WHERE person IS NOT NULL GROUP BY person) x`).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if kept != want || most != 4 {
			t.Errorf("%d rows, at most %d of a unit; want %d and 4", kept, most, want)
		}
		var vacuumed bool
		if err := p.Pool(t).QueryRow(t.Context(), "SELECT relpages > 0 AND relallvisible = relpages FROM pg_class WHERE oid = $1::regclass",
			name).Scan(&vacuumed); err != nil || !vacuumed {
			t.Errorf("a scan of the index alone would look at rows: %v", err)
		}
		if err := p.Pool(t).QueryRow(t.Context(), "SELECT string_agg(concat_ws(' ', ward, minutes, fee, weight, kind), ',' ORDER BY 1) FROM "+
			"(SELECT ward, minutes, fee, weight, kind FROM "+name+" ORDER BY 1, 2, 3, 4, 5) x").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		copies[rows] = true
	}
	if len(copies) < 2 {
		t.Error("four seeds keep the same rows")
	}
	if tables := copiesOf(t, p); len(tables) != 2 {
		t.Errorf("the newest version and the one before are to stay, not %v", tables)
	}
}

// Which rows a heavy unit keeps is uniform: by what they hold, by when they came, and in each unit anew. The bounds are seven standard
// deviations of a binomial law, which is wider than the true one; the seed is fixed.
func TestKeptRowsAreUniform(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	const units, rows, kept = 400, 40, 4
	p.Exec(t, fmt.Sprintf(`INSERT INTO visits (id, person, minutes, ward) SELECT u * %[2]d + r, u, r, CASE WHEN r %% 10 < 5 THEN 1
		WHEN r %% 10 < 8 THEN 2 ELSE 3 END FROM generate_series(1, %[1]d) u, generate_series(0, %[2]d - 1) r`, units, rows))
	serving := prepared(t, p, d, provenSnapshot(t, d, preparedPolicy), 5)
	table, _ := serving.Named("", "visits")
	shares := map[string]float64{"ward = 1": 0.5, "ward = 2": 0.3, "ward = 3": 0.2, "minutes < 20": 0.5}
	for r := range rows { // each place among a unit's rows
		shares[fmt.Sprintf("minutes = %d", r)] = 1. / rows
	}
	for which, share := range shares {
		var n float64
		if err := p.Pool(t).QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE "+which+")::float8 FROM "+table.Schema+"."+table.Name).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		mean := share * units * kept
		if within := 7 * math.Sqrt(mean*(1-share)); math.Abs(n-mean) > within {
			t.Errorf("%s: %v rows are kept, want %v within %v", which, n, mean, within)
		}
	}
}

// Who was erased from the source is in no copy and has no number once two more versions are made; the numbers of others stay.
func TestErasedUnits(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 7)))
	on := provenSnapshot(t, d, preparedPolicy)
	prepared(t, p, d, on, 1)
	table, _ := on.Table("", "visits")
	name, _ := on.UnitsOf(table)
	numbers := func() (all string) {
		t.Helper()
		text := "SELECT string_agg(id || '=' || unit, ' ' ORDER BY id) FROM noisegate_prepared." + name
		if err := p.Conn(t, p.DSN).QueryRow(t.Context(), text).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all + " "
	}
	before := numbers()
	p.Exec(t, "DELETE FROM visits WHERE person = 4")
	prepared(t, p, d, on, 2)
	if now := numbers(); now != before {
		t.Errorf("numbers %s, while a version has them; they were %s", now, before)
	}
	prepared(t, p, d, on, 3)
	_, rest, found := strings.Cut(before, "4=")
	_, rest, _ = strings.Cut(rest, " ")
	first, _, _ := strings.Cut(before, "4=")
	if now := numbers(); !found || now != first+rest {
		t.Errorf("numbers %s, want %s", now, first+rest)
	}
}

// Where all copies are dropped, no id of a person is left: also of a table that has left the policy, where a run was killed before it
// forgot the ids, and where the list is one of an earlier Noisegate.
func TestNoIDIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*testing.T, *pgtest.ProtectedDatabase) // what happened to the copies
		tables []catalog.TableName
	}{
		"dropped": {tables: []catalog.TableName{{Schema: "public", Name: "visits"}}},
		"killed":  {before: func(t *testing.T, p *pgtest.ProtectedDatabase) { dropCopies(t, p) }},
		"earlier list": {before: func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.Exec(t, "ALTER TABLE noisegate_prepared.versions DROP COLUMN units")
		}, tables: []catalog.TableName{{Schema: "public", Name: "visits"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, preparedDDL)
			d := open(t, p, nil)
			fillVisits(t, p, rand.New(rand.NewPCG(16, 9)))
			on := provenSnapshot(t, d, preparedPolicy)
			prepared(t, p, d, on, 1)
			table, _ := on.Table("", "visits")
			units, _ := on.UnitsOf(table)
			left := func() (n int) {
				if err := p.Conn(t, p.DSN).QueryRow(t.Context(), "SELECT count(*) FROM noisegate_prepared."+units).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			if left() == 0 {
				t.Fatal("no unit has a number")
			}
			if c.before != nil {
				c.before(t, p)
			}
			// The policy is asked for nothing but the name of the dataset.
			if err := prepareConfig(p, 2).Drop(t.Context(), on.Dataset, c.tables...); err != nil || left() != 0 || len(copiesOf(t, p)) != 0 {
				t.Errorf("%d ids and %v are left, %v", left(), copiesOf(t, p), err)
			}
			prepared(t, p, d, on, 1) // and a run begins anew
		})
	}
}

// dropCopies is a run that was killed between dropping copies and forgetting units.
func dropCopies(t *testing.T, p *pgtest.ProtectedDatabase) {
	t.Helper()
	for _, name := range copiesOf(t, p) {
		p.Exec(t, "DROP TABLE noisegate_prepared."+name)
	}
	p.Exec(t, "DELETE FROM noisegate_prepared.versions")
}

// A version that somebody reads stays, is said to, and goes with the next run; the newest serves.
func TestVersionsInUse(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this waits for a lock")
	}
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 8)))
	on := provenSnapshot(t, d, preparedPolicy)
	table, _ := on.Table("", "visits")
	serving := prepared(t, p, d, on, 1)
	prepared(t, p, d, on, 2)
	first, _ := serving.Named("", "visits")
	release := locked(t, p, first.Schema+"."+first.Name+" IN ACCESS SHARE MODE")
	made, err := prepareConfig(p, 3).Prepare(t.Context(), on, table, false, nil)
	if made == nil || made.Number != 3 || err == nil || !strings.Contains(err.Error(), "version 3 serves; those before it could not be") {
		t.Errorf("%+v, %v", made, err)
	}
	if tables := copiesOf(t, p); len(tables) != 3 {
		t.Errorf("there are %v", tables)
	}
	release()
	prepared(t, p, d, on, 4)
	if tables := copiesOf(t, p); len(tables) != 2 {
		t.Errorf("after the next run there are %v", tables)
	}
}

// locked holds a lock of a table until release is called.
func locked(t *testing.T, p *pgtest.ProtectedDatabase, lock string) (release func()) {
	t.Helper()
	conn := p.Conn(t, p.DSN)
	for _, text := range []string{"BEGIN", "LOCK TABLE " + lock} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return func() { _, _ = conn.Exec(context.WithoutCancel(t.Context()), "ROLLBACK") }
}

// runWaits waits until a run waits for a lock, or has ended.
func runWaits(t *testing.T, p *pgtest.ProtectedDatabase, ended <-chan error) {
	t.Helper()
	watch := p.Conn(t, p.DSN)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var waits bool
		if err := watch.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'noisegate prepare' AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits || len(ended) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the run does not wait for a lock within a minute")
		}
	}
}

// copiesOf are the copies that a database holds.
func copiesOf(t *testing.T, p *pgtest.ProtectedDatabase) (all []string) {
	t.Helper()
	rows, err := p.Pool(t).Query(t.Context(), `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'noisegate_prepared'::regnamespace AND relkind = 'r' AND relname LIKE 'visits%'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// dropConstraint drops the constraint of a type of %[1]s.
func dropConstraint(of string) string {
	return "DO $$ DECLARE c text; BEGIN SELECT conname INTO c FROM pg_constraint WHERE conrelid = '%[1]s'::regclass AND contype = '" + of +
		"'; EXECUTE 'ALTER TABLE %[1]s DROP CONSTRAINT ' || quote_ident(c); END $$"
}

// A statement over a copy runs only while its bounds are constraints that hold.
func TestCopiesArePinned(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 3)))
	on := provenSnapshot(t, d, preparedPolicy)
	for name, change := range map[string]string{
		"the check is gone":      dropConstraint("c"),
		"the check is not valid": dropConstraint("c") + "; ALTER TABLE %[1]s ADD CHECK (noisegate_rn BETWEEN 1 AND 4) NOT VALID",
		"the check is another":   dropConstraint("c") + "; ALTER TABLE %[1]s ADD CHECK (noisegate_rn BETWEEN 1 AND 5)",
		"the key is gone":        dropConstraint("u"),
		"units may be NULL":      "ALTER TABLE %[1]s ALTER person DROP NOT NULL",
		"ranks may be NULL":      "ALTER TABLE %[1]s ALTER noisegate_rn DROP NOT NULL",
		"rows of others":         "CREATE TABLE heir () INHERITS (%[1]s)",
		"it is gone":             "ALTER TABLE %[1]s RENAME TO gone",
		"another one is there": "ALTER TABLE %[1]s RENAME TO gone; CREATE TABLE %[1]s (LIKE noisegate_prepared.gone INCLUDING ALL); " +
			"GRANT SELECT ON %[1]s TO noisegate_reader",
	} {
		t.Run(name, func(t *testing.T) {
			serving := prepared(t, p, d, on, 1)
			table, _ := serving.Named("", "visits")
			plan := planned(t, serving, "SELECT count(*), sum(minutes) FROM visits", 0)
			s := statementsOf(t, plan)[0]
			if _, err := collect(t, d, s); err != nil {
				t.Fatal(err)
			}
			p.Exec(t, fmt.Sprintf(change, table.Schema+"."+table.Name))
			if _, err := collect(t, d, s); !fault.IsUntouched(err) {
				t.Errorf("got %v, want a refusal before anything is read", err)
			}
			p.Exec(t, "DROP TABLE IF EXISTS heir, noisegate_prepared.gone, "+table.Schema+"."+table.Name+" CASCADE")
		})
	}
}

// What a run cannot do it says, and the version before serves.
func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 4)))
	on := provenSnapshot(t, d, preparedPolicy)
	table, _ := on.Table("", "visits")
	before := prepared(t, p, d, on, 1)
	for name, c := range map[string]struct {
		change, undo, want string
		unseen             bool // before a run
	}{
		"no right": {change: "REVOKE SELECT ON visits FROM noisegate_prepare",
			undo: "GRANT SELECT ON visits TO noisegate_prepare", want: "lacks a right"},
		"no right to create": {change: "REVOKE CREATE ON SCHEMA noisegate_prepared FROM noisegate_prepare",
			undo: "GRANT CREATE ON SCHEMA noisegate_prepared TO noisegate_prepare", want: "lacks a right"},
		"no space": {unseen: true, change: "INSERT INTO visits (id, person) SELECT g, g FROM generate_series(100000, 108000) g; " +
			"DO $$BEGIN EXECUTE format(" +
			"'ALTER DATABASE %I SET temp_file_limit = 0; ALTER DATABASE %I SET work_mem = 64', current_database(), current_database()); END$$",
			undo: "DO $$BEGIN EXECUTE format('ALTER DATABASE %I RESET ALL', current_database()); END$$", want: "no space left"},
		"a column that is gone": {change: "ALTER TABLE visits RENAME fee TO price", undo: "ALTER TABLE visits RENAME price TO fee",
			want: "changed since its policy"},
		"a column of a type": {change: "ALTER TABLE visits ALTER minutes TYPE bigint", undo: "ALTER TABLE visits ALTER minutes TYPE int",
			want: "changed since its policy"},
		"no key": {change: "ALTER TABLE visits DROP CONSTRAINT visits_pkey", undo: "ALTER TABLE visits ADD PRIMARY KEY (id)",
			want: "changed since its policy"},
		"owner of the source": {change: "ALTER TABLE visits OWNER TO noisegate_prepare", undo: "ALTER TABLE visits OWNER TO " +
			"CURRENT_USER; GRANT SELECT ON visits TO noisegate_prepare", want: "may do more with table public.visits than read it"},
		"the source can be written": {change: "GRANT INSERT ON visits TO noisegate_prepare",
			undo: "REVOKE INSERT ON visits FROM noisegate_prepare", want: "(INSERT)"},
		"another's list": {change: "ALTER TABLE noisegate_prepared.versions OWNER TO CURRENT_USER",
			undo: "ALTER TABLE noisegate_prepared.versions OWNER TO noisegate_prepare", want: "with the tables in it"},
		"no reader":   {change: "SELECT 1", undo: "SELECT 1", want: "the role that the gateway connects as"},
		"another run": {unseen: true, change: "SELECT 1", undo: "SELECT 1", want: "another run"},
	} {
		if name == "another run" && testing.Short() { // it waits for a lock
			continue
		}
		t.Run(name, func(t *testing.T) {
			p.Exec(t, c.change)
			if name == "another run" {
				defer locked(t, p, "noisegate_prepared.versions IN SHARE ROW EXCLUSIVE MODE")()
			}
			config := prepareConfig(p, 2)
			if name == "no reader" {
				config.Reader = "nobody_there"
			}
			states, err := config.State(t.Context(), on)
			if err == nil {
				err = states[slices.IndexFunc(states, func(s pgexec.Prepared) bool { return s.Table.Name == "visits" })].Problem
			}
			if (err == nil) != c.unseen || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("before a run: %v, want %q: %t", err, c.want, !c.unseen)
			}
			if _, err := config.Prepare(t.Context(), on, table, false, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			plan := planned(t, before, "SELECT count(*), sum(minutes) FROM visits", 0)
			if _, err := collect(t, d, statementsOf(t, plan)[0]); err != nil {
				t.Errorf("the version before does not answer: %v", err)
			}
			p.Exec(t, c.undo)
			versions, err := d.Versions(t.Context(), "d")
			if err != nil || len(versions) == 0 || versions[0].Number != 1 {
				t.Errorf("%+v, %v: the version before does not serve", versions, err)
			}
		})
	}
	if serving, _ := before.Named("", "visits"); serving == nil {
		t.Error("no copy")
	}
	other := provenSnapshot(t, d, strings.Replace(preparedPolicy, "prepare: {max_rows: 4}", "prepare: {max_rows: 3}", 1))
	versions, err := d.Versions(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if sqlrewrite.Serving(other, versions[0]) != nil {
		t.Error("a version serves under a policy that asks for another one")
	}
	for _, change := range []func(*catalog.Version){
		func(v *catalog.Version) { v.Digest[0]++ }, func(v *catalog.Version) { v.Number++ }, func(v *catalog.Version) { v.OID = 0 },
		func(v *catalog.Version) { v.Table.Name = "wards" },
	} {
		v := versions[0]
		if change(&v); sqlrewrite.Serving(on, v) != nil {
			t.Errorf("%+v serves", v)
		}
	}
	// Numbers of versions begin anew where the schema of copies does: another time is another question.
	anew := versions[0]
	anew.AsOf = anew.AsOf.Add(time.Hour)
	const sql = "SELECT count(*) FROM visits"
	if planned(t, before, sql, 0).Fingerprint() == planned(t, sqlrewrite.Serving(on, anew), sql, 0).Fingerprint() {
		t.Error("a version with the number of an earlier one is known as that")
	}
}

// killed is how often a run is killed at a random moment.
const killed = 50

// No copy is made where an id has two numbers, whatever keys there are: a unit would have twice the rows.
func TestNumbersAreKeys(t *testing.T) {
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 5)))
	on := provenSnapshot(t, d, preparedPolicy)
	table, _ := on.Table("", "visits")
	prepared(t, p, d, on, 1)
	var numbers, key string
	if err := p.Conn(t, p.DSN).QueryRow(t.Context(), `SELECT c.conrelid::regclass::text, quote_ident(c.conname) FROM pg_constraint AS c
		WHERE c.conrelid::regclass::text LIKE 'noisegate_prepared.%units%' AND c.conname LIKE '%id_key'`).Scan(&numbers, &key); err != nil {
		t.Fatal(err)
	}
	p.Exec(t, "ALTER TABLE "+numbers+" DROP CONSTRAINT "+key, "INSERT INTO "+numbers+" (id) SELECT id FROM "+numbers+" LIMIT 1")
	if _, err := prepareConfig(p, 2).Prepare(t.Context(), on, table, false, nil); err == nil ||
		!strings.Contains(err.Error(), "is there twice") {
		t.Errorf("got %v", err)
	}
	if versions, err := d.Versions(t.Context(), "d"); err != nil || len(versions) == 0 || versions[0].Number != 1 {
		t.Errorf("%+v, %v: the version before does not serve", versions, err)
	}
}

// Whenever a run ends, there is one newest version, complete, and nothing of another one but the version before.
func TestPrepareIsKilled(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	r := rand.New(rand.NewPCG(16, 5))
	fillVisits(t, p, r)
	p.Exec(t, "INSERT INTO visits (id, person, minutes) SELECT g, g % 500, g % 60 FROM generate_series(100000, 105000) g")
	on := provenSnapshot(t, d, preparedPolicy)
	table, _ := on.Table("", "visits")
	begun := time.Now()
	prepared(t, p, d, on, 1)
	whole := time.Since(begun)
	ended, rounds := 0, randomtest.Part(5, killed)
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		var run sync.WaitGroup
		run.Go(func() {
			if _, err := prepareConfig(p, 3).Prepare(ctx, on, table, false, nil); err == nil {
				ended++
			}
		})
		time.Sleep(time.Duration(r.Int64N(int64(whole) * 3 / 2)))
		p.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'noisegate prepare'`)
		run.Wait()
		cancel()
		versions, err := d.Versions(t.Context(), "d")
		if err != nil || len(versions) == 0 {
			t.Fatalf("%+v, %v", versions, err)
		}
		serving := sqlrewrite.Serving(on, versions[0])
		if serving == nil {
			t.Fatalf("version %d does not serve", versions[0].Number)
		}
		plan := planned(t, serving, "SELECT count(*), sum(minutes) FROM visits", 0)
		if _, err := collect(t, d, statementsOf(t, plan)[0]); err != nil {
			t.Fatalf("version %d: %v", versions[0].Number, err)
		}
	}
	prepared(t, p, d, on, 4)
	if tables := copiesOf(t, p); len(tables) != 2 {
		t.Errorf("after the next run there are %v", tables)
	}
	t.Logf("%d of %d runs came to their end", ended, rounds)
}

// A run that is cancelled while a statement of its runs has let go of all its locks when it ends: the next one can begin.
func TestPrepareIsCancelled(t *testing.T) {
	t.Parallel()
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 10)))
	on := provenSnapshot(t, d, preparedPolicy)
	table, _ := on.Table("", "visits")
	prepared(t, p, d, on, 1)
	units, _ := on.UnitsOf(table)
	release := locked(t, p, "noisegate_prepared."+units+" IN SHARE MODE")
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var steps []string
	ended := make(chan error, 1)
	go func() {
		_, err := prepareConfig(p, 2).Prepare(ctx, on, table, false, func(step string) { steps = append(steps, step) })
		ended <- err
	}()
	runWaits(t, p, ended)
	cancel()
	if err := <-ended; err == nil {
		t.Error("a run that was cancelled made a version")
	}
	if !slices.Equal(steps, []string{pgexec.StepUnits}) {
		t.Errorf("it came to %v", steps)
	}
	p.Exec(t, "BEGIN; LOCK TABLE noisegate_prepared.versions IN SHARE ROW EXCLUSIVE MODE NOWAIT; ROLLBACK")
	release()
	steps = nil
	if _, err := prepareConfig(p, 2).Prepare(t.Context(), on, table, false, func(step string) { steps = append(steps, step) }); err != nil {
		t.Error(err)
	}
	if !slices.Equal(steps, []string{pgexec.StepUnits, pgexec.StepRows, pgexec.StepConstraints, pgexec.StepCleanup}) {
		t.Errorf("the next run's steps are %v", steps)
	}
}

// Tables of every kind that can be prepared are, whatever their columns and names are like; others the policy refuses.
func TestPrepareSources(t *testing.T) {
	const policy = `version: 1
dataset: d
tables:
  "%s": {unit: {column: %s}, max_rows: 2, max_groups: 2, prepare: {max_rows: 2}}
budgets: [{dataset: true, form: approx, epsilon: 10, delta: 1e-6}]
`
	for name, c := range map[string]struct{ table, unit, ddl, refused string }{
		"texts": {"visits", "person", `CREATE TABLE visits (person text, day date, nr text, PRIMARY KEY (nr), said text COLLATE "POSIX", code character(5), short varchar(3));
			INSERT INTO visits SELECT 'p' || g % 3, '2024-01-01', g::text, repeat('long', g * 100), 'c', 'abc' FROM generate_series(1, 9) g;
			INSERT INTO visits VALUES (repeat('x', 2000), NULL, 'a', NULL), (NULL, NULL, 'b', NULL)`, ""},
		"uuids": {"visits", "person", `CREATE TABLE visits (person uuid NOT NULL, nr uuid PRIMARY KEY);
			INSERT INTO visits SELECT ('00000000-0000-0000-0000-00000000000' || g % 3)::uuid, gen_random_uuid() FROM generate_series(1, 9) g`, ""},
		"two columns as a key": {"visits", "person", `CREATE TABLE visits (person smallint, nr int, PRIMARY KEY (person, nr), x int NOT NULL);
			INSERT INTO visits SELECT g % 3, g, g FROM generate_series(1, 9) g`, ""},
		"partitions": {"visits", "person", `CREATE TABLE visits (person bigint, nr int NOT NULL, x int, UNIQUE (nr)) PARTITION BY RANGE (nr);
			CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM (0) TO (5); CREATE TABLE visits_2 PARTITION OF visits DEFAULT;
			INSERT INTO visits SELECT g % 3, g, g FROM generate_series(1, 9) g`, ""},
		"types of their own": {"visits", "person", `CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 100); CREATE DOMAIN tale AS text;
			CREATE TABLE visits (person int, nr int PRIMARY KEY, m mood, s small, t tale, n numeric(8, 2), a int[], b boolean NOT NULL DEFAULT true);
			INSERT INTO visits SELECT g % 3, g, 'ok', g, 'x', g, '{1}' FROM generate_series(1, 9) g`, ""},
		"names": {`Odd "name" of a table`, `"Some one"`, `CREATE TABLE "Odd ""name"" of a table" ("Some one" int, "nr'" int PRIMARY KEY, "unit" int, "id" int, "rn" int, "c0" int);
			INSERT INTO "Odd ""name"" of a table" SELECT g % 3, g, g, g, g, g FROM generate_series(1, 9) g`, ""},
		"other schemas": {"visits", "person", `CREATE SCHEMA "My Schema"; GRANT USAGE ON SCHEMA "My Schema" TO PUBLIC; SET search_path = "My Schema", public;
			CREATE COLLATION "Odd C" FROM "C"; CREATE TYPE "Mood T" AS ENUM ('sad', 'ok'); CREATE DOMAIN tale AS text COLLATE "Odd C" CHECK (length(VALUE) < 5);
			CREATE TABLE public.visits (gone int, person int, nr int PRIMARY KEY, m "Mood T", t tale, b bpchar, ts timestamptz(0), "50%s $1 f.x" numeric(5, 2),
				g int GENERATED ALWAYS AS (nr * 2) STORED, "SELECT" text COLLATE "Odd C");
			ALTER TABLE visits DROP COLUMN gone;
			INSERT INTO visits (person, nr, m, t, b, ts, "50%s $1 f.x", "SELECT")
				SELECT g % 3, g, 'ok', 'x', 'b  ', now(), 123, 'e' FROM generate_series(1, 9) g`, ""},
		"a type of a schema that is hidden": {"visits", "person", `CREATE SCHEMA hidden; CREATE TYPE hidden.mood AS ENUM ('sad', 'ok');
			CREATE TABLE visits (person int, nr int PRIMARY KEY, m hidden.mood, short varchar(3));
			INSERT INTO visits SELECT g % 3, g, 'ok', 'abc' FROM generate_series(1, 9) g`, ""},
		"domains of a schema that is hidden": {"visits", "person", `CREATE SCHEMA hidden; CREATE DOMAIN hidden.tale AS text CHECK (length(VALUE) < 5); CREATE DOMAIN hidden.small AS int;
			CREATE TABLE visits (person int, nr int PRIMARY KEY, t hidden.tale, s hidden.small);
			INSERT INTO visits SELECT g % 3, g, 'x', g FROM generate_series(1, 9) g`, ""},
		"a collation of a schema that is hidden": {"visits", "person", `CREATE SCHEMA hidden; CREATE COLLATION hidden.c FROM "C";
			CREATE TABLE visits (person int, nr int PRIMARY KEY, said text COLLATE hidden.c);
			INSERT INTO visits SELECT g % 3, g, 'ok' FROM generate_series(1, 9) g`, ""},
		"no key":                 {"visits", "person", `CREATE TABLE visits (person int, nr int)`, "with a primary key"},
		"a key that may be NULL": {"visits", "person", `CREATE TABLE visits (person int, nr int UNIQUE)`, "with a primary key"},
		"a key of times":         {"visits", "person", `CREATE TABLE visits (person int, at timestamptz PRIMARY KEY)`, "with a primary key"},
		"a unit of a time":       {"visits", "person", `CREATE TABLE visits (person date, nr int PRIMARY KEY)`, "whose unit is a whole number"},
		"ids of many bytes":      {"visits", "person}, columns: {person: {max_length: 3000}", `CREATE TABLE visits (person text, nr int PRIMARY KEY)`, "at most 2600 bytes"},
		"a column of the name":   {"visits", "person", `CREATE TABLE visits (person int, nr int PRIMARY KEY, noisegate_rn int)`, "such as noisegate_rn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, c.ddl, "GRANT USAGE ON SCHEMA public TO noisegate_prepare",
				"GRANT SELECT ON ALL TABLES IN SCHEMA public TO noisegate_prepare")
			d := open(t, p, nil)
			document := fmt.Sprintf(policy, strings.ReplaceAll(c.table, `"`, `\"`), c.unit)
			if c.refused != "" {
				parsed, problems := catalog.Parse(document)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				schema, err := d.Inspect(t.Context(), parsed)
				if err != nil {
					t.Fatal(err)
				}
				if _, problems := catalog.Check(parsed, schema); !strings.Contains(fmt.Sprint(problems), c.refused) {
					t.Errorf("got %v, want a refusal because of a table %s", problems, c.refused)
				}
				return
			}
			on := provenSnapshot(t, d, document)
			if _, err := prepareConfig(p, 1).Prepare(t.Context(), on, on.Tables[0], false, nil); err != nil {
				t.Fatal(err)
			}
			versions, err := d.Versions(t.Context(), "d")
			if err != nil || len(versions) == 0 {
				t.Fatal(versions, err)
			}
			serving := sqlrewrite.Serving(on, versions[0])
			if serving == nil {
				t.Fatal("it does not serve")
			}
			var others int
			if err := p.Conn(t, p.DSN).QueryRow(t.Context(), `SELECT count(*) FROM pg_attribute c JOIN pg_attribute s ON s.attname = c.attname
				WHERE c.attrelid = $1 AND s.attrelid = $2 AND c.attnum > 1 AND s.attnum > 0 AND
				(c.atttypid, c.atttypmod, c.attcollation) IS DISTINCT FROM (s.atttypid, s.atttypmod, s.attcollation)`,
				versions[0].OID, on.Tables[0].OID).Scan(&others); err != nil || others > 0 {
				t.Errorf("%d columns of another type than in the table, %v", others, err)
			}
			plan := planned(t, serving, `SELECT count(*) FROM "`+strings.ReplaceAll(c.table, `"`, `""`)+`"`, 0)
			rows, err := collect(t, d, statementsOf(t, plan)[0])
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			if n := revealed(t, rows[0].Values[0]); n != "6" { // two of each of three
				t.Errorf("%s rows count, want 6", n)
			}
		})
	}
}
