package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// clinic is a table of rows visits of users people, to be prepared with 46 rows of each, and what the role that prepares needs.
func clinic(rows, users int) dataset {
	return dataset{name: "clinic", prepares: true, policy: `version: 1
dataset: clinic
tables:
  calls: {unit: {column: person}, max_rows: 2, max_groups: 2, prepare: {max_rows: 2}}
  visits:
    unit: {column: person}
    max_rows: 46
    max_groups: 20
    prepare: {max_rows: 46}
    columns:
      region: {domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]}
      minutes: {bounds: [0, 100]}
      shop: {domain: [` + numbers(1000) + `]}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`
			SELECT setseed(0.5);
			CREATE TABLE regions (region int PRIMARY KEY, zone text NOT NULL);
			INSERT INTO regions SELECT i, 'zone ' || i %% 5 FROM generate_series(0, 19) AS i;
			CREATE TABLE visits AS SELECT id, p AS person, (CASE WHEN random() < 0.7 THEN p %% 20 ELSE floor(random() * 20)::int END) AS region,
				floor(random() * 120)::int AS minutes, floor(random() * 1000)::int AS shop
				FROM (SELECT i::bigint AS id, floor(power(random(), 3) * %[2]d)::int AS p FROM generate_series(1, %[1]d) i) AS s;
			ALTER TABLE visits ADD PRIMARY KEY (id);
			CREATE TABLE calls (id int PRIMARY KEY, person int);
			GRANT USAGE ON SCHEMA public TO noisegate_prepare; GRANT SELECT ON visits, calls TO noisegate_prepare`, rows, users)).ReadAll()
		if err == nil {
			_, err = conn.PgConn().Exec(ctx, "VACUUM (ANALYZE)").ReadAll()
		}
		return err
	}}
}

// numbers are those from 0, as a list.
func numbers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return strings.Join(all, ", ")
}

// What docs/prepared.md says, with the program and over HTTP: before a table is prepared it answers itself, then its copy does, of a named
// version; another version is another state of the data.
func TestPreparedTables(t *testing.T) {
	t.Parallel()
	s := newStack(t, clinic(3000, 300))
	client := s.analyst(t, "ana")
	ask := func(sql string, prepared *bool) *api.QueryResponse {
		t.Helper()
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "clinic", SQL: sql, Epsilon: "2000", Prepared: prepared}, "")
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const byRegion = "SELECT region, count(*) AS n FROM visits GROUP BY region ORDER BY region"
	unprepared := ask(byRegion, nil)
	if unprepared.AsOf != nil {
		t.Errorf("as of %s before anything was prepared", unprepared.AsOf)
	}
	begun := time.Now().Add(-time.Minute)
	s.exec(t, "clinic", "REVOKE SELECT ON calls FROM noisegate_prepare")
	if out, err := s.command("prepare", "--config", s.config, "--dataset", "clinic").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "visits: version 1 as of ") ||
		!strings.Contains(string(out), "calls: the role that prepares lacks a right") {
		t.Errorf("prepare of a table that may be read, and of one that may not, says %q, %v", out, err)
	}
	check := []string{"prepare", "--check", "--config", s.config, "--dataset", "clinic"}
	if out, err := s.command(check...).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "visits: a copy keeps at most 46 rows of each unit (column person), and the columns "+
			"region, minutes, shop\n  version 1 as of ") ||
		!strings.Contains(string(out), "calls: a run would fail: the role that prepares lacks a right") {
		t.Errorf("prepare --check says %q, %v", out, err)
	}
	s.exec(t, "clinic", "GRANT SELECT ON calls TO noisegate_prepare")
	if out, err := s.command(append(check, "--table", "calls")...).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "calls: there is no copy yet") || strings.Contains(string(out), "visits") {
		t.Errorf("prepare --check says %q, %v", out, err)
	}
	s.run(t, "prepare", "--config", s.config, "--dataset", "clinic", "--table", "calls")
	s.run(t, check...)
	status := []string{"prepare", "--status", "--config", s.config, "--dataset", "clinic"}
	if out := s.run(t, status...); !strings.Contains(out, "visits: version 1 serves\n") ||
		!strings.Contains(out, "calls: version 1 serves\n") {
		t.Errorf("prepare --status says %q", out)
	}
	s.seesVersion(t, client, "clinic", byRegion, 1)
	var want int
	if err := s.superuser(t, "clinic").QueryRow(t.Context(),
		"SELECT sum(least(n, 46)) FROM (SELECT count(*) AS n FROM visits GROUP BY person) x").Scan(&want); err != nil {
		t.Fatal(err)
	}
	first := ask(byRegion, nil)
	if first.AsOf == nil || first.AsOf.Before(begun) || !strings.HasPrefix(first.DataVersion, "visits prepared 1 as of ") || first.Replayed {
		t.Errorf("as of %v, %q, replayed %t", first.AsOf, first.DataVersion, first.Replayed)
	}
	var total int
	for _, row := range first.Rows {
		var n int
		if _, err := fmt.Sscan(fmt.Sprint(row[1]), &n); err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total != want { // noise of scale 0.023: not 0 with a chance of e^-43 in each group
		t.Errorf("%d rows in all, want %d", total, want)
	}
	if again := ask(byRegion, nil); !again.Replayed || again.ReleaseID != first.ReleaseID || again.AsOf == nil {
		t.Errorf("asked again: %+v", again)
	}
	var people string
	if err := s.superuser(t, "clinic").QueryRow(t.Context(), "SELECT count(DISTINCT person)::text FROM visits").Scan(&people); err != nil {
		t.Fatal(err)
	}
	if all := ask("SELECT count(DISTINCT person) AS n FROM visits", nil); all.AsOf == nil || fmt.Sprint(all.Rows[0][0]) != people ||
		all.Columns[0].Bias != "" {
		t.Errorf("people: %+v, want %s", all, people)
	}
	if live := ask(byRegion, new(bool)); !live.Replayed || live.ReleaseID != unprepared.ReleaseID || live.DataVersion != "" ||
		live.AsOf == nil || live.ReleasedAt == nil || !live.AsOf.Equal(*live.ReleasedAt) { // a replay of the table says when it was read
		t.Errorf("prepared: false: %+v", live)
	}
	if other := ask("SELECT count(DISTINCT minutes) AS n, median(minutes) AS m FROM visits", nil); other.AsOf == nil {
		t.Errorf("different values and a quantile are not of the copy: %+v", other)
	}
	const twoLevels = "SELECT count(*) AS n FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) p WHERE n > 2"
	if other := ask(twoLevels, nil); other.AsOf != nil {
		t.Errorf("a question that copies do not answer: as of %s", other.AsOf)
	}
	estimate, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: "clinic", SQL: byRegion, Epsilon: "1"})
	if err != nil || estimate.AsOf == nil || !strings.Contains(estimate.Plan, "at most 46 rows of each person in all, in a prepared table") {
		t.Errorf("%+v, %v", estimate, err)
	}
	s.prepareOverHTTP(t)
	s.seesVersion(t, client, "clinic", byRegion, 2)
	if again := ask(byRegion, nil); !again.Replayed || again.ReleaseID != first.ReleaseID || again.DataVersion != first.DataVersion ||
		!again.AsOf.Equal(*first.AsOf) || again.Newer == nil || again.Newer.Price == nil || again.Newer.Price.Epsilon != "2000" ||
		!strings.HasPrefix(again.Newer.DataVersion, "visits prepared 2 as of ") || fmt.Sprint(again.Rows) != fmt.Sprint(first.Rows) {
		t.Errorf("after a refresh: %+v", again)
	}
	token := filepath.Join(s.dir, "ana.token")
	write(t, token, s.token(t, "ana", "analyst"))
	asking := []string{"query", "--url", s.url, "--token-file", token, "--dataset", "clinic", "--epsilon", "2000", byRegion}
	if out := s.run(t, asking...); !strings.Contains(out, "replay of "+first.ReleaseID) ||
		!strings.Contains(out, ": --latest asks them, for epsilon 2000\n") {
		t.Errorf("noisegate query says %q", out)
	}
	if out := s.run(t, append(asking, "--latest")...); !strings.Contains(out, "spent epsilon 2000 ") {
		t.Errorf("noisegate query --latest says %q", out)
	}
	second := ask(byRegion, nil)
	if !second.Replayed || !strings.HasPrefix(second.DataVersion, "visits prepared 2 as of ") || second.Newer != nil {
		t.Errorf("after --latest: %q, replayed %t", second.DataVersion, second.Replayed)
	}
	for version, code := range map[string]int{"latest": http.StatusOK, "first": http.StatusBadRequest} {
		asOf, status := s.asText(t, "ana", "dataset=clinic&epsilon=2000&version="+version, byRegion)
		if status != code || code == http.StatusOK && asOf != second.AsOf.Format(time.RFC3339Nano) {
			t.Errorf("version %s, the settings in the address: %d, as of %q, want %s", version, status, asOf, second.AsOf)
		}
	}
	reader, err := pgx.Connect(t.Context(), s.dsn("noisegate_reader", "clinic"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.Background())
	var units string
	if err := s.superuser(t, "clinic").QueryRow(t.Context(), "SELECT relname FROM pg_class WHERE relname LIKE 'units\\_%' AND relkind = 'r'").
		Scan(&units); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), "SELECT FROM noisegate_prepared."+units); err == nil {
		t.Error("the gateway's role reads the numbers of people")
	}
	s.contradicted(t, client)
	s.nothingButTheCopy(t, client)
	if out := s.run(t, "prepare", "--drop", "--config", s.config, "--dataset", "clinic"); !strings.Contains(out, "visits: no copy is left\n") {
		t.Errorf("prepare --drop says %q", out)
	}
	var left int
	text := "SELECT count(*) FROM noisegate_prepared." + units
	if err := s.superuser(t, "clinic").QueryRow(t.Context(), text).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d numbers of people are left, %v", left, err)
	}
	if out := s.run(t, status...); !strings.Contains(out, "visits: no copy\n") {
		t.Errorf("prepare --status says %q", out)
	}
	if _, err := client.Query(t.Context(), api.QueryRequest{Dataset: "clinic", SQL: "SELECT count(*) FROM visits WHERE minutes > 8",
		Epsilon: "1"}, ""); !isProblem(err, "policy/not-prepared") && !isProblem(err, "data/unavailable") {
		t.Errorf("without a copy: %v", err)
	}
}

// prepareOverHTTP makes a version of visits as docs/prepared.md says, but for curl.
func (s *stack) prepareOverHTTP(t *testing.T) {
	t.Helper()
	steward := api.NewClient(s.url, s.token(t, "sam", "steward"))
	job, err := steward.Prepare(t.Context(), "clinic", api.PrepareRequest{Table: "visits"})
	for deadline := time.Now().Add(time.Minute); err == nil && job.Ended == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the run has not ended within a minute: %+v", job)
		}
		job, err = steward.PrepareJob(t.Context(), "clinic", job.JobID)
	}
	if err != nil || job.State != "done" || len(job.Tables) != 1 || job.Tables[0].Version != 2 {
		t.Errorf("%+v, %v", job, err)
	}
}

// asText asks a question as text, for CSV, and returns the time of its rows and the status.
func (s *stack) asText(t *testing.T, who, settings, sql string) (asOf string, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/query?"+settings, strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token(t, who, "analyst"))
	request.Header.Set("Content-Type", "text/plain")
	request.Header.Set("Accept", "text/csv")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.Header.Get("Noisegate-As-Of"), response.StatusCode
}

// contradicted applies policies whose prepare contradicts itself or the table: they are refused, and the version that there is answers.
func (s *stack) contradicted(t *testing.T, client *api.Client) {
	t.Helper()
	const prepare = "    prepare: {max_rows: 46}\n"
	for i, c := range []struct{ prepare, want string }{
		{"prepare: {refresh: full}", "prepare lacks max_rows"},
		{"prepare: {max_rows: 46, refresh: daily}", "refresh of a prepared copy is full"},
		{"prepare: {max_rows: 46, ranks: [[region], [region]]}", "ranks has a set of columns twice"},
		{"prepare: {max_rows: 46, ranks: [[person]]}", "has no ranks by (person)"},
		{"prepare: {max_rows: 46, ranks: [[region]], refresh: {append: id, settle: 10m}}", "that rows are appended to has no ranks"},
		{"prepare: {max_rows: 46, refresh: {append: minutes, settle: 10m}}", "timestamp with time zone and NOT NULL"},
		{"require_prepared: true", "require_prepared and no prepare"},
	} {
		file := filepath.Join(s.dir, "contradicted.policy.yaml")
		write(t, file, strings.Replace(clinic(1, 1).policy, prepare, "    "+c.prepare+"\n", 1))
		out, err := s.command("policy", "apply", "--config", s.config, file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %q", c.prepare, err, out)
		}
		sql := fmt.Sprintf("SELECT count(*) FROM visits WHERE minutes > %d", 50+i)
		if a, err := client.Query(t.Context(), api.QueryRequest{Dataset: "clinic", SQL: sql, Epsilon: "1"}, ""); err != nil || a.AsOf == nil {
			t.Errorf("after %s: %+v, %v", c.prepare, a, err)
		}
	}
}

// nothingButTheCopy applies a policy with require_prepared, and takes the right to read the table from the gateway's role.
func (s *stack) nothingButTheCopy(t *testing.T, client *api.Client) {
	t.Helper()
	const prepare = "    prepare: {max_rows: 46}\n"
	policy := strings.Replace(clinic(1, 1).policy, prepare, prepare+"    require_prepared: true\n", 1)
	file := filepath.Join(s.dir, "only.policy.yaml")
	write(t, file, policy)
	s.run(t, "policy", "apply", "--config", s.config, file)
	s.exec(t, "clinic", "REVOKE SELECT ON visits FROM noisegate_reader")
	ask := func(sql string) (*api.QueryResponse, error) {
		return client.Query(t.Context(), api.QueryRequest{Dataset: "clinic", SQL: sql, Epsilon: "10"}, "")
	}
	const refused = "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) p WHERE n > 2"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // until the policy is in force
		_, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: "clinic", SQL: refused, Epsilon: "1"})
		if isProblem(err, "policy/prepared-only") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the policy is not in force within a minute: %v", err)
		}
	}
	if _, err := ask(refused); !isProblem(err, "policy/prepared-only") {
		t.Errorf("a question that copies do not answer: %v", err)
	}
	if a, err := ask("SELECT count(*) FROM visits WHERE minutes > 7"); err != nil || a.AsOf == nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// seesVersion waits until the gateway has looked at the list of versions, which it does every three seconds.
func (s *stack) seesVersion(t testing.TB, client *api.Client, dataset, sql string, version int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		estimate, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: dataset, SQL: sql, Epsilon: "1"})
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.Contains(estimate.DataVersion, fmt.Sprintf(" prepared %d as of ", version)):
			return
		case time.Now().After(deadline):
			t.Fatalf("version %d does not serve within a minute: %q", version, estimate.DataVersion)
		}
	}
}

var benchLive = flag.Bool("bench-live", true, "whether BenchmarkPrepared asks the table itself too, which may take too long")

// BenchmarkPrepared compares questions over a prepared table with the same ones over the table itself, and with their text sent to
// PostgreSQL, in turn and in one run. -rows and -users set the size.
func BenchmarkPrepared(b *testing.B) {
	of := clinic(*benchRows, *benchUsers)
	load := of.load
	of.load = func(ctx context.Context, conn *pgx.Conn) error {
		if err := load(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "ALTER DATABASE clinic SET session_preload_libraries = 'auto_explain'") // off, until [plans]
		return err
	}
	s := newStack(b, of)
	begun := time.Now()
	s.run(b, "prepare", "--config", s.config, "--dataset", "clinic")
	made := time.Since(begun)
	begun = time.Now()
	s.exec(b, "clinic", "CREATE TABLE sorted AS SELECT * FROM visits ORDER BY person; CREATE INDEX ON sorted (person)")
	sorted := time.Since(begun)
	s.exec(b, "clinic", "DROP TABLE sorted")
	var size float64
	if err := s.superuser(b, "clinic").QueryRow(b.Context(), `SELECT sum(pg_total_relation_size(oid)) / pg_table_size('visits')
		FROM pg_class WHERE relname LIKE 'visits\__%' AND relkind = 'r' AND relnamespace = 'noisegate_prepared'::regnamespace`).
		Scan(&size); err != nil {
		b.Fatal(err)
	}
	b.Logf("prepared in %.1f s, %.1f of a sorted copy with an index; its size is %.2f of the table's", made.Seconds(),
		made.Seconds()/sorted.Seconds(), size)
	client := s.analyst(b, "ana")
	s.seesVersion(b, client, "clinic", "SELECT count(*) FROM visits", 1)
	plain, err := pgx.Connect(b.Context(), s.dsn("noisegate_reader", "clinic"))
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close(context.Background())
	asked := 0
	for _, question := range []struct{ name, sql string }{
		{"count", "SELECT count(*) FROM public.visits"},
		{"sum", "SELECT sum(minutes) FROM public.visits"},
		{"five", "SELECT count(*), sum(minutes), avg(minutes), var_pop(minutes), count(minutes) FROM public.visits"},
		{"group 1000", "SELECT shop, count(*) FROM public.visits GROUP BY shop ORDER BY shop"},
		{"group", "SELECT region, count(*), sum(minutes) FROM public.visits GROUP BY region ORDER BY region"},
		{"filter", "SELECT count(*), sum(minutes) FROM public.visits WHERE minutes < 10"},
		{"join public", "SELECT r.zone, count(*) FROM public.visits v JOIN public.regions r ON r.region = v.region GROUP BY r.zone " +
			"ORDER BY r.zone"},
		{"people", "SELECT count(DISTINCT person) FROM public.visits"},
	} {
		b.Run(question.name, func(b *testing.B) {
			s.plans(b, question.sql, func() error {
				_, err := client.Query(b.Context(), api.QueryRequest{Dataset: "clinic", SQL: question.sql, Epsilon: price(10_000 * asked)}, "")
				asked++
				return errors.Join(err, drain(b.Context(), plain, question.sql))
			})
			var direct, live, copied []time.Duration
			for b.Loop() {
				for way, took := range []*[]time.Duration{&copied, &live} {
					prepared := way == 0
					if !prepared && !*benchLive {
						continue
					}
					request := api.QueryRequest{Dataset: "clinic", SQL: question.sql, Prepared: &prepared,
						Epsilon: price(10_000 * asked)} // so that shares of it differ too
					asked++
					*took = append(*took, timed(b, func() error {
						answer, err := client.Query(b.Context(), request, "")
						if err == nil && ((answer.AsOf != nil) != prepared || answer.Replayed) {
							err = fmt.Errorf("asked prepared: %t, as of %v, replayed: %t", prepared, answer.AsOf, answer.Replayed)
						}
						return err
					}))
				}
				direct = append(direct, timed(b, func() error { return drain(b.Context(), plain, question.sql) }))
			}
			report(b, direct, copied)
			if *benchLive {
				b.ReportMetric(milliseconds(quantile(live, 0.5)), "live-ms")
				b.ReportMetric(milliseconds(quantile(live, 0.5))/milliseconds(quantile(direct, 0.5)), "live-ratio")
			}
		})
	}
}

// BenchmarkPreparing times runs that make a copy anew, first, again, and with sets of ranks, and a sorted copy with an index.
func BenchmarkPreparing(b *testing.B) {
	of := clinic(*benchRows, *benchUsers)
	s := newStack(b, of)
	timed := func(do func()) float64 {
		begun := time.Now()
		do()
		return time.Since(begun).Seconds()
	}
	sorted := func() float64 {
		defer s.exec(b, "clinic", "DROP TABLE sorted")
		return timed(func() {
			s.exec(b, "clinic", "CREATE TABLE sorted AS SELECT * FROM visits ORDER BY person; CREATE INDEX ON sorted (person)")
		})
	}
	file := filepath.Join(s.dir, "ranks.policy.yaml")
	for range b.N {
		for _, ranks := range []string{"", "", ", ranks: [[region]]", ", ranks: [[region], [shop]]"} {
			plain := sorted()
			write(b, file, strings.Replace(of.policy, "prepare: {max_rows: 46}", "prepare: {max_rows: 46"+ranks+"}", 1))
			s.run(b, "policy", "apply", "--config", s.config, file)
			took := timed(func() { s.run(b, "prepare", "--config", s.config, "--dataset", "clinic", "--table", "visits") })
			b.Logf("prepared%s in %.1f s, %.2f of a sorted copy with an index", ranks, took, took/plain)
		}
	}
}

// plans prints side by side, without figures, the plans that PostgreSQL ran for a question in plain SQL and for the copy; ask asks both.
// They are in the server's log, which a private server has open and nobody else finds.
func (s *stack) plans(b *testing.B, sql string, ask func() error) {
	b.Helper()
	conn := s.superuser(b, "clinic")
	defer conn.Close(context.Background())
	explain := func(least int) {
		for _, sql := range []string{fmt.Sprintf("ALTER SYSTEM SET auto_explain.log_min_duration = %d", least), "SELECT pg_reload_conf()"} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				b.Error(err)
			}
		}
	}
	var pid string
	if err := conn.QueryRow(b.Context(), "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)").Scan(&pid); err != nil {
		b.Fatal(err)
	}
	explain(0)
	defer explain(-1)
	found := map[string]string{}
	for deadline := time.Now().Add(time.Minute); len(found) < 2; { // until all sessions have the setting
		if time.Now().After(deadline) {
			b.Fatalf("no plan of one of them within a minute: %v", found)
		}
		if err := ask(); err != nil {
			b.Fatal(err)
		}
		all, err := os.ReadFile("/proc/" + pid + "/fd/2")
		if err != nil {
			b.Logf("no plans: %v", err)
			return
		}
		for _, entry := range planEntry.FindAllStringSubmatch(string(all), -1) {
			switch text, plan := entry[1], planFigures.ReplaceAllString(entry[2], ""); {
			case strings.Contains(text, `"noisegate_prepared"."visits_`):
				found["copy"] = plan
			case strings.Contains(text, sql):
				found["plain SQL"] = plan
			}
		}
	}
	fmt.Printf("\n%s\n", sql) // b.Log keeps ten lines
	l, r := strings.Split(found["plain SQL"], "\n"), strings.Split(found["copy"], "\n")
	for i := range max(len(l), len(r)) {
		line := func(of []string) string { return strings.Join(of[min(i, len(of)):min(i+1, len(of))], "") }
		fmt.Printf("    %-60.60s  %.90s\n", line(l), line(r))
	}
}

var (
	planEntry   = regexp.MustCompile(`plan:\n\tQuery Text: ((?:[^\n]*\n\t)+?)([A-Z][^\n]*\(cost=[^\n]*\n(?:\t[^\n]*\n)*)`)
	planFigures = regexp.MustCompile(` +\(cost=[^)]*\)|'\{[^}]*\}'|(?m:^\t)`) // and long lists
)

// BenchmarkAppend times a run that appends 1 % of new rows, of people that there are and of new ones, and one that makes the copy anew.
func BenchmarkAppend(b *testing.B) {
	of := clinic(*benchRows, *benchUsers)
	const full = "prepare: {max_rows: 46}"
	of.policy = strings.Replace(of.policy, full, "prepare: {max_rows: 46, refresh: {append: created, settle: 1s}}", 1)
	of.policy = strings.Replace(of.policy, "      minutes:", "      created: {expose: false}\n      minutes:", 1)
	load := of.load
	of.load = func(ctx context.Context, conn *pgx.Conn) error {
		if err := load(ctx, conn); err != nil {
			return err
		}
		_, err := conn.PgConn().Exec(ctx, "ALTER TABLE visits ADD created timestamptz NOT NULL DEFAULT now(); "+
			"CREATE INDEX ON visits USING brin (created); ANALYZE visits").ReadAll() // as docs/prepared.md advises
		return err
	}
	s := newStack(b, of)
	run := func(more ...string) float64 {
		time.Sleep(1100 * time.Millisecond) // what was inserted has settled
		begun := time.Now()
		s.run(b, append([]string{"prepare", "--config", s.config, "--dataset", "clinic", "--table", "visits"}, more...)...)
		return time.Since(begun).Seconds()
	}
	const rows = `INSERT INTO visits SELECT (SELECT max(id) FROM visits) + i, %s, floor(random() * 20)::int, floor(random() * 120)::int,
		floor(random() * 1000)::int, clock_timestamp() FROM generate_series(1, %d) i`
	whole := run()
	for range b.N {
		s.exec(b, "clinic", fmt.Sprintf(rows, fmt.Sprintf("floor(random() * %d)::int", *benchUsers), *benchRows/100))
		random := run()
		s.exec(b, "clinic", fmt.Sprintf(rows, "(SELECT max(person) FROM visits) + 1 + i / 10", *benchRows/100))
		newer := run()
		again := run("--full")
		run() // drops the version before that
		b.Logf("made anew in %.1f s and %.1f s; 1 %% of new rows appended: of random people in %.1f s (%.0f %%), of new people in %.1f s "+
			"(%.0f %%)", whole, again, random, 100*random/again, newer, 100*newer/again)
	}
}

// isProblem reports whether an error is a problem document with a code.
func isProblem(err error, code string) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && problem.Code == code
}
