package totality

import (
	"testing"

	"noisegate.example/internal/pgtest"
)

// The clocks of a zone show no time farther from a moment in UTC than verify says, nor are they set to one farther away, and PostgreSQL
// computes both without an error: for each zone of the server, from one end of the calendar of computations to the other.
//
// needs: postgres
func TestZonesMoveLittle(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var wrong, tried int
	var example string
	if err := db.Conn(t, db.DSN).QueryRow(t.Context(), `
		SELECT count(*) FILTER (WHERE NOT coalesce(near, false)), count(*), coalesce(min(concat_ws(' ', zone, at)) FILTER (WHERE NOT near), '')
		FROM (SELECT zone, at, greatest(at - there, there - at, back - (at AT TIME ZONE 'UTC'), (at AT TIME ZONE 'UTC') - back) < interval '16 hours' AS near
			FROM (SELECT name AS zone, at, timezone(name, at AT TIME ZONE 'UTC') AS there, timezone(name, at) AS back
				FROM pg_catalog.pg_timezone_names,
					(SELECT timestamp '4000-01-01 BC' + n * interval '60 days 01:02:03' AS at FROM generate_series(0, 145000, 997) AS n
					UNION ALL SELECT timestamp '1900-01-01' + n * interval '9 days 00:30' FROM generate_series(0, 5000, 7) AS n) AS times
				WHERE name LIKE '%/%' AND name NOT LIKE 'posix%' AND name NOT LIKE 'right%') AS u) AS v`).
		Scan(&wrong, &tried, &example); err != nil || wrong > 0 || tried < 100_000 {
		t.Errorf("of %d times %d are farther away, such as %s (%v)", tried, wrong, example, err)
	}
}
