package gen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Writer writes random queries of the grammar that Noisegate takes. Every production is counted when it is taken: a run of the proofs
// fails when one was hardly exercised.
type Writer struct {
	Rand   *rand.Rand
	Counts map[string]int
	Lists  bool // writes keys too that are refused where no list is asked for
	exact  bool // writes only what has one right answer
	top    bool // writes only [topGroups]
}

// production is one way to write something at a place. Its name begins with its area ("condition/like").
type production struct {
	name  string
	write func(w *Writer, p place) string
	// chooses: what it releases is one of several right answers, or an answer where PostgreSQL has none.
	chooses bool
}

// place is where something is written: what it can refer to.
type place struct {
	unit  string // names the id of the privacy unit: count(DISTINCT unit)
	names names
	// depth is how much deeper expressions may still nest.
	depth int
}

// names are the columns in scope by what they can be used for, as the analyst writes them.
type names struct {
	numbers []string // bounded
	whole   []string // of these, those of an integer type
	texts   []string // not grouped by
	bools   []string
	days    []string // dates, bounded
	times   []string // timestamps without time zone, bounded
	zoned   []string // timestamps with time zone, bounded
	keys    []string // public
	private []string // private keys
	ids     []string // of units, each NULL where an outer join found no row of it
}

// Origin is a FROM clause.
type Origin struct {
	name  string
	with  string // "WITH ... " or ""
	from  string
	place place
	// tightens: the request's max_rows and max_groups may be lower than the policy's.
	tightens bool
	about    string // not empty: half of the queries group by this key alone
}

// originOf is an origin whose columns are those of a table of the family under an alias ("" for none).
func originOf(name, from, alias, unit string) Origin {
	prefix := ""
	if alias != "" {
		prefix = alias + "."
	}
	o := Origin{name: name, from: from, tightens: true, place: place{unit: prefix + unit, names: tableNames(prefix)}}
	if strings.Contains(unit, ".") {
		o.place.unit = unit
	}
	if unit != "k_num" { // which stands for one that is named by no column
		o.place.names.ids = []string{o.place.unit}
	}
	return o
}

// tableNames are the columns of a table of the family.
func tableNames(prefix string) names {
	with := func(all ...string) []string {
		for i, name := range all {
			all[i] = prefix + name
		}
		return all
	}
	return names{
		numbers: with("n2", "n4", "n8", "nn", "money", "free", "f4", "f8", "coarse", "odd"),
		whole:   with("n2", "n4", "nn", "odd"),
		texts:   with("note", "mark"),
		bools:   with("k_bool"),
		days:    with("day"),
		times:   with("at", "until"),
		zoned:   with("atz"),
		keys:    with("k_text", "k_num", "k_bool", "level"),
		private: with("secret", "code", "brand"),
	}
}

// The grammar, by kind. Each area adds its own list here and keeps it in a file of its own.
func origins() []func(*Writer) Origin {
	return slices.Concat(tableOrigins(), relationOrigins())
}

func conditions() []production {
	return slices.Concat(plainConditions(), relationConditions(), computedConditions())
}

func aggregates() []production {
	return slices.Concat(plainAggregates(), statisticalAggregates(), computedAggregates())
}

func keys() []production { return slices.Concat(plainKeys(), computedKeys()) }

// posts put something around or behind a query: "%s" is the block, from SELECT to GROUP BY.
func posts() []postProduction { return slices.Concat(plainPosts(), aroundPosts()) }

// postProduction writes the whole query around a block with these outputs.
type postProduction struct {
	name  string
	write func(w *Writer, q block) string
}

// block is a release block as text.
type block struct {
	with, sql string // sql is SELECT items FROM ... WHERE ... GROUP BY ...
	rest      string // the FROM and WHERE of sql
	place     place
	keys      []string // as written in the select list and in GROUP BY
	totals    bool     // GROUP BY has several sets of them
	aliases   []string // of all outputs, keys first
	calls     []string // the aggregates, as written in the select list
}

// numbered gives each production one of the writer's counts.
func (w *Writer) choose(all []production, p place) string {
	chosen := all[w.Rand.IntN(len(all))]
	for w.exact && chosen.chooses {
		chosen = all[w.Rand.IntN(len(all))]
	}
	w.Counts[chosen.name]++
	return chosen.write(w, p)
}

// Pick is one of the texts.
func (w *Writer) Pick(all ...string) string { return all[w.Rand.IntN(len(all))] }

// condition writes a condition, nested while depth lasts.
func (w *Writer) condition(p place) string {
	if p.depth > 0 && w.Rand.IntN(2) == 0 {
		p.depth--
		l, r := w.condition(p), w.condition(p)
		return fmt.Sprintf(w.Pick("(%s AND %s)", "(%s OR %s)", "(NOT %s OR NOT %s)", "((%s) IS UNKNOWN OR (%s) IS TRUE)"), l, r)
	}
	return w.choose(conditions(), p)
}

// Query writes a whole query. Aliases make outputs of every kind easy to refer to.
func (w *Writer) Query() (sql string, from Origin) {
	all := origins()
	from = all[w.Rand.IntN(len(all))](w)
	w.Counts[from.name]++
	p := from.place
	q := block{with: from.with, place: p}
	var items []string
	add := func(text string) {
		alias := fmt.Sprintf("o%d", len(items))
		items = append(items, text+" AS "+alias)
		q.aliases = append(q.aliases, alias)
	}
	addKey := func(key string) {
		if !slices.Contains(q.keys, key) {
			q.keys = append(q.keys, key)
			add(key)
		}
	}
	if from.about != "" && w.Rand.IntN(2) == 0 {
		addKey(from.about)
	} else {
		for range w.Rand.IntN(4) {
			addKey(w.choose(keys(), p))
		}
	}
	for range 1 + w.Rand.IntN(4) {
		call := w.choose(aggregates(), p)
		if w.Rand.IntN(4) == 0 {
			filtered := p
			filtered.depth = 1
			call += " FILTER (WHERE " + w.condition(filtered) + ")"
		}
		q.calls = append(q.calls, call)
		add(call)
	}
	if q.totals = len(q.keys) > 0 && !w.top && w.Rand.IntN(5) == 0; q.totals && w.Rand.IntN(2) == 0 {
		add(w.grouping(q.keys))
	}
	q.rest = " FROM " + from.from
	if w.Rand.IntN(2) == 0 {
		filtered := p
		filtered.depth = 2
		q.rest += " WHERE " + w.condition(filtered)
	}
	q.sql = "SELECT " + strings.Join(items, ", ") + q.rest
	if q.totals {
		q.sql += w.totals(q.keys)
	} else if len(q.keys) > 0 {
		q.sql += " GROUP BY " + strings.Join(q.keys, ", ")
	}
	if w.top {
		return topGroups(w, q), from
	}
	if w.Rand.IntN(2) == 0 {
		ways := posts()
		chosen := ways[w.Rand.IntN(len(ways))]
		w.Counts[chosen.name]++
		return chosen.write(w, q), from
	}
	return q.with + q.sql, from
}

// about makes a key the only one of half of the queries over an origin.
func about(key string, of func(*Writer) Origin) func(*Writer) Origin {
	return func(w *Writer) Origin {
		o := of(w)
		o.about = key
		return o
	}
}

// tableOrigins are the tables of the family by themselves.
func tableOrigins() []func(*Writer) Origin {
	return []func(*Writer) Origin{
		func(*Writer) Origin { return originOf("from/row unit", "people", "", "id") },
		about("k_num", func(*Writer) Origin { return originOf("from/column unit", "events", "", "unit") }),
		about("o.k_num", func(*Writer) Origin { return originOf("from/alias", "orders AS o", "o", "buyer") }),
		about("k_num", func(*Writer) Origin { return originOf("from/unique unit and key", "cards", "", "unit") }),
	}
}

// conditionOf is a condition that refers to one number; %[1]s is the number, %[2]s another.
func plainConditions() []production {
	of := func(name string, kind func(names) []string, forms ...string) production {
		return production{name: "condition/" + name, write: func(w *Writer, p place) string {
			from := kind(p.names)
			return fmt.Sprintf(w.Pick(forms...)+"%[3]s", w.Pick(from...), w.Pick(from...), "")
		}}
	}
	numbers := func(n names) []string { return n.numbers }
	return []production{
		of("compare with constant", numbers, "%[1]s > 3", "%[1]s <= 0.5", "%[1]s <> 0", "%[1]s >= 0.1"),
		of("compare columns", func(n names) []string { return n.whole }, "%[1]s <= %[2]s", "%[1]s = %[2]s", "%[1]s > %[2]s"),
		of("between", numbers, "%[1]s BETWEEN -5 AND 1.5", "%[1]s NOT BETWEEN SYMMETRIC 9 AND 2"),
		of("in", numbers, "%[1]s IN (3, 9)", "%[1]s NOT IN (0, 10)", "%[1]s IN (1, NULL)"),
		of("is null", numbers, "%[1]s IS NULL", "%[1]s IS NOT NULL"),
		{name: "condition/id is null", write: func(w *Writer, p place) string {
			if len(p.names.ids) == 0 {
				return w.Pick(p.names.numbers...) + " IS NULL"
			}
			return fmt.Sprintf(w.Pick("%[1]s IS NULL", "%[1]s IS NOT NULL", "(CASE WHEN %[2]s > 3 THEN %[1]s END) IS NULL"),
				w.Pick(p.names.ids...), w.Pick(p.names.numbers...))
		}},
		of("is distinct", func(n names) []string { return n.whole }, "%[1]s IS DISTINCT FROM %[2]s", "%[1]s IS NOT DISTINCT FROM NULL"),
		of("key in", func(n names) []string { return n.private }, "%[1]s IN ('x', 'y', NULL)", "%[1]s NOT IN ('x')", "%[1]s = 'x'",
			"%[1]s < 'y'"),
		of("like", func(n names) []string { return slices.Concat(n.private, n.texts) }, "%[1]s LIKE '%%x%%'", "%[1]s NOT ILIKE 'E'",
			"%[1]s LIKE '_'"),
		of("boolean", func(n names) []string { return n.bools }, "%[1]s", "%[1]s IS NOT TRUE", "%[1]s IS UNKNOWN"),
		of("day", func(n names) []string { return n.days }, "%[1]s >= '2024-01-01'", "%[1]s < DATE '2024-06-01'"),
		of("time", func(n names) []string { return n.times }, "%[1]s >= '2024-02-01'", "%[1]s < TIMESTAMP '2024-06-01 10:00'", "%[1]s < %[2]s"),
	}
}

func plainAggregates() []production {
	one := func(name, form string, kind func(names) []string) production {
		return production{name: "aggregate/" + name, write: func(w *Writer, p place) string {
			return fmt.Sprintf(form, w.Pick(kind(p.names)...))
		}}
	}
	numbers := func(n names) []string { return n.numbers }
	return []production{
		{name: "aggregate/count(*)", write: func(*Writer, place) string { return "count(*)" }},
		{name: "aggregate/count(DISTINCT unit)", write: func(_ *Writer, p place) string { return "count(DISTINCT " + p.unit + ")" }},
		{name: "aggregate/count(id)", write: func(w *Writer, p place) string {
			if len(p.names.ids) == 0 {
				return "count(" + w.Pick(p.names.numbers...) + ")"
			}
			p.depth = 0
			id := w.Pick(p.names.ids...)
			return fmt.Sprintf("count("+w.Pick("", "DISTINCT ")+w.Pick("%[1]s", "CASE WHEN %[2]s THEN %[1]s END",
				"CASE WHEN %[2]s THEN %[1]s ELSE NULL END", "CASE WHEN %[2]s THEN NULL ELSE %[1]s END",
				"CASE WHEN %[2]s THEN %[1]s WHEN %[3]s THEN %[4]s END")+")", id, w.condition(p), w.condition(p), w.Pick(p.names.ids...))
		}},
		one("count(x)", "count(%s)", func(n names) []string { return slices.Concat(n.numbers, n.days, n.texts, n.keys) }),
		one("sum", "sum(%s)", numbers),
		one("avg", "avg(%s)", numbers),
	}
}

func plainKeys() []production {
	of := func(name string, kind func(names) []string) production {
		return production{name: "key/" + name, write: func(w *Writer, p place) string { return w.Pick(kind(p.names)...) }}
	}
	return []production{
		of("public", func(n names) []string { return n.keys }),
		of("public", func(n names) []string { return n.keys }), // twice as often as private ones
		of("private", func(n names) []string { return n.private }),
	}
}

func plainPosts() []postProduction {
	return []postProduction{
		{"post/having", func(w *Writer, q block) string {
			return q.with + q.sql + " HAVING count(*) > " + w.Pick("0", "2", "-1")
		}},
		{"post/order by", func(w *Writer, q block) string {
			return q.with + q.sql + " ORDER BY " + w.Pick(q.aliases...) + w.Pick("", " DESC", " NULLS FIRST") + ", " + w.Pick(q.aliases...)
		}},
		{"post/limit", func(w *Writer, q block) string {
			return q.with + q.sql + w.Pick(" LIMIT 2", " LIMIT 3 OFFSET 1", " OFFSET 1")
		}},
		{"post/top groups", topGroups},
		{"post/top groups", topGroups},
		{"post/top groups", topGroups},
	}
}

// topGroups asks for the keys of the largest groups and for nothing else of them. Few rows make many ties.
func topGroups(w *Writer, q block) string {
	keys := w.Pick(q.place.names.keys...)
	if other := w.Pick(q.place.names.keys...); other != keys && w.Rand.IntN(3) == 0 {
		keys += ", " + other
	}
	score := strings.ReplaceAll(w.Pick("count(*)", "count(x)", "sum(x)", "count(DISTINCT x)"), "x", w.Pick(q.place.names.numbers...))
	if symmetric := slices.DeleteFunc(slices.Clone(q.place.names.numbers),
		func(n string) bool { return !strings.HasSuffix(n, "coarse") }); len(symmetric) > 0 && w.Rand.IntN(2) == 0 {
		score = "sum(" + symmetric[0] + ")" // one unit can raise one score and lower another as far
	}
	if w.Rand.IntN(4) == 0 {
		p := q.place
		p.depth = 0
		score += " FILTER (WHERE " + w.condition(p) + ")"
	}
	return fmt.Sprintf("%sSELECT %s%s GROUP BY %[2]s ORDER BY %[4]s DESC%s", q.with, keys, q.rest, score,
		w.Pick(" LIMIT 1", " LIMIT 2", " LIMIT 1 OFFSET 1"))
}

// Exercised fails the test for every production that was taken less than least times.
func (w *Writer) Exercised(t *testing.T, least int) {
	t.Helper()
	for _, list := range [][]production{conditions(), aggregates(), keys()} {
		for _, p := range list {
			if w.Counts[p.name] < least {
				t.Errorf("%s: exercised %d times, want %d", p.name, w.Counts[p.name], least)
			}
		}
	}
	names := []string{summedLevels, levelByLevel}
	for _, p := range posts() {
		names = append(names, p.name)
	}
	for _, p := range levels() {
		names = append(names, p.name)
	}
	for _, name := range names {
		if w.Counts[name] < least {
			t.Errorf("%s: exercised %d times, want %d", name, w.Counts[name], least)
		}
	}
	probe := &Writer{Rand: rand.New(rand.NewPCG(1, 1)), Counts: map[string]int{}}
	for _, o := range origins() {
		if name := o(probe).name; w.Counts[name] < least {
			t.Errorf("%s: exercised %d times, want %d", name, w.Counts[name], least)
		}
	}
}
