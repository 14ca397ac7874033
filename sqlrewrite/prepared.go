package sqlrewrite

import (
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Build is what makes a prepared copy of a table.
type Build = sqlprint.Build

// Prepare prints and proves what makes a version of a table of a snapshot, of which the number counts, from 1, and the one that it was
// built as. Its errors are internal/unverified, and internal for a table that the policy does not want prepared.
func Prepare(on *catalog.Snapshot, t *catalog.Table, v catalog.Version) (*Build, error) {
	return pipeline.Prepare(on, t, v)
}

// Serving is the snapshot in which a version of a copy takes the place of its table, for questions about that table and public ones; nil
// where the version was not made by what the snapshot's policy asks for today.
func Serving(on *catalog.Snapshot, v catalog.Version) *catalog.Snapshot {
	return pipeline.Serving(on, v)
}

// EveryVersion is the snapshot in which one copy stands for all versions that are made as a version is, of the same relation: the releases
// of a question in it have the same identities whichever of these serves. It is for identities alone: the copy that it names is not there.
// Nil where [Serving] is.
func EveryVersion(on *catalog.Snapshot, v catalog.Version) *catalog.Snapshot {
	return pipeline.EveryVersion(on, v)
}

// Replaces reports whether the plan, which reads a copy, answers in place of one of the same question that reads the table itself: no
// value errs more by noise; and where none errs less either, no output is biased that was not. Text, policy and options alone decide that:
// bias is what bounds may leave out, not what they do.
func (p *Plan) Replaces(live *Plan) bool { return pipeline.Replaces(p.made, live.made) }

// Unproven says, for the log, why a layout by ranks of a prepared copy was not proven, and so not compared with the plan; nil: none.
func (p *Plan) Unproven() error { return p.made.Unproven() }

// On is the plan of the same question, under the same options, about another snapshot. Its errors are those of [Rewrite].
func (p *Plan) On(snapshot *catalog.Snapshot) (*Plan, error) {
	o := p.made.Options
	if o.Lists != nil { // which it was planned with
		o.Lists = &Lists{Known: o.Lists.Known, Settled: true}
	}
	made, err := pipeline.Rewrite(p.text, snapshot, o)
	if err != nil {
		return nil, err
	}
	return &Plan{made, p.text}, nil
}
