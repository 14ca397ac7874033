// Package suggest looks for the query that would be accepted in place of a refused one.
//
// It knows words of SQL and the refusals of internal/fault. It does not know how a query is read: that is a function that it is given.
//
// # Map
//
//	suggest.go the search
//	repair.go  small changes to a text
package suggest
