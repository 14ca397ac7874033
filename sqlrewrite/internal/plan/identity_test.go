package plan_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// question is a question in the texts of a test, or its release, which has a name.
type question struct {
	text    string
	of      int      // spellings of one question have one number
	printed [32]byte // its statements, with their arguments
	version int64    // of its policy
}

// joinable reports whether two questions that had two names may have one: they are spellings of one question, and [spellings] has a proof
// for each; or they run the same statement.
func joinable(a, b question) bool {
	return a.version == b.version && a.of == b.of && a.of > 0 || a.printed == b.printed
}

// names are those that versions before and after migration 026 give to one kind of things.
type names struct {
	asked             map[[32]byte][]question // by name
	now               map[[32]byte][32]byte   // by earlier names
	separated, joined []string                // pairs of texts
	all               int
}

func (n *names) add(earlier, now [32]byte, q question) {
	if n.asked == nil {
		n.asked, n.now = map[[32]byte][]question{}, map[[32]byte][32]byte{}
	}
	n.all++
	others := n.asked[now]
	switch had, known := n.now[earlier]; {
	case known && had != now:
		n.separated = append(n.separated, n.asked[had][0].text+"\n"+q.text)
	case !known && others != nil && !slices.ContainsFunc(others, func(other question) bool { return joinable(q, other) }):
		n.joined = append(n.joined, others[0].text+"\n"+q.text)
	}
	n.now[earlier], n.asked[now] = now, append(others, q)
}

// partitions are the names of questions, and of their releases at their price and at any.
type partitions struct{ question, release, block names }

func (n *partitions) add(p *plan.Plan, text string, of int) {
	n.question.add(earlier.Fingerprint(p), p.Fingerprint(), question{text, of, printed(p, p.Different()...), p.Snapshot.Version})
	for i, block := range p.Different() {
		if block.NeedsData() {
			q := question{fmt.Sprint(text, "\nblock ", i), 0, printed(nil, block), p.Snapshot.Version}
			if of > 0 {
				q.of = of<<8 + i
			}
			n.release.add(earlier.Release(block), block.ReleaseIdentity(), q)
			n.block.add(earlier.BlockQuestion(block), block.BlockQuestion(), q)
		}
	}
}

// printed hashes the statements and laws of some blocks and, for a question, what is computed after the noise. It numbers all relations in
// the order in which the text names them, also those of outputs.
func printed(asked *plan.Plan, blocks ...*plan.Plan) (sum [32]byte) {
	h := sqlprint.Identity{Hash: sha256.New()}
	add := func(sql string, args []any) {
		numbers := map[string]string{}
		h.Add("statement", numbered.ReplaceAllStringFunc(sql, func(name string) string {
			if numbers[name] == "" {
				numbers[name] = fmt.Sprint("relation ", len(numbers))
			}
			return numbers[name]
		}))
		h.Args(args)
	}
	for _, p := range blocks {
		for _, part := range p.Parts {
			add(part.Statement.SQL, append(slices.Clone(part.Statement.Args), part.Releases, part.Units))
		}
		for _, r := range p.Releases {
			h.Add(fmt.Sprint(r.PerGroup, r.Unit, r.Law().Parameters()))
		}
	}
	if asked != nil {
		for _, v := range asked.Query.Estimators {
			h.Add(fmt.Sprint(v.How, v.Of, v.T))
		}
		for _, out := range asked.Query.Outputs {
			h.Add(out.Name)
		}
		if asked.Post != nil {
			add(asked.Post.SQL(), asked.Post.Args())
		}
	}
	h.Sum(sum[:0])
	return sum
}

var numbered = regexp.MustCompile(`\b[tw]\d+\b`)

func (n *partitions) check(t *testing.T) {
	t.Helper()
	for kind, n := range map[string]*names{"questions": &n.question, "releases": &n.release, "releases at any price": &n.block} {
		t.Logf("%d %s: %d earlier names, %d now", n.all, kind, len(n.now), len(n.asked))
		for what, pairs := range map[string][]string{"separated": n.separated, "joined": n.joined} {
			if len(pairs) > 0 {
				t.Errorf("%d %s are %s now:\n%s", len(pairs), kind, what, strings.Join(pairs[:min(8, len(pairs))], "\n\n"))
			}
		}
	}
}

// Names never separate what earlier ones join: somebody would pay twice. They join nothing but what [joinable] says: else an answer of
// another law would be given.
func TestNamesHaveOnePartition(t *testing.T) {
	t.Parallel()
	a := new(partitions)
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) { a.add(p, d.Pos+" "+d.Input, 0) })
	for _, clause := range []string{"several", "report"} { // with all their blocks
		rewritetest.RunGoldenFile(t, clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
			if d.Cmd == "plan" {
				p, err := pipeline.Rewrite(d.Input, snapshot, rewritetest.ParseOptions(t, d))
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				a.add(p, d.Pos+" "+d.Input, 0)
			}
			return d.Expected
		})
	}
	snapshot := rewritetest.ParseSnapshot(t, gen.ErrorFreeTables, gen.ErrorFreePolicy)
	other := withOtherBounds(snapshot)
	text, err := os.ReadFile(rewritetest.GoldenFile(storedExpressions))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range slices.Collect(strings.Lines(string(text))) {
		if i%randomtest.Part(6, 1) > 0 {
			continue
		}
		_, query, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, on := range []*catalog.Snapshot{snapshot, other} {
			p, err := pipeline.Rewrite(query, on, plan.Options{Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95,
				Epsilon: mechanisms.EpsilonUnit, Delta: 1_000_000_000})
			if err != nil && on == snapshot {
				t.Fatal(err)
			}
			if err == nil {
				a.add(p, fmt.Sprint(query, " at version ", on.Version), 0)
			}
		}
	}
	a.check(t)
}

// Questions that differ in one column, or in one number, have different names. A query in FROM shows columns of tables, which have numbers
// there, and values that have none.
func TestQuestionsAreNamedApart(t *testing.T) {
	t.Parallel()
	snapshot := rewritetest.ParseSnapshot(t, gen.ErrorFreeTables, gen.ErrorFreePolicy)
	const from = " FROM (SELECT id, n8 + 1 AS a, n8 + 2 AS b, n8 + 3 AS c, n8 + 4 AS d, n2, n4, n8, small FROM t) q"
	for _, texts := range [][]string{
		{"a > 1", "b > 1", "c > 1", "d > 1", "n2 > 1", "n4 > 1", "n8 > 1", "small > 1"},
		{"sum(n2)", "sum(n4)", "sum(small)", "sum(CASE WHEN a > 1 THEN 1 ELSE 0 END)", "sum(CASE WHEN n2 > 1 THEN 1 ELSE 0 END)"},
		{"avg(n4)::numeric(21,10)", "avg(n4)::numeric(211,0)", "avg(n4)::numeric(21,1)"},
	} {
		named := map[[32]byte]string{}
		for _, text := range texts {
			sql := "SELECT count(*)" + from + " WHERE " + text
			if strings.Contains(text, "(") {
				sql = "SELECT " + text + from
			}
			p, err := pipeline.Rewrite(sql, snapshot, plan.Options{Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95,
				Epsilon: mechanisms.EpsilonUnit, Delta: 1_000_000_000})
			if err != nil {
				t.Fatal(err)
			}
			names := map[string][32]byte{"question": p.Fingerprint(), "release": p.ReleaseIdentity(), "block": p.BlockQuestion()}
			if strings.Contains(text, "::") { // one release, shown in two ways
				names = map[string][32]byte{"question": p.Fingerprint()}
			}
			for kind, name := range names {
				if other, known := named[name]; known {
					t.Errorf("one %s: %s and %s", kind, other, sql)
				}
				named[name] = sql
			}
		}
	}
}

// A name never changes: what was bought would not be found. Each golden question has a line with what its earlier name begins with, and its
// names of now; after those that it had within the bounds of the policy, where conditions narrow them. -rewrite adds lines of new questions
// and drops those of questions that are gone; it changes none.
func TestNamesStay(t *testing.T) {
	t.Parallel()
	const file = "testdata/identities"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stored, found := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		asked, names, _ := strings.Cut(strings.TrimSpace(line), " ")
		stored[asked] = names
	}
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		name := earlier.Fingerprint(p) // the earlier name stays, and identifies golden questions
		asked, names := fmt.Sprintf("%x", name[:6]), namesOf(p)
		if wide := p.Wide(); wide != nil {
			names = namesOf(wide) + " narrowed " + names
		}
		found[asked] = names
		if had, known := stored[asked]; known && had != names && !strings.HasPrefix(names, had+" narrowed ") {
			t.Errorf("%s: the name has changed: %s, had %s", d.Pos, names, had)
		}
	})
	lines := ""
	for _, asked := range slices.Sorted(maps.Keys(found)) {
		lines += asked + " " + found[asked] + "\n"
	}
	switch {
	case flag.Lookup("rewrite").Value.String() == "true" && !t.Failed(): // datadriven's
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	case lines != string(text):
		t.Errorf("%s does not have the golden questions: make golden writes it", file)
	}
}

// namesOf are what the names of a question and of its release begin with.
func namesOf(p *plan.Plan) string {
	question := p.Fingerprint()
	names := fmt.Sprintf("%x", question[:6])
	if p.NeedsData() || len(p.Releases) > 0 { // of a public list of keys without any, nothing is released
		release, block := p.ReleaseIdentity(), p.BlockQuestion()
		names += fmt.Sprintf(" %x %x", release[:6], block[:6])
	}
	return names
}

// How rows are bounded and what a request asks for have no field that is neither in a name nor left out for a reason.
func TestEachOptionIsNamed(t *testing.T) {
	t.Parallel()
	const named, bounded, other = "named", "the bounding is named", "no part of an answer's law"
	for typ, fields := range map[reflect.Type]map[string]string{
		reflect.TypeFor[stability.Bounding](): {"Kind": named, "MaxRows": named, "MaxGroups": named, "MaxTotal": named, "MaxValues": named,
			"MostRank": named, "Set": named, "SetGroups": named, "SetRows": named, "Partitioning": "how rows are stored",
			"Together": "the laws are there"},
		reflect.TypeFor[plan.Options](): {"Epsilon": named, "Rho": named, "Delta": named, "Mechanism": named, "Selection": named,
			"Currency": named, "Confidence": named, "Simultaneous": named, "Weights": named, "Report": named, "Dialect": "of the text",
			"Now": "constants are named", "Zone": "constants are named", "SelectsOnly": other, "MaxGroups": bounded, "MaxRows": bounded,
			"MaxTotal": bounded, "Lists": "the keys that they leave are named",
			"Proofs": other, "Noises": other, "Bounded": other, "evenDelta": "the laws are named", "set": bounded, "bought": named},
	} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; fields[name] == "" {
				t.Errorf("%s.%s is new: name it", typ.Name(), name)
			}
		}
		if len(fields) != typ.NumField() {
			t.Errorf("%s has other fields", typ.Name())
		}
	}
}

// withOtherBounds is a snapshot of a later policy, whose columns have other bounds.
func withOtherBounds(on *catalog.Snapshot) *catalog.Snapshot {
	other := *on
	other.Version++
	other.Tables = slices.Clone(on.Tables)
	for i, t := range on.Tables {
		table := *t
		table.Columns = slices.Clone(t.Columns)
		for j, c := range t.Columns {
			if c.Bounds != nil {
				column, bounds := *c, *c.Bounds
				bounds.Hi = new(big.Rat).Sub(bounds.Hi, big.NewRat(1, 1))
				if bounds.Hi.Cmp(bounds.Lo) <= 0 {
					continue
				}
				column.Bounds, table.Columns[j] = &bounds, &column
			}
		}
		other.Tables[i] = &table
	}
	return &other
}

// spellings write a query in another way. Each asks the same:
//
//   - letter case of keywords, comments and white space mean nothing;
//   - numbers that are compared are as large whatever their type, or are rounded to one float;
//   - aliases of tables name nothing outside of their query;
//   - AND and OR do not depend on the order of their operands: none fails on any row.
var spellings = []func(*rand.Rand, string) string{
	func(_ *rand.Rand, q string) string { return "/* again */ " + strings.ReplaceAll(q, " AND ", "\n and ") },
	func(_ *rand.Rand, q string) string { return decimals.ReplaceAllString(q, "$1 $2.0$3") },
	func(_ *rand.Rand, q string) string {
		return strings.ReplaceAll(qualifier.ReplaceAllString(q, "other_o."), " AS o ", " AS other_o ")
	},
	swapped,
}

var (
	decimals  = regexp.MustCompile(`(=|<>|<|>|<=|>=) (\d+)( AND|\)|$)`)
	qualifier = regexp.MustCompile(`\bo\.`)
)

// changed is a query with one word exchanged for another: most of them ask something else, and nearly the same.
func changed(r *rand.Rand, q string) string {
	words := changeable.FindAllStringIndex(q, -1)
	if len(words) == 0 {
		return q
	}
	at := words[r.IntN(len(words))]
	for _, exchange := range exchanges {
		if i := slices.Index(exchange, q[at[0]:at[1]]); i >= 0 {
			return q[:at[0]] + exchange[(i+1+r.IntN(len(exchange)-1))%len(exchange)] + q[at[1]:]
		}
	}
	return q
}

var (
	exchanges = [][]string{
		{"n2", "n4", "n8", "nn", "odd"}, {"money", "free", "f4", "f8", "coarse"}, {"at", "until"}, {"k_text", "k_num", "secret", "code"},
		{"note", "mark"}, {" AND ", " OR "}, {" > ", " >= ", " < ", " <= ", " = ", " <> "}, {" JOIN ", " LEFT JOIN ", " RIGHT JOIN "},
		{" IS NULL", " IS NOT NULL"}, {" LIKE ", " NOT LIKE ", " ILIKE "}, {" IN ", " NOT IN "}, {"count(", "count(DISTINCT "},
		{"min(", "max(", "sum(", "avg(", "count("}, {"SELECT ", "SELECT DISTINCT "}, {" DESC", " ASC", " NULLS FIRST"}, {"UNION ALL", "UNION"},
		{"0", "1", "2", "3", "4", "5", "9"}, {"'x'", "'y'", "'b'"}, {"EXISTS", "NOT EXISTS"},
		{"row_number()", "rank()", "dense_rank()"}, {"lag(", "lead("}, {" + ", " - ", " * "}, {"PRECEDING", "FOLLOWING"}, {"ROLLUP", "CUBE"},
		{" / 2", " / 2.0"}, {"percentile_disc", "percentile_cont"}, {"IS UNKNOWN", "IS TRUE", "IS NOT TRUE"}, {"upper(", "lower("},
		{"stddev(", "variance("},
		{" UNION ", " EXCEPT ", " INTERSECT "}, {"::date", "::text"}, {"LIMIT 1", "LIMIT 2"}, {"IS DISTINCT", "IS NOT DISTINCT"},
	}
	changeable = regexp.MustCompile(`\b(n2|n4|n8|nn|odd|money|free|f4|f8|coarse|at|until|k_text|k_num|secret|code|note|mark)\b|` +
		` (AND|OR|>|>=|<|<=|=|<>|JOIN|LEFT JOIN|LIKE|IN|NOT IN|[+*-]|UNION) | IS (NOT )?NULL|count\(|min\(|max\(|sum\(|avg\(|` +
		`SELECT | DESC|UNION ALL|\b[0123459]\b| / 2|'[xyb]'|EXISTS|row_number\(\)|rank\(\)|lag\(|lead\(|PRECEDING|FOLLOWING|ROLLUP|CUBE|` +
		`percentile_disc|percentile_cont|IS UNKNOWN|upper\(|lower\(|stddev\(|variance\(|::date|LIMIT 2|IS DISTINCT`)
)

// beside is a query over columns of people and values that are computed of them, in any order.
func beside(r *rand.Rand) string {
	items := slices.Clone(exchanges[0])
	for i := range 8 {
		items = append(items, fmt.Sprintf("n4 + %d AS v%d", i, i))
	}
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return "SELECT count(*) FROM (SELECT id, " + strings.Join(items, ", ") + " FROM people) q WHERE v1 > 2"
}

// exposed is a query in which a column that one of its SELECTs shows stands elsewhere for another one that the same SELECT shows.
func exposed(r *rand.Rand, q string) string {
	lists := shown(q)
	if len(lists) == 0 {
		return q
	}
	chosen := lists[r.IntN(len(lists))]
	list := chosen.names
	named := regexp.MustCompile(`\b(`+strings.Join(list, "|")+`)\b`).FindAllStringIndex(q, -1)
	named = slices.DeleteFunc(named, func(at []int) bool { return at[0] >= chosen.start && at[0] < chosen.end })
	if len(named) == 0 {
		return q
	}
	at := named[r.IntN(len(named))]
	i := slices.Index(list, q[at[0]:at[1]])
	return q[:at[0]] + list[(i+1+r.IntN(len(list)-1))%len(list)] + q[at[1]:]
}

// list is what a SELECT shows: where the text says it, and the names.
type list struct {
	start, end int
	names      []string
}

// shown are the lists of the SELECTs of a query that show several columns.
func shown(q string) (lists []list) {
	for at := range len(q) {
		if !strings.HasPrefix(q[at:], "SELECT ") {
			continue
		}
		l := list{start: at}
		depth, from := 0, at+len("SELECT ")
		for i := from; i <= len(q); i++ {
			rest := q[i:]
			if ends := rest == "" || rest[0] == ')' && depth == 0 || depth == 0 && strings.HasPrefix(rest, " FROM "); ends ||
				depth == 0 && rest[0] == ',' {
				switch name := lastName.FindString(q[from:i]); {
				case name == "*":
					l.names = append(l.names, slices.Concat(exchanges[:3]...)...)
				case name != "" && !slices.Contains(l.names, name):
					l.names = append(l.names, name)
				}
				if from, l.end = i+1, i; ends {
					break
				}
			} else if rest[0] == '(' {
				depth++
			} else if rest[0] == ')' {
				depth--
			}
		}
		if len(l.names) > 1 {
			lists = append(lists, l)
		}
	}
	return lists
}

var lastName = regexp.MustCompile(`(\*|\b[a-z]\w*)$`)

// swapped exchanges the operands of some ANDs and ORs in parentheses of their own.
func swapped(r *rand.Rand, q string) string {
	return exchanged(q, func(inside string) string {
		if r.IntN(2) == 0 {
			return swap(inside)
		}
		return inside
	})
}

// ordered is one text for all that [swapped] makes of a query.
func ordered(q string) string {
	return exchanged(q, func(inside string) string { return min(inside, swap(inside)) })
}

// exchanged replaces what is in parentheses by a text of the same length, from the inside out.
func exchanged(q string, inside func(string) string) string {
	var open []int
	for i := 0; i < len(q); i++ {
		switch q[i] {
		case '(':
			open = append(open, i)
		case ')':
			if len(open) == 0 {
				return q
			}
			from := open[len(open)-1] + 1
			open = open[:len(open)-1]
			q = q[:from] + inside(q[from:i]) + q[i:]
		}
	}
	return q
}

// swap exchanges the operands of the only AND or OR outside of parentheses.
func swap(text string) string {
	depth, at, length := 0, -1, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		for _, word := range []string{" AND ", " OR ", " BETWEEN ", "SELECT ", " WHERE "} {
			if depth > 0 || !strings.HasPrefix(text[i:], word) {
				continue
			}
			if at >= 0 || word != " AND " && word != " OR " {
				return text
			}
			at, length = i, len(word)
		}
	}
	if at < 0 {
		return text
	}
	return text[at+length:] + text[at:at+length] + text[:at]
}

// As TestNamesHaveOnePartition says, of random questions in several spellings, and under a later policy with other bounds, or over
// prepared copies.
//
// needs: postgres
func TestNamesOfRandomQuestions(t *testing.T) {
	t.Parallel()
	w, copied := gen.NewWorld(t, 1, gen.Wild, 4), gen.NewCopiedWorld(t, 1, gen.Wild, 4, 4)
	later := withOtherBounds(w.Snapshot)
	r := rand.New(rand.NewPCG(*gen.ProofSeed, 35)) // reproducible on purpose
	writer := &gen.Writer{Rand: r, Counts: map[string]int{}}
	a, numbers := new(partitions), map[string]int{}
	number := func(sql string) int { // a short one comes again, and a changed one may be another's spelling
		sql = ordered(sql)
		if numbers[sql] == 0 {
			numbers[sql] = 8*len(numbers) + 1
		}
		return numbers[sql]
	}
	for range randomtest.Part(40, 1_000) {
		sql, from := writer.Query()
		of := number(sql)
		o := gen.RandomOptions(r, from)
		o.Report, o.Proofs = gen.RandomReport(r), new(sqlprint.Proofs)
		snapshots := []*catalog.Snapshot{w.Snapshot, later}
		if r.IntN(3) == 0 {
			snapshots, of = copied.Serving(), of+2
			i := r.IntN(len(snapshots))
			snapshots, of = snapshots[i:i+1], of+i
			o.MaxRows, o.MaxGroups, o.MaxTotal = gen.CopiedBounds(r)
		}
		ask := func(text string, on, of int) {
			if p, err := pipeline.Rewrite(text, snapshots[on], o); err == nil {
				a.add(p, fmt.Sprint(text, "\nof ", snapshots[on].DataVersion, " at version ", snapshots[on].Version), of)
			}
		}
		for on := range snapshots {
			ask(sql, on, of+on)
		}
		text := sql
		for _, i := range r.Perm(len(spellings))[:2] {
			text = spellings[i](r, text)
			ask(text, 0, of)
		}
		for _, change := range []func(*rand.Rand, string) string{changed, changed, exposed, exposed} {
			other := change(r, sql)
			ask(other, 0, number(other))
		}
		mixed := beside(r)
		for range 4 {
			ask(mixed, 0, number(mixed))
			mixed = exposed(r, mixed)
		}
	}
	a.check(t)
}
