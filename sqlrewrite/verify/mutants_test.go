package verify

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"noisegate.example/internal/mutate"
)

// ruleMutants each weaken one rule.
var ruleMutants = []struct{ file, old, mutant string }{
	{"internal/relation/relation.go", `refuse("rows without a unit are not left out")`, ``},
	{"internal/release/release.go", `refuse("a key of a group is not shown")`, ``},
	{"internal/release/release.go", `refuse("a key that is not shown as text")`, ``},
	{"internal/release/release.go", `refuse("pieces that are not added up by all their keys")`, ``},
	{"internal/release/release.go", `product.Mul(product, n)`, ``},
	{"internal/release/release.go", "if len(ids) == 0 {\n\t\treturn big.NewInt(1)", "if len(ids) >= 0 {\n\t\treturn big.NewInt(1)"},
	{"internal/release/release.go", `move = t.Each.WithZero().Times(ranges.Point(new(big.Rat).SetInt(n)))`, `move = t.Each.WithZero()`},
	{"internal/relation/relation.go", `if l.sql && !known[id].solid ||`, `if`},
	{"internal/relation/relation.go", `len(t.Args) == 0 && strings.HasPrefix(t.Op, "#")`, `false`},
	{"internal/relation/relation.go", `if _, identical := d.follows(a, known); !identical {`, `if follows, _ := d.follows(a, known); !follows {`},
	{"internal/relation/limits.go", `slices.Equal(l.Place.Of, r.Numbers())`, `true`},
	{"internal/relation/limits.go", `max(n.Num().Int64(), 1)`, `n.Num().Int64()`},
	{"internal/value/times.go", `!slices.Contains(d.Zones, zone)`, `false`},
	{"internal/value/times.go", ` || !tree.IsZone(zone)`, ``},
	{"internal/value/times.go", `refuse("a time without bounds in another zone")`, `return v`},
	{"window.go", `in.narrow = nil`, ``},
	{"internal/value/convert.go", `if k.IsFloat() && !apart(v.Kind, k) {`, `if false {`},
	{"expression.go", `all = s.d.Resolved(all)`, ``},
	{"internal/value/convert.go", `d.Convert(d.Plain(v), k)`, `if v.Sum == nil { d.Convert(v, k) }`},
	{"window.go", `form.WriteString(v.Collation)`, ``},
	{"block.go", `refuse("a * of a table, which may have more columns than are pinned")`, ``},
	{"expression.go", `refuse("a column of an outer query that one of this query may hide")`, ``},
	{"internal/value/choice.go", `Common(args[0].Kind, args[1].Kind) == args[0].Kind`, `true`},
	{"internal/value/choice.go", `if v.untyped {`, `if false {`},
	{"internal/value/choice.go", `args[0].ID == args[1].ID && args[0].Kind`, `args[0].Kind`},
	{"internal/value/convert.go", `refuse("a sum that may leave bigint")`, ``},
	{"total.go", ` && p.Of == run.Of`, ``},
	{"internal/release/release.go", `slices.Equal(x.Rows.Numbers(), t.Share.Of) &&`, ``},
	{"internal/value/value.go", `return v.Constant && !v.Opaque`, `return v.Constant`},
	{"semijoin.go", `append(args, *inner.reads...)...`, `args...`},
	{"internal/value/terms.go", `if ordered[op] && collation != "" {`, `if false {`},
	{"present.go", "s.column(tree.Words(c.GetColumnRef().Fields))\n\t\t\t}\n\t\t\tall", "_ = c\n\t\t\t}\n\t\t\tall"},
	{"internal/relation/relation.go", `refuse("rows of two units")`, ``},
	{"internal/relation/relation.go", "if len(left) > 0 {\n\t\ttotal = nil\n\t}", ``},
	{"internal/relation/pairs.go", `refuse("LEFT JOIN of rows that are not the left row's unit's own")`, ``},
	{"internal/relation/pairs.go", `if a.Name == b.Name {`, `if true {`},
	{"join.go", "on.parent = &scope{d: s.d, number: s.d.Number(), parent: on.parent, rel: l}\n\t\t\tboth.Units = r.Units", ``},
	{"internal/relation/pairs.go", `v.Nulls, v.Strict, v.Constant, v.Opaque = []int{v.ID}, false, false, false`, `v.Nulls, v.Constant, v.Opaque = []int{v.ID}, false, false`},
	{"join.go", `if op != "=" && op != "<=" {`, `if op != "=" && op != "<=" && op != ">=" {`},
	{"join.go", `s.matched(l) && s.matched(r)`, `s.matched(l)`},
	{"join.go", `kind == pgquery.JoinType_JOIN_LEFT && s.matched(r)`, `kind == pgquery.JoinType_JOIN_LEFT && (s.matched(l) || s.matched(r))`},
	{"join.go", `pgquery.JoinType_JOIN_FULL && s.matched(l) {`, `pgquery.JoinType_JOIN_FULL {`},
	{"join.go", `tree.Present(j.Quals)...`, `tree.Present(j.Quals)[:0]...`},
	{"join.go", "s.present = present\n", ""},
	{"internal/tree/tree.go", `c.GetIval().Ival != 0`, `false`},
	{"internal/tree/present.go", `if !ok || below != 1 {`, `if !ok || below < 1 {`},
	{"internal/tree/present.go", `|| c.Defresult != nil`, ``},
	{"internal/relation/rows.go", `refuse("DISTINCT over rows of several units")`, ``},
	{"grouping.go", `refuse("groups of public rows that PostgreSQL may compute anew for each row of people")`, ``},
	{"cost.go", `refuse("EXISTS or IN over groups of public rows, which PostgreSQL may compute anew for each row of people")`, ``},
	{"internal/relation/pairs.go", `refuse("groups of public rows that no equality joins to rows of people")`, ``},
	{"internal/relation/pairs.go", `(l.Once || r.Once) && len(both.Units) == 0`, `false`},
	{"internal/relation/rows.go", "\t\tOnce: r.Once}", "\t\tOnce: false}"},
	{"internal/relation/rows.go", `p.equal[id] = n.Int64()`, `p.equal[id] = 1`},
	{"internal/relation/rows.go", "n.IsInt64() {\n\t\tp.most = n.Int64()", "n.IsInt64() {\n\t\tp.most = 1"},
	{"internal/relation/rows.go", "\t\tothers = append(others, k.ID)\n", ""},
	{"grouping.go", `s.rel.AtMost(v.ID, 3)`, `s.rel.AtMost(v.ID, 2)`},
	{"grouping.go", `if v.Kind == value.Boolean {`, `if true {`},
	{"internal/relation/rows.go", `x.Name == y.Name {`, `true {`},
	{"internal/relation/rows.go", `anchored(v, a, b, owner) && (v.Strict || both.Solid[v.ID])`, `anchored(v, a, b, owner)`},
	{"grouping.go", `tuples && !s.rel.Rooted(g.order)`, `tuples`},
	{"internal/relation/rows.go", "if null {\n\t\tsize++\n\t} else {", "if !null {"},
	{"internal/relation/rows.go", `if !v.Strict && !r.Solid[v.ID] || v.Vague {`, `if v.Vague {`},
	{"grouping.go", `refuse("an output that is neither a key nor an aggregate")`, ``},
	{"grouping.go", `k.Whole, k.Vague = true, !v.Same`, `k.Whole = true`},
	{"internal/value/aggregate.go", `v.Vague, v.Collation = !v.Same, args`, `v.Collation = args`},
	{"grouping.go", `refuse("HAVING over what is no key")`, ``},
	{"grouping.go", `if s.group == nil || s.inside || s.group.having {`, `if s.group == nil || s.inside {`},
	{"grouping.go", "rows.Sum == nil || !rows.Sum.Count || len(rows.Sum.Where) > 0 || none == nil || none.Sign() != 0", `rows.Sum == nil || none == nil`},
	{"contribution.go", `!value.Subset(counter.Summed.Where, t.Where)`, `false`},
	{"contribution.go", `if then.ID != ratio && then.ID != d.Intern("to:"+value.KindName(value.Int8), ratio) {`, `if false {`},
	{"internal/value/arithmetic.go", `slices.Equal(a.Where, b.Where)`, `true`},
	{"internal/value/convert.go", `&& t.Digits == 0 {`, `{`},
	{"contribution.go", `t.Each.WithZero().Times(ranges.Point(limit))`, `t.Each.WithZero().Times(ranges.Point(ranges.Lesser(limit, ranges.One)))`},
	{"internal/value/tally.go", `if g.Release && !x.Within.Inside(ranges.Of(-1<<23, 1<<23)) {`, `if false {`},
	{"internal/value/tally.go", `refuse("a sum of a type that depends on the order of rows")`, ``},
	{"histogram.go", `if !slices.Contains(shares, then.ID) || !s.rel.Solid[run.Over] {`, `if len(shares) == 0 || !s.rel.Solid[run.Over] {`},
	{"semijoin.go", `refuse("IN over rows of people, row by row")`, ``},
	{"semijoin.go", `refuse("EXISTS over rows of people, row by row")`, ``},
	{"sorted.go", `refuse("a window whose rows are not those of one unit, in an order that is first that of scattered ids")`, `return list`},
	{"sorted.go", `exact || len(list) > 1 && list[1].ID == of`, `exact || len(list) > 0`},
	{"internal/value/function.go", `refuse("int8xor with another number")`, ``},
	{"sorted.go", `refuse("DISTINCT over many units, which PostgreSQL sorts for")`, ``},
	{"sorted.go", `refuse("DISTINCT in groups whose first key is no scattered id")`, ``},
	{"sorted.go", `refuse("a condition on different tuples of many units")`, ``},
	{"sorted.go", `refuse("another aggregate than the count of a column over different tuples of many units")`, ``},
	{"sorted.go", `!value.Subset(s.merged, append(slices.Clone(s.group.order), x.ID))`, `false`},
	{"window.go", `refuse("rows that tie in a window may differ in a column that is read")`, ``},
	{"window.go", `refuse("windows in several orders in which rows may tie")`, ``},
	{"window.go", `refuse("an offset of a frame that may be negative")`, ``},
	{"window.go", `x.sequential = o&frameRows != 0`, ``},
	{"internal/relation/limits.go", `if l.Place.Dense {`, `if false {`},
	{"join.go", `refuse("a plain table without ONLY, or a partitioned one with it")`, ``},
	{"internal/relation/pins.go", `refuse("a pin of another table of the name")`, ``},
	{"internal/relation/pins.go", `refuse("a pin of another column of the name")`, ``},
	{"internal/value/arithmetic.go", `refuse("operator %s may leave its integer type", op)`, ``},
	{"internal/value/arithmetic.go", `refuse("a divisor that may be 0")`, ``},
	{"internal/value/arithmetic.go", `refuse("operator %s on floats that may overflow", op)`, ``},
	{"internal/value/arithmetic.go", `refuse("operator %s on floats that may underflow", op)`, ``},
	{"internal/value/convert.go", `refuse("a cast to a narrower type that may not hold the value")`, ``},
	{"internal/value/arithmetic.go", `refuse("operator %s on numerics without bounds", op)`, ``},
	{"internal/value/convert.go", `refuse("a numeric that no float may be able to hold")`, ``},
	{"internal/value/convert.go", `refuse("a cast to numeric with digits that may not hold the value")`, ``},
	{"internal/value/rule.go", `if !v.is(takes[i]) {`, `if v == nil && !v.is(takes[i]) {`},
	{"internal/value/rule.go", `return n != nil && n.Num().CmpAbs(big.NewInt(1<<30)) <= 0`, `return n != nil`},
	{"internal/value/rule.go", `return v.read()`, `return true`},
	{"internal/value/function.go", `refuse("width_bucket with limits or a value for which it fails")`, ``},
	{"internal/value/function.go", `refuse("exp may overflow or underflow")`, ``},
	{"internal/value/function.go", `refuse("%s of what may not be positive", name)`, ``},
	{"internal/value/function.go", `refuse("div by what may be 0")`, ``},
	{"internal/value/function.go", `refuse("abs may leave its integer type")`, ``},
	{"internal/value/texts.go", `refuse("a pattern that ends in its escape character")`, ``},
	{"internal/value/texts.go", `refuse("a regular expression that PostgreSQL may not compile")`, ``},
	{"internal/value/texts.go", `refuse("%s of a text that may be long", name)`, ``},
	{"internal/value/texts.go", `refuse("a pattern of regexp_replace that PostgreSQL may not compile, or that is long")`, ``},
	{"internal/value/texts.go", `refuse("regexp_replace with groups that remember")`, ``},
	{"internal/value/texts.go", `refuse("regexp_replace with other flags")`, ``},
	{"internal/value/texts.go", `refuse("regexp_replace of or by NULL")`, ``},
	{"internal/value/texts.go", `matches = args[0].Chars + 1`, ``},
	{"internal/value/regex.go", `m[1] == "(" || m[4] != m[5]`, `m[1] == "("`},
	{"internal/value/texts.go", `refuse("substr of a negative length")`, ``},
	{"internal/calendar/calendar.go", `tree.Refuse("a time that may leave the calendar")`, ``},
	{"internal/calendar/calendar.go", `tree.Refuse("an interval that may not fit")`, ``},
	{"expression.go", `branch.narrow = append(slices.Clone(deeper.narrow), s.narrowing(w.Expr, true)...)`, `branch.narrow = append(slices.Clone(deeper.narrow), s.narrowing(w.Expr, false)...)`},
	{"grouping.go", `x.Vague || f.AggDistinct && (!x.Same || s.group.Release)`, `x.Vague`},
	{"internal/value/tally.go", `Where: where, Each: ranges.Between(ranges.Zero, ranges.One), Once`, `Where: where, Each: ranges.Between(ranges.Zero, ranges.One), Count: true, Once`},
	{"grouping.go", `s.rel.Within(d.Proof, []int{x.ID}, nil)`, `true`},
	{"grouping.go", ` && isColumn(f.Args[0])`, ``},
	{"grouping.go", `name == "count" && f.AggDistinct && s.group.Release`, `s.group.Release`},
	{"internal/value/function.go", `limit := large`, `limit := ranges.Between(new(big.Rat).Neg(ranges.Ten(2000)), ranges.Ten(2000))`},
	{"internal/relation/rows.go", `rows := r.Rows(d, []int{id}, false)`, `rows := big.NewInt(1)`},
	{"internal/value/constant.go", `return k, int(tree.Integer(t.Typmods[0])), 0`, `return k, 0, 0`},
	{"internal/value/arithmetic.go", `if (l.Kind.IsInteger() != r.Kind.IsInteger()) && k.IsNumber() ||`, `if`},
	{"internal/value/arithmetic.go", `y, away = nil, most != nil && most.Cmp(ranges.One) <= 0`, `away = true`},
	{"internal/calendar/calendar.go", `ranges.Of(28*Day, 31*Day)`, `ranges.Of(28*Day, 28*Day)`},
	{"internal/relation/scan.go", `v.Anchors = append(v.Anchors, value.Anchor{Name: columnName(t, column), Of: owner})`,
		`v.Anchors, v.Strict = append(v.Anchors, value.Anchor{Name: columnName(t, column), Of: owner}), true`},
	{"internal/value/convert.go", `refuse("a unit's id compared with what is no id of the same kind of units")`, ``},
	{"internal/value/terms.go", `v.Ident = ident`, `_ = ident`},
	{"internal/value/convert.go", `v.Opaque && !v.asked`, `v.Opaque`},
	{"internal/value/terms.go", `asked || a.asked`, `asked`},
	{"expression.go", `!b.Constant || len(b.Nulls) > 0`, `!b.Constant || b.Null`},
	{"internal/relation/relation.go", `return c.Name == ""`, `return false`},
	{"internal/release/release.go", `refuse("a total of pieces as a piece")`, ``},
	{"internal/value/convert.go", `refuse("a sum as text that may be written with digits after the point")`, ``},
	{"verify.go", `refuse("an argument that the text does not name")`, ``},
	{"internal/release/joint.go", `p.counter != first.counter || p.rows.Cmp(first.rows) != 0`, `p.rows.Cmp(first.rows) != 0`},
	{"internal/release/joint.go", `p.counter != first.counter || p.rows.Cmp(first.rows) != 0`, `p.counter != first.counter`},
	{"internal/release/joint.go", `square.Add(square, had)`, `square = had`},
	{"internal/release/joint.go", `if a == b && f.ID != g.ID {`, `if a == b {`},
	{"internal/release/joint.go", `row.Add(row, largest)`, ``},
	{"internal/release/joint.go", `return row.Mul(row, first.rows).Mul(row, first.rows)`, `return row`},
	{"internal/release/joint.go", `return f.ID // of the same constant as another member: both may be other than 0`, ``},
	{"internal/release/joint.go", `if _, other := d.ConstantOf(t.Args[2]); other != "0" {`, `if false {`},
	{"internal/release/joint.go", `if equal.Op != "=" ||`, `if`},
	{"internal/release/joint.go", `return strconv.Itoa(equal.Args[0]) + ":" + value.KindName(k), "=" + c`, `return value.KindName(k), "=" + c`},
	{"internal/release/joint.go", "case value.Text:", "case value.Text, value.Float8:"},
	{"internal/release/joint.go", `c = strconv.FormatInt(n, 10)`, `_ = n`},
	{"internal/release/joint.go", `seen[i] || all[i] == nil`, `all[i] == nil`},
	{"internal/release/joint.go", `p.rows.Mul(p.rows, c.Limit)`, ``},
	{"total.go", `n.Within.Lo.Sign() < 0 {`, `false {`},
	{"total.go", `if len(filter) > 0 || !n.Kind.IsInteger`, `if !n.Kind.IsInteger`},
	{"total.go", `&& s.untied(x):`, `:`},
	{"total.go", `p.Added == run.Added && p.Over == run.Over && p.Of`, `p.Over == run.Over && p.Of`},
	{"total.go", "p.Of == run.Of &&\n\t\t\tslices.Equal(p.Partition, run.Partition)", "p.Of == run.Of"},
	{"total.go", `if n.ID != run.Added || n.Kind != value.Int8 {`, `if n.Kind != value.Int8 {`},
	{"total.go", `if !slices.Contains(shares, then.ID) {`, `if false {`},
	{"internal/value/value.go", `&& len(v.Nulls) == 0`, ``},
	{"internal/value/share.go", `case !larger && end.Within.Lo.Sign() >= 0:
		if x.Within.Lo.Sign() >= 0 {`, `case !larger && end.Within.Lo.Sign() >= 0:
		if true {`},
	{"internal/value/share.go", `return h.or(x.above), nil`, `return h, nil`},
	{"internal/release/release.go", `!slices.Equal(x.Rows.Numbers(), t.Share.Of) ||`, ``},
	{"internal/release/release.go", `|| !x.Rows.Within(t.Share.Partition)`, ``},
	{"internal/ranges/ranges.go", `l2.Add(l2, rest.Mul(rest, rest))`, `l2.Add(l2, rest)`},
	{"internal/value/share.go", `c.Most = new(big.Rat).Mul(h.Most, new(big.Rat).Abs(by))`, ``},
	{"internal/relation/work.go", `o.holds(fixed)`, `false`},
	{"internal/relation/work.go", `!isAmong(p, c.parts)`, `false`},
	{"internal/relation/work.go", `limits: c.limits`, ``},
	{"internal/relation/work.go", `n == nil || !o.holds(p)`, `true`},
	{"internal/relation/work.go", `known[id].solid })`, `false })`},
	{"internal/relation/work.go", `known[id].solid })`, `true })`},
	{"internal/relation/work.go", `(best == nil || n.Cmp(best) < 0)`, `best == nil`},
	{"cost.go", `times(n, inner.meeting)`, `n`},
	{"internal/relation/work.go", `if joined {
		return r.tuples`, `if true {
		return r.tuples`},
	{"semijoin.go", `(left == nil ||`, `(true ||`},
	{"semijoin.go", ` || !hashed {`, ` {`},
	{"semijoin.go", `len(tests) == 1 || d.NeverNull(x) && d.NeverNull(c)`, `true`},
	{"semijoin.go", `d.NeverNull(x) && d.NeverNull(c)`, `d.NeverNull(x)`},
	{"semijoin.go", `d.NeverNull(x) && d.NeverNull(c)`, `d.NeverNull(c)`},
	{"semijoin.go", `!inner.besides && `, ``},
	{"semijoin.go", `q.LimitOffset == nil && `, ``},
	{"semijoin.go", `q.TargetList[0].GetResTarget().GetVal().GetAConst() != nil`, `true`},
	{"cost.go", `times(s.rel.Work(s.d.Proof), s.meeting)`, `s.rel.Work(s.d.Proof)`},
	{"cost.go", "	if n == nil {\n\t\ts.d.work = nil", "	if n == nil {"},
	{"cost.go", `name == "min" || `, ``},
	{"cost.go", `n = new(big.Int).Neg(n)`, ``},
	{"cost.go", `relation.Larger(rows, big.NewInt(1))`, `rows`},
	{"cost.go", `&& o&untilUnbounded == 0`, ``},
	{"cost.go", `rows.Cmp(most) < 0`, `true`},
	{"cost.go", `rows.Add(rows, n)`, ``},
	{"join.go", `inner.parent, inner.meeting = &scope{d: s.d, number: s.d.Number(), rel: left}, s.meeting`, `inner.parent = &scope{d: s.d, number: s.d.Number(), rel: left}`},
	{"internal/relation/rows.go", `of.Add(of, more)`, `more.Add(of, more)`},
	{"internal/relation/pairs.go", `both.outer = append(both.outer, x.outer...)`, ``},
	{"internal/relation/ranks.go", `if unit == nil || !solid[unit.ID] {`, `if unit == nil {`},
	{"internal/relation/ranks.go", `rank != nil && solid[rank.ID] && rank.Checked`, `rank != nil && rank.Checked`},
	{"internal/relation/ranks.go", `rank.Within.Lo.Cmp(ranges.One) >= 0`, `rank.Within.Lo.Cmp(ranges.One) >= -1`},
	{"internal/relation/ranks.go", `slices.ContainsFunc(pin.Keys, func(k []string) bool { return slices.Equal(k, key) })`, `true`},
	{"internal/relation/ranks.go", `len(keys) < len(set.Keys)`, `len(keys) < 1`},
	{"internal/relation/ranks.go", `|| !solid[group.ID] || !solid[row.ID] {`, `{`},
	{"internal/relation/ranks.go", `Partition: append([]int{unit.ID}, keys...)`, `Partition: keys`},
	{"prepared.go", `|| !group.Dense || row.Dense`, ``},
	{"prepared.go", `!slices.Equal(group.Partition, keys[:1])`, `false`},
	{"prepared.go", `!value.Subset(keys[1:], group.Order)`, `false`},
	{"prepared.go", `!d.Follow(group.Order, keys)`, `false`},
	{"prepared.go", `!value.Subset(keys, row.Partition)`, `false`},
	{"prepared.go", `!d.Follow(row.Partition, keys)`, `false`},
	{"prepared.go", `refuse("ranks of rows that the copy does not keep")`, ``},
	{"prepared.go", `return n >= 0 && n <= most`, `return n >= 0`},
	{"prepared.go", `t.Checked(b.Numbered, b.Added, b.Units)`, ``},
	{"internal/copying/copying.go", `|| all != named(numbered)`, ``},
	{"internal/copying/copying.go", `|| ofAdded != named(added)`, ``},
	{"internal/relation/limits.go", `rows: value.Product(k.places, l.rows)})
				}
			}
		}
		for`, `rows: k.places + l.rows})
				}
			}
		}
		for`},
	{"internal/relation/limits.go", `rows: value.Product(k.places, l.rows)})
			}
		}
	}
}`, `rows: k.places + l.rows})
			}
		}
	}
}`},
	{"internal/relation/limits.go", `value.Subset(l.by, of) && !value.Subset(l.by, k.by) && !l.sql {
				r.whole`, `!value.Subset(l.by, k.by) && !l.sql {
				r.whole`},
	{"expression.go", `if x.Octets == 0 || s.d.Shorter`, `if s.d.Shorter`},
	{"expression.go", `Expr).ID, x.ID) < x.Octets {`, `Expr).ID, x.ID) < 0 {`},
	{"internal/relation/rows.go", `p != nil && slices.Equal(p.Of, of.Numbers())`, `p != nil && !p.Dense`},
	{"prepared.go", "||\n\t\tin.Most > b.Copy.Copy.MaxRows", ``},
	{"prepared.go", `in.Outputs[0] != in.Rank ||`, ``},
	{"prepared.go", `|| !rel.Solid[v.ID]`, ``},
	{"prepared.go", `if !named {`, `if !named && false {`},
	{"prepared.go", `v.Opaque && (!secret || v.Constant)`, `secret && false`},
	{"prepared.go", `(!secret || v.Constant)`, `!secret`},
	{"prepared.go", `times == nil && b.Merge != "" ||`, ``},
	{"prepared.go", `times != nil && b.Merge != t.Merge(b.Insert, in)`, `false`},
	{"prepared.go", `i >= own && v.Kind != value.KindOf`, `i < 0 && v.Kind != value.KindOf`},
	{"prepared.go", `[]any{int64(0)}`, `[]any{"0"}`},
	{"prepared.go", "||\n\t\t\tlen(v.Anchors) > 0", ``},
	{"prepared.go", `owns(rel, in.ID)`, `_ = in.ID`},
	{"prepared.go", `owns(rel, rel.Columns[0].Name)`, `_ = rel`},
	{"block.go", `s.parent == nil && t.Val.GetColumnRef() != nil`, `s.parent == nil`},
	{"block.go", `of.numbers = s.parent == nil &&`, `of.numbers =`},
	{"internal/relation/rows.go", `b.Vague, a.Numeral`, `b.Vague, false`},
	{"internal/relation/rows.go", ` || a.Numeral != b.Numeral`, ``},
	{"internal/relation/scan.go", `t.Copy != nil && c.Name == t.Unit.Column`, `false`},
	{"internal/copying/copying.go", `units.Relname != t.Units ||`, ``},
	{"internal/copying/copying.go", `tree.Reads(units, "Schemaname", "Relname", "Relpersistence", "Alias")`, ``},
	{"internal/tree/tree.go", `!slices.Contains(fields, f.Name)`, `false`},
	{"internal/copying/copying.go", `j == nil || j.Jointype != pgquery.JoinType_JOIN_INNER {`, `j == nil {`},
	{"internal/copying/copying.go", `column(on.Lexpr, u) != unitsID`, `false`},
	{"internal/copying/copying.go", `case column(o.Val, u) != unitsNumber:`, `case false:`},
	{"internal/relation/relation.go", `l.holds(d, whole)`, `l.holds(d, known)`},
	{"internal/value/terms.go", `refuse("%s of a value that stands for several that are equal but not identical", op)`, ``},
	{"internal/value/table.go", `refuse("function %s on these types", name)`, `v = args[0]`},
	{"memo/memo.go", `return c.Within(w)`, `return nil`},
	{"memo/memo.go", `b = b.texts(p.Schema, p.Table)`, ``},
	{"memo/memo.go", "w, err := prove()\n\tif err != nil {", "w, err := prove()\n\tif false && err != nil {"},
	{"internal/public/public.go", `if !known || !t.Public {`, `if !known && !t.Public {`},
	{"internal/public/public.go", ` || strings.HasPrefix(v.Relname, "pg_")`, ``},
	{"internal/public/public.go", `!publicFunctions[name]`, `false`},
	{"internal/public/public.go", `&& !publicNodes[name]`, `&& false`},
	{"internal/public/public.go", `each(v.Elem(), visit)`, ``},
	{"internal/tree/calls.go", `return any(e.CoalesceExpr.Args...)`, `return false`},
	{"internal/tree/calls.go", `slices.Contains(b, other+"("+rest)`, `slices.Contains(b, other+"("+rest) || len(b) > 0`},
	{"internal/tree/short.go", `equal = equal && got.Equal(want)`, ``},
	{"internal/tree/short.go", `!slices.Equal(Words(of.Fields), Words(column.Fields))`, `len(Words(of.Fields)) != len(Words(column.Fields))`},
	{"internal/tree/refusal.go", `panic(&Refusal{fmt.Sprintf(format, args...)})`, ``},
	{"internal/value/node.go", `return storedBytes`, `return unknownBytes`},
	{"internal/value/price.go", `times = depthOf(b.text, folded)`, `times = 0`},
	{"internal/value/price.go", `states = statesOf(o[1].text)`, `states = 1`},
	{"internal/value/times.go", `calendar.Check(v.Within.Times(ranges.Point(big.NewRat(calendar.Day, 1))))`, ``},
	{"internal/value/times.go", `refuse("to_char of a time that may have a year of other than four digits")`, ``},
	{"internal/value/times.go", `refuse("date_bin into bins of months, or of no length")`, ``},
}

// survivors are mutants that other rules, or PostgreSQL, make up for.
var survivors = map[string]string{
	`&& s.untied(x):`:                               "settle leaves rows that tie only where they are identical, and then the shares add up in every order of them",
	`if unit == nil || !solid[unit.ID] {`:           "rows whose unit may be NULL are not released",
	`Partition: append([]int{unit.ID}, keys...)`:    "what one unit has is counted where the unit is known",
	`of.numbers = s.parent == nil &&`:               "IN over rows of people is refused in an expression, and EXISTS gives none of its outputs",
	` && isColumn(f.Args[0])`:                       "over many units DISTINCT is refused of all but the numbers of a copy, scattered or not",
	`refuse("DISTINCT over rows of several units")`: "each use of such rows needs a column that names their unit, which they do not have",
}

var runMutants = flag.Bool("mutants", false, "run the tests on each mutant of a rule, not on one in 192")

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
	const tests = "TestCorpus|TestUnsafe|AreNotReadWhole|TestPins|TestAnyIsNobodysID|7c2e952"
	if dead, out, err := program.Kills(t.Context(), 0, tests); dead || err != nil {
		t.Fatalf("without a mutant: %v\n%s", err, out)
	}
	var ofMemo *mutate.Program // whose tests are of a package that imports this one
	if *runMutants {
		if ofMemo, err = mutants.Compile(t.Context(), "memo", t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range ruleMutants {
		if !*runMutants && i%192 != 0 {
			continue
		}
		program, tests := program, tests
		if strings.HasPrefix(m.file, "memo/") {
			program, tests = ofMemo, "."
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
