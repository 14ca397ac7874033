package verify

import (
	"flag"
	"fmt"
	"testing"

	"noisegate.example/internal/mutate"
)

// ruleMutants each weaken one rule.
var ruleMutants = []struct{ file, old, mutant string }{
	{"release.go", `refuse("rows without a unit are not left out")`, ``},
	{"release.go", `refuse("a key of a group is not shown")`, ``},
	{"release.go", `refuse("a key that is not shown as text")`, ``},
	{"release.go", `refuse("pieces that are not added up by all their keys")`, ``},
	{"release.go", `product.Mul(product, n)`, ``},
	{"release.go", "if len(ids) == 0 {\n\t\treturn big.NewInt(1)", "if len(ids) >= 0 {\n\t\treturn big.NewInt(1)"},
	{"release.go", `move = t.each.WithZero().Times(ranges.Point(new(big.Rat).SetInt(n)))`, `move = t.each.WithZero()`},
	{"relation.go", `if l.sql && !known[id].solid ||`, `if`},
	{"relation.go", `len(t.args) == 0 && strings.HasPrefix(t.op, "#")`, `false`},
	{"relation.go", `if _, identical := d.follows(a, known); !identical {`, `if follows, _ := d.follows(a, known); !follows {`},
	{"window.go", `slices.Equal(l.place.of, s.rel.parted())`, `true`},
	{"window.go", `max(n.Num().Int64(), 1)`, `n.Num().Int64()`},
	{"window.go", `in.narrow = nil`, ``},
	{"arithmetic.go", `if k.isFloat() && !apart(v.kind, k) {`, `if false {`},
	{"expression.go", `all = s.d.resolved(all)`, ``},
	{"arithmetic.go", `d.convert(d.plain(v), k)`, `if v.terms == nil { d.convert(v, k) }`},
	{"window.go", `form.WriteString(v.collation)`, ``},
	{"block.go", `refuse("a * of a table, which may have more columns than are pinned")`, ``},
	{"expression.go", `refuse("a column of an outer query that one of this query may hide")`, ``},
	{"choice.go", `common(args[0].kind, args[1].kind) == args[0].kind`, `true`},
	{"choice.go", `if v.untyped {`, `if false {`},
	{"choice.go", `args[0].id == args[1].id && args[0].kind`, `args[0].kind`},
	{"tally.go", `refuse("a sum that may leave bigint")`, ``},
	{"total.go", ` && p.of == run.of`, ``},
	{"release.go", `slices.Equal(x.rel.parted(), t.share.of) &&`, ``},
	{"constant.go", `return v.constant && !v.opaque`, `return v.constant`},
	{"semijoin.go", `append(args, *inner.reads...)...`, `args...`},
	{"value.go", `if ordered[op] && collation != "" {`, `if false {`},
	{"present.go", "s.column(tree.Words(c.GetColumnRef().Fields))\n\t\t\t}\n\t\t\tall", "_ = c\n\t\t\t}\n\t\t\tall"},
	{"relation.go", `refuse("rows of two units")`, ``},
	{"relation.go", "if len(left) > 0 {\n\t\ttotal = nil\n\t}", ``},
	{"join.go", `refuse("LEFT JOIN of rows that are not the left row's unit's own")`, ``},
	{"join.go", `if a.name == b.name {`, `if true {`},
	{"join.go", "s.parent = &scope{d: s.d, number: s.d.number(), parent: s.parent, rel: l}\n\ts.rel.units = r.units", ``},
	{"join.go", `v.nulls, v.strict, v.constant, v.opaque = []int{v.id}, false, false, false`, `v.nulls, v.constant, v.opaque = []int{v.id}, false, false`},
	{"join.go", `if op != "=" && op != "<=" {`, `if op != "=" && op != "<=" && op != ">=" {`},
	{"join.go", `s.matched(l) && s.matched(r)`, `s.matched(l)`},
	{"join.go", `kind == pgquery.JoinType_JOIN_LEFT && s.matched(r)`, `kind == pgquery.JoinType_JOIN_LEFT && (s.matched(l) || s.matched(r))`},
	{"join.go", `pgquery.JoinType_JOIN_FULL && s.matched(l) {`, `pgquery.JoinType_JOIN_FULL {`},
	{"join.go", `tree.Present(j.Quals)...`, `tree.Present(j.Quals)[:0]...`},
	{"join.go", "s.present = present\n", ""},
	{"internal/tree/tree.go", `c.GetIval().Ival != 0`, `false`},
	{"internal/tree/present.go", `if !ok || below != 1 {`, `if !ok || below < 1 {`},
	{"internal/tree/present.go", `|| c.Defresult != nil`, ``},
	{"block.go", `refuse("DISTINCT over rows of several units")`, ``},
	{"block.go", `x.name == y.name && owner != nil {`, `owner != nil {`},
	{"block.go", "if null {\n\t\tsize++\n\t} else {", "if !null {"},
	{"block.go", `if !v.strict && !r.solid[v.id] || v.vague {`, `if v.vague {`},
	{"grouping.go", `refuse("an output that is neither a key nor an aggregate")`, ``},
	{"grouping.go", `k.whole, k.vague = true, !v.same`, `k.whole = true`},
	{"aggregate.go", `v.vague, v.collation = !v.same, args`, `v.collation = args`},
	{"grouping.go", `refuse("HAVING over what is no key")`, ``},
	{"grouping.go", `if s.group == nil || s.inside || s.group.having {`, `if s.group == nil || s.inside {`},
	{"grouping.go", "rows.terms == nil || !rows.terms.count || len(rows.terms.where) > 0 || none == nil || none.Sign() != 0", `rows.terms == nil || none == nil`},
	{"contribution.go", `!subset(counter.tallied.where, t.where)`, `false`},
	{"contribution.go", `if then.id != ratio && then.id != d.intern("to:"+kindName(int8), ratio) {`, `if false {`},
	{"tally.go", `slices.Equal(a.where, b.where)`, `true`},
	{"tally.go", `&& t.digits == 0 {`, `{`},
	{"contribution.go", `t.each.WithZero().Times(ranges.Point(limit))`, `t.each.WithZero().Times(ranges.Point(ranges.Lesser(limit, ranges.One)))`},
	{"tally.go", `if g.release && !x.within.Inside(ranges.Of(-1<<23, 1<<23)) {`, `if false {`},
	{"tally.go", `refuse("a sum of a type that depends on the order of rows")`, ``},
	{"histogram.go", `if !slices.Contains(shares, then.id) || !s.rel.solid[run.x] {`, `if len(shares) == 0 || !s.rel.solid[run.x] {`},
	{"semijoin.go", `refuse("IN over rows of people, row by row")`, ``},
	{"semijoin.go", `refuse("EXISTS over rows of people, row by row")`, ``},
	{"window.go", `refuse("a window over rows of several units")`, ``},
	{"window.go", `refuse("rows that tie in a window may differ in a column that is read")`, ``},
	{"window.go", `refuse("windows in several orders in which rows may tie")`, ``},
	{"window.go", `refuse("an offset of a frame that may be negative")`, ``},
	{"window.go", `x.sequential = o&frameRows != 0`, ``},
	{"window.go", `if l.place.dense {`, `if false {`},
	{"scan.go", `refuse("a plain table without ONLY, or a partitioned one with it")`, ``},
	{"pins.go", `refuse("a pin of another table of the name")`, ``},
	{"pins.go", `refuse("a pin of another column of the name")`, ``},
	{"arithmetic.go", `refuse("operator %s may leave its integer type", op)`, ``},
	{"arithmetic.go", `refuse("a divisor that may be 0")`, ``},
	{"arithmetic.go", `refuse("operator %s on floats that may overflow", op)`, ``},
	{"arithmetic.go", `refuse("operator %s on floats that may underflow", op)`, ``},
	{"arithmetic.go", `refuse("a cast to a narrower type that may not hold the value")`, ``},
	{"arithmetic.go", `refuse("operator %s on numerics without bounds", op)`, ``},
	{"arithmetic.go", `refuse("a numeric that no float may be able to hold")`, ``},
	{"arithmetic.go", `refuse("a cast to numeric with digits that may not hold the value")`, ``},
	{"table.go", `if !v.is(takes[i]) {`, `if v == nil && !v.is(takes[i]) {`},
	{"table.go", `return n != nil && n.Num().CmpAbs(big.NewInt(1<<30)) <= 0`, `return n != nil`},
	{"table.go", `return v.read()`, `return true`},
	{"function.go", `refuse("width_bucket with limits or a value for which it fails")`, ``},
	{"function.go", `refuse("exp may overflow or underflow")`, ``},
	{"function.go", `refuse("%s of what may not be positive", name)`, ``},
	{"function.go", `refuse("div by what may be 0")`, ``},
	{"function.go", `refuse("abs may leave its integer type")`, ``},
	{"texts.go", `refuse("a pattern that ends in its escape character")`, ``},
	{"texts.go", `refuse("a regular expression that PostgreSQL may not compile")`, ``},
	{"texts.go", `refuse("%s of a text that may be long", name)`, ``},
	{"texts.go", `refuse("substr of a negative length")`, ``},
	{"internal/calendar/calendar.go", `tree.Refuse("a time that may leave the calendar")`, ``},
	{"internal/calendar/calendar.go", `tree.Refuse("an interval that may not fit")`, ``},
	{"expression.go", `branch.narrow = append(slices.Clone(deeper.narrow), s.narrowing(w.Expr, true)...)`, `branch.narrow = append(slices.Clone(deeper.narrow), s.narrowing(w.Expr, false)...)`},
	{"grouping.go", `x.vague || f.AggDistinct && (!x.same || s.group.release)`, `x.vague`},
	{"tally.go", `where: where, each: ranges.Between(ranges.Zero, ranges.One), once`, `where: where, each: ranges.Between(ranges.Zero, ranges.One), count: true, once`},
	{"grouping.go", `s.rel.within(d, []int{x.id}, nil)`, `true`},
	{"grouping.go", ` && f.Args[0].GetColumnRef() != nil`, ``},
	{"grouping.go", `name == "count" && f.AggDistinct && s.group.release`, `s.group.release`},
	{"function.go", `limit := large`, `limit := ranges.Between(new(big.Rat).Neg(ranges.Ten(2000)), ranges.Ten(2000))`},
	{"block.go", `rows := r.rows(s.d, []int{id}, false)`, `rows := big.NewInt(1)`},
	{"constant.go", `return k, int(tree.Integer(t.Typmods[0])), 0`, `return k, 0, 0`},
	{"arithmetic.go", `if (l.kind.isInteger() != r.kind.isInteger()) && k.isNumber() ||`, `if`},
	{"arithmetic.go", `y, away = nil, most != nil && most.Cmp(ranges.One) <= 0`, `away = true`},
	{"internal/calendar/calendar.go", `ranges.Of(28*Day, 31*Day)`, `ranges.Of(28*Day, 28*Day)`},
	{"scan.go", `v.anchors = append(v.anchors, anchor{name: columnName(t, column), of: owner})`,
		`v.anchors, v.strict = append(v.anchors, anchor{name: columnName(t, column), of: owner}), true`},
	{"value.go", `refuse("a unit's id compared with what is no id of the same kind of units")`, ``},
	{"value.go", `v.ident = ident`, `_ = ident`},
	{"value.go", `v.opaque && !v.asked`, `v.opaque`},
	{"value.go", `asked || a.asked`, `asked`},
	{"expression.go", `!b.constant || len(b.nulls) > 0`, `!b.constant || b.null`},
	{"relation.go", `return c.name == ""`, `return false`},
	{"release.go", `refuse("a total of pieces as a piece")`, ``},
	{"arithmetic.go", `refuse("a sum as text that may be written with digits after the point")`, ``},
	{"verify.go", `refuse("an argument that the text does not name")`, ``},
	{"joint.go", `p.counter != first.counter || p.rows.Cmp(first.rows) != 0`, `p.rows.Cmp(first.rows) != 0`},
	{"joint.go", `p.counter != first.counter || p.rows.Cmp(first.rows) != 0`, `p.counter != first.counter`},
	{"joint.go", `square.Add(square, had)`, `square = had`},
	{"joint.go", `if a == b && f.id != g.id {`, `if a == b {`},
	{"joint.go", `row.Add(row, largest)`, ``},
	{"joint.go", `return row.Mul(row, first.rows).Mul(row, first.rows)`, `return row`},
	{"joint.go", `return id // of the same constant as another member: both may be other than 0`, ``},
	{"joint.go", `if _, other := d.constantOf(t.args[2]); other != "0" {`, `if false {`},
	{"joint.go", `if equal.op != "=" ||`, `if`},
	{"joint.go", `return strconv.Itoa(equal.args[0]) + ":" + kindName(k), "=" + c`, `return kindName(k), "=" + c`},
	{"joint.go", "case text:", "case text, float8:"},
	{"joint.go", `c = strconv.FormatInt(n, 10)`, `_ = n`},
	{"joint.go", `seen[i] || got.products[i] == nil`, `got.products[i] == nil`},
	{"joint.go", `p.rows.Mul(p.rows, c.limit)`, ``},
	{"total.go", `n.within.Lo.Sign() < 0 {`, `false {`},
	{"total.go", `if len(filter) > 0 || !n.kind.isInteger`, `if !n.kind.isInteger`},
	{"total.go", `&& s.untied(x):`, `:`},
	{"total.go", `p.n == run.n && p.x == run.x && p.of`, `p.x == run.x && p.of`},
	{"total.go", `p.of == run.of && slices.Equal(p.partition, run.partition)`, `p.of == run.of`},
	{"total.go", `if n.id != run.n || n.kind != int8 {`, `if n.kind != int8 {`},
	{"total.go", `if !slices.Contains(shares, then.id) {`, `if false {`},
	{"share.go", `&& len(v.nulls) == 0`, ``},
	{"share.go", `case !larger && end.within.Lo.Sign() >= 0:
		if x.within.Lo.Sign() >= 0 {`, `case !larger && end.within.Lo.Sign() >= 0:
		if true {`},
	{"share.go", `return h.or(x.above), nil`, `return h, nil`},
	{"total.go", `!slices.Equal(x.rel.parted(), t.share.of) ||`, ``},
	{"total.go", "||\n\t\t!x.rel.within(d, t.share.partition, nil)", ``},
	{"internal/ranges/ranges.go", `l2.Add(l2, rest.Mul(rest, rest))`, `l2.Add(l2, rest)`},
	{"share.go", `c.most = new(big.Rat).Mul(h.most, new(big.Rat).Abs(by))`, ``},
	{"work.go", `o.holds(fixed)`, `false`},
	{"work.go", `!isAmong(p, c.parts)`, `false`},
	{"work.go", `limits: c.limits`, ``},
	{"work.go", `n == nil || !o.holds(p)`, `true`},
	{"work.go", `known[id].solid })`, `false })`},
	{"work.go", `known[id].solid })`, `true })`},
	{"work.go", `(best == nil || n.Cmp(best) < 0)`, `best == nil`},
	{"work.go", `times(n, r.meeting)`, `n`},
	{"work.go", "make(knowledge))\n\tif joined", "make(knowledge))\n\tif true"},
	{"semijoin.go", `(left == nil ||`, `(true ||`},
	{"semijoin.go", ` || !hashed {`, ` {`},
	{"semijoin.go", `len(tests) == 1 || d.isThere(x) && d.isThere(c)`, `true`},
	{"semijoin.go", `d.isThere(x) && d.isThere(c)`, `d.isThere(x)`},
	{"semijoin.go", `d.isThere(x) && d.isThere(c)`, `d.isThere(c)`},
	{"semijoin.go", `!inner.besides && `, ``},
	{"semijoin.go", `q.LimitOffset == nil && `, ``},
	{"semijoin.go", `q.TargetList[0].GetResTarget().GetVal().GetAConst() != nil`, `true`},
	{"work.go", `times(s.rel.work(s.d), s.meeting)`, `s.rel.work(s.d)`},
	{"work.go", "	if n == nil {\n\t\ts.d.work = nil", "	if n == nil {"},
	{"work.go", `name == "min" || `, ``},
	{"work.go", `n = new(big.Int).Neg(n)`, ``},
	{"work.go", `bigger(rows, big.NewInt(1))`, `rows`},
	{"work.go", `&& o&untilUnbounded == 0`, ``},
	{"work.go", `rows.Cmp(most) < 0`, `true`},
	{"work.go", `rows.Add(rows, n)`, ``},
	{"join.go", `inner.parent, inner.meeting = &scope{d: s.d, number: s.d.number(), rel: left}, s.meeting`, `inner.parent = &scope{d: s.d, number: s.d.number(), rel: left}`},
	{"join.go", `both.outer = append(both.outer, x.outer...)`, ``},
	{"prepared.go", `if unit == nil || !solid[unit.id] {`, `if unit == nil {`},
	{"prepared.go", `rank != nil && solid[rank.id] && rank.checked`, `rank != nil && rank.checked`},
	{"prepared.go", `rank.within.Lo.Cmp(ranges.One) >= 0`, `rank.within.Lo.Cmp(ranges.One) >= -1`},
	{"prepared.go", `slices.ContainsFunc(pin.Keys, func(k []string) bool { return slices.Equal(k, key) })`, `true`},
	{"prepared.go", `len(keys) < len(set.Keys)`, `len(keys) < 1`},
	{"prepared.go", `|| !solid[group.id] || !solid[row.id] {`, `{`},
	{"prepared.go", `partition: append([]int{unit.id}, keys...)`, `partition: keys`},
	{"prepared.go", `|| !group.dense || row.dense`, ``},
	{"prepared.go", `!slices.Equal(group.partition, keys[:1])`, `false`},
	{"prepared.go", `!subset(keys[1:], group.order)`, `false`},
	{"prepared.go", `!d.all(group.order, known)`, `false`},
	{"prepared.go", `!subset(keys, row.partition)`, `false`},
	{"prepared.go", `!d.all(row.partition, known)`, `false`},
	{"prepared.go", `refuse("ranks of rows that the copy does not keep")`, ``},
	{"prepared.go", `return n >= 0 && n <= most`, `return n >= 0`},
	{"prepared.go", `t.Checked(b.Numbered, b.Added, b.Units)`, ``},
	{"internal/copying/copying.go", `|| all != named(numbered)`, ``},
	{"internal/copying/copying.go", `|| ofAdded != named(added)`, ``},
	{"window.go", `rows: k.places * l.rows})
				}
			}
		}
		for`, `rows: k.places + l.rows})
				}
			}
		}
		for`},
	{"window.go", `rows: k.places * l.rows})
			}
		}
	}
}`, `rows: k.places + l.rows})
			}
		}
	}
}`},
	{"window.go", `subset(l.by, of) && !subset(l.by, k.by) && !l.sql {
				s.rel.whole`, `!subset(l.by, k.by) && !l.sql {
				s.rel.whole`},
	{"expression.go", `if x.octets == 0 || s.d.shorter`, `if s.d.shorter`},
	{"expression.go", `Expr).id, x.id) < x.octets {`, `Expr).id, x.id) < 0 {`},
	{"block.go", `p != nil && slices.Equal(p.of, s.rel.parted())`, `p != nil && !p.dense`},
	{"prepared.go", "||\n\t\tin.Most > b.Copy.Copy.MaxRows", ``},
	{"prepared.go", `in.Outputs[0] != in.Rank ||`, ``},
	{"prepared.go", `|| !rel.solid[v.id]`, ``},
	{"prepared.go", `if !named {`, `if !named && false {`},
	{"prepared.go", `v.opaque && (!secret || v.constant)`, `secret && false`},
	{"prepared.go", `(!secret || v.constant)`, `!secret`},
	{"prepared.go", `times == nil && b.Merge != "" ||`, ``},
	{"prepared.go", `times != nil && b.Merge != t.Merge(b.Insert, in)`, `false`},
	{"prepared.go", `i >= own && v.kind != kindOf`, `i < 0 && v.kind != kindOf`},
	{"prepared.go", `[]any{int64(0)}`, `[]any{"0"}`},
	{"prepared.go", "||\n\t\t\tlen(v.anchors) > 0", ``},
	{"prepared.go", `owns(rel, in.ID)`, `_ = in.ID`},
	{"prepared.go", `owns(rel, rel.columns[0].name)`, `_ = rel`},
	{"block.go", `s.parent == nil && t.Val.GetColumnRef() != nil`, `s.parent == nil`},
	{"block.go", `of.numbers = s.parent == nil &&`, `of.numbers =`},
	{"block.go", `b.vague, a.numeral`, `b.vague, false`},
	{"block.go", ` || a.numeral != b.numeral`, ``},
	{"scan.go", `t.Copy != nil && c.Name == t.Unit.Column`, `false`},
	{"internal/copying/copying.go", `units.Relname != t.Units ||`, ``},
	{"internal/copying/copying.go", `tree.Reads(units, "Schemaname", "Relname", "Relpersistence", "Alias")`, ``},
	{"internal/tree/tree.go", `!slices.Contains(fields, f.Name)`, `false`},
	{"internal/copying/copying.go", `j == nil || j.Jointype != pgquery.JoinType_JOIN_INNER {`, `j == nil {`},
	{"internal/copying/copying.go", `column(on.Lexpr, u) != unitsID`, `false`},
	{"internal/copying/copying.go", `case column(o.Val, u) != unitsNumber:`, `case false:`},
	{"relation.go", `l.holds(d, whole)`, `l.holds(d, known)`},
	{"value.go", `refuse("%s of a value that stands for several that are equal but not identical", op)`, ``},
}

// survivors are mutants that other rules, or PostgreSQL, make up for.
var survivors = map[string]string{
	`&& s.untied(x):`:                               "settle leaves rows that tie only where they are identical, and then the shares add up in every order of them",
	`if unit == nil || !solid[unit.id] {`:           "rows whose unit may be NULL are not released",
	`partition: append([]int{unit.id}, keys...)`:    "what one unit has is counted where the unit is known",
	`of.numbers = s.parent == nil &&`:               "IN over rows of people is refused in an expression, and EXISTS gives none of its outputs",
	`refuse("DISTINCT over rows of several units")`: "each use of such rows needs a column that names their unit, which they do not have",
}

var runMutants = flag.Bool("mutants", false, "run the tests on each mutant of a rule, not on one in 24")

// Mutants of rules die, all but the survivors: by the golden statements with wrong claims, by what is unsafe, or by what attacked version
// 7c2e952. make mutants tries all of them: go test ./sqlrewrite/verify -run Mutants -mutants.
func TestMutantsOfRulesDie(t *testing.T) {
	if n := len(ruleMutants) - len(survivors); n < 40 {
		t.Errorf("only %d mutants are to die", n)
	}
	edits := make([]mutate.Edit, len(ruleMutants))
	for i, m := range ruleMutants {
		edits[i] = mutate.Edit{File: m.file, Old: m.old, New: m.mutant}
	}
	mutants, err := mutate.New(".", edits)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		t.Log("-short: mutants are looked for, not run")
		return
	}
	program, err := mutants.Compile(t.Context(), ".", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const tests = "TestCorpus|TestUnsafe|TestPins|TestAnyIsNobodysID|7c2e952"
	if dead, out, err := program.Kills(t.Context(), 0, tests); dead || err != nil {
		t.Fatalf("without a mutant: %v\n%s", err, out)
	}
	for i, m := range ruleMutants {
		if !*runMutants && i%24 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%s %d", m.file, i), func(t *testing.T) {
			t.Parallel()
			dead, out, err := program.Kills(t.Context(), i+1, tests)
			switch why := survivors[m.old]; {
			case err != nil:
				t.Errorf("was not tested: %s: %v\n%s", m.old, err, out)
			case !dead && why != "":
				t.Logf("survives: %s: %s", m.old, why)
			case !dead:
				t.Errorf("survives: %s", m.old)
			case why != "":
				t.Errorf("dies, and is said to survive: %s", m.old)
			}
		})
	}
}
