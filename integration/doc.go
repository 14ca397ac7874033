// Package integration tests the finished program. It builds the real binary, starts it and a PostgreSQL server, and talks to it over HTTP
// as analysts and stewards do.
//
// It knows what the contract says: commands, configuration, routes, problem codes. It does not know any package behind
// api, and internal/archtest keeps it so: what these tests see is what a client sees, plus what an operator could read in
// the databases and in the log.
//
// Tests run in parallel, each with its own databases on one server. One that changes or counts what belongs to the
// server takes newOwnStack. One that measures time or memory begins with "alone:" and why, and runs before the others.
package integration
