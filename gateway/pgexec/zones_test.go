package pgexec_test

import (
	"testing"

	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// inZone is a statement that names a zone.
func inZone(t *testing.T, d *pgexec.Database, zone string) sqlrewrite.Statement {
	return sqlrewrite.Statement{SQL: "SELECT count(pg_catalog.timezone('" + zone + "', at))::text FROM public.visits", Values: 1,
		Preconditions: pins(t, d, "visits", "id", "at"), Zones: []string{zone}}
}

const visitsInZones = `CREATE TABLE visits (id int PRIMARY KEY, at timestamptz)`

// The file of a zone is read before any row of a statement is: a zone that the server does not know fails also where no row would reach it,
// untouched, and it fails before a charge.
//
// needs: postgres
func TestZonesAreReadBeforeRows(t *testing.T) {
	p := pgtest.Protected(t, visitsInZones)
	for _, looksAhead := range []bool{false, true} {
		d := open(t, p, nil)
		known, unknown := inZone(t, d, "Asia/Tokyo"), inZone(t, d, "Asia/Nowhere")
		if looksAhead {
			known.Preconditions[0].MostRows, unknown.Preconditions[0].MostRows = 10, 10
		}
		rows, err := collect(t, d, known)
		if err != nil || len(rows) != 1 || revealed(t, rows[0].Values[0]) != "0" {
			t.Errorf("%v, %v", rows, err)
		}
		if _, err := collect(t, d, unknown); err == nil || !fault.IsUntouched(err) {
			t.Errorf("%v, want an error before any row is read", err)
		}
		unknown.Zones = nil // no row reaches it
		if _, err := collect(t, d, unknown); err != nil {
			t.Error(err)
		}
	}
	d := open(t, p, nil)
	known, unknown := inZone(t, d, "Asia/Tokyo"), inZone(t, d, "Asia/Nowhere")
	going := func(int, sqlrewrite.ExactRow) error { return nil }
	s := &script{statements: []sqlrewrite.Statement{known, known}, after: going}
	if err := d.Sequence(t.Context(), s); err != nil || s.done != 2 {
		t.Errorf("%d of a series of two: %v", s.done, err)
	}
	for name, series := range map[string][]sqlrewrite.Statement{"unknown": {unknown}, "of two zones": {known, unknown}} {
		err := d.Sequence(t.Context(), &script{statements: series, after: going})
		if err == nil || fault.IsUntouched(err) != (name == "unknown") {
			t.Errorf("%s: %v, untouched %v", name, err, fault.IsUntouched(err))
		}
	}
	for zone, want := range map[string]fault.Code{"Asia/Tokyo": "", "Asia/Nowhere": fault.CodeTimeZone} {
		for range 2 {
			if _, err := d.Dry(t.Context(), "ana", sqlrewrite.DryRun{Plain: true, For: inZone(t, d, zone)}); fault.CodeOf(err) != want {
				t.Errorf("%s: %v, want %q", zone, err, want)
			}
		}
	}
}

// One process reads all rows of a statement with a zone: others would read its file at their first row.
//
// needs: postgres
func TestZonesHaveNoParallelWorkers(t *testing.T) {
	p := pgtest.Protected(t, visitsInZones)
	d := open(t, p, nil)
	s := inZone(t, d, "Asia/Tokyo")
	s.SQL = "SELECT pg_catalog.current_setting('max_parallel_workers_per_gather')"
	for _, zones := range [][]string{{"Asia/Tokyo"}, nil} {
		s.Zones = zones
		rows, err := collect(t, d, s)
		if err != nil || len(rows) != 1 || (revealed(t, rows[0].Values[0]) == "0") != (zones != nil) {
			t.Errorf("with zones %v: %v, %v", zones, rows, err)
		}
	}
}
