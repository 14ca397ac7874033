package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Copies lists the prepared copies of a dataset's tables.
type Copies interface {
	// Copies are the complete copies of each table, newest first, as the database held them when it was last looked at. It asks no database:
	// estimates and replays are made of text, policy and ledger. A version that has gone since fails as a table that changed does.
	Copies() []catalog.Version
	// Look asks the database which there are of a dataset now.
	Look(ctx context.Context, dataset string) error
}

// serving remembers in which snapshots copies serve, so that what was proven of a statement is known of the next one. Its zero value is
// ready, for use by several at once.
type serving struct {
	mu       sync.Mutex
	datasets map[string]served
	told     map[string]bool // by what is not proven: the log has it
}

// mostTold bounds what is remembered to be in the log; it starts anew when it is full.
const mostTold = 1000

// first reports whether the log does not have yet that something is not proven.
func (k *serving) first(unproven error) bool {
	text := fmt.Sprint(errors.Unwrap(unproven))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.told[text] {
		return false
	}
	if k.told == nil || len(k.told) >= mostTold {
		k.told = map[string]bool{}
	}
	k.told[text] = true
	return true
}

// served are the copies that serve in place of a snapshot's tables.
type served struct {
	of       *catalog.Snapshot
	versions []catalog.Version
	copies   []copied
}

// copied is a snapshot with one copy.
type copied struct {
	snapshot *catalog.Snapshot
	version  catalog.Version
	every    *catalog.Snapshot // by which releases of all its versions are known; see [sqlrewrite.EveryVersion]
}

// of gives the snapshots of the newest version of each table that is what a policy asks for: one of another policy, which a run that began
// under that one may make later, stands in the way of none.
func (k *serving) of(on *catalog.Snapshot, versions []catalog.Version) []copied {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was := k.datasets[on.Dataset]; was.of == on && slices.Equal(was.versions, versions) {
		return was.copies
	}
	now := served{of: on, versions: versions}
	for _, v := range versions {
		if slices.ContainsFunc(now.copies, func(c copied) bool { return c.version.Table == v.Table }) {
			continue
		}
		if s := sqlrewrite.Serving(on, v); s != nil {
			now.copies = append(now.copies, copied{s, v, sqlrewrite.EveryVersion(on, v)})
		}
	}
	if k.datasets == nil {
		k.datasets = map[string]served{}
	}
	k.datasets[on.Dataset] = now
	return now.copies
}

// copies are the prepared copies that may answer in place of a snapshot's tables.
func (s *Service) copies(on *catalog.Snapshot) []catalog.Version {
	dataset := s.datasets[on.Dataset]
	if dataset.Copies == nil || !on.Prepares() {
		return nil
	}
	return dataset.Copies.Copies()
}

// fromCopy is the plan of a question over a prepared copy, and that copy, if one can answer it with errors that are no larger than those of
// the plan over the tables themselves, or with any where these may not be read; else that plan, and nil, and why it may not run. It touches
// no protected row.
func (s *Service) fromCopy(ctx context.Context, r api.QueryRequest, on *catalog.Snapshot, versions []catalog.Version,
	live *sqlrewrite.Plan) (*sqlrewrite.Plan, *copied, error) {
	only := readsPreparedOnly(on, live.DryRuns)
	var why error // a copy does not answer
	copies := s.serving.of(on, versions)
	wanted := r.Prepared == nil || *r.Prepared
	if wanted && r.Plan == "" && len(r.MaxError) == 0 && live.NeedsData() {
		for _, c := range copies {
			plan, err := live.On(c.snapshot)
			unproven := err
			if err == nil {
				unproven = plan.Unproven()
			}
			code := fault.CodeOf(unproven)
			if (code == fault.CodeUnverified || code == fault.CodeInternal) && s.serving.first(unproven) {
				s.log.InfoContext(ctx, "a question is not proven over a copy", "dataset", on.Dataset, "error", errors.Unwrap(unproven))
			}
			if err == nil && plan.NeedsData() && (only != nil || plan.Replaces(live)) {
				return plan, &c, nil
			}
			if code == fault.CodePreparedOnly {
				why = cmp.Or(why, err)
			}
		}
	}
	if only == nil {
		return live, nil, nil
	}
	name := catalog.TableName{Schema: only.Schema, Name: only.Name}
	if slices.ContainsFunc(copies, func(c copied) bool { return c.version.Table == name }) {
		return live, nil, cmp.Or(why, error(fault.PreparedOnly(name.String())))
	}
	return live, nil, fault.NotPrepared(name.String())
}

// readsPreparedOnly is a table that statements read, and that the policy lets be read in its prepared copy only; nil: there is none. A
// statement reads no other tables of people than those that it pins: else it is not proven.
func readsPreparedOnly(on *catalog.Snapshot, runs func() []sqlrewrite.DryRun) *catalog.Table {
	if !slices.ContainsFunc(on.Tables, func(t *catalog.Table) bool { return t.PreparedOnly }) {
		return nil
	}
	for _, run := range runs() {
		for _, pin := range run.For.Preconditions {
			if t, ok := on.Table(pin.Schema, pin.Table); ok && t.PreparedOnly {
				return t
			}
		}
	}
	return nil
}

// LiveOnly refuses what is not asked of copies, by its statements: policy/prepared-only where they read a table that the policy lets be
// read in its copy only.
func LiveOnly(on *catalog.Snapshot, runs func() []sqlrewrite.DryRun) error {
	if t := readsPreparedOnly(on, runs); t != nil {
		return fault.PreparedOnly(catalog.TableName{Schema: t.Schema, Name: t.Name}.String())
	}
	return nil
}

// outdated reports whether a question failed because the version that it was planned on is gone. None of its rows was read, and its charge
// was taken back: the caller plans it anew, once.
func (s *Service) outdated(ctx context.Context, q *prepared, err error) bool {
	if q == nil || q.version == nil || !errors.As(err, new(takenBack)) {
		return false
	}
	copies := s.datasets[q.Charge.Dataset].Copies
	return copies.Look(ctx, q.Charge.Dataset) == nil && !slices.Contains(copies.Copies(), *q.version)
}
