package pgledger

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

var (
	//go:embed sql/policies.sql
	sqlPolicies string
	//go:embed sql/in_force.sql
	sqlInForce string
	//go:embed sql/ever_protected.sql
	sqlEverProtected string
	//go:embed sql/digest_facts.sql
	sqlDigestFacts string
	//go:embed sql/store_policy.sql
	sqlStorePolicy string
)

// inForce is what an operation is about that changes what is in force.
type inForce struct {
	added *budget.NewPolicy // nil: it adds no version
	caps  bool              // it looks at what takes two stewards alone
}

// queueInForce loads what such operations look at.
func (s *transaction) queueInForce(b *pgx.Batch) {
	loaded, listed := false, false
	for _, op := range s.batch {
		if op.inForce == nil {
			continue
		}
		if added := op.inForce.added; added != nil {
			b.Queue(sqlDigestFacts, string(added.Checked)).QueryRow(func(row pgx.Row) error { return scanSum(row, &added.Facts) })
		}
		if !listed && !op.inForce.caps {
			listed = true
			b.Queue(sqlPolicies, s.dataset).Query(func(rows pgx.Rows) (err error) {
				s.machine.InForce.Rows, err = pgx.CollectRows(rows, scanPolicy)
				return err
			})
		}
		if loaded {
			continue
		}
		loaded = true
		b.Queue(sqlInForce, s.dataset).QueryRow(func(row pgx.Row) error {
			var keys *string
			var twoFor, first []byte
			err := row.Scan(&s.machine.InForce.Entered, &keys, &twoFor, &s.machine.InForce.Version, &first)
			s.machine.InForce.Ledger = ledgerName(first)
			if keys != nil {
				s.machine.InForce.Keys = []byte(*keys)
			}
			if err == nil && twoFor != nil {
				err = json.Unmarshal(twoFor, &s.machine.InForce.TwoFor)
			}
			return err
		})
	}
}

func scanSum(row pgx.Row, into *[32]byte) error {
	var sum []byte
	err := row.Scan(&sum)
	copy(into[:], sum)
	return err
}

func scanPolicy(row pgx.CollectableRow) (r budget.PolicyRow, err error) {
	var document, facts, digest []byte
	err = row.Scan(&r.Version, &document, &facts, &digest, &r.AppliedBy, &r.AppliedAt, &r.Entry, &r.RaisedBy)
	copy(r.Document[:], document)
	copy(r.Facts[:], facts)
	copy(r.Digest[:], digest)
	r.AppliedAt = r.AppliedAt.UTC()
	return r, err
}

// queuePolicies stores versions that were added, with the numbers of their entries.
func (s *transaction) queuePolicies(b *pgx.Batch) {
	for _, p := range s.machine.InForce.Added {
		b.Queue(sqlStorePolicy, s.dataset, p.Version, p.Text, p.Digest[:], string(p.Checked), p.AppliedBy, p.AppliedAt,
			s.machine.Written[p.Line].Seq, s.raisedBy(p.Version))
	}
}

// raisedBy is who raised caps last until a version that is added.
func (s *transaction) raisedBy(version int64) (who string) {
	for _, r := range s.machine.InForce.Rows {
		if r.Version == version {
			who = r.RaisedBy
		}
	}
	return who
}

// RecordPolicy implements [budget.InForce].
func (p *Ledger) RecordPolicy(ctx context.Context, v budget.NewPolicy) (time.Time, error) {
	if err := v.Check(); err != nil {
		return time.Time{}, err
	}
	v.Document = sha256.Sum256([]byte(v.Text))
	var at time.Time // the writer's until do returns without an error of the context
	err := p.do(ctx, &operation{dataset: v.Dataset, inForce: &inForce{added: &v}, decide: func(s *machine.Machine) (err error) {
		at, err = s.RecordPolicy(v)
		return err
	}})
	if err != nil {
		return time.Time{}, err
	}
	return at, nil
}

// EnterPolicies implements [budget.InForce].
func (p *Ledger) EnterPolicies(ctx context.Context, dataset string, versions []budget.PolicyVersion) error {
	for _, v := range versions {
		if err := v.Check(); err != nil {
			return err
		}
	}
	return p.do(ctx, &operation{dataset: dataset, inForce: &inForce{}, decide: func(s *machine.Machine) error {
		return s.EnterPolicies(versions)
	}})
}

// EverProtected implements [budget.InForce].
func (p *Ledger) EverProtected(ctx context.Context, dataset string) (map[string][]uint32, error) {
	if err := p.intact(dataset); err != nil {
		return nil, err
	}
	type table struct {
		Name string
		OIDs []uint32
	}
	tables, err := collect(ctx, p.pool, pgx.RowToStructByPos[table], sqlEverProtected, dataset)
	ever := make(map[string][]uint32, len(tables))
	for _, t := range tables {
		ever[t.Name] = t.OIDs
	}
	return ever, err
}

// TwoFor implements [budget.InForce].
func (p *Ledger) TwoFor(ctx context.Context, dataset string) ([]string, error) {
	if err := p.intact(dataset); err != nil {
		return nil, err
	}
	all, err := collect(ctx, p.pool, func(row pgx.CollectableRow) (kinds []string, err error) {
		var text []byte
		if err := row.Scan(nil, nil, &text, nil, nil); err != nil || text == nil {
			return nil, err
		}
		return kinds, json.Unmarshal(text, &kinds)
	}, sqlInForce, dataset)
	if err != nil {
		return nil, err
	}
	return slices.Concat(all...), nil
}

// LedgerName implements [budget.InForce]. It gives the name of a broken ledger too, which stands in its export: what is signed for one is
// refused where it would be entered.
func (p *Ledger) LedgerName(ctx context.Context, dataset string) (string, error) {
	names, err := collect(ctx, p.pool, func(row pgx.CollectableRow) (string, error) {
		var first []byte
		err := row.Scan(nil, nil, nil, nil, &first)
		return ledgerName(first), err
	}, sqlInForce, dataset)
	return strings.Join(names, ""), err // one row
}

// ledgerName is what signatures name of a ledger, by the hash of the first entry that names one; nil: there is none.
func ledgerName(first []byte) string {
	if first == nil {
		return budget.NoLedger
	}
	return hex.EncodeToString(first)
}

// PolicyRows implements [budget.InForce].
func (p *Ledger) PolicyRows(ctx context.Context, dataset string) ([]budget.PolicyRow, error) {
	return collect(ctx, p.pool, scanPolicy, sqlPolicies, dataset)
}

// RecordFreeReads implements [budget.InForce].
func (p *Ledger) RecordFreeReads(ctx context.Context, r budget.FreeReads) error {
	if err := r.Check(); err != nil {
		return err
	}
	return p.do(ctx, &operation{dataset: r.Dataset, decide: func(s *machine.Machine) error {
		s.RecordFreeReads(r)
		return nil
	}})
}

// RecordKeys implements [budget.InForce].
func (p *Ledger) RecordKeys(ctx context.Context, k budget.SigningKeys) error {
	return p.do(ctx, &operation{dataset: k.Dataset, inForce: &inForce{}, decide: func(s *machine.Machine) error {
		s.RecordKeys(k)
		return nil
	}})
}
