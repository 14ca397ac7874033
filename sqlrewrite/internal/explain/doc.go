// Package explain says what a plan will do, to whom it is priced: the plan as text, the expected errors, and who said each bound.
//
// It knows plans and the lines of the policy. It does not know data.
//
// # Map
//
//	explain.go    estimates
//	provenance.go who said each bound
package explain
