// Package free plans queries that read nobody's rows: of public tables alone, or of no rows whatever the tables hold.
//
// It knows which queries these are, and their exact answers. It does not know noise, prices or statements on private tables.
//
// # Map
//
//	public.go queries of public tables alone
//	free.go   queries of no rows: what tools ask to learn the columns
package free
