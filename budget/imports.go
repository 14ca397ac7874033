package budget

import (
	"context"
	"encoding/json"
	"errors"

	"noisegate/internal/fault"
)

// Import says that votes are read from somewhere into a version of an ensemble. Whoever imports learns whether what was
// read is votes, so it is written down, also when nothing came of it.
type Import struct {
	Dataset, Ensemble string
	Version           int64
	Source            string // a table or view of the protected database, or "a file"
}

// importRecord is an import as the journal keeps it.
type importRecord struct {
	Ensemble string `json:"imports_votes_of"`
	Version  int64  `json:"version"`
	Source   string `json:"source"`
}

func (i Import) check(by string) error {
	if by == "" || i.Dataset == "" || i.Ensemble == "" || i.Version < 1 || i.Source == "" {
		return fault.Internal(errors.New("budget: an import names a dataset, a version, a source and who does it"))
	}
	return nil
}

func (i Import) text() []byte {
	text, err := json.Marshal(importRecord{i.Ensemble, i.Version, i.Source})
	if err != nil { // numbers and strings always encode
		panic(err)
	}
	return text
}

// account names the ensemble's account, which need not be opened yet.
func (i Import) account() *AccountID {
	return &AccountID{Dataset: i.Dataset, Scope: EnsembleScope, Name: i.Ensemble}
}

// importOf reads an import; ok is false for an entry that is none.
func importOf(e Entry) (i Import, ok bool) {
	var record importRecord
	if e.Kind != EntryImport || json.Unmarshal(e.AccountText, &record) != nil || record.Ensemble == "" || len(e.AccountIDs) != 0 ||
		e.Reservation != "" {
		return Import{}, false
	}
	return Import{Dataset: e.Dataset, Ensemble: record.Ensemble, Version: record.Version, Source: record.Source}, true
}

// notAnImport is what is wrong with an entry that says nothing of votes.
const notAnImport = "it does not say which votes were imported"

func (d *desk) recordImport(by string, i Import) {
	d.write(Entry{Kind: EntryImport, AccountText: i.text(), Account: i.account()}, i.Dataset, by, nil)
}

// RecordImport implements [Ledger].
func (p *Postgres) RecordImport(ctx context.Context, by string, i Import) error {
	if err := i.check(by); err != nil {
		return err
	}
	return p.do(ctx, &operation{dataset: i.Dataset, decide: func(d *desk) error {
		d.recordImport(by, i)
		return nil
	}})
}

// RecordImport implements [Ledger].
func (m *Memory) RecordImport(_ context.Context, by string, i Import) error {
	if err := i.check(by); err != nil {
		return err
	}
	return m.at(func(d *desk) error {
		d.recordImport(by, i)
		return nil
	})
}
