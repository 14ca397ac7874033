package sqlrewrite

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"
	"unsafe"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// The noise coupling, after DPCheck (Zhang et al., OOPSLA 2020). An answer on database D with noise z, and on its neighbour D' with noise
// z shifted by the difference of the true values, come from the same noisy values: so they must be equal byte for byte, rows,
// order, intervals, notes and all. Whatever used a true value after the noise would differ (A10, A11, A21, A41, A80). The shift must cost
// no more than was charged: Σ|d|/b <= ε for Laplace noise, Σd²/2σ² <= ρ for Gaussian.
//
// Groups that only one side has are left out where keys are private: the δ of their selection covers them. Of a selection both sides
// release the same candidate: its own tests compare the laws of the choice.
func TestA10A11A21A41A80Coupling(t *testing.T) {
	w := newWorld(t, 21, wild, 4)
	writer := &writer{r: w.r, counts: make(map[string]int)}
	sampler := mechanisms.NewSampler()
	moved := 0
	for tried, coupled := 0, 0; coupled < *proofQueries; tried++ {
		if tried > 2**proofQueries+100 {
			t.Fatalf("only %d of %d queries were planned", coupled, tried)
		}
		if tried%queriesPerDatabase == 0 {
			w.fill(t, tried/queriesPerDatabase%2 == 0)
		}
		sql, from := writer.query()
		options := randomOptions(w.r, from)
		options.Delta = 1e15 // 0.001: with the price of these options a group of two units is shown for certain
		p, err := Rewrite(sql, w.snapshot, options)
		if err != nil {
			if !tolerated[string(fault.CodeOf(err))] {
				t.Fatalf("%s\n%s", sql, showFault(err))
			}
			continue
		}
		coupled++
		if !p.NeedsData() || p.query.top > 0 {
			continue
		}
		without := neighbourhood()[1+w.r.IntN(units+1)]
		c := coupling{plan: p, draws: p.Draw(sampler), sampler: sampler}
		if err := c.read(t, w, without); err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
		if err := c.affordable(); err != nil {
			t.Fatalf("%s\nwithout unit %s: %v", sql, without, err)
		}
		if c.differs() {
			moved++
		}
		a, b := c.answer(t, w, 0), c.answer(t, w, 1)
		if a != b {
			t.Fatalf("%s\nwithout unit %s the answer differs:\n%.2000s\n%.2000s", sql, without, a, b)
		}
	}
	if moved < *proofQueries/8 {
		t.Errorf("only %d of %d neighbours differ at all: the test has no power", moved, *proofQueries)
	}
}

// coupling is a plan with the true values of two neighbouring databases, by part.
type coupling struct {
	plan    *Plan
	draws   *Draws
	sampler *mechanisms.Sampler
	sides   [2][]exactTable
	noisy   map[string][]*big.Int // by group and release: what both sides release
}

// read runs the statements on both sides and draws what is released.
func (c *coupling) read(t *testing.T, w *world, without string) error {
	for at, s := range c.plan.Statements(c.draws) {
		if c.plan.parts[at].histogram(c.plan.query) {
			c.sides[0], c.sides[1] = append(c.sides[0], nil), append(c.sides[1], nil)
			continue
		}
		tables, err := runOnAll(t.Context(), w.conn, s, []string{"nobody", without})
		if err != nil {
			return err
		}
		c.sides[0], c.sides[1] = append(c.sides[0], tables[0]), append(c.sides[1], tables[1])
	}
	mustExec(t, w.conn, "SET test.without = 'nobody'")
	if c.plan.query.private() {
		c.keepCommonGroups()
	}
	c.noisy = make(map[string][]*big.Int)
	for _, id := range c.groups() {
		for i := range c.plan.releases {
			v := new(big.Int).Add(c.exact(0, id, i), big.NewInt(int64(w.r.IntN(41)-20)))
			c.noisy[id] = append(c.noisy[id], v)
		}
	}
	return nil
}

// keepCommonGroups leaves the groups that both sides have and that are shown for certain.
func (c *coupling) keepCommonGroups() {
	shown := func(side int, id string) bool {
		row, ok := c.sides[side][c.unitsPart()][id]
		return ok && row[len(row)-1].Cmp(big.NewInt(1)) > 0
	}
	for side := range c.sides {
		for _, table := range c.sides[side] {
			maps.DeleteFunc(table, func(id string, _ []*big.Int) bool { return !shown(1-side, id) || !shown(side, id) })
		}
	}
}

// unitsPart is the part that counts the units of private groups.
func (c *coupling) unitsPart() int {
	return slices.IndexFunc(c.plan.parts, func(part planPart) bool { return part.units })
}

// groups are the identities of all groups that are released.
func (c *coupling) groups() []string {
	var ids []string
	if c.plan.query.private() {
		return slices.Sorted(maps.Keys(c.sides[0][c.unitsPart()]))
	}
	_ = c.plan.query.eachPublicTuple(func(_ int, keys []catalog.Key) error {
		ids = append(ids, keyIdentity(keys))
		return nil
	})
	return ids
}

// exact is the true value of a release on one side; 0 for a selection.
func (c *coupling) exact(side int, id string, release int) *big.Int {
	for at, part := range c.plan.parts {
		if i := slices.Index(part.releases, release); i >= 0 && c.sides[side][at] != nil {
			return c.sides[side][at].at(id, i)
		}
	}
	return new(big.Int)
}

func (c *coupling) differs() bool {
	for _, id := range c.groups() {
		for i := range c.plan.releases {
			if c.exact(0, id, i).Cmp(c.exact(1, id, i)) != 0 {
				return true
			}
		}
	}
	return false
}

// affordable checks that shifting the noise costs no more than each release charges.
func (c *coupling) affordable() error {
	for i, r := range c.plan.releases {
		if r.mechanism == nil {
			continue
		}
		l1, l2Squared := new(big.Rat), new(big.Rat)
		for _, id := range c.groups() {
			d := new(big.Rat).SetInt(new(big.Int).Sub(c.exact(0, id, i), c.exact(1, id, i)))
			l1.Add(l1, new(big.Rat).Abs(d))
			l2Squared.Add(l2Squared, new(big.Rat).Mul(d, d))
		}
		parameters, charged := r.mechanism.Parameters(), r.mechanism.Loss()
		cost, limit := new(big.Rat), new(big.Rat)
		if r.mechanism.Name() == mechanisms.DiscreteGaussian {
			variance, _ := new(big.Rat).SetString(parameters.Variance)
			cost.Quo(l2Squared, variance.Mul(variance, big.NewRat(2, 1)))
			limit.SetFrac64(int64(charged.Rho), int64(mechanisms.EpsilonUnit))
		} else {
			scale, _ := new(big.Rat).SetString(parameters.Scale)
			cost.Quo(l1, scale)
			limit.SetFrac64(int64(charged.Epsilon), int64(mechanisms.EpsilonUnit))
		}
		if cost.Cmp(limit) > 0 {
			return fmt.Errorf("release %d costs %s, charged %s", i, cost.FloatString(6), limit.FloatString(6))
		}
	}
	return nil
}

// answer releases one side with the noise that leads to the common noisy values, and writes the answer.
func (c *coupling) answer(t *testing.T, w *world, side int) string {
	t.Helper()
	p := *c.plan
	p.releases = slices.Clone(p.releases)
	queue := &noiseQueue{}
	for i := range p.releases {
		if p.releases[i].mechanism != nil {
			p.releases[i].mechanism = tape{Additive: p.releases[i].mechanism, queue: queue}
		}
	}
	order := c.groups()
	if p.query.private() { // noise is drawn in the order of the keys
		slices.SortFunc(order, func(a, b string) int { return p.query.compareKeys(parseIdentity(t, a), parseIdentity(t, b)) })
	}
	for _, id := range order {
		for i := range p.releases {
			if p.releases[i].mechanism != nil {
				queue.values = append(queue.values, new(big.Int).Sub(c.noisy[id][i], c.exact(side, id, i)))
			}
		}
	}
	draws := *c.draws
	draws.noise = nil
	if !p.query.private() {
		for range order {
			draws.noise = append(draws.noise, p.drawRow(c.sampler))
		}
	}
	released, err := p.Release(c.sampler, &draws, c.rows(t, side))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range released.rows {
		for i := range p.releases {
			if p.releases[i].pick != nil {
				row.noisy[i] = new(big.Int) // the same choice on both sides: the first candidate
			}
		}
	}
	var rows []PostRow
	var types []string
	if post, ok := released.Post(); ok {
		rows, types = runPost(t, w.conn, post)
	}
	answer, err := released.Answer(rows, types)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows are the statements' rows of one side, in another order on each: PostgreSQL promises none.
func (c *coupling) rows(t *testing.T, side int) Rows {
	t.Helper()
	return func(yield func(ExactRow, error) bool) {
		for at, part := range c.plan.parts {
			ids := c.groups()
			if side == 1 {
				slices.Reverse(ids)
			}
			for _, id := range ids {
				row := ExactRow{Part: at, Keys: parseIdentity(t, id)}
				values, ok := c.sides[side][at][id]
				switch {
				case part.histogram(c.plan.query):
					row.Values = []mechanisms.Exact{mechanisms.SealInt64(0), mechanisms.SealInt64(1)} // whatever: see answer
				case !ok:
					continue // PostgreSQL has no row for an empty group
				default:
					for _, v := range values {
						row.Values = append(row.Values, mechanisms.Seal(v))
					}
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// noiseQueue holds the noise that tapes play, in the order in which it is drawn.
type noiseQueue struct{ values []*big.Int }

// tape is a mechanism whose noise the test decides.
type tape struct {
	mechanisms.Additive
	queue *noiseQueue
}

func (m tape) Draw(*mechanisms.Sampler) mechanisms.Noise {
	v := m.queue.values[0]
	m.queue.values = m.queue.values[1:]
	return noiseOf(v)
}

// noiseOf makes a Noise of a chosen value. Only mechanisms can, and it has no door for this: the test reaches into the memory of the
// struct, whose fields TestNoiseOf holds it to.
func noiseOf(v *big.Int) (n mechanisms.Noise) {
	fields := (*struct {
		small int64
		big   *big.Int
		drawn bool
	})(unsafe.Pointer(&n))
	fields.big, fields.drawn = v, true
	return n
}

func TestNoiseOf(t *testing.T) {
	if got := noiseOf(big.NewInt(-7)).Release(mechanisms.SealInt64(40)); got.Int64() != 33 {
		t.Errorf("40 - 7 = %s", got)
	}
}
