// Package answer shows what was released: values and columns as PostgreSQL writes them, confidence intervals, and the notes beside them.
//
// It knows the noise of each release. It does not know sealed values: all that it sees is public.
//
// # Map
//
//	answer.go   values and columns as they are shown
//	interval.go intervals of outputs
//	ratio.go    the fraction in an output
//	fraction.go fractions of weighted sums of noisy numbers
//	fieller.go  the interval of a fraction
//	rows.go     intervals of what is computed from several released rows
//	bought.go   which values were released before the rest
//	several.go  the answer of a query with several releases
//	report.go   what was bought beside an answer
//	bars.go     how many intervals miss, and levels at which all hold
//	ranks.go    how far noise reaches among the groups of which the first are shown
//	useful.go   how many rows are useful
//	foretell.go what a row has to hold to be useful, and how many can
//	notes.go    what an analyst should know of an answer
//	bias.go     in which direction contribution bounding moves an output
package answer
