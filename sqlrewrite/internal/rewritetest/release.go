package rewritetest

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Number is the number that a text is.
func Number(t *testing.T, text string) *big.Rat {
	t.Helper()
	v, ok := scalar.ParseNumber(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return v
}

// Sealed runs statements as the gateway does.
func Sealed(t *testing.T, conn *pgx.Conn, statements []sqlprint.Statement) []plan.ExactRow {
	t.Helper()
	var all []plan.ExactRow
	for part, s := range statements {
		rows, err := conn.Query(t.Context(), s.SQL, s.Args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			row := plan.ExactRow{Part: part}
			for i, raw := range rows.RawValues() {
				if i < s.Keys {
					row.Keys = append(row.Keys, catalog.Key{Text: string(raw), Null: raw == nil})
					continue
				}
				value, err := mechanisms.SealText(raw)
				if err != nil {
					t.Fatal(err)
				}
				row.Values = append(row.Values, value)
			}
			all = append(all, row)
		}
		if rows.Err() != nil {
			t.Fatal(fmt.Errorf("%s: %w", s.SQL, rows.Err()))
		}
	}
	return all
}

// Beyond reports whether so many misses are more than a level explains, by five standard errors.
func Beyond(misses, repeats int, level float64) bool {
	return float64(misses) > float64(repeats)*(1-level)+5*math.Sqrt(float64(repeats)*level*(1-level))
}

// TownPlan plans a query of the town.
func TownPlan(t testing.TB, sql string, o plan.Options) *plan.Plan {
	t.Helper()
	p, err := pipeline.Rewrite(sql, TownSnapshot(t), o)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return p
}

// Streamed gives rows as pgexec would.
func Streamed(rows []plan.ExactRow) plan.Rows {
	return func(yield func(plan.ExactRow, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// AnswerFrom is the answer that a plan gives of rows.
func AnswerFrom(t testing.TB, s *mechanisms.Sampler, p *plan.Plan, rows ...plan.ExactRow) *answer.Answer {
	t.Helper()
	released, err := pipeline.Release(p, s, p.Draw(s), Streamed(rows))
	if err != nil {
		t.Fatal(err)
	}
	a, err := answer.Complete(released, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TownOptions are options of requests about the town.
func TownOptions(epsilon string) plan.Options {
	price, err := mechanisms.ParseEpsilon(epsilon)
	if err != nil {
		panic(err)
	}
	return plan.Options{Epsilon: price, Delta: mechanisms.DeltaUnit / 1_000_000, Mechanism: plan.MechanismAuto, Currency: catalog.Approx,
		Confidence: 0.95}
}
