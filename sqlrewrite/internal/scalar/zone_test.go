package scalar

import "testing"

// Names are taken in any case of letters; abbreviations and rules are no names.
func TestZoneNames(t *testing.T) {
	for name, want := range map[string]string{"america/new_york": "America/New_York", "US/Eastern": "America/New_York",
		"Etc/GMT+5": "Etc/GMT+5", "utc": "UTC", "Z": "UTC",
		"CET": "", "EST5EDT": "", "+02:00": "", "America/Nowhere": "", "": "", "../etc/passwd": ""} {
		if got, ok := Zone(name); got != want || ok != (want != "") {
			t.Errorf("%q is %q", name, got)
		}
	}
}
