// Package local is local differential privacy: what a device does to one value before the value leaves it, and what
// many such reports say together.
//
// It knows values as whole numbers (the place in a list, a step of a grid), randomisers, the law of their reports and
// unbiased estimates. It does not know devices, collectors, rounds, names of values or units of numbers.
//
// Every randomiser is ε-DP for the one who reports, against every reader of the reports, for any two values that the device may hold. Its
// law is exact: coins show with probabilities that are whole multiples of 2⁻⁵³, rounded so that no two values are told apart by more than
// ε; noise is that of [mechanisms.Laplace].
package local
