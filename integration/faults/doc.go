// Package faults is the fault campaign: it kills gateways and servers, cuts connections, fills disks and turns clocks back, at every
// step of a query, and has package invariants judge the ledger after each of them.
//
// It knows how a gateway is put together and where to stand in its way: around the ledger, the protected database, the source of
// noise, the connection to the client. None of it is part of the product, which has no switch and no build tag for faults. It does not
// know what a right ledger looks like; package invariants does.
package faults
