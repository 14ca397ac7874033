package totality

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// A bin of date_bin begins at its time or before it, by its length at most, and PostgreSQL computes it without an error: for lengths from a
// microsecond to the longest, times and origins from one end of the calendar of computations to the other, and times at the ends of bins.
//
// needs: postgres
func TestBinsBeginBefore(t *testing.T) {
	t.Parallel()
	const (
		day         = 86_400_000_000        // microseconds
		first, last = -2_180_466, 6_585_442 // the years -4000 and 20000, in days since 1970
		longest     = 366_000               // days
	)
	r := rand.New(rand.NewPCG(92, 1))
	between := func(lo, hi int64) int64 { return lo + r.Int64N(hi-lo+1) }
	var days, micros [3][]int64 // of lengths, times and origins
	for range 4 * gen.Proofs() {
		length := min(int64(math.Exp(r.Float64()*math.Log(longest*day))), longest*day)
		least, most := first*day+length, int64(last*day)
		origin, at := between(first*day, most), between(least, most)
		if end := origin + (at-origin)/length*length + between(-1, 1); r.IntN(2) == 0 && least <= end && end <= most {
			at = end
		}
		for i, v := range []int64{length, at, origin} {
			rest := (v%day + day) % day
			days[i], micros[i] = append(days[i], (v-rest)/day), append(micros[i], rest)
		}
	}
	const begins, duration = "date '1970-01-01' + %[1]sd::integer + %[1]sm * interval '1 microsecond'",
		"%[1]sd * interval '1 day' + %[1]sm * interval '1 microsecond'"
	var wrong int
	var example string
	db := pgtest.New(t)
	if err := db.Conn(t, db.DSN).QueryRow(t.Context(), fmt.Sprintf(`
		SELECT count(*), coalesce(min(concat_ws(' ', length, x, origin, b)), '') FROM (
			SELECT length, x, origin, date_bin(length, x, origin) AS b FROM (
				SELECT %s AS length, %s AS x, %s AS origin
				FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[]) AS v(ld, lm, xd, xm, od, om)) w) u
		WHERE NOT (b <= x AND x - length <= b)`, fmt.Sprintf(duration, "l"), fmt.Sprintf(begins, "x"), fmt.Sprintf(begins, "o")),
		days[0], micros[0], days[1], micros[1], days[2], micros[2]).Scan(&wrong, &example); err != nil || wrong > 0 {
		t.Errorf("%d bins begin elsewhere, such as %s (%v)", wrong, example, err)
	}
}
