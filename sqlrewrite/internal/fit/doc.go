// Package fit makes a question for a regression into a plan: features on grids of whole numbers, one statement of sums of products, its
// claim and its price, and coefficients from what is released.
//
// It knows features, their scales, and how a row's vector is bounded. It does not know whether anyone can pay, nor how coefficients are
// computed of moments (mechanisms/regression).
//
// # Map
//
//	question.go  texts to a bound query and factors
//	plan.go      methods; the statement, its price and its identity
//	claim.go     what a statement is said to move by, and its noise
//	run.go       releases, pass by pass
//	result.go    coefficients in the units of the columns
package fit
