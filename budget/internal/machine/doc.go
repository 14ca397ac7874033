// Package machine is the ledger state machine: which operation changes what, and which entry says so.
//
// It knows accounts, charges, keys and the texts of entries. It does not know where they are kept, and no chain.
//
//	machine.go   accounts, charges and keys; reserve, close, limits, refills, freezes
//	ending.go    the ways in which an open charge ends
//	resolve.go   what an earlier charge means for a request: a replay, a refusal, nothing
//	record.go    texts of entries, as the journal keeps them
//
// It is internal: gateways see package budget. The rules of admission are there.
package machine
