package scalar

import (
	_ "embed"
	"strings"
)

//go:embed zones.txt
var zoneNames string

// zones are the names of time zones, by their lower case. All have a slash, so that none is an abbreviation or a rule (EST5EDT), which
// PostgreSQL takes for other things than zones, on some servers.
var zones = func() map[string]string {
	all := make(map[string]string)
	for name := range strings.FieldsSeq(zoneNames) {
		all[strings.ToLower(name)] = name
	}
	for _, name := range []string{"utc", "z", "gmt", "etc/utc"} {
		all[name] = UTC
	}
	return all
}()

// Zones are all names of zones but UTC's.
func Zones() []string { return strings.Fields(zoneNames) }

// UTC is the zone of the sessions that run statements.
const UTC = "UTC"

// Zone gives a time zone's name as the tz database writes it; like PostgreSQL it takes it in any case of letters.
func Zone(name string) (written string, ok bool) {
	written, ok = zones[strings.ToLower(name)]
	return written, ok
}
