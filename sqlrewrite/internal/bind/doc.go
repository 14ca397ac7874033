// Package bind settles names, types and policy: a tree of package syntax becomes a bound query, or is refused.
//
// It knows who owns the rows of each relation, what may stand where, and what analysts may see. It does not know prices, mechanisms or
// noise.
//
// # Map
//
//	bind.go           the order of the steps
//	scope.go          what names mean above and below the aggregates
//	from.go           tables, the names of FROM, ids that are counted or tested for NULL
//	join.go           joins
//	subquery.go       queries in FROM: of single rows
//	perunit.go        queries in FROM that are grouped by the unit
//	union.go          UNION ALL
//	semijoin.go       EXISTS and IN
//	scalar.go         one value of public tables
//	unitwindow.go     window functions among one unit's rows
//	windowrows.go     queries whose outputs are computed with windows
//	where.go          conditions
//	rowcall.go        calls of functions
//	groupby.go        keys, public or private
//	keys.go           keys of columns of queries in FROM
//	aggregate.go      aggregates
//	quantile.go       aggregates that choose a value
//	grid.go           grids of what is added up
//	implied.go        narrower ones on the rows that meet conditions
//	orderby.go        HAVING, ORDER BY, LIMIT
//	topk.go           the largest groups, selected instead of sorted
//	bought.go         aggregates of private rows in conditions, which are released first
//	rowkind.go        whether the rows of a query are private, public or released: by what its FROM was bound to
//	tree.go           what a query says before names are known: aliases, aggregates
//	post.go           queries over released values; their outputs followed to the release
//	post_clauses.go   the clauses of post-processing queries
//	post_from.go      FROM of post-processing queries
//	lookup.go         columns of a public table that its key tells, looked up after the noise
//	later.go          conditions on group keys alone, which choose among groups after the noise
//	levels.go         ROLLUP, CUBE and GROUPING SETS: sums over the released groups
//	onelevel.go       the same where each set is a release of its own
//	followed.go       which sums and windows over released rows have intervals
//	choice.go         CASE and casts
//	window.go         windows above the aggregates
//	exactaggregate.go aggregates of released values and public rows
//	probe.go          the outputs of a query over private rows that has none
package bind
