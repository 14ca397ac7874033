package verify

import (
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

func BenchmarkStatement(b *testing.B) {
	cases := corpus(b)
	b.Run("parse", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := pgquery.Parse(cases[i%len(cases)].SQL); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("prove", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			c := cases[i%len(cases)]
			if err := Statement(c.SQL, c.Args, c.on, c.claim); err != nil {
				b.Fatal(err)
			}
		}
	})
	// The least of several times of each statement, added up: what a machine that does other things leaves comparable.
	b.Run("ratio", func(b *testing.B) {
		least := func(f func() error) (best time.Duration) {
			for range 5 {
				start := time.Now()
				if err := f(); err != nil {
					b.Fatal(err)
				}
				if took := time.Since(start); best == 0 || took < best {
					best = took
				}
			}
			return best
		}
		var parse, prove time.Duration
		for b.Loop() {
			for _, c := range cases {
				parse += least(func() error { _, err := pgquery.Parse(c.SQL); return err })
				prove += least(func() error { return Statement(c.SQL, c.Args, c.on, c.claim) })
			}
		}
		b.ReportMetric(float64(prove)/float64(parse), "proofs/parse")
	})
}

// unread are fields in which nothing is said that changes what a statement means.
var unread = map[string]bool{"Location": true, "StmtLocation": true, "StmtLen": true, "Version": true}

// free are fields that may hold anything where they are empty: the name of an output that nobody names, a constant text.
var free = map[string]bool{"ResTarget.Name": true, "String.Sval": true}

// Every field of every node is read: a statement in whose tree one field is set that was not, to whatever it may hold, is refused, but for
// those in which nothing is said.
func TestEveryFieldIsRead(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range corpus(t) {
		parsed, err := pgquery.Parse(c.SQL)
		if err != nil {
			t.Fatal(err)
		}
		s := parsed.Stmts[0].Stmt.GetSelectStmt()
		proven := func() (err error) {
			defer tree.Caught(&err)
			return derive(c.SQL, s, c.Args, c.on, c.claim).covers(c.claim)
		}
		var visit func(v reflect.Value, path string)
		visit = func(v reflect.Value, path string) {
			switch v.Kind() {
			case reflect.Pointer, reflect.Interface:
				if !v.IsNil() {
					visit(v.Elem(), path)
				}
			case reflect.Slice:
				for i := range v.Len() {
					visit(v.Index(i), path)
				}
			case reflect.Struct:
				for i := range v.NumField() {
					f := v.Type().Field(i)
					if !f.IsExported() || unread[f.Name] {
						continue
					}
					at := v.Type().Name() + "." + f.Name
					old := v.Field(i)
					if free[at] {
						continue
					}
					if strings.Contains(v.Type().Name(), "_") && v.NumField() == 1 || !old.IsZero() && old.Kind() != reflect.Slice {
						visit(old, at)
						continue
					}
					if seen[at] && old.Kind() != reflect.Slice {
						continue
					}
					if old.Kind() == reflect.Slice {
						visit(old, at)
						if old.Len() > 0 || seen[at] {
							continue
						}
					}
					for _, other := range others(f.Type) {
						keep := reflect.ValueOf(old.Interface())
						old.Set(other)
						if proven() == nil {
							t.Errorf("%s = %v is not read: %s", at, other, c.SQL)
						}
						if keep.IsValid() {
							old.Set(keep)
						} else {
							old.SetZero()
						}
					}
					seen[at] = true
				}
			}
		}
		visit(reflect.ValueOf(s), "")
		if err := proven(); err != nil {
			t.Fatalf("after all were put back: %v\n%s", err, c.SQL)
		}
	}
	t.Logf("%d fields", len(seen))
	if len(seen) < 60 {
		t.Errorf("only %d fields", len(seen))
	}
}

// others are values that a field could have.
func others(t reflect.Type) []reflect.Value {
	one := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		one.SetBool(true)
	case reflect.String:
		one.SetString("x")
	case reflect.Int32, reflect.Int64:
		var all []reflect.Value
		for n := range 8 {
			v := reflect.New(t).Elem()
			v.SetInt(int64(n + 1))
			all = append(all, v)
		}
		return all[:1]
	case reflect.Uint32:
		one.SetUint(1)
	case reflect.Pointer:
		one.Set(reflect.New(t.Elem()))
	case reflect.Slice:
		one.Set(reflect.MakeSlice(t, 1, 1))
		if t.Elem().Kind() == reflect.Pointer {
			one.Index(0).Set(reflect.New(t.Elem().Elem()))
		}
	default:
		return nil
	}
	return []reflect.Value{one}
}

// Numbers of rows that a text may name are as large as a bigint. A product of two of them must not come round to a small one.
func TestLargePlacesAreNotFew(t *testing.T) {
	on, pins := town()
	sql, args := expand(`SELECT @count(*)::@text FROM (SELECT v."person_id", @row_number() OVER (PARTITION BY v."person_id", ` +
		`v."minutes" ORDER BY v."visit_id") AS n, @dense_rank() OVER (PARTITION BY v."person_id" ORDER BY v."minutes") AS r ` +
		`FROM ONLY "public"."visits" AS v WHERE v."person_id" IS NOT NULL AND v."visit_id" IS NOT NULL) AS u ` +
		`WHERE u.r <= «4611686018427387904»::bigint AND u.n <= «4»::bigint`)
	one := big.NewInt(1)
	got, err := Derive(sql, args, on, Claim{Pins: pins})
	if err != nil {
		t.Fatal(err)
	}
	if Statement(sql, args, on, Claim{Groups: one, PerGroup: []*big.Int{one}, Pins: pins}) == nil {
		t.Errorf("any number of visits of a person is proven to be 1: %s", got.PerGroup)
	}
}
