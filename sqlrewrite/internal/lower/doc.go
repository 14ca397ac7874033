// Package lower changes queries below the release block into forms that mean the same, and for which PostgreSQL reads the same whatever one
// unit has.
//
// It knows the trees of package algebra, and which of them read many rows. It does not know how they are printed.
//
// # Map
//
//	rules.go     the rules: before, after and why
//	readboth.go  joins in a form for which PostgreSQL reads both sides
//	semijoin.go  EXISTS and IN as joins
package lower
