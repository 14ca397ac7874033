package domain

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones, wherever the test runs

	"noisegate.example/sqlrewrite/internal/scalar"
)

// The clocks of no zone are changed twice within the time that granules rely on, nor are they farther from UTC than ranges say.
func TestZonesChangeSeldom(t *testing.T) {
	zones := scalar.Zones()
	if len(zones) < 500 {
		t.Fatalf("%d zones", len(zones))
	}
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var last time.Time
		at := time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC).In(zone)
		for at.Year() < 2110 {
			_, offset := at.Zone()
			if int64(max(offset, -offset))*scalar.SecondUnit >= farthest {
				t.Errorf("%s is %d seconds from UTC at %v", name, offset, at)
			}
			_, next := at.ZoneBounds()
			if next.IsZero() {
				break
			}
			if !next.After(at) { // as it is for the last rule of some zones
				next = at.Add(time.Hour)
			}
			if _, then := next.Zone(); then != offset {
				if next.Year() >= firstZoneYear && next.Sub(last) < seldom*time.Second {
					t.Errorf("%s changes at %v and %v", name, last, next)
				}
				last = next
			}
			at = next
		}
	}
}
