package integration

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var peersRows = flag.Int("peers-rows", 1_000_000, "rows that TestPeersLatency asks about, ten of each person in the mean")

// peerLatency is the last run of TestPeersLatency: medians in milliseconds.
type peerLatency struct {
	Date string                        `json:"date"`
	Rows int                           `json:"rows"`
	Took map[string]map[string]float64 `json:"took"` // by question and program
}

// What is asked in addition to the peers' programs.
const (
	plainSQL     = "plain SQL"
	liveTable    = "Noisegate"
	preparedCopy = "Noisegate, prepared"
)

// inPostgreSQL are the peers whose answers PostgreSQL computes; the others read files into memory. Qrlew is one too, but one of its
// statements over a million rows does not end within minutes.
func inPostgreSQL() []string { return []string{"smartnoise"} }

// trips are rows of people with a heavy tail, by 40 keys; plain SQL and peers see the same rows.
func trips(rows int) dataset {
	return dataset{name: "trips", prepares: true, policy: `version: 1
dataset: trips
tables:
  trips:
    unit: {column: uid}
    max_rows: 20
    max_groups: 20
    prepare: {max_rows: 20}
    columns:
      g40:   {domain: [` + numbers(40) + `]}
      value: {bounds: [0, 100]}
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000, delta: 1e-4}
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(tripsTable, "bigint PRIMARY KEY", rows, rows/10)+
			"; GRANT USAGE ON SCHEMA public TO noisegate_prepare; GRANT SELECT ON trips TO noisegate_prepare").ReadAll()
		if err == nil {
			_, err = conn.PgConn().Exec(ctx, "VACUUM (ANALYZE)").ReadAll()
		}
		return err
	}}
}

const tripsTable = `SELECT setseed(0.5); CREATE TABLE trips (trip %s, uid int, g40 int, value int);
	INSERT INTO trips SELECT i, floor(power(random(), 3) * %[3]d)::int, floor(random() * 40)::int, floor(random() * 120)::int
	FROM generate_series(1, %[2]d) AS i`

// TestPeersLatency asks the same question of Noisegate, of the peers that answer by PostgreSQL, and of PostgreSQL itself, at the same
// guarantee and in one run, and writes how long answers take into docs/comparison.md. It fails where something cannot be run.
func TestPeersLatency(t *testing.T) {
	if *peersDraws == 0 {
		return // it asks other programs: make peers
	}
	// alone: it measures latencies
	s := newOwnStack(t, "measured", trips(*peersRows))
	s.run(t, "prepare", "--config", s.config, "--dataset", "trips")
	s.exec(t, "postgres", "CREATE DATABASE peers")
	if _, err := s.superuser(t, "peers").PgConn().Exec(t.Context(), fmt.Sprintf(tripsTable, "bigint", *peersRows, *peersRows/10)+
		"; ALTER TABLE trips DROP trip").ReadAll(); err != nil {
		t.Fatal(err)
	}
	s.exec(t, "peers", "VACUUM (FULL, ANALYZE)")
	s.seesVersion(t, s.peerClient(t, 0), "trips", "SELECT count(*) FROM trips", 1)
	record := readRecord(t)
	record.Latency = peerLatency{Date: time.Now().UTC().Format(time.DateOnly), Rows: *peersRows, Took: map[string]map[string]float64{}}
	questions := peerQuestions(t, "latency.json")
	for _, q := range questions {
		took := s.latency(t, q)
		for _, program := range inPostgreSQL() {
			_, answered, err := s.askPeer(t, program, "latency.json", t.TempDir(), []peerQuestion{q})
			said := answered[q.ID]
			switch {
			case err != nil:
				t.Fatalf("%s: %v", program, err)
			case len(said.Seconds) > 0:
				slices.Sort(said.Seconds)
				took[program] = 1000 * said.Seconds[len(said.Seconds)/2]
			case said.Unsupported == "":
				t.Errorf("%s has no answer to %q: %s", program, q.ID, said.Failed)
			}
		}
		record.Latency.Took[q.ID] = took
		t.Logf("%s: %v", q.ID, took)
	}
	record.save(t)
}

// latency asks Noisegate and PostgreSQL in turn; of copies what has a bound on all rows of a person, as copies have.
func (s *stack) latency(t *testing.T, q peerQuestion) map[string]float64 {
	t.Helper()
	plain, err := pgx.Connect(t.Context(), s.dsn("noisegate_reader", "trips"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close(context.Background())
	times := map[string][]time.Duration{}
	for i := range min(*peersDraws, 15) {
		took := timed(t, func() error { return drain(t.Context(), plain, q.SQL) })
		times[plainSQL] = append(times[plainSQL], took)
		for way, name := range []string{liveTable, preparedCopy} {
			prepared := way == 1
			if prepared && q.Total == 0 {
				continue
			}
			request := q.request()
			request.Dataset, request.Prepared = "trips", &prepared
			if prepared {
				request.MaxRows, request.MaxGroups = nil, nil // bounds in each group are those of the table
			}
			client := s.peerClient(t, 2*i+way) // the same analyst would be given the first answer again
			times[name] = append(times[name], timed(t, func() error {
				answer, err := client.Query(t.Context(), request, "")
				if err == nil && ((answer.AsOf != nil) != prepared || answer.Replayed) {
					err = fmt.Errorf("asked prepared: %t, as of %v, replayed: %t", prepared, answer.AsOf, answer.Replayed)
				}
				return err
			}))
		}
	}
	medians := map[string]float64{}
	for name, all := range times {
		medians[name] = milliseconds(quantile(all, 0.5))
	}
	return medians
}

// table is what the page shows of a run: milliseconds, and how many times those of plain SQL.
func (l peerLatency) table(questions []peerQuestion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run of %s, %d rows:\n\n| question | ε, δ | bounds | plain SQL |", l.Date, l.Rows)
	programs := append([]string{liveTable, preparedCopy}, inPostgreSQL()...)
	for _, program := range programs {
		for _, p := range peerNames() {
			if p.program == program {
				program = p.name
			}
		}
		fmt.Fprintf(&b, " %s |", program)
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat("---|", len(programs)+4))
	for _, q := range questions {
		took := l.Took[q.ID]
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f ms |", q.Ask, guaranteeOf(q), boundsOf(q), took[plainSQL])
		for _, program := range programs {
			if took[program] == 0 {
				b.WriteString(" - |")
			} else {
				fmt.Fprintf(&b, " %.0f ms, %.1f |", took[program], took[program]/took[plainSQL])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
