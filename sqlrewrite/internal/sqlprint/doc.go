// Package sqlprint is the only maker of SQL text: statements for the protected database with every literal as a parameter, what runs after
// the noise, dry runs, and the description of expressions for people. A statement carries its claim, and is proven against it by package
// verify.
//
// It knows how each relation, expression and bound is written, and which metadata a statement rests on. It does not know how a query was
// bound, nor prices.
//
// # Map
//
//	print.go           expressions
//	print_from.go      relations
//	leaf.go            what a statement reads of a table: columns whose equal values are identical
//	repeat.go          columns of queries in FROM, which are computed once
//	prepared.go        what makes prepared copies of tables
//	build.go           its proof and its digest
//	rowcap.go          relations of which each unit keeps some rows
//	aggregate.go       aggregates, over released values and among one unit's rows
//	window.go          windows
//	statement.go       statements of sums and counts
//	vector.go          statements of sums of products that are released together
//	clusters.go        such statements over the rows closest to each of several centres
//	scores.go          such statements of what scores of a grouping are made of
//	bought.go          arguments that are released before a statement runs
//	prove.go           what a statement is, its claim and its proof
//	statement_steps.go values as numbers of steps
//	part.go            the statements of one plan
//	scan.go            statements of different values and histograms
//	partitioning.go    statements in partitions that have whole units
//	planning.go        settings that a statement is planned with
//	preconditions.go   the metadata that a statement relies on
//	facts.go           what a release rests on of its tables
//	keylist.go         what asks which keys there can be
//	dryrun.go          the same statements over made-up rows, which are run before the charge
//	post_query.go      post-processing queries
//	post.go            post-processing queries over the released values
//	several.go         several releases in post-processing queries
//	describe.go        expressions for people; the hash of lists of texts
//	structure.go       the structure of expressions, for earlier names
package sqlprint
