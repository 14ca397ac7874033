// Package algebra has a query as data: relations, typed expressions, groups, released statistics, and the post-processing queries. Stages
// are functions over it in the packages above.
//
// It knows how the parts are made up, and what follows from them alone. It does not know how they are bound, bounded, printed or priced.
//
// # Map
//
//	expr.go       typed expressions, and their operands
//	aggregate.go  aggregates and windows, of one unit's rows and of released ones
//	relation.go   rows with fields, each row of at most one unit; tables, joins, queries in FROM
//	field.go      columns of relations
//	prepared.go   whether a query reads a prepared copy
//	rowcap.go     a relation of which each unit keeps some rows
//	query.go      a bound query: one release block
//	keylist.go    lists of keys that rows can have, as questions, and keys that they leave
//	followed.go   which released rows a sum or a window is computed from
//	select.go     a SELECT, below and above the noise; what its rows are
//	several.go    several release blocks, and which of their rows a row stems from
//	part.go       blocks that count the rows of all groups of another one
//	same.go       whether two expressions are one, by their structure
//	nodes_gen.go  operands and comparison of all nodes, from the numbers of their fields: internal/gen/nodes
//	encode.go     expressions and release blocks as bytes
//	statistic.go  released statistics, and the estimators that are computed from them
//	grid.go       bounded values as whole numbers of steps
//	binder.go     the state of binding: what is read, and what names mean
package algebra
