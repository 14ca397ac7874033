package tree

import "regexp"

// zone has a slash: else PostgreSQL could take it for an abbreviation, which a setting defines, or a rule (EST5EDT).
var zone = regexp.MustCompile(`^[A-Z][A-Za-z]*(/[A-Za-z0-9_+-]+){1,2}$`)

// IsZone reports whether a text is written as the name of a time zone.
func IsZone(name string) bool { return zone.MatchString(name) }
