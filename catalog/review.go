package catalog

import (
	"context"
	"errors"
)

// Review is what applying a policy would do, before it is done.
type Review struct {
	Snapshot *Snapshot // checked against the live schema; without a version
	Version  int64     // in force; 0: none
	Same     bool      // it is in force already, so that applying it does nothing
	Changes  []Change  // of the file in force; nothing where only the schema changed
}

// Renews says what becomes of stored answers.
func (r Review) Renews() string {
	switch {
	case r.Version == 0:
		return "there is no policy yet, and no answer"
	case r.Same:
		return "nothing: every answer stays an answer"
	default:
		return "every answer: a question that was asked before is released, and charged, anew"
	}
}

// Review compares a policy with the one in force. Its errors are those of [Store.Apply].
func (s *Store) Review(ctx context.Context, p *Policy, live *Schema) (*Review, error) {
	snapshot, problems := Check(p, live)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	row, version, err := s.latest(ctx, p.Dataset)
	if err != nil || row == nil {
		return &Review{Snapshot: snapshot, Changes: Diff(nil, p)}, err
	}
	inForce, problems := Parse(row.document)
	if len(problems) > 0 { // an older noisegate took it
		inForce = nil
	}
	same, err := row.approves(snapshot.Digest, live.For(p))
	return &Review{Snapshot: snapshot, Version: version, Same: same, Changes: Diff(inForce, p)}, err
}
