// Package released finds earlier releases that answer a question.
//
// It knows the names under which releases are kept, the order of look-ups, and which releases make a whole answer. It does not know
// policies, accounts and charges: its caller decides whether releases that others bought may be given.
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

// Release is one release of a question, with its names in the store of released values. It has none where it needs no data: it is then a
// function of the policy.
type Release struct {
	Names  [][32]byte // by form
	Series [][32]byte // by form: its name in all versions of a prepared copy; nil: none
	forms  []sqlrewrite.Form
}

// Of gives the releases of a question, by place in [sqlrewrite.Plan.Blocks], before the slots of a registered plan replace its price. The
// name of a release that draws from a plan depends on that plan.
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

// Drawing gives the name of a release that draws from a registered plan ("": none); without the plan it has another name.
func Drawing(plan string, name [32]byte) [32]byte {
	if plan == "" {
		return name
	}
	return sha256.Sum256(append([]byte("drawing from "+plan+" "), name[:]...))
}

// NameSeries gives releases their names in all versions of a prepared copy: the names of the releases of every, which is the same question
// about all versions. Where these have other forms, no release has a series.
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
	Latest   bool // no earlier version answers
}

// Found has the earlier releases of a question.
type Found struct {
	Whole    *sqlrewrite.Released // all that it releases; nil: not all was found
	Youngest *budget.Found        // of the releases in Whole
	Version  *budget.Version      // the earlier version of Whole; nil: the version that the question asks for
	Rest     *sqlrewrite.Plan     // the part that is still to be released, where the other part was found; nil: else
	Best     *sqlrewrite.Vector   // the best vector at other prices, where the question was not found at its own; nil: none
	Under    [32]byte             // the name of Best
}

// Finder looks releases up with Look, and writes to Log which ones it cannot read.
type Finder struct {
	Look func(context.Context, budget.Lookup) (*budget.Earlier, error)
	Log  *slog.Logger
}

// Find looks up all that a question releases: the version that it asks for, the analyst's own before that of others; else the latest
// version that has all of it, and the most accurate at any price. It takes one look-up, except for releases whose latest versions differ.
// Releases that cannot be read count as missing. Its errors are those of Look.
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
		found.Under = best.Identity
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

// together makes one release of a question's releases, by place; nil, and the plan of the missing ones, where some are missing.
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

// ofOneVersion finds the latest version that has all releases, from the latest version of each, by place; nil: none has.
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

// read gives the values of the releases that were found, by place, and the youngest of these.
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
