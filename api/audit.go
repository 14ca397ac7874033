package api

import (
	"encoding/json"
	"time"
)

// AuditPage is a page of GET /v1/audit, newest first.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	Heads      []ChainHead  `json:"heads"`                 // of the chains of the datasets asked for; entries of the first page may be newer
	NextCursor string       `json:"next_cursor,omitempty"` // absent on the last page
	// Policies are, on the first page, the versions of the datasets' policies as they are stored now, oldest first: entries say what they
	// were when they were applied.
	Policies []StoredPolicy `json:"policies,omitempty"`
}

// StoredPolicy is a version of a policy as it is stored now. Digests are in hexadecimal.
type StoredPolicy struct {
	Dataset   string    `json:"dataset"`
	Version   int64     `json:"version"`
	Document  string    `json:"document_sha256"` // of the file's text
	Facts     string    `json:"facts_sha256"`    // of what it was checked against
	Digest    string    `json:"digest"`          // what the policy is known by
	AppliedBy string    `json:"applied_by"`
	AppliedAt time.Time `json:"applied_at"`
	Entry     int64     `json:"entry,omitempty"`     // with which it was stored; absent: it is older than such entries
	RaisedBy  string    `json:"raised_by,omitempty"` // who raised caps last, alone; absent: nobody, or another one signed since
}

// ChainHead is the end of a dataset's chain of entries.
type ChainHead struct {
	Dataset string `json:"dataset"`
	Seq     int64  `json:"seq"`  // of the newest entry; 0 while there is none
	Hash    string `json:"hash"` // of the newest entry, in hexadecimal
	// Ledger is what signatures of stewards name: the hash of the first entry of keys or of a policy; "none" while there is none.
	Ledger string `json:"ledger,omitempty"`
}

// AuditEntry is one line of the ledger's journal, with all that its hash covers. Amounts are exact; epsilon is null when the loss has
// no finite one.
type AuditEntry struct {
	Seq        int64     `json:"seq"`
	At         time.Time `json:"at"`
	Kind       string    `json:"kind"` // reserve, settle, void, expire, limit, refill, freeze, thaw, fail, reset, import, policy, free or keys
	Dataset    string    `json:"dataset"`
	Subject    string    `json:"subject"`              // who spent; of limits, refills, freezes and resets, who did it
	ReleaseID  string    `json:"release_id,omitempty"` // of charges
	AccountIDs []int64   `json:"account_ids"`          // the accounts that it is about, as the ledger numbers them
	Amounts    Amounts   `json:"amounts"`              // what the charge counts as from here on; of refills, what was added
	// of settlements, what the charge counts as for the dataset and the ensemble, where that is less
	Shared *Amounts `json:"shared,omitempty"`
	Digest string   `json:"digest,omitempty"` // SHA-256 of the question, or of the answer, in hexadecimal
	// Mechanisms and Account are JSON as the ledger keeps it, byte for byte: the parameters of every release of a reservation, as a list, or
	// in an object with the slots of a plan that it registers or draws; an account and its limit from here on.
	Mechanisms string `json:"mechanisms,omitempty"`
	Account    string `json:"account,omitempty"`
	// AccountName and Limit say in words what Account says: which account it is, and its limit from here on, where it has one.
	AccountName string       `json:"account_name,omitempty"`
	Limit       *BudgetLimit `json:"limit,omitempty"`
	// Request is, of reservations, what was asked, where the page was asked for with requests.
	Request json.RawMessage `json:"request,omitempty"`
	Hash    string          `json:"hash,omitempty"` // in hexadecimal; absent for entries that are older than the chain
	// ReceiptHead is, of settlements, what receipts of the answer show as their head, in hexadecimal. Only the gateway can compute it.
	ReceiptHead string `json:"receipt_head,omitempty"`
	// ReceiptOpening opens, of settlements, the commitment of receipts, in hexadecimal: with it an auditor finds the price that they bind.
	ReceiptOpening string `json:"receipt_opening,omitempty"`
}

// ExportEnd is the line of an export (GET /v1/audit/export) after its entries. Where the gateway has a key of receipts, one more line
// follows: a signature over "noisegate export/1" and the SHA-256 of all lines before.
type ExportEnd struct {
	Heads    []ChainHead    `json:"heads"`
	Policies []StoredPolicy `json:"policies"` // as they were stored when the heads were read
	// Tables are what the ledger has of each dataset next to its entries, read at the same moment; exports of before lack them.
	Tables []StoredTables `json:"tables,omitempty"`
}

// StoredTables are the accounts, with their limits and sums, the open charges and the plans of a dataset as the ledger has them, which
// entries have to explain. State and Archived are JSON that package budget/journal reads as Replayed.
type StoredTables struct {
	Dataset string          `json:"dataset"`
	State   json.RawMessage `json:"state"`
	// Archived is the state at the newest archive's end, byte for byte, whose SHA-256 the chain has; absent where nothing was archived.
	Archived string `json:"archived,omitempty"`
}

// Verification is the answer to POST /v1/datasets/{dataset}/verify: each entry has the hash that it should have, and accounts, open charges
// and plans are what the entries say, or what does not agree.
type Verification struct {
	ChainHead     // the end that was reached
	Entries   int `json:"entries"`   // how many were compared
	Unchained int `json:"unchained"` // entries that are older than the chain itself
	// Broken says what does not agree, and at which entry; absent where all does. The dataset takes no charge from then on.
	Broken string `json:"broken,omitempty"`
}

// RefusalList is what GET /v1/datasets/{dataset}/refusals gives: how often questions and estimates were refused before a charge. It is what
// one gateway counted since it started.
type RefusalList struct {
	Dataset  string    `json:"dataset"`
	Since    time.Time `json:"since"`    // when the gateway started
	Refusals []Refusal `json:"refusals"` // the most frequent first
}

// Refusal is how often one analyst was refused with one code.
type Refusal struct {
	Analyst string `json:"analyst"` // empty: analysts beyond the first thousand, together
	Code    string `json:"code"`    // as problems have it
	Count   int64  `json:"count"`   // of what was asked
	// Estimates were refused besides: pages estimate what somebody is about to type.
	Estimates int64 `json:"estimates"`
}
