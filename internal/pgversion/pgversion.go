// Package pgversion says which versions of PostgreSQL Noisegate was tested with.
//
// Each major version is another server: functions, casts, types and conditions of errors differ, and with them what a
// statement's rows can make visible. What holds on the tested versions says nothing about the next one. The package knows the form of a
// server's version; it does not know how to ask for it.
package pgversion

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// Oldest is the oldest major version that Noisegate runs on: its roles rely on the predefined roles and the privileges of version 14.
	Oldest = 14
	// Newest is the newest major version that "make versions" runs on.
	Newest = 18
)

// Major is the major version in a server's parameter server_version: 15 in "15.18 (Debian 15.18-0+deb12u1)", 19 in "19devel".
func Major(serverVersion string) (int, error) {
	end := strings.IndexFunc(serverVersion, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(serverVersion)
	}
	major, err := strconv.Atoi(serverVersion[:end])
	if err != nil {
		return 0, fmt.Errorf("the server does not say which version it is of")
	}
	return major, nil
}

// Policy says which servers are accepted.
type Policy string

const (
	// OnlyTested accepts the versions of [Tested].
	OnlyTested Policy = "tested"
	// AllowUntested accepts newer ones as well.
	AllowUntested Policy = "allow-untested"
)

// Parse reads a policy as it stands in a configuration.
func Parse(text string) (Policy, error) {
	switch p := Policy(text); p {
	case OnlyTested, AllowUntested:
		return p, nil
	default:
		return "", fmt.Errorf("must be %s or %s", OnlyTested, AllowUntested)
	}
}

// Refuse says why a server of a version (its parameter server_version) is not accepted; nil when it is. The zero policy is [OnlyTested].
func (p Policy) Refuse(serverVersion string) error {
	major, err := Major(serverVersion)
	switch {
	case err != nil:
		return err
	case major < Oldest:
		return fmt.Errorf("PostgreSQL %d is too old: Noisegate needs version %d to %d", major, Oldest, Newest)
	case major > Newest && p != AllowUntested:
		return fmt.Errorf("PostgreSQL %d is newer than the newest version that Noisegate was tested with (%d); "+
			"\"versions: %s\" in the configuration accepts it, without a promise that no row can make a statement fail there", major, Newest,
			AllowUntested)
	default:
		return nil
	}
}
