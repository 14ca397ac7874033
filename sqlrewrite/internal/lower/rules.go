package lower

import "slices"

// Rule is one change of a query's form. testdata/rules lists the golden questions in whose statements it fires, and a mutant of each makes
// a test fail (ruleMutants in rules_test.go). l, r and v are tables of people with their unit's id, s is a public table.
type Rule string

// Rules of [LiftSemiJoin].
const (
	// Before: l WHERE EXISTS (r WHERE r.id = l.id AND r.paid > 3)
	// After: l JOIN (SELECT DISTINCT r.id AS c0 FROM r WHERE r.paid > 3) e1 ON e1.c0 = l.id
	// Why: PostgreSQL looks for rows of r once a row of l, or makes a hash table for the first row that asks; as a join both are read once.
	// DISTINCT leaves one row at most that is equal, so a row of l stays one.
	JoinByEqualities Rule = "JoinByEqualities"
	// Before: l WHERE l.age = 111 AND EXISTS (s WHERE s.kind = 5)
	// After: (SELECT max(1) AS c0 FROM s WHERE s.kind = 5) e1 CROSS JOIN l WHERE l.age = 111 AND e1.c0 IS NOT NULL
	// Why: nothing ties s to l, so one value serves all rows; PostgreSQL would read s only if a row of l reaches the condition.
	JoinOneValue Rule = "JoinOneValue"
	// Before: l WHERE EXISTS (r WHERE r.id = l.id AND r.paid > l.age)
	// After: l JOIN (SELECT DISTINCT l.id AS c0, l.age AS c1 FROM l JOIN r ON r.id = l.id AND r.paid > l.age) e1
	//   ON e1.c0 = l.id AND e1.c1 = l.age
	// Why: as JoinByEqualities, where other conditions tie r to l: whether there is a row is a function of the fields of l that they read.
	JoinByFields Rule = "JoinByFields"
	// Before: l.place NOT IN (SELECT r.place FROM r)
	// After: NOT CASE WHEN EXISTS (an equal row) THEN true WHEN EXISTS (a row with NULL) OR l.place IS NULL AND EXISTS (a row) THEN NULL
	//   ELSE false END
	// Why: no join gives NULL where IN does, so IN of what may be NULL is said by EXISTS, which other rules join.
	SpellIn Rule = "SpellIn"
	// Before: l LEFT JOIN r ON r.id = l.id AND EXISTS (v WHERE v.id = l.id AND v.paid > r.paid + l.age)
	// After: l LEFT JOIN (r JOIN (SELECT DISTINCT l.id, l.age, r.paid FROM l JOIN r ON r.id = l.id JOIN v ON ...) e1 ON e1.c2 = r.paid)
	//   ON r.id = l.id AND e1.c0 = l.id AND e1.c1 = l.age
	// Why: neither side alone has all that the condition reads, and WHERE comes too late for an outer join.
	TestAhead Rule = "TestAhead"
)

// Rules of [ReadBothSides].
const (
	// Before: l JOIN r ON r.id = l.id WHERE l.age = 111
	// After: l LEFT JOIN r ON r.id = l.id AND l.age = 111 WHERE num_nulls(r.id) <> 1
	// Why: PostgreSQL reads no r where a condition leaves no l, and of two sorted sides one no further than the other goes. l has no
	// condition, so that no unit leaves it empty. num_nulls is not strict: PostgreSQL does not see that the join is an inner one.
	LeftForInner Rule = "LeftForInner"
	// Before: (SELECT * FROM l WHERE l.age = 111) l JOIN r ON r.id = l.id
	// After: (the same) l FULL JOIN r ON r.id = l.id WHERE num_nulls(l.id, r.id) < 1
	// Why: as LeftForInner, where a condition within l may leave no row of it.
	FullForInner Rule = "FullForInner"
	// Before: (SELECT * FROM l WHERE l.age = 111) l LEFT JOIN r ON r.id = l.id
	// After: (the same) l FULL JOIN r ON r.id = l.id WHERE num_nulls(l.id) <> 1
	// Why: PostgreSQL reads no r where there is no l.
	FullForLeft Rule = "FullForLeft"
	// Before: s JOIN l ON l.age = s.kind
	// After: l LEFT JOIN s ON l.age = s.kind WHERE num_nulls(s.kind) <> 1
	// Why: the side whose rows LeftForInner keeps must have rows whatever one unit has, and rows of people are kept before public ones.
	SwapSides Rule = "SwapSides"
	// Before: l CROSS JOIN (SELECT max(s.kind) AS m FROM s) q WHERE l.age < q.m
	// After: q LEFT JOIN l ON l.id IS NOT NULL AND l.age < q.m WHERE num_nulls(l.id) <> 1
	// Why: q has one row whatever the tables hold, so both sides are read.
	ValueFirst Rule = "ValueFirst"
	// Before: l LEFT JOIN r ON r.id = l.id WHERE num_nulls(r.id) <> 1 AND l.age = r.paid
	// After: the same WHERE CASE WHEN num_nulls(r.id) < 2 THEN num_nulls(r.id) <> 1 AND l.age = r.paid END
	// Why: PostgreSQL tests a condition as early as it may, below joins; of what is inside of CASE it sees that all sides are read.
	FenceLate Rule = "FenceLate"
)

// Rules that package sqlprint applies while it prints; docs/decisions/0077-rules-of-lower.md says why there.
const (
	// Before: l JOIN r ON r.id = l.id, with max_rows 4
	// After: l JOIN (SELECT v.c0 FROM (SELECT r.id AS c0, row_number() OVER (PARTITION BY r.id ORDER BY a seeded hash) AS place FROM r) v
	//   WHERE v.place <= 4) w1 ON w1.c0 = l.id
	// Why: one unit's rows meet at most so many others, whatever it has.
	CapRows Rule = "CapRows"
	// Before: SELECT sum(u.a0) FROM (what each unit adds) u
	// After: WITH u AS (the same) SELECT sum(h.v0) FROM (SELECT sum(u.a0) AS v0 FROM u WHERE a range of ids UNION ALL ...) h
	// Why: PostgreSQL adds up the parts in several processes, and what one unit has is in one of them.
	ByPartition Rule = "ByPartition"
	// Before: SELECT x + x FROM (SELECT y / 3 AS x FROM l) q
	// After: SELECT x + x FROM (SELECT y / 3 AS x FROM l OFFSET 0) q, where computing x wherever it is named would cost too much
	// Why: PostgreSQL writes columns of plain queries wherever they are named; nested, that doubles the work of a row at each level.
	FenceRepeated Rule = "FenceRepeated"
	// Before: SELECT q.n FROM (SELECT l.age AS n FROM l LEFT JOIN r ON r.id = l.id WHERE num_nulls(r.id) <> 1) q WHERE q.n = 111
	// After: SELECT q.n FROM (the same OFFSET 0) q WHERE q.n = 111
	// Why: PostgreSQL would make one query of both, and test the condition below the join, or of groups of public rows below these.
	FenceJoins Rule = "FenceJoins"
	// Before: l LEFT JOIN r ON r.id = l.id
	// After: l LEFT JOIN r ON coalesce(r.id, r.id) = coalesce(l.id, l.id)
	// Why: PostgreSQL would hash the side whose most frequent value is rarer, which one unit's rows decide.
	HideEqualities Rule = "HideEqualities"
)

// Rules gives all of them, in the order above.
func Rules() []Rule {
	return []Rule{JoinByEqualities, JoinOneValue, JoinByFields, SpellIn, TestAhead, LeftForInner, FullForInner, FullForLeft, SwapSides,
		ValueFirst, FenceLate, CapRows, ByPartition, FenceRepeated, FenceJoins, HideEqualities}
}

// Fire records that a rule has changed the statement.
func (s *SemiJoins) Fire(r Rule) { s.fired[r] = true }

// Fired gives the rules that have changed the statement, in the order of [Rules].
func (s *SemiJoins) Fired() []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return !s.fired[r] })
}
