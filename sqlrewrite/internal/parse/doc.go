// Package parse turns text in PostgreSQL's or MySQL's grammar into the closed tree of package syntax, within limits that hold before a
// parser sees it.
//
// It knows the two grammars. It does not know what a name means, nor that there are privacy units.
//
// # Map
//
//	guard.go                 limits on a text, before a parser sees it
//	conversion.go            what converters share: nothing that was written is dropped silently
//	parse_postgres.go        SELECT in PostgreSQL's grammar
//	parse_postgres_expr.go   its expressions
//	parse_postgres_query.go  its WITH, FROM and subqueries
//	parse_postgres_window.go its windows
//	parse_postgres_groupby.go its ROLLUP, CUBE and GROUPING SETS
//	parse_postgres_moment.go what its clock says
//	parse_postgres_rows.go   its rows of values and arrays
//	parse_mysql.go           SELECT in MySQL's dialect
//	parse_mysql_query.go     its FROM and subqueries
//	parse_mysql_expr.go      its expressions
//	querytext.go             a text as words, for positions and suggestions
package parse
