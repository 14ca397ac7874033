package integration

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

var benchUsers = flag.Int("users", 10_000, "people that BenchmarkUserLevel spreads -rows visits over, with a heavy tail")

// visits is a table of rows visits of users people: the cube of a uniform number picks the person, so that a few have very many
// rows; most of them are in the person's own region. people has one row for each, regions is public. The table is
// stored in one of visitLayouts.
func visits(rows, users int, name string) dataset {
	layout := visitLayouts[name]
	return dataset{name: name, policy: fmt.Sprintf(`version: 1
dataset: %s
neighbours: add-remove
tables:
  people:
    unit: {row: person}
    columns:
      country: {domain: [0, 1, 2, 3, 4, 5, 6, 7]}
  visits:
    unit: {column: person}
    max_rows: 20
    max_groups: 20
    columns:
      region: {domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]}
      amount: {bounds: [0, 100], step: 0.01}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}
`, name), load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`
			SELECT setseed(0.5);
			CREATE TABLE people (person int PRIMARY KEY, country int NOT NULL);
			INSERT INTO people SELECT i, i %% 8 FROM generate_series(0, %[2]d - 1) AS i;
			CREATE TABLE regions (region int PRIMARY KEY, zone text NOT NULL);
			INSERT INTO regions SELECT i, 'zone ' || i %% 5 FROM generate_series(0, 19) AS i;
			CREATE TABLE visits AS SELECT p AS person, (CASE WHEN random() < 0.7 THEN p %% 20 ELSE floor(random() * 20)::int END) AS region,
				(random() * 120)::numeric(12, 2) AS amount
				FROM (SELECT floor(power(random(), 3) * %[2]d)::int AS p FROM generate_series(1, %[1]d)) AS s;
			ALTER TABLE visits ALTER person SET NOT NULL; %[3]s`, rows, users, layout)).ReadAll()
		if err == nil {
			_, err = conn.PgConn().Exec(ctx, "VACUUM (ANALYZE)").ReadAll()
		}
		return err
	}}
}

// visitLayouts are ways of storing visits, in SQL that runs after they were made: as they came; with an index that
// holds all that the questions read and puts each person's rows together; the same in partitions by person.
var visitLayouts = map[string]string{
	"heap":    "",
	"indexed": "CREATE INDEX by_person ON visits (person, region) INCLUDE (amount); CLUSTER visits USING by_person;",
	"partitioned": `ALTER TABLE visits RENAME TO loose; CREATE TABLE visits (LIKE loose) PARTITION BY HASH (person);
		DO $$BEGIN FOR i IN 0..7 LOOP
			EXECUTE format('CREATE TABLE visits_%s PARTITION OF visits FOR VALUES WITH (MODULUS 8, REMAINDER %s)', i, i);
		END LOOP; END$$;
		INSERT INTO visits SELECT * FROM loose ORDER BY person, region; DROP TABLE loose;
		CREATE INDEX by_person ON visits (person, region) INCLUDE (amount);`,
}

// BenchmarkUserLevel compares questions about people who have many rows with the same text sent to PostgreSQL, in turn and in one
// run, in each layout. -rows and -users set the size.
func BenchmarkUserLevel(b *testing.B) {
	for _, layout := range slices.Sorted(maps.Keys(visitLayouts)) {
		data := visits(*benchRows, *benchUsers, layout)
		b.Run(data.name, func(b *testing.B) {
			s := newStack(b, data)
			client := s.analyst(b, "ana")
			plain, err := pgx.Connect(b.Context(), s.dsn("noisegate_reader", data.name))
			if err != nil {
				b.Fatal(err)
			}
			defer plain.Close(context.Background())
			for i, question := range []struct{ name, sql string }{
				{"count", "SELECT count(*) FROM public.visits"},
				{"sum", "SELECT sum(amount) FROM public.visits"},
				{"people", "SELECT count(DISTINCT person) FROM public.visits"},
				{"group", "SELECT region, count(*), sum(amount) FROM public.visits GROUP BY region ORDER BY region"},
				{"join public", "SELECT r.zone, count(*) FROM public.visits v JOIN public.regions r ON r.region = v.region GROUP BY r.zone " +
					"ORDER BY r.zone"},
				{"join people", "SELECT p.country, count(*) FROM public.visits v JOIN public.people p ON p.person = v.person GROUP BY p.country " +
					"ORDER BY p.country"},
				{"few rows", "SELECT count(*), sum(amount) FROM public.visits WHERE amount < 0.1"},
			} {
				b.Run(question.name, func(b *testing.B) {
					var direct, through []time.Duration
					for n := 0; b.Loop(); n++ {
						request := api.QueryRequest{Dataset: data.name, SQL: question.sql, Epsilon: price(i*1_000_000 + b.N*1000 + n)}
						through = append(through, timed(b, func() error { _, err := client.Query(b.Context(), request, ""); return err }))
						direct = append(direct, timed(b, func() error { return drain(b.Context(), plain, question.sql) }))
					}
					report(b, direct, through)
				})
			}
		})
	}
}

// report gives the medians of both ways and their ratio.
func report(b *testing.B, direct, through []time.Duration) {
	b.ReportMetric(0, "ns/op") // of no use: one operation is both
	b.ReportMetric(milliseconds(quantile(direct, 0.5)), "plain-ms")
	b.ReportMetric(milliseconds(quantile(through, 0.5)), "gateway-ms")
	b.ReportMetric(milliseconds(quantile(through, 0.5))/milliseconds(quantile(direct, 0.5)), "ratio")
}
