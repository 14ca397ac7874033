package catalog

import (
	"fmt"
	"testing"

	"noisegate.example/internal/pgtest"
)

// CHECK constraints are read as PostgreSQL prints them: what is understood is what they say, and the rest says nothing.
func TestChecksSayBoundsAndValues(t *testing.T) {
	for check, want := range map[string]string{
		"CHECK (a >= 0 AND a <= 120)":                      "[0, 120]",
		"CHECK (a BETWEEN -5 AND 5)":                       "[-5, 5]",
		"CHECK (a > 0)":                                    "[0, ]",
		"CHECK (a > 0 AND a < 9) CHECK (a >= 2)":           "[2, 9]",
		"CHECK (a IN (1, 2, 3))":                           "1 2 3",
		"CHECK (a = 1 OR a = 2)":                           "1 2",
		"CHECK (a IN (1, 2)) CHECK (a IN (2, 3))":          "2",
		"CHECK (a = 7)":                                    "7",
		"CHECK (a >= 0 OR a <= -10)":                       "",
		"CHECK (NOT a >= 0)":                               "",
		"CHECK (a + 1 >= 0)":                               "",
		"CHECK (a <> 0)":                                   "",
		"CHECK (abs(a) <= 10)":                             "",
		"CHECK (abs(a) <= 10 AND a <= 4)":                  "",
		"CHECK (s IN ('M', 'F', 'it''s, (x) AND y'))":      "M F it's, (x) AND y",
		"CHECK (v IN ('M', 'F'))":                          "M F",
		"CHECK (s = 'x' AND b >= 1)":                       "", // of two columns
		"CHECK (d >= '2020-01-01' AND d < '2030-01-01')":   "[2020-01-01, 2030-01-01]",
		"CHECK (m >= 0.5 AND m <= 10)":                     "[0.5, 10]",
		"CHECK (f > 0.25)":                                 "[0.25, ]",
		"CHECK (\"A b\" >= 3)":                             "[3, ]",
		"CHECK (y >= 1902)":                                "[1902, 2155]",
		"CHECK (ts >= '2020-01-01 00:00:00')":              "[2020-01-01 00:00:00, ]",
		"CHECK (a >= 10) NOT VALID":                        "",
		"CHECK (lower(s) IN ('a')) CHECK (s IN ('a','b'))": "a b",
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, `CREATE DOMAIN year AS int CHECK (VALUE >= 1901 AND VALUE <= 2155)`,
				`CREATE TABLE t (a int, b int, s text, v varchar(9), d date, m numeric(5,2), f float8, "A b" int, y year, ts timestamp)`)
			for i, c := range splitChecks(check) {
				p.Exec(t, fmt.Sprintf("ALTER TABLE t ADD CONSTRAINT c%d %s", i, c))
			}
			schema, err := Inspect(t.Context(), p.Pool(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			table, _ := schema.Table(TableName{"public", "t"})
			got := ""
			for _, c := range table.Columns {
				f := table.Facts().Of(c.Name)
				if c.Name == "y" && f.Lo == "1901" { // the domain's own, under every other check
					continue
				}
				for i, v := range f.Values {
					if i > 0 {
						got += " "
					}
					got += v
				}
				if f.Lo != "" || f.Hi != "" {
					got += "[" + f.Lo + ", " + f.Hi + "]"
				}
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func splitChecks(text string) (all []string) {
	const check = "CHECK ("
	start := 0
	for i := 1; i+len(check) <= len(text); i++ {
		if text[i:i+len(check)] == check {
			all, start = append(all, text[start:i]), i
		}
	}
	return append(all, text[start:])
}

// FuzzCheckExpressions: no expression makes the reader panic or hang.
func FuzzCheckExpressions(f *testing.F) {
	for _, seed := range []string{"((a >= 0) AND (a <= 120))", "(s = ANY (ARRAY['M'::text, 'F'::text]))", "((((", "'", "a::", "ARRAY[",
		"(a = ANY"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		(&ColumnFacts{}).constrain(text)
	})
}
