// Package sqlrewrite turns SQL text into a private [Plan].
//
//	text ──parse──▶ *syntax.Query      refuses sql/syntax, sql/unsupported
//	     ──bind───▶ *BoundQuery        refuses sql/unknown-*, policy/*
//	     ──plan───▶ *Plan              refuses policy/*, plan/*; the loss is known from here on
//	     ──print──▶ Statement ($n)     runs on the protected database; gives []ExactRow, sealed
//	     ──release▶ released rows      noise, selection, thresholds: the only step that sees sealed values
//	     ──post───▶ *Answer            HAVING, ORDER BY, LIMIT, arithmetic over released values, in PostgreSQL
//
// It knows SQL, privacy units, bounds and sensitivities. It does not know money (whether anyone can pay), HTTP or pgx,
// and it is pure: no I/O, no clock, and no randomness but the sampler that it is handed. A plan, its loss and its
// statement are functions of text, snapshot and options alone.
//
// # Rooms
//
// This package is what others see of it. The work is done in packages of sqlrewrite/internal, each of which may import those below it
// (internal/archtest holds that); the comment of each has a map of its files.
//
//	suggest    the query that would be accepted in place of a refused one
//	fit        regressions and clusterings: sums of products that are released together
//	pipeline   the order of the steps: from a text to a plan, from a plan to a release
//	explain    estimates, and who said each bound
//	free       queries that read nobody's rows
//	answer     values as they are shown, intervals, notes
//	plan       mechanisms, prices, what is claimed, draws and releases
//	bind       names, types and policy: from a tree to a bound query
//	sqlprint   the only maker of SQL text; statements, their preconditions and their proofs
//	lower      EXISTS and IN as joins: trees that mean the same
//	copytext   what is asked of the rows of prepared copies when they are made
//	stability  whose a row is, contribution bounds, sensitivities, work
//	domain     value ranges, error-free forms, grids, keys that can appear, functions
//	algebra    relations, expressions, released statistics and post-processing queries as data
//	parse      limits, and two grammars, to the closed tree
//	scalar     numbers, times, texts, keys
//	steps      what planning a text may take
//
// Package syntax is the closed tree, package verify the second derivation of what a statement reveals; it imports none of these. Package
// statement says which statements of a message are queries at all.
//
// # Map
//
//	sqlrewrite.go  Read, Open, Rewrite; plans and what is released of them, with their methods
//	describe.go    columns without a price; repairs of refused texts
//	prepared.go    bounded copies of tables: what makes them, and plans over them
//	fit.go         regressions
//	cluster.go     clusterings
//	score.go       scores of groupings
//	form.go        releases that are stored, and recalled
//	names.go       the names of types and constants that rooms have
package sqlrewrite
