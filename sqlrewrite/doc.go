// Package sqlrewrite turns SQL text into a private [Plan].
//
//	text ──parse──▶ *syntax.Query      refuses sql/syntax, sql/unsupported
//	     ──bind───▶ *boundQuery        refuses sql/unknown-*, policy/*
//	     ──plan───▶ *Plan              refuses policy/*, plan/*; the loss is known from here on
//	     ──print──▶ Statement ($n)     runs on the protected database; gives []ExactRow, sealed
//	     ──release▶ released rows      noise, selection, thresholds: the only step that sees sealed values
//	     ──post───▶ *Answer            HAVING, ORDER BY, LIMIT, arithmetic over released values, in PostgreSQL
//
// It knows SQL, privacy units, bounds and sensitivities. It does not know money (whether anyone can pay), HTTP or pgx,
// and it is pure: no I/O, no clock, and no randomness but the sampler that it is handed. A plan, its loss and its
// statement are functions of text, snapshot and options alone.
//
// # Map
//
// Every file, by the step that it is part of; a test holds the list complete.
//
// What other packages see of it all.
//
//	sqlrewrite.go                            Read, Open, Rewrite; plans and what is released of them, with their methods
//
// Parse: from text to the closed tree of package syntax.
//
//	guard.go                                 limits on a text, before a parser sees it
//	conversion.go                            what converters share: nothing that was written is dropped silently
//	parse_postgres.go                        SELECT in PostgreSQL's grammar
//	parse_postgres_expr.go                   its expressions
//	parse_postgres_query.go                  its WITH, FROM and subqueries
//	parse_postgres_window.go                 its windows
//	parse_mysql.go, parse_mysql_query.go     the same of MySQL's dialect
//	parse_mysql_expr.go                      its expressions
//	literal.go                               constants and their types
//
// Bind, who is read: FROM, and whose the rows are.
//
//	bind.go                                  the order of the steps; boundQuery
//	scope.go                                 what names mean above and below the aggregates
//	field.go, relation.go                    rows with fields, each row of at most one unit: what all that follows rests on
//	from.go, join.go, path.go                tables, joins, and the way from a row to its unit
//	subquery.go, perunit.go, union.go        queries in FROM: of single rows, grouped by the unit, UNION ALL
//	semijoin.go, scalar.go                   EXISTS and IN; one value of public tables
//	unitwindow.go, windowrows.go             window functions among one person's rows
//	layer_kind.go                            whether the rows of a query are private, public or released
//
// Bind, what is computed of a row: in total forms, which raise no error whatever the row holds.
//
//	expr.go, functions.go                    typed expressions; every function name that there is
//	structure.go                             whether two expressions are one
//	where.go                                 conditions
//	rowcall.go, rowtext.go, rowtime.go       functions, of texts, of times
//	regex.go                                 the subset of regular expressions that can neither fail nor take long
//	extent.go, total.go                      what is proven of values; the total form of each operation
//	proven.go                                operands through their proven ranges
//	rowinterval.go                           intervals part by part
//	grid.go, timegrid.go                     bounded values as whole numbers of steps
//
// Bind, groups and aggregates.
//
//	groupby.go                               keys, public or private
//	columnkeys.go, keyvalues.go, keycalls.go public keys by column, and by evaluating expressions over what is possible
//	aggregate.go, measure.go, value.go       calls, the integers that are released for them, and what is computed from these
//	quantile.go                              those that choose a value
//	orderby.go                               HAVING, ORDER BY, LIMIT
//	topk.go                                  the largest groups, selected instead of sorted
//
// Plan: sensitivities, mechanisms, prices.
//
//	plan.go, planning.go                     options, plan, statement; settings that it is planned with
//	proposal.go                              what a statement claims, for package verify
//	shape.go                                 how a statement bounds what one unit contributes
//	price.go, split.go                       mechanisms, and the price divided over them
//	pick.go                                  releases that choose
//	work.go, cost.go, costtable.go           what the rows of one unit can cost, by public facts; prices that were measured
//	rowcap.go                                rows of a unit that are left out below a join
//	steady.go                                joins of which both sides are read
//	lift.go                                  EXISTS and IN as such joins
//	slots.go                                 noise of a registered plan
//	reuse.go                                 earlier releases of the same question
//	canonical.go                             what makes two questions one
//
// Print: SQL for the protected database, out of the plan alone.
//
//	print.go, print_from.go                  expressions and relations; the only place where SQL text comes into being
//	leaf.go                                  what a statement reads of a table: columns whose equal values are identical
//	statement.go, moments.go                 statements of sums and counts
//	scan.go                                  statements of different values and histograms
//	dryrun.go                                the same statements over made-up rows, which are run before the charge
//	cut.go                                   statements in pieces that have whole units
//	pins.go                                  the metadata that a statement relies on
//
// Release and answer.
//
//	release.go                               draws, noise, selection of private keys
//	answer.go                                values and columns as they are shown
//	interval.go                              intervals of outputs
//	core.go, fraction.go, fieller.go         the fraction in an output, and its interval
//
// Post: layers over released values and public tables, in PostgreSQL.
//
//	layer.go, layer_bind.go, layer_from.go   queries over rows that hold nothing private
//	postexpr.go, window.go                   their expressions and windows
//	exactaggregate.go                        their aggregates
//	layer_print.go, post.go                  their SQL
//
// Free: queries that read nobody's rows.
//
//	public.go                                of public tables alone
//	free.go, probe.go                        of no rows: what tools ask to learn the columns
//
// Explain: what is said of a query, to whom it is refused or priced.
//
//	explain.go, provenance.go                estimates, and who said each bound
//	suggest.go, repair.go, querytext.go      the query that would be accepted
package sqlrewrite
