// Package keys finds which keys the groups of a query can have, where public tables and declared keys alone decide it: WHERE
// v.continent = 'ASIA' GROUP BY v.nation has the nations of that continent. What can be is asked of the database that the tables lie in, as
// one SELECT DISTINCT a list, which reads public tables and constants alone ([sqlrewrite/verify.Public]).
//
// It knows which conditions hold for the rows of a list, and which lists a query needs. It does not know who asks them, nor when: a
// query that waits for lists ends with [Needed].
//
// Privacy rests on none of it. Statements leave out groups that are off a list, as package verify reads in text and arguments, whatever
// the list: a wrong one costs rows.
//
// # Map
//
//	implied.go  the condition that a condition implies for some columns alone
//	inputs.go   what the rows of a list are made of, and which of it belongs together
//	lists.go    questions, and what is known of their answers
package keys
