// Package fit makes a question for a regression or for clusters into a plan: columns on grids of whole numbers, statements of sums of
// products, their claims and prices, and coefficients or centres from what is released.
//
// It knows columns, their scales, and how a row's vector is bounded. It does not know whether anyone can pay, nor how coefficients and
// centres are computed of released sums (mechanisms/regression, mechanisms/clustering).
//
// # Map
//
//	question.go  texts to a bound query and factors
//	plan.go      methods; the statement and its price
//	claim.go     the sums of a regression, and how long their vector is
//	run.go       releases, pass by pass
//	result.go    coefficients in the units of the columns
//	statement.go what all plans do: rows are bound, statements proven
//	identity.go  names of questions; earlier.go: their names in earlier versions
//	cluster.go   clusterings: their statements
//	cluster_sums.go    the columns of these and their scales
//	cluster_claim.go   what statements of all plans are said to move by, and their noise; the prices of a clustering's
//	cluster_run.go     releases, statement by statement
//	cluster_result.go  arguments of the next statement, centres in the units of the columns
//	score.go           scores of groupings: their statement, and scores of what is released
//	score_run.go       its release
package fit
