package totality

import (
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// PostgreSQL lists the keys of random expressions that are refused without lists, and no row has a key that is on no list. Where the keys
// are known without a list, it has no others.
//
// needs: postgres
func TestListedKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	conn, narrow, r := gen.ErrorFreeRows(t, 15+*gen.ProofSeed, 16, 400, "UPDATE public.t SET letter = 'a', grade = 1 WHERE id <= 0; ")
	// More days than are looked at without lists.
	wide := rewritetest.ParseSnapshot(t, gen.ErrorFreeTables,
		strings.Replace(gen.ErrorFreePolicy, "[2020-01-01, 2024-12-31]", "[1960-01-01, 2024-12-31]", 1))
	lists := gen.NewLists(conn)
	want := *gen.TotalExpressions / 5
	listed, compared, equal := 0, 0, 0
	for i := range want {
		text := "SELECT count(*) FROM t GROUP BY " + gen.RandomExpression(r, "key", 1+r.IntN(3))
		if i%3 == 0 {
			text = "SELECT count(*) FROM t WHERE " + gen.RandomExpression(r, "test", 1) + " GROUP BY " + gen.RandomExpression(r, "key", 1+r.IntN(3))
		}
		snapshot := []*catalog.Snapshot{narrow, wide}[i%2]
		list := lists.Now(t, snapshot)
		query, err := parse.Parse(text, "")
		if err != nil {
			continue
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err == nil && len(bound.Keys) == 1 && !bound.Keys[0].Private() && algebra.PlainField(bound.Keys[0].X) == nil {
			all, _, ok := keys.Computed(list, bound.Keys[0].X, bound.Where)
			if !ok {
				continue
			}
			compared++
			among := make(map[catalog.Key]bool)
			for _, k := range bound.Keys[0].Domain {
				among[k] = true
			}
			for _, k := range all {
				if !among[k] {
					t.Fatalf("%s: %v is listed, and not among %d keys", text, k, len(among))
				}
			}
			if slices.Equal(all, bound.Keys[0].Domain) {
				equal++
			}
			continue
		}
		if fault.CodeOf(err) != fault.CodeMissingKeys {
			continue
		}
		opened := algebra.NewOpened("", query, snapshot)
		opened.List = list
		if bound, err = bind.Releasing(opened); err != nil {
			continue
		}
		listed++
		gen.CheckDomain(t, conn, text, bound)
	}
	t.Logf("%d queries with listed keys; of %d others, %d have the same keys on lists", listed, compared, equal)
	if listed*60 < want || compared*8 < want || equal*10 < compared*8 {
		t.Error("too few to tell")
	}
}

// Granules hold every key of a time, and no other: the keys at each quarter of an hour of a year, and one microsecond before it, are those
// on the list.
//
// needs: postgres
func TestGranules(t *testing.T) {
	t.Parallel()
	conn, snapshot, r := gen.ErrorFreeRows(t, 1, 17, 0, `TRUNCATE public.t; INSERT INTO public.t (id, small, at, atz)
		SELECT pg_catalog.row_number() OVER (), 0, v, v FROM (SELECT q - before * interval '1 microsecond' AS v
			FROM generate_series(timestamp '2022-01-01', '2022-12-31', '15 minutes') AS q, generate_series(0, 1) AS before) AS all_of
			WHERE v >= '2022-01-01' UNION ALL SELECT 0, 0, NULL, NULL; `)
	list := gen.NewLists(conn).Now(t, snapshot)
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	listed := 0
	for range 60 {
		at := pick("at", "atz", "at + INTERVAL '90 minutes'", "atz - INTERVAL '3 days 02:45'", "CAST(at AS timestamptz)",
			"date_trunc('hour', at)", "(atz AT TIME ZONE 'America/New_York')", "(at AT TIME ZONE 'Australia/Lord_Howe')",
			"((at AT TIME ZONE 'Asia/Kolkata') AT TIME ZONE 'Europe/London')")
		unit := pick("hour", "day", "week", "month", "quarter", "year")
		number := pick("extract(epoch FROM %)", "extract(epoch FROM %) / 7200", "extract(epoch FROM %) / 86400 + 0.25",
			"extract(year FROM %) / 2.0", "extract(epoch FROM %) * 0.00001 / 0.9 - 7")
		form := pick("floor("+number+")*0.5", "floor(extract(epoch FROM %) / 900)", "ceil("+number+")", "round("+number+")",
			"("+number+")::bigint", "trunc("+number+")::text",
			"date_trunc('"+unit+"', %)", "date_trunc('"+unit+"', % + INTERVAL '1 day') - INTERVAL '1 day'", "(%)::date",
			"date_bin('"+pick("7 days", "90 minutes", "1 day 06:00")+"', %, '"+pick("2000-01-02", "2023-01-01 00:01")+"')",
			"extract("+pick("hour", "dow", "week", "isoyear", "doy", "quarter", "minute")+" FROM %) * 10 + extract(month FROM %)",
			"to_char(%, '"+pick("YYYY-MM", "HH24:MI", "FMDay HH12 AM", "IYYY-IW")+"') || extract(hour FROM %)::text",
			"CASE WHEN % < '2022-03-27 01:30+00' THEN date_trunc('day', %) ELSE date_trunc('month', %) END")
		text := "SELECT count(*) FROM t GROUP BY " + strings.ReplaceAll(form, "%", at)
		query, err := parse.Parse(text, "")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		opened := algebra.NewOpened("", query, snapshot)
		opened.List = list
		bound, err := bind.Releasing(opened)
		if err != nil || len(bound.Keys) == 0 || bound.Keys[0].Private() {
			continue // each second is a key, or a comparison sees values beyond the bounds
		}
		all, _, ok := keys.Computed(list, bound.Keys[0].X, bound.Where)
		if !ok {
			continue
		}
		listed++
		bound.Keys[0].Domain = all
		if found := gen.CheckDomain(t, conn, text, bound); found != len(all) {
			t.Errorf("%s: %d keys are listed, and rows have %d", text, len(all), found)
		}
	}
	if t.Logf("%d of 60 keys are listed", listed); listed < 30 {
		t.Error("too few to tell")
	}
}
