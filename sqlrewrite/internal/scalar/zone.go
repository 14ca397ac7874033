package scalar

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

//go:embed zones.txt
var zoneNames string

// zones are the names of time zones, by their lower case and that of their old names, which some servers no longer have (US/Eastern). All
// have a slash, so that none is an abbreviation or a rule (EST5EDT), which PostgreSQL takes for other things than zones, on some servers.
var zones = func() map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(zoneNames) {
		names := strings.Fields(line)
		all[strings.ToLower(names[0])] = names[len(names)-1]
	}
	for _, name := range []string{"utc", "z", "gmt", "etc/utc"} {
		all[name] = UTC
	}
	return all
}()

// Zones are all names of zones but UTC's, without old ones.
func Zones() []string {
	all := slices.Sorted(maps.Values(zones))
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == UTC })
}

// UTC is the zone of the sessions that run statements.
const UTC = "UTC"

// Zone gives a time zone's name as the tz database writes it; like PostgreSQL it takes it in any case of letters.
func Zone(name string) (written string, ok bool) {
	written, ok = zones[strings.ToLower(name)]
	return written, ok
}
