// Package regression makes coefficients of released sums: what is computed here is post-processing, and costs nothing.
//
// It knows noisy moments, their noise, and linear algebra. It does not know features, SQL, budgets or true values: a sum comes to it with
// its noise, or from a test without any.
package regression
