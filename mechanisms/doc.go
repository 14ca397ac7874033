// Package mechanisms is the mathematics of Noisegate: exact samplers, mechanisms, their privacy losses and
// the intervals that their noise allows.
//
// It knows integers, rationals and randomness. It does not know what a query, a table, a budget or an
// analyst is, does no I/O but reading randomness, and imports nothing but the standard library.
//
// True values enter as [Exact] and leave only with noise added, or as the outcome of a private selection.
package mechanisms
