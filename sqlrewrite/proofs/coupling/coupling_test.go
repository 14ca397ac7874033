// Package coupling proves over HTTP that noise which makes released values of two neighbours equal makes their answers equal.
package coupling

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Couplings writes random queries with the randomness that couples a database and a neighbour, after DPCheck (Zhang et al., OOPSLA 2020).
// An answer on database D with noise z, and on its neighbour D' with noise z shifted by the difference of the true values, come from the
// same noisy values: so they must be equal byte for byte. Of a selection both sides make the same choice. Groups of private keys that only
// one side has are hidden: the δ of their selection covers them.
type Couplings struct {
	*gen.World
	DSN      string // of the protected database, for the reader's role; the setting test.without takes one unit out of it
	Snapshot *catalog.Snapshot
	writer   *gen.Writer
	tried    int

	Copied *CopiedSides // nil: the tables themselves are asked
}

// CopiedSides are two databases of which the second lacks a unit, each with prepared copies of its own.
type CopiedSides struct {
	DSNs, PrepareDSNs [2]string // for the roles of the reader, and of who prepares
	Snapshots         [2]*catalog.Snapshot
	Versions          [2][]catalog.Version // the newest of each table
	Prepare           func(side int, name string, seed int64) catalog.Version
	Asked             int // queries that copies answer

	without string
	serving []*catalog.Snapshot
}

// NewCopiedCouplings makes two protected databases; what makes versions of copies is still to be set.
func NewCopiedCouplings(t *testing.T, seed uint64) *Couplings {
	t.Helper()
	c := &Couplings{Copied: &CopiedSides{}}
	for side := range 2 {
		db := pgtest.Protected(t, gen.ProofDDL+"GRANT USAGE ON SCHEMA public TO noisegate_prepare; "+
			"GRANT SELECT ON ALL TABLES IN SCHEMA public TO noisegate_prepare")
		c.Copied.DSNs[side], c.Copied.PrepareDSNs[side] = db.ReaderDSN, db.As("noisegate_prepare")
		c.Copied.Snapshots[side] = gen.SnapshotOf(t, db.Database, gen.CopiedPolicy(4, 2)) // which copies answer with less noise
		conn := db.Conn(t, db.DSN)
		w := &gen.World{Schema: "public", Owner: conn, Conn: conn, Plain: conn, Snapshot: c.Copied.Snapshots[side], Values: gen.Wild,
			Rand: rand.New(rand.NewPCG(seed, 2))} // reproducible on purpose
		if w.Prepare(t); side == 0 {
			c.World, c.DSN, c.Snapshot = w, db.ReaderDSN, w.Snapshot
			c.writer = &gen.Writer{Rand: w.Rand, Lists: true, Counts: make(map[string]int)}
		} else {
			c.Twin = conn
		}
	}
	return c
}

// refill leaves a unit out of the second database, and prepares both.
func (c *Couplings) refill(t *testing.T) {
	t.Helper()
	s := c.Copied
	s.without = gen.Neighbourhood()[1+c.Rand.IntN(gen.Units+1)]
	is := " IS NOT DISTINCT FROM " + s.without
	rewritetest.MustExec(t, c.Twin, "DELETE FROM public.items WHERE order_id IN (SELECT order_id FROM public.orders WHERE buyer"+is+")")
	for table, unit := range map[string]string{"orders": "buyer", "events": "unit", "cards": "unit", "people": "id"} {
		rewritetest.MustExec(t, c.Twin, "DELETE FROM public."+table+" WHERE "+unit+is)
	}
	s.serving, s.Versions = nil, [2][]catalog.Version{}
	for _, name := range []string{"cards", "events", "orders"} {
		seed := c.Rand.Int64()
		for side := range s.Versions {
			s.Versions[side] = append(s.Versions[side], s.Prepare(side, name, seed))
		}
		on := pipeline.Serving(s.Snapshots[0], s.Versions[0][len(s.serving)])
		if on == nil {
			t.Fatal("a version that was just made does not serve")
		}
		s.serving = append(s.serving, on)
	}
}

// plan is what the gateway answers a query by.
func (c *Couplings) plan(sql string, o plan.Options) (*plan.Plan, error) {
	live, err := c.Lists.Read(sql, c.Snapshot, o)
	if err != nil || c.Copied == nil || live == nil || !live.NeedsData() {
		return live, err
	}
	for _, on := range c.Copied.serving {
		if p, err := c.Lists.Plan(sql, on, live.Options); err == nil && p.NeedsData() && pipeline.Replaces(p, live) {
			c.Copied.Asked++
			return p, nil
		}
	}
	return live, nil
}

// copied is how many queries copies answered so far.
func (c *Couplings) copied() int {
	if c.Copied == nil {
		return 0
	}
	return c.Copied.Asked
}

// runOnSides runs a statement on two neighbouring databases.
func runOnSides(ctx context.Context, w *gen.World, s sqlprint.Statement, without [2]string) ([]gen.ExactTable, error) {
	if w.Twin == nil {
		return gen.RunOnAll(ctx, w.Conn, s, without[:])
	}
	a, err := gen.RunOnAll(ctx, w.Conn, s, without[:1])
	if err != nil {
		return nil, err
	}
	b, err := gen.RunOnAll(ctx, w.Twin, s, without[:1])
	return append(a, b...), err
}

// Coupled is a query on two neighbouring databases.
type Coupled struct {
	SQL                          string
	Epsilon, Rho                 string // one is ""
	Delta                        string
	MaxRows, MaxGroups, MaxTotal int64
	Report                       string
	Without                      [2]string // whom each side lacks
	Tapes                        [2]*Tape
	Differs                      bool          // some true value does
	Counted                      bool          // its groups are shown by a count
	Totals                       bool          // it groups by several sets of keys
	True                         [2][]*big.Int // the first release of each released row
	Refused                      bool          // it has no plan
}

// CouplingQueries is how many queries are coupled.
func CouplingQueries() int {
	if testing.Short() {
		return min(16, *gen.Couplings)
	}
	return min(gen.Proofs(), *gen.Couplings)
}

// NewCouplings makes a protected database. Its tables are what they were when the policy was checked: rows are hidden by row security.
func NewCouplings(t *testing.T, seed uint64) *Couplings {
	t.Helper()
	w, dsn := gen.NewGuardedWorld(t, seed)
	return &Couplings{World: w, DSN: dsn, Snapshot: w.Snapshot, writer: &gen.Writer{Rand: w.Rand, Lists: true, Counts: make(map[string]int)}}
}

// Neighbours are all values of the setting test.without.
func (*Couplings) Neighbours() []string { return gen.Neighbourhood() }

// maxCoupled caps the groups of a query: answers of more say no more, and take long.
const maxCoupled = 1000

// Next writes a query and records its tapes.
func (c *Couplings) Next(t *testing.T) *Coupled {
	t.Helper()
	each := gen.QueriesPerDatabase
	if c.Copied != nil {
		each *= 4 // it takes long to prepare, and most queries are passed over
	}
	if c.tried%each == 0 {
		if c.Fill(t, c.tried/each%2 == 0); c.Copied != nil {
			c.refill(t)
		}
	}
	c.tried++
	sql, from := c.writer.Query()
	q := &Coupled{SQL: sql, Delta: "1e-7", Without: [2]string{"nobody", gen.Neighbourhood()[1+c.Rand.IntN(gen.Units+1)]},
		Tapes: [2]*Tape{{}, {}}}
	o := gen.RandomOptions(c.Rand, from)
	if o.Report = gen.RandomReport(c.Rand); c.Copied != nil {
		q.Without[1], o.Report = c.Copied.without, ""
		if o.MaxRows > 0 {
			o.MaxRows, o.MaxGroups, o.MaxTotal = gen.CopiedBounds(c.Rand)
		}
	}
	q.MaxRows, q.MaxGroups, q.MaxTotal, q.Report = o.MaxRows, o.MaxGroups, o.MaxTotal, string(o.Report)
	var err error
	if o.Epsilon > 0 {
		q.Epsilon = c.writer.Pick("0.5", "1", "2")
		o.Epsilon, err = mechanisms.ParseEpsilon(q.Epsilon)
	} else {
		q.Rho = c.writer.Pick("0.01", "0.1", "0.5")
		o.Rho, err = mechanisms.ParseRho(q.Rho)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o.Delta, err = mechanisms.ParseDelta(q.Delta); err != nil {
		t.Fatal(err)
	}
	asked := c.copied()
	planned, err := c.plan(sql, o)
	switch {
	case c.Copied != nil && c.copied() == asked && c.Rand.IntN(4) > 0: // most are of copies
		return c.Next(t)
	case err != nil && !gen.Tolerated[string(fault.CodeOf(err))]:
		t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
	case fault.CodeOf(err) == fault.CodeRequestReport:
		return c.Next(t)
	case err != nil:
		q.Refused = true
		return q
	case planned == nil || !planned.NeedsData():
		return q
	case slices.ContainsFunc(planned.Different(), func(block *plan.Plan) bool {
		return block.Query.PublicTuples().Cmp(big.NewInt(maxCoupled)) > 0
	}):
		return c.Next(t)
	}
	if err := c.record(t, planned, q); err != nil {
		t.Fatalf("%s\nwithout unit %s: %v", sql, q.Without[1], err)
	}
	return q
}

// record couples what a plan releases, block by block: what is drawn before the statements run, of all of them; which private groups are
// shown, as the rows of all statements arrive; then what is drawn after.
func (c *Couplings) record(t *testing.T, p *plan.Plan, q *Coupled) error {
	seed := int64(c.Rand.Uint64() >> 1)
	var pairs []*coupling
	for _, block := range p.Different() {
		pair := &coupling{plan: block, seed: seed, chosen: make(map[string]decided), loss: make(map[int]float64)}
		if err := pair.values(t, c.World, q); err != nil {
			return err
		}
		pairs = append(pairs, pair)
	}
	for side, tape := range q.Tapes {
		for _, pair := range pairs {
			pair.drawn(tape, side)
		}
		for _, pair := range pairs {
			pair.arrived(tape, side)
		}
		for _, pair := range pairs {
			if err := pair.tape(t, c.World, tape, side); err != nil {
				return err
			}
		}
		for _, id := range pairs[0].groups {
			q.True[side] = append(q.True[side], pairs[0].exact(side, id, 0))
		}
	}
	for _, pair := range pairs {
		q.Differs = q.Differs || pair.differs()
		if err := pair.affordable(); err != nil {
			return err
		}
	}
	q.Counted = pairs[0].plan.Query.Private() && pairs[0].plan.PartitionSelection == nil
	q.Totals = gen.Grouping.MatchString(q.SQL)
	return nil
}

// decided is what both sides choose, and what that costs on side 0 (see [Tape]).
type decided struct {
	target *big.Int
	cost   float64
}

// coupling is a plan with the true values of two neighbouring databases, by part; of a histogram a group's candidates are its last key.
type coupling struct {
	plan   *plan.Plan
	seed   int64
	sides  [2][]gen.ExactTable
	groups []string              // that both sides release, in the order of their keys
	noisy  map[string][]*big.Int // by group and release: what both sides release
	chosen map[string]decided    // by group and release: what both sides choose
	loss   map[int]float64       // by release: how much more probable its choices are on one side than on the other, as a logarithm
}

// values runs the statements on both sides, and chooses the noisy values of both.
func (c *coupling) values(t *testing.T, w *gen.World, q *Coupled) error {
	draws := plan.NewDraws(c.seed)
	for at, s := range c.plan.Statements(draws) {
		if c.plan.Parts[at].Histogram(c.plan.Query) {
			s = gen.AsCells(s)
		}
		tables, err := runOnSides(t.Context(), w, s, q.Without)
		if err != nil {
			return err
		}
		c.sides[0], c.sides[1] = append(c.sides[0], tables[0]), append(c.sides[1], tables[1])
	}
	c.groups = c.commonGroups(t)
	c.noisy = make(map[string][]*big.Int)
	for _, id := range c.groups {
		for i, r := range c.plan.Releases {
			v := c.exact(0, id, i)
			switch {
			case r.Shown != nil:
				v = c.shown(w, id, i)
			case r.Mechanism != nil:
				reach := max(1, min(scalar.ClampInt64(r.Mechanism.HalfWidth(0.5)), 1<<40))
				v = new(big.Int).Add(v, big.NewInt(w.Rand.Int64N(2*reach+1)-reach))
			}
			c.noisy[id] = append(c.noisy[id], v)
		}
	}
	return nil
}

// shown is a noisy count that shows a group on both sides: above the threshold, and no farther from either count than noise reaches.
func (c *coupling) shown(w *gen.World, id string, release int) *big.Int {
	k, a, b := c.plan.Releases[release].Shown.Threshold(), c.exact(0, id, release).Int64(), c.exact(1, id, release).Int64()
	least, most := max(k+1, max(a, b)-k), min(a, b)+k
	return big.NewInt(least + w.Rand.Int64N(most-least+1))
}

// commonGroups are the groups of the domain, or the private ones that both sides have.
func (c *coupling) commonGroups(t *testing.T) (ids []string) {
	if !c.plan.Query.Private() {
		_ = plan.EachPublicTuple(c.plan.Query, func(_ int, keys []catalog.Key) error {
			ids = append(ids, scalar.KeyIdentity(keys))
			return nil
		})
		return ids
	}
	a, b := c.sides[0][c.unitsPart()], c.sides[1][c.unitsPart()]
	for id := range a {
		if _, both := b[id]; both {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return plan.CompareKeys(c.plan.Query, gen.ParseIdentity(t, a), gen.ParseIdentity(t, b))
	})
	return ids
}

// unitsPart is the part that counts the units of private groups.
func (c *coupling) unitsPart() int {
	return slices.IndexFunc(c.plan.Parts, func(part sqlprint.PlanPart) bool { return part.Units })
}

// exact is the true value of a release on one side; 0 for a choice of candidates.
func (c *coupling) exact(side int, id string, release int) *big.Int {
	for at, part := range c.plan.Parts {
		if i := slices.Index(part.Releases, release); i >= 0 && !part.Histogram(c.plan.Query) {
			return c.sides[side][at].At(id, i)
		}
	}
	return new(big.Int)
}

func (c *coupling) differs() bool {
	for at := range c.plan.Parts {
		same := maps.EqualFunc(c.sides[0][at], c.sides[1][at], func(a, b []*big.Int) bool {
			return slices.EqualFunc(a, b, func(x, y *big.Int) bool { return x.Cmp(y) == 0 })
		})
		if !same {
			return true
		}
	}
	return false
}

// drawn records what one side draws before the statements run, in the order of [Plan.Draw].
func (c *coupling) drawn(tape *Tape, side int) {
	p := c.plan
	if slices.ContainsFunc(p.Parts, func(part sqlprint.PlanPart) bool { return part.SeedArg > 0 }) {
		tape.add(uint64(c.seed) << 1)
	}
	if p.Query.Top == 0 && !p.Query.Private() {
		for _, id := range c.groups {
			c.noises(tape, side, id)
		}
	}
}

// arrived records what one side draws as its rows arrive: of private keys, which groups are shown.
func (c *coupling) arrived(tape *Tape, side int) {
	if !c.plan.Query.Private() {
		return
	}
	units := c.sides[side][c.unitsPart()]
	for _, id := range Arrival(side, slices.Collect(maps.Keys(units)), func(id string) string { return id }) {
		c.keep(tape, side, id, units[id])
	}
}

// tape records what one side draws after that, in the order of [Plan.Release].
func (c *coupling) tape(t *testing.T, w *gen.World, tape *Tape, side int) error {
	p := c.plan
	if p.Query.Top > 0 {
		return c.top(w, tape, side)
	}
	for _, id := range c.groups {
		if p.Query.Private() {
			c.noises(tape, side, id)
		}
		if err := c.choices(t, w, tape, side, id); err != nil {
			return err
		}
	}
	return nil
}

// keep records whether a private group is shown: those that both sides have are.
func (c *coupling) keep(tape *Tape, side int, id string, row []*big.Int) {
	common := slices.Contains(c.groups, id)
	if c.plan.PartitionSelection != nil {
		tape.keep(c.plan.PartitionSelection.Mechanism, row[len(row)-1], common)
		return
	}
	for i, r := range c.plan.Releases {
		if r.Shown == nil {
			continue
		}
		noisy := new(big.Int) // which shows no group
		if common {
			noisy = c.noisy[id][i]
		}
		tape.noise(r.Shown.Parameters(), new(big.Int).Sub(noisy, c.exact(side, id, i)))
	}
}

// Arrival is the order in which the rows of one statement come on a side, by the identity of their keys: PostgreSQL promises none, and the
// two sides have different ones.
func Arrival[T any](side int, rows []T, identity func(T) string) []T {
	slices.SortStableFunc(rows, func(a, b T) int { return strings.Compare(identity(a), identity(b)) })
	if side == 1 {
		slices.Reverse(rows)
	}
	return rows
}

// KeyIdentity is equal for equal tuples only.
func KeyIdentity(keys []catalog.Key) string { return scalar.KeyIdentity(keys) }

func (c *coupling) noises(tape *Tape, side int, id string) {
	for i, r := range c.plan.Releases {
		if r.Mechanism != nil {
			tape.noise(r.Mechanism.Parameters(), new(big.Int).Sub(c.noisy[id][i], c.exact(side, id, i)))
		}
	}
}

// choices records the choices of candidates in one group: side 0 makes them at random, side 1 makes the same.
func (c *coupling) choices(t *testing.T, w *gen.World, tape *Tape, side int, id string) error {
	for at, part := range c.plan.Parts {
		for _, i := range part.Releases {
			selection := c.plan.Releases[i].Selection
			if selection == nil {
				continue
			}
			tallies, others := c.tallies(t, side, at, id), c.tallies(t, 1-side, at, id)
			if len(tallies) == 0 && len(others) == 0 { // most groups of large domains
				tape.alike(selection)
				continue
			}
			choose := func(words ...uint64) *big.Int { return selection.Choose(samplerOf(words...), tallies) }
			target := c.target(side, id, i, func() *big.Int { return choose(w.Rand.Uint64(), w.Rand.Uint64()) })
			ok := true
			switch selection.Selector.(type) {
			case nil:
				ok = tape.point(choose, target)
			case *mechanisms.PermuteAndFlip:
				tape.flip(target, selection.Among)
			default:
				_, ok = tape.word(choose, nil, target)
			}
			if !ok {
				return fmt.Errorf("group %s, release %d: a choice of one side is none of the other's", id, i)
			}
			c.pay(side, id, i, tape.cost)
		}
	}
	return nil
}

// target is what a choice is to be: side 0 makes it.
func (c *coupling) target(side int, id string, release int, draw func() *big.Int) *big.Int {
	key := fmt.Sprint(id, "/", release)
	if side == 0 {
		c.chosen[key] = decided{target: draw()}
	}
	return c.chosen[key].target
}

// pay takes down what a choice costs, and on side 1 how far that is from the cost on side 0.
func (c *coupling) pay(side int, id string, release int, cost float64) {
	key := fmt.Sprint(id, "/", release)
	if side == 0 {
		c.chosen[key] = decided{c.chosen[key].target, cost}
		return
	}
	c.loss[release] += math.Abs(cost - c.chosen[key].cost)
}

// top records the choice of groups, one after another.
func (c *coupling) top(w *gen.World, tape *Tape, side int) error {
	selection, begin := c.plan.Releases[0].Selection.Top, len(tape.words)
	var scores []mechanisms.Exact
	for _, id := range c.groups {
		scores = append(scores, mechanisms.Seal(c.exact(side, id, 0)))
	}
	for at := range c.plan.Query.Top {
		choose := func(words ...uint64) *big.Int {
			return big.NewInt(int64(selection.Select(samplerOf(words...), scores)[at]))
		}
		place, before := fmt.Sprint("place ", at), slices.Clone(tape.words[begin:])
		target := c.target(side, place, 0, func() *big.Int { return choose(append(before, w.Rand.Uint64())...) })
		if _, ok := tape.word(choose, before, target); !ok {
			return fmt.Errorf("%s: a choice of one side is none of the other's", place)
		}
		c.pay(side, place, 0, tape.cost)
	}
	return nil
}

// tallies are the candidates of one group.
func (c *coupling) tallies(t *testing.T, side, part int, group string) (all []mechanisms.Tally) {
	table := c.sides[side][part]
	for _, id := range slices.Sorted(maps.Keys(table)) {
		if rest, of := strings.CutPrefix(id, group); of && gen.GroupOf(id, len(c.plan.Query.Keys)) == group {
			point, ok := new(big.Int).SetString(gen.ParseIdentity(t, rest)[0].Text, 10)
			if !ok {
				t.Fatalf("a candidate that is no number: %q", rest)
			}
			all = append(all, mechanisms.Tally{Point: mechanisms.Seal(point), Rows: mechanisms.Seal(table[id][0])})
		}
	}
	return all
}

// affordable checks that coupling costs no more than each release charges: Σ|d|/b <= ε for Laplace noise, Σd²/2σ² <= ρ for Gaussian, and
// for choices the logarithms of their probabilities.
func (c *coupling) affordable() error {
	for i, r := range c.plan.Releases {
		charged := r.Law().Loss()
		if r.Selection != nil {
			if c.loss[i] > float64(charged.Epsilon)/float64(mechanisms.EpsilonUnit)*(1+1e-9) {
				return fmt.Errorf("release %d costs %g, charged %s", i, c.loss[i], charged.Epsilon)
			}
			continue
		}
		l1, l2Squared := new(big.Rat), new(big.Rat)
		for _, id := range c.groups {
			d := new(big.Rat).SetInt(new(big.Int).Sub(c.exact(0, id, i), c.exact(1, id, i)))
			l1.Add(l1, new(big.Rat).Abs(d))
			l2Squared.Add(l2Squared, new(big.Rat).Mul(d, d))
		}
		parameters := r.Law().Parameters()
		cost, limit := new(big.Rat), new(big.Rat)
		if r.Law().Name() == mechanisms.DiscreteGaussian {
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
