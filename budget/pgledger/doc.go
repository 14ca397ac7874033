// Package pgledger is the ledger in PostgreSQL: durable, and shared by several gateways.
//
// It knows the control database's schema and when a transaction is committed. It does not know what admits a charge:
// the state machine (budget/internal/machine) decides what an operation changes, budget/journal proves it afterwards.
//
//	 Reserve, Settle, Void, Expire, Fail, limits          of all clients
//	      │ operation: what it may look at, what it decides
//	      ▼
//	┌───────────────────────────────────────────────────────────────────────────┐
//	│ group commit   groupcommit.go   a queue for each dataset; what has queued │
//	│                                 up is one batch, in order of arrival      │
//	└─────┬─────────────────────────────────────────────────────────────────────┘
//	      │ batch                                 one pipeline for each dataset
//	      ▼
//	   pipeline.go ── has the cache all that the batch may look at? ──┐
//	      │ yes                                                       │ no
//	      ▼                                                           ▼
//	   cache.go       accounts, numbers and         load.go       BEGIN, lock the dataset,
//	      │           time of the last batch           │          load the batch's rows
//	      └──────────────┐                   ┌─────────┘
//	                     ▼                   ▼
//	                 state machine: admits or refuses each operation
//	                 journal.Seal: numbers its entries, chains them
//	                     │                   │
//	                     ▼                   ▼
//	   connection.go  advance, write, Sync  write.go      write, COMMIT
//	      │           behind the batch         │          one exchange more
//	      │           before it, without       │
//	      │           waiting for its commit   │
//	      ▼                                    ▼
//	   pipeline.land: the oldest batch is   transaction.go: committed, or not; a lost
//	   committed; callers are answered      answer is looked up by its last entry
//
// The first statement of a batch on the connection (sql/advance.sql) moves the end of the dataset's chain from where the
// batch began to where it ends, or fails. So a batch that was decided from a cache that is out of date, or behind one
// that failed, is not written; it is loaded and decided again.
//
//	ledger.go                     connections; reading; one method for each operation of budget.Ledger
//	failures.go, shared.go        failures of analysts, released vectors
//	released.go                   released values
//	settlement.go                 entries that receipts quote
//	verify.go, verify_new.go      the chain against the tables: whole, or from a checkpoint on
//	failover.go                   other servers, other gateways, what is missing, charges that are booked again
//	safety.go                     servers and roles that are refused
//	statements.go, sql/           all SQL text
package pgledger
