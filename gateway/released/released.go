// Package released finds what was bought before of what a question releases.
//
// It knows by which names releases are kept, in which order they are looked for, and what of them makes a whole answer. It does not know
// policies, accounts and charges: its caller says whether what others bought may be given.
package released

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"slices"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Release is one release of a question, as the store of released values knows it. It has no names where it needs no data: it is then a
// function of the policy.
type Release struct {
	Names  [][32]byte // by form
	Series [][32]byte // by form: what it is known by in each version of a prepared copy; nil: by nothing
	forms  []sqlrewrite.Form
}

// Of finds out what a question releases, by place in [sqlrewrite.Plan.Blocks], before the slots of a registered plan take the place of its
// price. What draws from a plan is known by that plan.
func Of(plan *sqlrewrite.Plan, draws string) []Release {
	blocks := plan.Blocks()
	all := make([]Release, len(blocks))
	for i, block := range blocks {
		if !block.NeedsData() {
			continue
		}
		all[i].forms = block.Forms()
		for _, form := range all[i].forms {
			all[i].Names = append(all[i].Names, Drawing(draws, form.Identity()))
		}
	}
	return all
}

// Drawing is the name of what draws from a registered plan ("": none), which has another name without it.
func Drawing(plan string, name [32]byte) [32]byte {
	if plan == "" {
		return name
	}
	return sha256.Sum256(append([]byte("drawing from "+plan+" "), name[:]...))
}

// NameSeries adds to releases what they are known by in each version of a prepared copy: the names of those of every, which is the same
// question about all versions. Where these are others, none has a series.
func NameSeries(releases []Release, every *sqlrewrite.Plan) {
	series := Of(every, "")
	if !slices.EqualFunc(series, releases, func(a, b Release) bool { return len(a.Names) == len(b.Names) }) {
		return
	}
	for i, r := range series {
		releases[i].Series = r.Names
	}
}

// Lookup asks for all that a question releases. [Find] looks by place for its Releases.
type Lookup struct {
	budget.Lookup
	Plan     *sqlrewrite.Plan
	Releases []Release
	Latest   bool // no earlier version will do
}

// Found is what there is of a question.
type Found struct {
	Whole    *sqlrewrite.Released // all that it releases; nil: not all was found
	Youngest *budget.Found        // of what Whole is made of
	Version  *budget.Version      // of which earlier version that is; nil where it is what the question asks for
	Rest     *sqlrewrite.Plan     // where a part of what the question asks for was found, what is still to be released; nil for others
	Best     *sqlrewrite.Vector   // of a question that was not found at its price, what is known of it at others; nil: nothing
}

// Finder asks a store by Look, and writes to Log what it cannot read.
type Finder struct {
	Look func(context.Context, budget.Lookup) (*budget.Earlier, error)
	Log  *slog.Logger
}

// Find looks up all that a question releases: what it asks for, the analyst's own before that of others; else the latest version that has
// all of it, and the most accurate at any price. It takes one look, but for releases whose latest versions are not one and the same.
// What cannot be read is as if it were not there. Its errors are those of Look.
func (f Finder) Find(ctx context.Context, l Lookup) (found Found, err error) {
	for _, r := range l.Releases {
		l.Identities = append(l.Identities, r.Names)
		if !l.Latest {
			l.Series = append(l.Series, r.Series)
		}
	}
	earlier, err := f.Look(ctx, l.Lookup)
	if err != nil {
		return Found{}, err
	}
	youngest, values := f.read(ctx, l, earlier.Exact)
	whole, rest, err := together(l.Plan, values)
	if err != nil || whole != nil {
		return Found{Whole: whole, Youngest: youngest}, err
	}
	if youngest != nil {
		found.Rest = rest
	}
	if best := earlier.Best; best != nil {
		if found.Best, err = sqlrewrite.ReadVector(best.Values); err != nil {
			f.unreadable(ctx, best, err)
		}
	}
	all, err := f.ofOneVersion(ctx, l, earlier.Latest)
	if err != nil || all == nil {
		return found, err
	}
	found.Youngest, values = f.read(ctx, l, all)
	if found.Whole, _, err = together(l.Plan, values); found.Whole != nil {
		found.Version = found.Youngest.Version
	}
	return found, err
}

// together is what a question releases, made of its releases by place; nil, and the plan of the others, where not all of them are given.
func together(plan *sqlrewrite.Plan, values []*sqlrewrite.Released) (whole *sqlrewrite.Released, rest *sqlrewrite.Plan, err error) {
	if !plan.Several() {
		return values[0], plan, nil
	}
	if rest = plan.Given(values); rest.NeedsData() {
		return nil, rest, nil
	}
	whole, err = rest.Whole()
	return whole, rest, err
}

// ofOneVersion goes on from the latest versions of what is known by series, by place, to the latest one that has all; nil: none has.
func (f Finder) ofOneVersion(ctx context.Context, l Lookup, latest []*budget.Found) ([]*budget.Found, error) {
	l.Identities, l.Questions = nil, nil
	for {
		var oldest *budget.Version
		same := true
		for i, names := range l.Series {
			if len(names) == 0 {
				continue
			}
			if latest[i] == nil {
				return nil, nil
			}
			of := latest[i].Version
			same = same && (oldest == nil || of.AsOf.Equal(oldest.AsOf) && of.Name == oldest.Name)
			if oldest == nil || of.AsOf.Before(oldest.AsOf) {
				oldest = of
			}
		}
		switch {
		case same && oldest != nil:
			return latest, nil
		case oldest == nil, !l.Until.IsZero() && !oldest.AsOf.Before(l.Until): // no older one is left to try
			return nil, nil
		}
		l.Until = oldest.AsOf
		earlier, err := f.Look(ctx, l.Lookup)
		if err != nil {
			return nil, err
		}
		latest = earlier.Latest
	}
}

// read gives what was found of the releases of a question, by place, and the youngest of it.
func (f Finder) read(ctx context.Context, l Lookup, all []*budget.Found) (youngest *budget.Found, values []*sqlrewrite.Released) {
	values = make([]*sqlrewrite.Released, len(all))
	for i, found := range all {
		if found == nil {
			continue
		}
		r := l.Releases[i]
		form := slices.Index(r.Names, found.Identity)
		if form < 0 {
			form = slices.Index(r.Series, found.Version.Series)
		}
		value, err := r.forms[form].Recall(found.Values)
		if err != nil {
			f.unreadable(ctx, found, err)
			continue
		}
		if values[i] = value; youngest == nil || !found.At.Before(youngest.At) {
			youngest = found
		}
	}
	return youngest, values
}

func (f Finder) unreadable(ctx context.Context, found *budget.Found, err error) {
	f.Log.ErrorContext(ctx, "an earlier release cannot be read", "reservation", string(found.Charge), "code", string(fault.CodeOf(err)))
}
