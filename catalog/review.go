package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// Review is what applying a policy would do, before it is done.
type Review struct {
	Snapshot *Snapshot // checked against the live schema; without a version
	Version  int64     // in force; 0: none
	Same     bool      // it is in force already, so that applying it does nothing
	Changes  []Change  // of the file in force; nothing where only the schema changed
	// Renewed are the tables with a change that affects what was released from them; All says that everything is affected.
	Renewed []TableName
	All     bool
	Two     []string // why it takes two stewards; none: one is enough
	Ledger  string   // that their signatures name
}

// Renews says what becomes of stored answers.
func (r Review) Renews() string {
	switch {
	case r.Version == 0:
		return "there is no policy yet, and no answer"
	case r.Same:
		return "nothing: every answer stays an answer"
	case r.All:
		return "every answer: a question that was asked before is released, and charged, anew"
	case len(r.Renewed) == 0:
		return "nothing: what was released goes on to answer its questions"
	default:
		names := make([]string, len(r.Renewed))
		for i, t := range r.Renewed {
			names[i] = t.String()
		}
		return "answers that read what changes of " + strings.Join(names, ", ") + ": asked again, they are released, and charged, anew"
	}
}

// renewed are the tables with a change that releases rest on, or with one on the way to their unit.
func renewed(old, new *Snapshot) (tables []TableName) {
	changed, now := map[TableName]bool{}, byName(new.Tables)
	for _, t := range old.Tables {
		is, ok := now[t.table()]
		changed[t.table()] = !ok || restsOn(t) != restsOn(is)
	}
	for range maxPath {
		for _, t := range old.Tables {
			if t.Unit.Kind == PathUnit && changed[TableName{t.Unit.ToSchema, t.Unit.ToTable}] {
				changed[t.table()] = true
			}
		}
	}
	for _, t := range old.Tables {
		if changed[t.table()] {
			tables = append(tables, t.table())
		}
	}
	return tables
}

// restsOn is what releases of a table rest on: not how its rows are stored, how many they are, or where its policy stands.
func restsOn(t *Table) string {
	own := *t
	own.Lines, own.MostRows, own.Partitioned, own.Indexes, own.Columns = Lines{}, 0, false, nil, nil
	for _, c := range t.Columns {
		column := *c
		column.DomainLine, column.MostEqual = 0, 0
		if c.Bounds != nil {
			bounds := *c.Bounds
			bounds.Line, column.Bounds = 0, &bounds
		}
		own.Columns = append(own.Columns, &column)
	}
	text, err := json.Marshal(own)
	if err != nil { // names and numbers always encode
		panic(err)
	}
	return string(text)
}

// Review compares a policy with the one in force. Its errors are those of [Store.Apply].
func (s *Store) Review(ctx context.Context, p *Policy, live *Schema) (*Review, error) {
	snapshot, problems := Check(p, live)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	row, version, err := s.latest(ctx, p.Dataset)
	if err != nil {
		return nil, err
	}
	inForce := row.policy()
	if problems := strangers(p, inForce); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	var two []string
	ledger := ""
	if s.chain != nil {
		if two, err = s.wanted(ctx, row, p, live); err == nil {
			ledger, err = s.chain.LedgerName(ctx, p.Dataset)
		}
		if err != nil {
			return nil, err
		}
	}
	if row == nil {
		return &Review{Snapshot: snapshot, Changes: Diff(nil, p), Two: two, Ledger: ledger}, nil
	}
	same, err := row.approves(snapshot.Digest, live.For(p))
	if same {
		two = nil
	}
	review := &Review{Snapshot: snapshot, Version: version, Same: same, Changes: Diff(inForce, p), All: true, Two: two,
		Ledger: ledger}
	if now, unreadable := row.revision(); unreadable == nil && now.Snapshot.DataVersion == snapshot.DataVersion {
		review.All, review.Renewed = false, renewed(now.Snapshot, snapshot)
	}
	return review, err
}
