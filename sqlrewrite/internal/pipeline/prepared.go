package pipeline

import (
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Prepare prints and proves what makes a version of a table of a snapshot, of which the number counts, from 1, and the one that it was
// built as. Its errors are internal/unverified, and internal for a table that the policy does not want prepared.
func Prepare(on *catalog.Snapshot, t *catalog.Table, v catalog.Version) (*sqlprint.Build, error) {
	b, err := sqlprint.NewBuild(on, t, v)
	if err != nil {
		return nil, err
	}
	return b, b.Prove()
}

// Serving is the snapshot in which a version of a copy takes the place of its table, for questions about that table and public ones; nil
// where the version was not made by what the snapshot's policy asks for today.
func Serving(on *catalog.Snapshot, v catalog.Version) *catalog.Snapshot {
	t, ok := on.Table(v.Table.Schema, v.Table.Name)
	if !ok || t.Prepare == 0 || v.OID == 0 {
		return nil
	}
	b, err := Prepare(on, t, v)
	if err != nil || b.Digest != v.Digest {
		return nil
	}
	return on.WithCopy(on.CopyOf(t, v), v)
}

// EveryVersion is the snapshot in which one copy stands for all versions that are made as a version is, of the same relation: the releases
// of a question in it have the same identities whichever of these serves. It is for identities alone: the copy that it names is not there.
// Nil where [Serving] is.
func EveryVersion(on *catalog.Snapshot, v catalog.Version) *catalog.Snapshot {
	t, ok := on.Table(v.Table.Schema, v.Table.Name)
	if !ok || Serving(on, v) == nil {
		return nil
	}
	first := catalog.Version{Table: v.Table, Number: 1, OID: t.OID}
	b, err := Prepare(on, t, first)
	if err != nil {
		return nil
	}
	every := on.WithCopy(on.CopyOf(t, first), v)
	every.DataVersion = fmt.Sprintf("%q, every version of %q made by %x", on.DataVersion, v.Table.String(), b.Digest)
	return every
}

// Replaces reports whether a plan, which reads a copy, may replace one of the same question that reads the table itself: no
// value errs more by noise; and where none errs less either, no output is biased that was not. Text, policy and options alone decide that:
// bias says that bounds may leave something out, not that they do.
func Replaces(p, live *plan.Plan) bool {
	return p.ErrsNoMoreThan(live) && (!live.ErrsNoMoreThan(p) || !biases(p, live))
}

// biases reports whether an output may be off by what bounds leave out, and the same one of another plan is not.
func biases(p, other *plan.Plan) bool {
	for i, output := range p.Outputs {
		if i >= len(other.Outputs) || output.Column.Bias != plan.Unbiased && other.Outputs[i].Column.Bias == plan.Unbiased {
			return true
		}
	}
	return false
}
