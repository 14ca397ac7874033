// Package costs holds the price of each operation against PostgreSQL's time.
package costs

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/stability"
)

var (
	measures  = flag.Bool("costs", false, "measure what operations cost PostgreSQL; make costs does")
	mutations = flag.Int("cost-mutations", 200, "changes of the operands of each operation")
	oneIn     = flag.Int("cost-one-in", 1, "measure one in so many operations, but each name in the table of prices, and pairs")
	each      = flag.Duration("cost-each", 2*time.Millisecond, "how long an expression is evaluated for one measurement")
	factor    = flag.Float64("cost-factor", 2, "how many times its price an operation may take: on another machine it does")
	slack     = flag.Float64("cost-slack", 0.2, "by how much the power by which time grows may be above that of the price")
	only      = flag.String("cost-only", "", "measure operations whose name begins so")
)

// noise is what a measurement may be wrong by, in ns.
const noise = 60

// priceOf is the price of the subject's operation by itself.
func (s subject) priceOf(e algebra.Expr) int64 {
	if s.price != nil {
		return s.price(e)
	}
	return stability.PriceOf(e)
}

// priceOf is the price of an expression: of all that it is computed of.
func priceOf(e algebra.Expr) (n int64) {
	for _, x := range within(e) {
		n += stability.PriceOf(x)
	}
	return n
}

// firstConstants are choices of constants with which the rewriter may take a form.
func firstConstants(f form) [][]string {
	options := [][]string{nil}
	for i, h := range f.holes {
		list := starts(h, sizes[1])
		switch {
		case i < len(f.known) && f.known[i] != "":
			list = f.known[i : i+1]
		case h != listHole:
			list = list[:2]
		}
		var next [][]string
		for _, o := range options {
			for _, c := range list {
				next = append(next, append(slices.Clone(o), c))
			}
		}
		options = next
	}
	return options
}

// taken is a form with constants with which the rewriter takes it.
type taken struct {
	form      form
	constants []string
	e         algebra.Expr
}

// take gives the forms that the rewriter takes. Each is taken or refused: anything else is a mistake of the rewriter.
func take(t testing.TB, all []form, snapshot *catalog.Snapshot) (some []taken) {
	t.Helper()
	for _, f := range all {
		for _, constants := range firstConstants(f) {
			e, err := bound(f.written(constants), snapshot)
			if err == nil {
				some = append(some, taken{f, constants, e})
				break
			}
			if !refused(err) && !errors.Is(err, errNothing) {
				t.Errorf("%s: %v", f.written(constants), err)
			}
		}
	}
	return some
}

// catalogue is all that is measured.
type catalogue struct {
	subjects []subject
	pairs    []taken
	keys     map[string]string // names in the table of prices, with a form that has the operation
}

// list makes the catalogue of the rewriter's own tables: operations, and one in so many pairs of one over another.
func list(t testing.TB, snapshot *catalog.Snapshot, oneIn int) catalogue {
	t.Helper()
	c := catalogue{keys: make(map[string]string)}
	seen := make(map[string]bool)
	enter := func(some []taken) {
		for _, x := range some {
			for i, e := range within(x.e) {
				if !isOperation(e) {
					continue
				}
				for _, k := range keys(e) {
					if c.keys[k] == "" {
						c.keys[k] = x.form.written(x.constants)
					}
				}
				if id := shape(e); !seen[id] && !algebra.IsConstant(e) {
					seen[id] = true
					c.subjects = append(c.subjects, subject{form: x.form, first: x.constants, at: i, shape: id})
				}
			}
		}
	}
	single := take(t, forms(), snapshot)
	enter(single)
	all := pairs(single)
	r := rand.New(rand.NewPCG(5, 6)) // the same ones in each run
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:len(all)/oneIn]
	c.pairs = take(t, all, snapshot)
	enter(c.pairs)
	return c
}

// root is the operation of an expression that gives its value.
func root(e algebra.Expr) algebra.Expr { return within(e)[0] }

// Every operation of expressions that the rewriter takes has a price.
func TestEveryOperationIsPriced(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	if *measures {
		return // TestCosts does the same over all pairs
	}
	arePriced(t, list(t, worldOf(t, sizes[1]), 20))
}

func arePriced(t *testing.T, c catalogue) {
	t.Helper()
	for k, sql := range c.keys {
		if _, ok := domain.PriceNamed(k); !ok {
			t.Errorf("%q has no price, and the rewriter takes %.200s", k, sql)
		}
	}
}

// line is what was measured of an operation.
type line struct {
	subject        subject
	name           string
	worst          found   // of the largest operands
	ns, price      float64 // of the operation itself
	growth, degree float64
}

func (l line) ratio() float64 { return l.ns / max(l.price, 1) }

func (l line) String() string {
	return fmt.Sprintf("%-64s %8.0f ns, price %8.0f, ratio %5.2f, grows by the power %4.2f, price by %1.0f | %.120s | %s", l.subject.shape,
		l.ns, l.price, l.ratio(), l.growth, l.degree, l.subject.form.sql, l.worst.candidate)
}

// Of each operation and choice of operands, the worst operands that are found take at most factor times the price, and their time grows by
// no higher power than the price; and so do operations over operations.
func TestCosts(t *testing.T) {
	if !*measures {
		return // make costs measures
	}
	b := newBench(t)
	began := time.Now()
	c := list(t, b.worlds[1], *oneIn)
	arePriced(t, c)
	t.Logf("%d operations, %d pairs, listed in %.1f s; a row takes %.0f ns, texts are compared by %s", len(c.subjects), len(c.pairs),
		time.Since(began).Seconds(), b.meter.base, b.meter.collation)
	worst := make(map[string]line)
	for i, s := range c.subjects {
		name := s.shape[:strings.Index(s.shape, "(")]
		_, known := worst[name]
		if !strings.HasPrefix(s.shape, *only) || known && i%*oneIn != 0 {
			continue
		}
		l := b.measure(s)
		if l.worst.e == nil {
			continue
		}
		b.check(&l)
		if !known || l.ratio() > worst[name].ratio() {
			worst[name] = l
		}
		if *only != "" {
			t.Log(l)
		}
	}
	b.report(worst)
	b.unmet(c)
	t.Logf("operations: %v of PostgreSQL, %v in all", b.meter.used.Round(time.Second), time.Since(began).Round(time.Second))
	for _, p := range c.pairs {
		if strings.HasPrefix(key(root(p.e)), *only) {
			b.pair(p)
		}
	}
	t.Logf("with pairs: %v of PostgreSQL, %v in all", b.meter.used.Round(time.Second), time.Since(began).Round(time.Second))
}

// A price of LIKE by the text alone, as it was until a pattern of 190 letters took 27 times as long, is found to be too low, and to grow
// too slowly: that is what the silence of TestCosts is worth.
func TestCostsFindAProduct(t *testing.T) {
	if !*measures {
		return // make costs measures
	}
	b := newBench(t)
	f := form{sql: "(l LIKE %s)", holes: []hole{patternHole}}
	constants := []string{"%a%"}
	e, err := bound(f.written(constants), b.worlds[1])
	if err != nil {
		t.Fatal(err)
	}
	byText := func(e algebra.Expr) int64 { return 100 + 5*stability.LongestText(e.(algebra.Like).X) }
	l := b.measure(subject{form: f, first: constants, shape: shape(root(e)), price: byText})
	t.Log(l)
	if l.ratio() < 4 || l.growth < 1.3 {
		t.Errorf("the search finds a product too little: %s", l)
	}
}

// bench measures.
type bench struct {
	t      *testing.T
	meter  *meter
	worlds []*catalog.Snapshot // by size
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, "CREATE TYPE public.mood AS ENUM ('a', 'bb', 'c')")
	b := &bench{t: t, meter: newMeter(t, db.DSN)}
	for _, z := range sizes {
		b.worlds = append(b.worlds, worldOf(t, z))
	}
	return b
}

// reads are the columns of an expression.
func reads(e algebra.Expr) (names []string) {
	for _, x := range within(e) {
		if c, ok := x.(algebra.Column); ok && !slices.Contains(names, c.Of.Name) {
			names = append(names, c.Of.Name)
		}
	}
	return names
}

// search is one for operands of a size.
func (b *bench) search(s subject, size int) *search {
	e := s.operation(b.worlds[1], s.first)
	return &search{meter: b.meter, r: rand.New(rand.NewPCG(1, uint64(size))), each: *each, snapshot: b.worlds[size], subject: s,
		size: sizes[size], reads: reads(e)}
}

// own is how many ns an operation takes beside its operands.
func (b *bench) own(f found, tries int, each time.Duration) float64 {
	b.t.Helper()
	ns, err := b.meter.expression(b.t.Context(), f.e, f.values, tries, each)
	for _, x := range operands(f.e) {
		if _, constant := x.(algebra.Constant); constant || err != nil {
			continue
		}
		var took float64
		if took, err = b.meter.expression(b.t.Context(), x, f.values, tries, each); err == nil {
			ns -= took
		}
	}
	if err != nil {
		b.t.Fatalf("%s: %v", f.candidate, err)
	}
	return max(ns, 0)
}

// measure finds the worst operands of each size.
func (b *bench) measure(s subject) line {
	b.t.Helper()
	var best [4]found
	var times, prices [4]float64
	l := line{subject: s, name: s.shape[:strings.Index(s.shape, "(")]}
	for i := range sizes {
		changes := *mutations
		switch {
		case i == 0:
			changes = 0
		case i == 2 && *oneIn > 1: // what grows from n to 4n says it
			continue
		}
		f, err := b.search(s, i).worst(b.t.Context(), changes)
		if errors.Is(err, errNoStart) {
			continue
		}
		if err != nil {
			b.t.Fatalf("%s: %v", s.shape, err)
		}
		best[i], times[i] = f, b.own(f, 2, *each)
		prices[i] = float64(s.priceOf(f.e))
		l.worst, l.ns, l.price = f, times[i], prices[i]
	}
	if l.worst.e == nil {
		return l
	}
	l.degree = degree(l.worst.e)
	if prices[1] > 0 && prices[3] > prices[1] { // a cast that is part of it can be what grows
		l.degree = max(l.degree, 1)
	}
	if names := reads(l.worst.e); slices.Contains(names, "k") || slices.Contains(names, "l") { // always priced as the longest that counts
		l.degree = max(l.degree, 2)
	}
	l.growth = growth(times)
	for tries := 0; tries < 2 && l.growth > l.degree+*slack; tries++ { // smaller ones may be worse than was found
		for i := range sizes {
			if best[i].e == nil {
				continue
			}
			again, err := b.search(s, i).worst(b.t.Context(), 2**mutations, best[i].candidate, l.worst.shrunk(sizes[i]))
			if err != nil {
				b.t.Fatalf("%s: %v", s.shape, err)
			}
			best[i], times[i] = again, b.own(again, 5, 4**each)
		}
		l.growth = min(l.growth, growth(times))
	}
	return l
}

// growth is by which power of the size a time grows from n to 4n, without what the smallest operands take; 0 where that is noise.
func growth(times [4]float64) float64 {
	if times[1] == 0 || times[3] == 0 || times[1]-times[0] < noise || times[3]-times[1] < noise {
		return 0
	}
	return math.Log((times[3]-times[0])/(times[1]-times[0])) / math.Log(4)
}

// degree is by which power a price grows where all operands do.
func degree(e algebra.Expr) float64 {
	most := 0
	for _, k := range keys(e) {
		if p, ok := domain.PriceNamed(k); ok && (p.PerUnit > 0 || p.PerByte > 0) {
			most = max(most, p.Degree())
		}
	}
	if in, ok := e.(algebra.In); ok && in.Not { // each item is compared
		most++
	}
	return float64(most)
}

// check fails where an operation takes too long, or grows too fast. What seems so is measured again, as others use the machine too.
func (b *bench) check(l *line) {
	b.t.Helper()
	for tries := 0; tries < 3 && l.ns > *factor*l.price+noise; tries++ {
		l.ns = min(l.ns, b.own(l.worst, 8, 4**each))
	}
	if l.ns > *factor*l.price+noise {
		b.t.Errorf("%s takes more than %.0f times its price", l, *factor)
	}
	if l.growth > l.degree+*slack {
		b.t.Errorf("%s grows faster than its price", l)
	}
}

// report shows the worst of each operation.
func (b *bench) report(worst map[string]line) {
	b.t.Helper()
	var lines []line
	for _, l := range worst {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(x, y line) int {
		return cmp.Or(-cmp.Compare(x.ratio(), y.ratio()), strings.Compare(x.subject.shape, y.subject.shape))
	})
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&text, l)
	}
	b.t.Log("\n" + text.String())
}

// unmet lists the names in the table of prices that no form and no pair has: the rewriter takes none, or only beside an aggregate.
func (b *bench) unmet(c catalogue) {
	b.t.Helper()
	var names []string
	for _, o := range domain.Priced() {
		if c.keys[o.Name] == "" {
			names = append(names, o.Name)
		}
	}
	b.t.Logf("priced, but in no expression that was tried: %q", names)
}

// pair holds an operation over another one's value against the price of both.
func (b *bench) pair(p taken) {
	b.t.Helper()
	s := subject{form: p.form, first: p.constants, shape: shape(root(p.e))}
	const largest = 3
	q := b.search(s, largest)
	q.each /= 2
	f, err := q.worst(b.t.Context(), *mutations/20)
	if errors.Is(err, errNoStart) {
		return
	}
	if err != nil {
		b.t.Fatalf("%s: %v", p.form.sql, err)
	}
	for tries := 0; tries < 3 && f.ns > *factor*float64(f.price)+noise; tries++ {
		ns, err := b.meter.expression(b.t.Context(), f.e, f.values, 8, 2**each)
		if err != nil {
			b.t.Fatalf("%s: %v", p.form.sql, err)
		}
		f.ns = min(f.ns, ns)
	}
	if f.ns > *factor*float64(f.price)+noise {
		b.t.Errorf("%s takes %.0f ns, which is more than %.0f times its price %d: %s", p.form.sql, f.ns, *factor, f.price, f.candidate)
	}
}
