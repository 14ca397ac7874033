// Package journal is what proves that a ledger was kept: the chain of its entries, and those who read it.
//
// It knows entries and the rules that they follow. It does not know how a ledger writes them.
//
//	chain.go                     the hash of each entry, after the one before
//	auditor.go                   replays entries against the rules of admission, endings and refills
//	replayed.go                  the state of accounts, open charges and plans by the entries alone
//	checkpoint.go, anchor.go     files outside the database: a verified state, signed; the newest heads
//	receipt.go                   what clients are given: signed, bound to a settlement
//	stewards.go                  keys of stewards, who sign refills
package journal
