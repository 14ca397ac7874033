// Package clustering makes centres of released sums: what is computed here is post-processing, and costs nothing.
//
// It knows noisy moments, noisy sums of clusters, their noise, and linear algebra. It does not know columns, SQL, budgets or true values: a
// sum comes to it with its noise, or from a test without any.
package clustering
