package sqlrewrite

import (
	"cmp"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Draws is the randomness of a plan that depends on no data, drawn before the query runs.
type Draws struct {
	seed  int64                // of the keyed hash that chooses a unit's groups
	noise [][]mechanisms.Noise // by public group and release; nil for private keys
}

// releasedPlan is a plan's noisy values, before the outer layer of the query.
type releasedPlan struct {
	plan *pricedPlan
	rows []releasedRow // in the order of their keys
}

// releasedRow is one group: nothing in it is private any more.
type releasedRow struct {
	keys  []catalog.Key
	noisy []*big.Int // by release, in steps; of a selection the candidate's place, from 0
}

func newDraws(seed int64) *Draws { return &Draws{seed: seed} }

// Draw samples everything that depends on no data, before the statements run: the noise of public groups and the secret
// seed of the statements. Draws serve one release.
func (p *pricedPlan) Draw(s *mechanisms.Sampler) *Draws {
	seed := int64(0)
	if slices.ContainsFunc(p.parts, func(part planPart) bool { return part.seedArg > 0 }) {
		seed = int64(s.Uniform(1 << 63))
	}
	d := newDraws(seed)
	if !p.query.private() && p.query.top == 0 {
		for range clampInt64(p.query.publicTuples()) {
			d.noise = append(d.noise, p.drawRow(s))
		}
	}
	return d
}

// drawRow draws the noise of one group; the places of selections stay empty.
func (p *pricedPlan) drawRow(s *mechanisms.Sampler) []mechanisms.Noise {
	row := make([]mechanisms.Noise, len(p.releases))
	for i, r := range p.releases {
		if r.mechanism != nil {
			row[i] = r.mechanism.Draw(s)
		}
	}
	return row
}

// group is what the statements say of one group.
type group struct {
	keys    []catalog.Key
	exact   []mechanisms.Exact   // by release; the zero Exact is 0
	tallies [][]mechanisms.Tally // by part; of histograms only
	seen    []bool               // by part: it had a row; not of histograms
}

func (p *pricedPlan) newGroup(keys []catalog.Key) *group {
	return &group{keys: keys, exact: make([]mechanisms.Exact, len(p.releases)),
		tallies: make([][]mechanisms.Tally, len(p.parts)), seen: make([]bool, len(p.parts))}
}

// releaseRows adds the noise and selects private keys: the only step that holds sealed values. An error of the rows is
// returned as it is.
//
// Of private keys the first statement's rows decide which groups are shown. A group that is not is forgotten at once, so that memory
// grows with what is shown. Noise is then drawn, and candidates are chosen, in the order of the keys.
func (p *pricedPlan) releaseRows(s *mechanisms.Sampler, draws *Draws, rows Rows) (*releasedPlan, error) {
	groups := make(map[string]*group)
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if err := p.gather(s, groups, row); err != nil {
			return nil, err
		}
	}
	switch {
	case p.query.private():
		return p.releasePrivate(s, groups), nil
	case p.query.top > 0:
		return p.releaseTop(s, groups)
	}
	return p.releasePublic(s, draws, groups)
}

var errShape = errors.New("sqlrewrite: the statement's rows do not have the plan's shape")

// gather puts a row to its group.
func (p *pricedPlan) gather(s *mechanisms.Sampler, groups map[string]*group, row ExactRow) error {
	if row.Part < 0 || row.Part >= len(p.parts) {
		return fault.Internal(errShape)
	}
	part := p.parts[row.Part]
	if len(row.Keys) != part.statement.Keys || len(row.Values) != part.statement.Values {
		return fault.Internal(errShape)
	}
	id := keyIdentity(row.Keys)
	g := groups[id]
	switch {
	case g != nil:
	case part.units && !p.selection.mechanism.Keep(s, row.Values[len(row.Values)-1]), p.query.private() && !part.units:
		return nil // not shown
	default:
		g = p.newGroup(row.Keys)
		groups[id] = g
	}
	if part.histogram(p.query) {
		g.tallies[row.Part] = append(g.tallies[row.Part], mechanisms.Tally{Point: row.Values[0], Rows: row.Values[1]})
		return nil
	}
	if g.seen[row.Part] {
		return fault.Internal(errShape)
	}
	g.seen[row.Part] = true
	for i, release := range part.releases {
		g.exact[release] = row.Values[i]
	}
	return nil
}

// releasePublic releases every group of the domain; one without rows is zero. Groups outside the domain are left out.
func (p *pricedPlan) releasePublic(s *mechanisms.Sampler, draws *Draws, groups map[string]*group) (*releasedPlan, error) {
	out := &releasedPlan{plan: p}
	err := p.query.eachPublicTuple(func(i int, keys []catalog.Key) error {
		if i >= len(draws.noise) {
			return fault.Internal(errShape)
		}
		g := groups[keyIdentity(keys)]
		if g == nil {
			g = p.newGroup(keys)
		}
		out.rows = append(out.rows, p.releaseRow(s, draws.noise[i], g))
		return nil
	})
	return out, err
}

func (p *pricedPlan) releasePrivate(s *mechanisms.Sampler, groups map[string]*group) *releasedPlan {
	shown := slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return p.query.compareKeys(a.keys, b.keys) })
	out := &releasedPlan{plan: p}
	for _, g := range shown {
		out.rows = append(out.rows, p.releaseRow(s, p.drawRow(s), g))
	}
	return out
}

func (p *pricedPlan) releaseRow(s *mechanisms.Sampler, noise []mechanisms.Noise, g *group) releasedRow {
	row := releasedRow{keys: g.keys, noisy: make([]*big.Int, len(p.releases))}
	for at, part := range p.parts {
		for _, i := range part.releases {
			if r := p.releases[i]; r.pick != nil {
				row.noisy[i] = r.pick.choose(s, g.tallies[at])
			} else {
				row.noisy[i] = noise[i].Release(g.exact[i])
			}
		}
	}
	return row
}

// eachPublicTuple visits the combinations of public keys in the order of the keys; without keys there is one, the empty tuple.
func (q *boundQuery) eachPublicTuple(visit func(i int, keys []catalog.Key) error) error {
	for i := range clampInt64(q.publicTuples()) {
		keys := make([]catalog.Key, len(q.keys))
		rest := i
		for k := len(q.keys) - 1; k >= 0; k-- {
			n := int64(len(q.keys[k].domain))
			keys[k] = q.keys[k].domain[rest%n]
			rest /= n
		}
		if err := visit(int(i), keys); err != nil {
			return err
		}
	}
	return nil
}

// keyIdentity is equal for equal tuples only: lengths come first.
func keyIdentity(keys []catalog.Key) string {
	var b strings.Builder
	for _, k := range keys {
		if k.Null {
			b.WriteString("-,")
			continue
		}
		b.WriteString(big.NewInt(int64(len(k.Text))).String())
		b.WriteByte(':')
		b.WriteString(k.Text)
	}
	return b.String()
}

// compareKeys orders tuples as ORDER BY orders them: NULL last, numbers by value, everything else by its bytes.
func (q *boundQuery) compareKeys(a, b []catalog.Key) int {
	for i, k := range q.keys {
		if c := compareKey(k.x.typ(), a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func compareKey(t catalog.Type, a, b catalog.Key) int {
	switch {
	case a.Null || b.Null:
		return boolOrder(a.Null, b.Null)
	case t.IsNumber():
		x, okX := parseNumber(a.Text)
		y, okY := parseNumber(b.Text)
		if okX && okY {
			return x.Cmp(y)
		}
		// After all other numbers; by text, or keys of hundreds of digits would stay in the order in which the rows came.
		return cmp.Or(boolOrder(!okX, !okY), cmp.Compare(a.Text, b.Text))
	case t.IsTime():
		return cmp.Or(cmp.Compare(timeRank(a.Text), timeRank(b.Text)), cmp.Compare(a.Text, b.Text))
	default:
		return cmp.Compare(a.Text, b.Text)
	}
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// timeRank orders ISO dates and times whose texts do not compare byte by byte: the infinities, years before Christ, and years
// of more than four digits.
func timeRank(text string) int {
	switch {
	case text == "-infinity":
		return -2
	case strings.HasSuffix(text, " BC"):
		return -1
	case text == "infinity":
		return 10
	default:
		return max(strings.IndexByte(text, '-'), 4)
	}
}
