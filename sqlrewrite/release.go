package sqlrewrite

import (
	"cmp"
	"errors"
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

// Released is a plan's noisy values, before the outer layer of the query.
type Released struct {
	plan *Plan
	rows []releasedRow // in the order of their keys
}

// releasedRow is one group: nothing in it is private any more.
type releasedRow struct {
	keys  []catalog.Key
	noisy []*big.Int // by release, in steps
}

// Draw samples everything that depends on no data, before the statement runs: the noise of public groups and the secret
// seed of the statement. Draws serve one release.
func (p *Plan) Draw(s *mechanisms.Sampler) *Draws {
	d := &Draws{}
	if p.seedArg > 0 {
		d.seed = int64(s.Uniform(1 << 63))
	}
	if !p.query.private() {
		for range clampInt64(p.query.publicTuples()) {
			d.noise = append(d.noise, p.drawRow(s))
		}
	}
	return d
}

func (p *Plan) drawRow(s *mechanisms.Sampler) []mechanisms.Noise {
	row := make([]mechanisms.Noise, len(p.releases))
	for i, r := range p.releases {
		row[i] = r.mechanism.Draw(s)
	}
	return row
}

// Release adds the noise and selects private keys: the only step that holds sealed values. An error of the rows is
// returned as it is.
func (p *Plan) Release(s *mechanisms.Sampler, draws *Draws, rows Rows) (*Released, error) {
	if p.query.private() {
		return p.releasePrivate(s, rows)
	}
	return p.releasePublic(draws, rows)
}

var errShape = errors.New("sqlrewrite: the statement's rows do not have the plan's shape")

// checked passes on the rows that have the plan's shape and ends at the first that has not.
func (p *Plan) checked(rows Rows) Rows {
	return func(yield func(ExactRow, error) bool) {
		for row, err := range rows {
			if err == nil && (len(row.Keys) != p.statement.Keys || len(row.Values) != p.statement.Values) {
				err = fault.Internal(errShape)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// releasePublic releases every group of the domain; one without rows is zero. Groups outside the domain are left out.
func (p *Plan) releasePublic(draws *Draws, rows Rows) (*Released, error) {
	groups := make(map[string]ExactRow)
	for row, err := range p.checked(rows) {
		if err != nil {
			return nil, err
		}
		id := keyIdentity(row.Keys)
		if _, twice := groups[id]; twice {
			return nil, fault.Internal(errShape)
		}
		groups[id] = row
	}
	out := &Released{plan: p}
	err := p.query.eachPublicTuple(func(i int, keys []catalog.Key) error {
		if i >= len(draws.noise) {
			return fault.Internal(errShape)
		}
		exact := groups[keyIdentity(keys)].Values
		if exact == nil {
			exact = make([]mechanisms.Exact, p.statement.Values)
		}
		out.rows = append(out.rows, p.releaseRow(keys, draws.noise[i], exact))
		return nil
	})
	return out, err
}

// releasePrivate selects the groups to show and draws noise for those only. A group that is not selected is forgotten at once,
// so that memory grows with what is shown. The order of the answer is that of the keys.
func (p *Plan) releasePrivate(s *mechanisms.Sampler, rows Rows) (*Released, error) {
	out := &Released{plan: p}
	for row, err := range p.checked(rows) {
		if err != nil {
			return nil, err
		}
		units := row.Values[len(row.Values)-1]
		if p.selection.mechanism.Keep(s, units) {
			out.rows = append(out.rows, p.releaseRow(row.Keys, p.drawRow(s), row.Values))
		}
	}
	slices.SortFunc(out.rows, func(a, b releasedRow) int { return p.query.compareKeys(a.keys, b.keys) })
	return out, nil
}

func (p *Plan) releaseRow(keys []catalog.Key, noise []mechanisms.Noise, exact []mechanisms.Exact) releasedRow {
	row := releasedRow{keys: keys, noisy: make([]*big.Int, len(p.releases))}
	for i := range p.releases {
		row.noisy[i] = noise[i].Release(exact[i])
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
