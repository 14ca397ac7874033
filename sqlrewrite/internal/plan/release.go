package plan

import (
	"errors"
	"maps"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Draws is the randomness of a plan that depends on no data, drawn before the query runs.
type Draws struct {
	seed  int64                // of the keyed hash that chooses a unit's groups
	noise [][]mechanisms.Noise // by public group and release; nil for private keys
	// Of several blocks: those of each that is still to be released; then there is nothing else.
	blocks    []*Draws
	releasing *releasing // nil until their statements run
}

// Released is a plan's noisy values, before post-processing.
type Released struct {
	Plan *Plan
	Rows []ReleasedRow // in the order of their keys; of several blocks none, but
	// Blocks, what was released of each; nil: the plan is of one.
	Blocks []*Released
	Bought []*string // the values that the statements took, by their places; nil is NULL
}

// ReleasedRow is one group: nothing in it is private any more.
type ReleasedRow struct {
	Keys  []catalog.Key
	Noisy []*big.Int // by release, in steps; of a selection the candidate's place, from 0
}

func NewDraws(seed int64) *Draws { return &Draws{seed: seed} }

// Draw samples everything that depends on no data, before the statements run: the noise of public groups and the secret
// seed of the statements. Draws serve one release.
func (p *Plan) Draw(s *mechanisms.Sampler) *Draws {
	if p.Several != nil {
		d := &Draws{}
		for _, block := range p.pending() {
			d.blocks = append(d.blocks, block.Draw(s))
		}
		return p.oneSeed(d)
	}
	seed := int64(0)
	if slices.ContainsFunc(p.Parts, func(part sqlprint.PlanPart) bool { return part.SeedArg > 0 }) {
		seed = int64(s.Uniform(1 << 63))
	}
	d := NewDraws(seed)
	if !p.Query.Private() && p.Query.Top == 0 {
		for range scalar.ClampInt64(p.Query.PublicTuples()) {
			d.noise = append(d.noise, p.drawRow(s))
		}
	}
	return d
}

// drawRow draws the noise of one group; the places of selections, and of a count that is released already, stay empty.
func (p *Plan) drawRow(s *mechanisms.Sampler) []mechanisms.Noise {
	row := make([]mechanisms.Noise, len(p.Releases))
	for i, r := range p.Releases {
		if r.Mechanism != nil {
			row[i] = r.Mechanism.Draw(s)
		}
	}
	return row
}

// Group is what the statements say of one group.
type Group struct {
	Keys    []catalog.Key
	exact   []mechanisms.Exact   // by release; the zero Exact is 0
	Tallies [][]mechanisms.Tally // by part; of histograms only
	seen    []bool               // by part: it had a row; not of histograms
	counted *big.Int             // the noisy count by which it is shown; nil where none is
}

func (p *Plan) NewGroup(keys []catalog.Key) *Group {
	return &Group{Keys: keys, exact: make([]mechanisms.Exact, len(p.Releases)),
		Tallies: make([][]mechanisms.Tally, len(p.Parts)), seen: make([]bool, len(p.Parts))}
}

// ReleaseRows adds the noise and selects private keys: the only step that holds sealed values. An error of the rows is
// returned as it is.
//
// Of private keys the first statement's rows decide which groups are shown, by their units or by a count, whose noisy value is then the
// answer. A group that is not shown is forgotten at once, so that memory grows with what is shown. Noise is then drawn, and candidates are
// chosen, in the order of the keys.
func (p *Plan) ReleaseRows(s *mechanisms.Sampler, draws *Draws, rows Rows) (*Released, error) {
	if p.Several != nil {
		return p.releaseSeveral(s, draws, rows)
	}
	groups := make(map[string]*Group)
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if err := p.gather(s, groups, row); err != nil {
			return nil, err
		}
	}
	return p.released(s, draws, groups)
}

// released adds the noise to the groups that the statements gave.
func (p *Plan) released(s *mechanisms.Sampler, draws *Draws, groups map[string]*Group) (*Released, error) {
	switch {
	case p.Query.Private():
		return p.releasePrivate(s, groups), nil
	case p.Query.Top > 0:
		return p.releaseTop(s, groups)
	}
	return p.releasePublic(s, draws, groups)
}

var ErrShape = errors.New("sqlrewrite: the statement's rows do not have the plan's shape")

// gather puts a row to its group.
func (p *Plan) gather(s *mechanisms.Sampler, groups map[string]*Group, row ExactRow) error {
	if row.Part < 0 || row.Part >= len(p.Parts) {
		return fault.Internal(ErrShape)
	}
	part := p.Parts[row.Part]
	if len(row.Keys) != part.Statement.Keys || len(row.Values) != part.Statement.Values {
		return fault.Internal(ErrShape)
	}
	id := scalar.KeyIdentity(row.Keys)
	g := groups[id]
	switch {
	case g != nil:
	case p.Query.Private() && !part.Units:
		return nil // not shown
	default:
		g = p.NewGroup(row.Keys)
		if part.Units && !p.shows(s, g, part, row) {
			return nil
		}
		groups[id] = g
	}
	if part.Histogram(p.Query) {
		g.Tallies[row.Part] = append(g.Tallies[row.Part], mechanisms.Tally{Point: row.Values[0], Rows: row.Values[1]})
		return nil
	}
	if g.seen[row.Part] {
		return fault.Internal(ErrShape)
	}
	g.seen[row.Part] = true
	for i, release := range part.Releases {
		g.exact[release] = row.Values[i]
	}
	return nil
}

// shows decides whether a private group is shown: once, as its noisy count is the answer.
func (p *Plan) shows(s *mechanisms.Sampler, g *Group, part sqlprint.PlanPart, row ExactRow) (shown bool) {
	if p.PartitionSelection != nil {
		return p.PartitionSelection.Mechanism.Keep(s, row.Values[len(row.Values)-1])
	}
	for i, release := range part.Releases {
		if count := p.Releases[release].Shown; count != nil {
			g.counted, shown = count.Release(s, row.Values[i])
		}
	}
	return shown
}

// releasePublic releases every group of the domain; one without rows is zero. Groups outside the domain are left out.
func (p *Plan) releasePublic(s *mechanisms.Sampler, draws *Draws, groups map[string]*Group) (*Released, error) {
	out := &Released{Plan: p}
	err := EachPublicTuple(p.Query, func(i int, keys []catalog.Key) error {
		if i >= len(draws.noise) {
			return fault.Internal(ErrShape)
		}
		g := groups[scalar.KeyIdentity(keys)]
		if g == nil {
			g = p.NewGroup(keys)
		}
		out.Rows = append(out.Rows, p.releaseRow(s, draws.noise[i], g))
		return nil
	})
	return out, err
}

func (p *Plan) releasePrivate(s *mechanisms.Sampler, groups map[string]*Group) *Released {
	shown := slices.SortedFunc(maps.Values(groups), func(a, b *Group) int { return CompareKeys(p.Query, a.Keys, b.Keys) })
	out := &Released{Plan: p}
	for _, g := range shown {
		out.Rows = append(out.Rows, p.releaseRow(s, p.drawRow(s), g))
	}
	return out
}

func (p *Plan) releaseRow(s *mechanisms.Sampler, noise []mechanisms.Noise, g *Group) ReleasedRow {
	row := ReleasedRow{Keys: g.Keys, Noisy: make([]*big.Int, len(p.Releases))}
	for at, part := range p.Parts {
		for _, i := range part.Releases {
			switch r := p.Releases[i]; {
			case r.Selection != nil:
				row.Noisy[i] = r.Selection.Choose(s, g.Tallies[at])
			case r.Shown != nil:
				row.Noisy[i] = g.counted
			default:
				row.Noisy[i] = noise[i].Release(g.exact[i])
			}
		}
	}
	return row
}
