// Package plan makes a bound query into a plan: mechanisms, the price divided over them, statements with their claims, and the release of
// noisy values from sealed ones.
//
// It knows sensitivities, prices and mechanisms. It does not know whether anyone can pay, nor how answers are shown.
//
// # Map
//
//	plan.go      options, plan, its statements and its loss
//	account.go   what all statements of a question cost together
//	proposal.go  what a statement claims, for package verify
//	price.go     mechanisms
//	split.go     the price divided over them
//	selection.go releases that choose
//	topk.go      the selection of groups
//	prepared.go  which of two plans of a question errs less
//	slots.go     noise of a registered plan
//	reuse.go     earlier releases of the same question
//	identity.go  names of questions and of their releases
//	forms.go     forms in which the release of a question may be stored; the question before conditions narrowed its bounds
//	unlisted.go  what was released over more keys than lists leave
//	kept.go      a release as it is stored
//	release.go   draws, noise, selection of private keys
//	options.go   what a request chooses
//	sent.go      rows of statements; statements for several servers, and dry runs
//	several.go   several releases in one statement
//	bought.go    values that are released before the statements that take them
//	report.go    what is bought beside an answer
//	joined.go    what is computed from them, and how they are known
//	estimator.go values from releases
//	outputs.go   what a plan knows of its outputs
//	linear.go    weighted sums of noisy numbers
package plan
