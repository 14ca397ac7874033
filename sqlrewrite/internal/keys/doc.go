// Package keys finds which keys the groups of a query can have, where public tables and declared keys decide that: WHERE v.continent =
// 'ASIA' GROUP BY v.nation has the nations of that continent. The database of these tables is asked with one SELECT DISTINCT for each list,
// which reads public tables and constants alone ([sqlrewrite/verify.Public]).
//
// The package finds which lists a query needs, and which conditions hold for their rows. It does not know who asks for lists, nor when: a
// query that waits for lists ends with [Needed].
//
// Privacy does not depend on lists. A statement leaves out the keys that are not among its arguments; package verify reads these arguments,
// and no list. Tuples that are on no list are dropped before noise is added. A wrong list costs rows.
//
// # Map
//
//	implied.go  the condition that a condition implies for some columns alone
//	inline.go   what columns of queries in FROM are
//	computed.go the keys of expressions over columns that are listed value by value
//	inputs.go   the inputs of lists, and which of them conditions tie together
//	lists.go    questions for lists, and the lists that are known
package keys
