// Package scalar has what a query computes with: numbers, texts, times and keys as exact values, the ranges in which they lie, and the
// families of types to which they belong.
//
// It knows PostgreSQL's spelling of values and the order of keys. It does not know expressions, relations or statements.
//
// # Map
//
//	number.go  whole and rational numbers; how PostgreSQL writes them
//	literal.go the texts of numbers, times and UUIDs that PostgreSQL reads
//	range.go   value ranges: what is proven of the values of an expression
//	time.go    dates, times and intervals as numbers
//	zone.go    names of time zones
//	type.go    families of types; the type of arithmetic
//	key.go     the order and the identity of group keys
//	text.go    quotes, and positions in a text
package scalar
