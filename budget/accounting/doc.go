// Package accounting adds up the privacy losses of releases.
//
// It knows losses and the laws behind them. It does not know accounts, limits, ledgers or analysts.
//
//	gaussian.go, logarithm.go   normal tails, bounded logarithms; groups and samples of people
//	zcdp.go                     ρ-zCDP and (ε, δ)-DP: the only conversion that admission uses
//	event.go, event_noise.go    a release as the law of its privacy loss
//	lossgrid.go                 such a law on a grid, pessimistically
//	rdp.go, pld.go              the ε of a list that is fixed in advance
//	plan.go                     the price of a registered plan
//	compare.go                  all accountants side by side
//
// Losses themselves, in units of account, are in package mechanisms.
package accounting
