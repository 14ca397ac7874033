package gen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Neighbours runs random queries over random databases and their neighbours, and stops at the first broken claim.
type Neighbours struct {
	Queries int
	Seed    uint64
	Defect  Defect
	Copied  bool      // from prepared copies
	Bought  bool      // only queries are run that compare with a value which is released first
	Until   time.Time // ends early; zero: never

	Writer   *Writer
	notSQL   int                 // queries that the defect turned into no statement
	Reached  map[string]*big.Rat // by kind of release: the largest move as a part of its claim
	Tried    int
	Ran      int // of those tried; for a mutant, only if it changes a statement
	Refusals map[string]int
}

// Defect changes what a mutant of the rewriter does; its zero value changes nothing.
type Defect struct {
	SQL     func(string) string     // changes a statement's text before it runs
	Query   func(*plan.Plan)        // changes the bound query or its bounds, before statements are printed; claims stay
	Plan    func(*plan.Plan)        // changes a plan after it is made, with its claims
	Catalog func(*catalog.Snapshot) // changes what is known of the tables
	Fill    func(string) string     // changes the text that fills prepared copies
	Top     bool                    // only selections of groups are written and run
}

// skips reports whether the defect is one of statements, so that plans count only whose statements it changes.
func (d Defect) skips() bool { return d.SQL != nil || d.Query != nil }

// Claims are those of a plan, over statements with the defect; changed is false where it changes none of them.
func (d Defect) Claims(p *plan.Plan, draws *plan.Draws) (all []claim, changed bool) {
	all = Claims(p, draws)
	if !d.skips() {
		return all, true
	}
	wrong := slices.Clone(all)
	if d.Query != nil {
		d.Query(p)
		p.Print()
		wrong = Claims(p, draws)
	}
	for i := range all {
		s := wrong[i].statement
		if d.SQL != nil {
			s.SQL = d.SQL(s.SQL)
		}
		changed = changed || s.SQL != all[i].statement.SQL || !reflect.DeepEqual(s.Args, all[i].statement.Args)
		all[i].statement = s
	}
	return all, changed
}

// QueriesPerDatabase is the number of queries that share a random database.
const QueriesPerDatabase = 10

// Run asks queries until one breaks a claim, which is the error.
func (n *Neighbours) Run(t *testing.T) error {
	t.Helper()
	world, mostTried := NewWorld(t, n.Seed, Wild, 4), 2*n.Queries+100
	if n.Copied {
		world, mostTried = NewCopiedWorld(t, n.Seed, Wild, 4, 6), 20*n.Queries+100
	}
	n.Writer = &Writer{Rand: world.Rand, Lists: true, Counts: make(map[string]int), top: n.Defect.Top}
	if n.Defect.Catalog != nil {
		n.Defect.Catalog(world.Snapshot)
	}
	n.Reached, n.Refusals = make(map[string]*big.Rat), make(map[string]int)
	sampler := rewritetest.FixedSampler(t)
	for filled := 0; n.Ran < n.Queries && (n.Until.IsZero() || time.Now().Before(n.Until)); n.Tried++ {
		if n.Defect.skips() && n.Tried > 50*n.Queries {
			return nil
		}
		if n.Bought {
			mostTried = 50*n.Queries + 100
		}
		if !n.Defect.skips() && n.Tried > mostTried {
			return fmt.Errorf("%d of %d queries were refused: %v", n.Tried-n.Ran, n.Tried, n.Refusals)
		}
		if filled*QueriesPerDatabase <= n.Ran {
			world.Fill(t, filled%2 == 0)
			world.prepareAll(t, n.Defect.Fill)
			filled++
		}
		sql, from := n.Writer.Query()
		if n.Bought {
			sql = n.Writer.buying(sql, from)
		}
		o := RandomOptions(n.Writer.Rand, from)
		switch {
		case n.Copied && o.MaxRows > 0:
			o.MaxRows, o.MaxGroups, o.MaxTotal = CopiedBounds(n.Writer.Rand)
		case !n.Copied:
			o.Report = RandomReport(n.Writer.Rand)
		}
		p, err := world.plan(sql, o)
		if errors.Is(err, errNoCopy) {
			continue
		}
		if err != nil {
			// What is refused must be refused for a reason of size or price; everything else is a gap between the grammar and the rewriter.
			code := string(fault.CodeOf(err))
			tolerated := Tolerated[code] || n.Bought && code != string(fault.CodeUnverified)
			if tolerated || n.Defect.skips() { // of a mutant no refusal says anything
				n.Refusals[code]++
				continue
			}
			return fmt.Errorf("%s\n%w (%s)", sql, err, parsetest.ShowFault(err))
		}
		if n.Bought {
			if p = boughtBlock(p); p == nil {
				continue
			}
		}
		n.Writer.totaled(p)
		if blocks := p.Different(); p.Several != nil { // each is a plan by itself
			at := n.Writer.Rand.IntN(len(blocks))
			p = blocks[at]
			n.Writer.Counts[ReportedParts] += algebra.BoolIndex(p.Query.Part != algebra.NoPart)
		}
		if n.Defect.skips() && !p.NeedsData() {
			continue
		}
		draws := p.Draw(sampler)
		if n.Defect.Plan != nil && p.NeedsData() && (!n.Defect.Top || p.Query.Top > 0) {
			n.Defect.Plan(p)
			draws = p.Draw(sampler)
		}
		bounding := p.Bounding
		claims, changed := n.Defect.Claims(p, draws)
		if !changed {
			continue
		}
		n.Ran++
		if !p.NeedsData() || n.Defect.Top && p.Query.Top == 0 {
			continue
		}
		if bounding.Kind == stability.Flat && bounding.MaxGroups > 1 {
			n.Writer.Counts[OneInEachGroup]++
		}
		for i := range claims {
			claims[i].statement = arbitrary(n.Writer.Rand, claims[i].statement)
		}
		err = n.Compare(t.Context(), world, claims)
		if n.Defect.skips() && errors.Is(err, ErrNotSQL) && n.notSQL < notSQLs {
			n.Ran, n.notSQL = n.Ran-1, n.notSQL+1 // the mutant names a column that this query's scans or caps do not read
			continue
		}
		if err != nil {
			return fmt.Errorf("query %d: %s\n%w", n.Ran, sql, err)
		}
	}
	return nil
}

// notSQLs limits how many queries a defect may turn into no statement before it counts as one that shows nothing.
const notSQLs = 300

// Tolerated are the refusals that a random query may meet by its size.
var Tolerated = map[string]bool{"policy/too-many-keys": true, "plan/too-many-keys": true, "sql/too-complex": true,
	"plan/price-too-small": true, "plan/fan-out": true, "plan/too-many-scans": true, "request/invalid-report": true}

// RandomReport asks now and then for a report, which most queries do not have.
func RandomReport(r *rand.Rand) plan.Report {
	if r.IntN(3) > 0 {
		return ""
	}
	return plan.ReportKept
}

// RandomOptions draws what a request may choose.
func RandomOptions(r *rand.Rand, from Origin) plan.Options {
	o := plan.Options{Epsilon: 1000 * mechanisms.EpsilonUnit, Delta: 1000, Currency: catalog.Approx, Mechanism: plan.MechanismAuto,
		Confidence: 0.95}
	if r.IntN(4) == 0 {
		o.Epsilon, o.Rho, o.Currency = 0, 1000*mechanisms.PicoRho(mechanisms.EpsilonUnit), catalog.ZCDP
	}
	if from.tightens {
		o.MaxRows, o.MaxGroups = int64(1+r.IntN(2)*r.IntN(4)), int64(1+r.IntN(4)) // a bound on rows is most often 1, where it binds
		if strings.Contains(from.from, "people") {
			o.MaxRows, o.MaxGroups = 0, 0
		} else if o.MaxGroups == 3 {
			o.MaxTotal = o.MaxRows + 1 // fewer than in three groups
		}
	}
	return o
}

// claim is the plan's bound on one of its statements: how far its sealed integers move when one unit comes or goes.
type claim struct {
	statement sqlprint.Statement
	perGroup  []*big.Int    // Linf of each value
	norms     [][2]*big.Int // L1 and L2² of each value over all groups; nil: not claimed
	kinds     []string      // of each value, for the power of the test
	groups    int64         // L0
	keys      int           // how many key columns make a group; a histogram has one more, the candidate
	together  bool          // perGroup bounds the sum of the moves of a group's candidates
	// spread, unless it is nil, bounds how far the moves of any two groups are apart: that is what a selection of groups pays for.
	spread *big.Rat
}

// Claims lists what a plan claims of its statements. They are functions of text, policy and options alone: no data is here.
func Claims(p *plan.Plan, d *plan.Draws) []claim {
	var all []claim
	for at, s := range p.Statements(d) {
		part := p.Parts[at]
		c := claim{statement: s, keys: s.Keys, groups: p.Bounding.MaxGroups}
		if part.Histogram(p.Query) {
			// Each row is one number, that of a candidate; together those of one group move by no more than one of them may.
			c.statement = AsCells(s)
			c.perGroup, c.kinds = []*big.Int{p.Releases[part.Releases[0]].PerGroup}, []string{kindOf(p, part.Releases[0])}
			c.together = p.Releases[part.Releases[0]].Statistic.Kind == algebra.ChooseRank
			all = append(all, c)
			continue
		}
		for _, i := range part.Releases {
			c.perGroup, c.kinds = append(c.perGroup, p.Releases[i].PerGroup), append(c.kinds, kindOf(p, i))
			if m := p.Releases[i].Statistic; p.Bounding.BoundsTotal(m) {
				l1, l2Squared := p.Bounding.Norms(m)
				c.norms = append(c.norms, [2]*big.Int{l1, l2Squared})
			} else {
				c.norms = append(c.norms, [2]*big.Int{})
			}
		}
		if p.Query.Top > 0 {
			c.perGroup[0], c.spread = paidScores(p.Releases[0].Selection.Parameters())
		}
		if part.Units {
			c.perGroup, c.kinds = append(c.perGroup, big.NewInt(1)), append(c.kinds, "units")
		}
		all = append(all, c)
	}
	return all
}

// paidScores are the sensitivity of one score and the largest difference of the moves of two scores that a selection of the k largest was
// made for: a candidate is e^(difference/scale) times as likely, which must stay below e^(ε/k).
func paidScores(p mechanisms.Parameters) (sensitivity *big.Int, spread *big.Rat) {
	sensitivity, _ = new(big.Int).SetString(p.Sensitivity, 10)
	spread, _ = new(big.Rat).SetString(p.Scale)
	epsilon, _ := new(big.Rat).SetString(p.Epsilon)
	return sensitivity, spread.Mul(spread, epsilon).Quo(spread, big.NewRat(p.Count, 1))
}

func kindOf(p *plan.Plan, release int) string {
	bounding := "bounded"
	switch {
	case p.Query.Top > 0:
		bounding = "top groups by"
	case p.Bounding.Kind == stability.Flat && p.Bounding.MaxGroups > 1:
		bounding = "one row in each group,"
	case p.Bounding.Kind == stability.Flat:
		bounding = "one row,"
	}
	return fmt.Sprint(bounding, " ", p.Releases[release].Statistic.Kind)
}

// Compare runs the statements of claims on a database and on all its neighbours.
func (n *Neighbours) Compare(ctx context.Context, world *World, all []claim) error {
	for _, c := range all {
		s := c.statement
		tables, err := RunOnAll(ctx, world.Conn, s, Neighbourhood())
		if err != nil {
			return fmt.Errorf("%s\n%v\n%w", s.SQL, s.Args, err)
		}
		for i, neighbour := range tables[1:] {
			if err := n.check(c, tables[0], neighbour); err != nil {
				return fmt.Errorf("%s\n%v\nwithout unit %s: %w", s.SQL, s.Args, Neighbourhood()[i+1], err)
			}
		}
		if n.Writer == nil || n.Ran%shakenEvery != 0 { // a test of some queries has no generator
			continue
		}
		if err := world.shake(ctx, n.Writer.Rand); err != nil {
			return err
		}
		again, err := RunOnAll(ctx, world.Conn, s, Neighbourhood()[:1])
		if err := errors.Join(err, world.settle(ctx)); err != nil {
			return fmt.Errorf("%s\n%v\nplanned otherwise: %w", s.SQL, s.Args, err)
		}
		if !maps.EqualFunc(tables[0], again[0], func(a, b []*big.Int) bool {
			return slices.EqualFunc(a, b, func(x, y *big.Int) bool { return x.Cmp(y) == 0 })
		}) {
			return fmt.Errorf("%s\n%v\nother integers after rows moved and the plan changed: %v, %v", s.SQL, s.Args, tables[0], again[0])
		}
	}
	return nil
}

// shakenEvery is the number of queries between two that run again after rows have moved, planned otherwise.
const shakenEvery = 4

// shakenPlans are settings under which PostgreSQL plans otherwise than it does; settle takes them back.
var shakenPlans = []string{
	"SET enable_hashagg = off; SET enable_hashjoin = off",
	"SET enable_sort = off; SET enable_mergejoin = off; SET enable_nestloop = off",
	"SET work_mem = '64kB'; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
	"SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
}

// shake writes about half of all rows anew, so that they lie elsewhere, and has the next statement planned otherwise.
func (w *World) shake(ctx context.Context, r *rand.Rand) error {
	var sql strings.Builder
	for _, table := range []string{"people", "events", "orders", "items", "cards"} {
		fmt.Fprintf(&sql, "UPDATE %s.%s SET nn = nn WHERE pg_catalog.hashtext(ctid::text) %% 2 = %d;", w.Schema, table, r.IntN(2))
	}
	if _, err := w.Owner.Exec(ctx, sql.String()); err != nil {
		return err
	}
	_, err := w.Conn.Exec(ctx, shakenPlans[r.IntN(len(shakenPlans))])
	return err
}

// settle takes back what shake set.
func (w *World) settle(ctx context.Context) error {
	_, err := w.Conn.Exec(ctx, `RESET enable_hashagg; RESET enable_hashjoin; RESET enable_sort; RESET enable_mergejoin; RESET enable_nestloop; RESET work_mem;
		RESET enable_indexscan; RESET enable_bitmapscan; RESET enable_indexonlyscan; RESET parallel_setup_cost; RESET parallel_tuple_cost;
		RESET min_parallel_table_scan_size; SET max_parallel_workers_per_gather = 0`)
	return err
}

// check compares the sealed integers of two neighbouring databases with the claim.
func (n *Neighbours) check(c claim, a, b ExactTable) error {
	changed := make(map[string]*big.Int)
	least, most := new(big.Int), new(big.Int) // of the moves: groups that nobody is in do not move
	seen := make(map[string]bool)
	sums := make([][2]big.Int, len(c.norms)) // of absolute moves, and of their squares
	for _, table := range []ExactTable{a, b} {
		for id := range table {
			if seen[id] {
				continue
			}
			seen[id] = true
			for i, limit := range c.perGroup {
				move := new(big.Int).Sub(a.At(id, i), b.At(id, i))
				if move.Sign() == 0 {
					continue
				}
				if i < len(sums) {
					sums[i][0].Add(&sums[i][0], new(big.Int).Abs(move))
					sums[i][1].Add(&sums[i][1], new(big.Int).Mul(move, move))
				}
				if move.Cmp(least) < 0 {
					least.Set(move)
				}
				if move.Cmp(most) > 0 {
					most.Set(move)
				}
				group := GroupOf(id, c.keys)
				if changed[group] == nil {
					changed[group] = new(big.Int)
				}
				changed[group].Add(changed[group], new(big.Int).Abs(move))
				if c.together {
					move.Set(changed[group])
				}
				if !n.within(c.kinds[i], move, new(big.Rat).SetInt(limit)) {
					return fmt.Errorf("group %s, value %d (%s): moved by %s, claim %s", id, i, c.kinds[i], move, limit)
				}
			}
		}
	}
	if apart := most.Sub(most, least); c.spread != nil && apart.Sign() > 0 && !n.within(c.kinds[0]+", apart", apart, c.spread) {
		return fmt.Errorf("%s: scores moved apart by %s, claim %s", c.kinds[0], apart, c.spread.FloatString(3))
	}
	for i, norm := range c.norms {
		for of, name := range []string{"L1", "L2 squared"} {
			if norm[of] != nil && !n.within("rows in all, "+name, &sums[i][of], new(big.Rat).SetInt(norm[of])) {
				return fmt.Errorf("value %d (%s): %s %s, claim %s", i, c.kinds[i], name, &sums[i][of], norm[of])
			}
		}
	}
	if int64(len(changed)) > c.groups {
		return fmt.Errorf("%d groups moved, claim %d", len(changed), c.groups)
	}
	return nil
}

// within compares a move with its claim, and remembers how much of the claim was reached.
func (n *Neighbours) within(kind string, move *big.Int, claim *big.Rat) bool {
	ratio := new(big.Rat).SetInt(new(big.Int).Abs(move))
	ratio.Quo(ratio, claim)
	if best := n.Reached[kind]; best == nil || ratio.Cmp(best) > 0 {
		n.Reached[kind] = ratio
	}
	return ratio.Cmp(scalar.One()) <= 0
}

// EnoughForPower is the number of queries that meet every production, and every claim at its tightest.
const EnoughForPower = 5000

// OneInEachGroup counts the plans that rest on a unique key of unit and group keys.
const OneInEachGroup = "bounding/one row in each group"

// ReportedParts counts the counts over all groups that are reported.
const ReportedParts = "report/parts"

// Tight fails where nothing reached a claim: the test would have no power.
func Tight(t *testing.T, reached map[string]*big.Rat) {
	t.Helper()
	for kind, ratio := range reached {
		if ratio.Cmp(big.NewRat(99, 100)) < 0 {
			t.Errorf("%s: reached %s of its claim only", kind, ratio.FloatString(3))
		}
	}
}

// mutant lacks one defence in the text of statements.
type mutant struct {
	Name                 string
	Pattern, Replacement string
}

// Mutants are listed by area, in the files of the areas.
func Mutants() []mutant {
	return slices.Concat(boundingMutants(), expressionMutants(), postMutants(), statisticalMutants(), relationMutants())
}

// Replacing replaces a pattern in a text.
func Replacing(pattern, replacement string) func(string) string {
	p := regexp.MustCompile(pattern)
	return func(sql string) string { return p.ReplaceAllString(sql, replacement) }
}

// byUnit matches the PARTITION BY of a window over rows of people.
const byUnit = `PARTITION BY pg_catalog\.int8xor\(v\.unit::bigint, \$\d+::bigint\)`

func boundingMutants() []mutant {
	return []mutant{
		{"groups ranked over units", byUnit, `PARTITION BY 1`},
		{"groups chosen by random()", `ORDER BY pg_catalog\.hash`, `ORDER BY pg_catalog.random(), pg_catalog.hash`},
		{"no clamp below", `WHEN ("\w+" < )`, `WHEN false AND $1`},
		{"no clamp above", `WHEN ("\w+" > )`, `WHEN false AND $1`},
		{"floats not clamped below", `float8larger`, `float8smaller`},
		{"integers not clamped above", `int(\d)smaller`, `int${1}larger`},
		{"integers not clamped below", `int(\d)larger`, `int${1}smaller`},
		{"NULL escapes the clamp", `sum\(CASE WHEN ("\w+")`, `sum(CASE WHEN $1 IS NULL THEN 1000000000 WHEN $1`},
		{"means of sums not centred", ` - (\$\d+::\w+ \* pg_catalog\.count)`, ` - 0 * $1`},
		{"bounds per part of a unit", `GROUP BY "unit"`, `GROUP BY "unit", "n4"`},
		{"units in both halves", ` <> (\$\d+::bigint)( GROUP BY [^)]*)?\) AS h`, ` IS DISTINCT FROM $1 - 5$2) AS h`},
		{"units in several ranges", `u\.unit >= (\$\d+::\w+)`, `u.unit >= $1 - 100`},
	}
}

// GroupOf is the part of a key tuple's identity that holds the first keys.
func GroupOf(id string, keys int) string {
	at := 0
	for range keys {
		if strings.HasPrefix(id[at:], "-,") {
			at += 2
			continue
		}
		length, _, _ := strings.Cut(id[at:], ":")
		var n int
		if _, err := fmt.Sscan(length, &n); err != nil {
			panic(err)
		}
		at += len(length) + 1 + n
	}
	return id[:at]
}
