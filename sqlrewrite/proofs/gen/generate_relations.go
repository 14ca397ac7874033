package gen

import (
	"fmt"
	"regexp"
	"strings"
)

// columnsOfFamily are the columns that every owned table of the family has.
const columnsOfFamily = "k_text, k_num, k_bool, level, secret, brand, note, code, mark, n2, n4, n8, nn, money, free, f4, f8, coarse, " +
	"odd, day, at, atz, until"

// relationOrigins are FROM clauses over more than one table: joins, paths, queries in FROM, statistics of single people.
func relationOrigins() []func(*Writer) Origin {
	joined := func(name, from, alias, unit string, more names) func(*Writer) Origin {
		return func(*Writer) Origin {
			o := originOf("from/"+name, from, alias, unit)
			o.place.names.keys = append(o.place.names.keys, more.keys...)
			o.place.names.numbers = append(o.place.names.numbers, more.numbers...)
			o.place.names.ids = append(o.place.names.ids, more.ids...)
			return o
		}
	}
	zone, tag := names{keys: []string{"z.zone", "z.zone"}}, names{keys: []string{"t.tag", "t.tag"}}
	subquery := func(table, unit string) string {
		return "(SELECT " + unit + ", " + columnsOfFamily + " FROM " + table + ")"
	}
	statistics := names{numbers: []string{"g.c", "g.s", "g.a", "g.m"}}
	const perUnit = "(SELECT unit, count(*) AS c, sum(n4) AS s, sum(f8) AS a, max(money) AS m, bool_or(k_bool) AS b FROM events WHERE n4 IS " +
		"NOT NULL GROUP BY unit HAVING count(*) > 1)"
	// differs is a FROM clause whose answers differ from PostgreSQL's: rows that nobody owns are left out, and a person who is one row counts
	// as one however many rows a join makes of them, and means are off the grid. Where answers are compared another one takes its place.
	differs := func(outer, inner func(*Writer) Origin) func(*Writer) Origin {
		return func(w *Writer) Origin {
			if w.exact {
				return inner(w)
			}
			return outer(w)
		}
	}
	// Window functions that depend on the order of rows that tie: many do by k_bool, none by event.
	ordered := func(order string) func(*Writer) Origin {
		return joined("ordered windows", "(SELECT unit, "+columnsOfFamily+
			", lag(n4, 1, 2) OVER w AS c, n4 - first_value(n4) OVER w AS s, row_number() OVER w AS m,"+
			" sum(n2) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a FROM events WINDOW w AS (PARTITION BY unit ORDER BY "+order+")) g", "g",
			"unit", statistics)
	}
	framed := func(order string) func(*Writer) Origin {
		return joined("framed windows",
			"(SELECT *, ntile(2) OVER w AS c, lead(f8, 2) OVER w AS s, nth_value(money, 2) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 "+
				"FOLLOWING) AS a,"+
				" sum(nn) OVER (PARTITION BY unit ORDER BY n4 RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS m FROM events WINDOW w AS (PARTITION BY "+
				"unit, secret ORDER BY "+order+")) g", "g", "unit", statistics)
	}
	// unbounded has public columns whose bounds a list gives.
	unbounded := func(name, from, alias, unit string, more names) func(*Writer) Origin {
		return func(w *Writer) Origin {
			if !w.Lists {
				return joined(name, from, alias, unit, names{})(w)
			}
			return joined(name, from, alias, unit, more)(w)
		}
	}
	below := func(product string) func(*Writer) Origin {
		return unbounded("public columns without bounds below", "(SELECT e.unit, e."+strings.ReplaceAll(columnsOfFamily, ", ", ", e.")+
			", e.money * (1 - z.cost) - z.weight * e.nn AS c, "+product+" AS s, z.weight AS a, e.n4 / z.weight AS m FROM events e JOIN zones z "+
			"ON z.k_num = e.k_num WHERE z.zone <> 'far') g", "g", "unit", names{numbers: []string{"g.c", "g.a", "g.m"}})
	}
	groups := func(aggregate string) func(*Writer) Origin {
		return joined("groups of public rows", "events e JOIN (SELECT k_num, count(*) AS c, sum(CASE WHEN tag = 'red' THEN 2 ELSE -1 END) AS s, "+
			"count(DISTINCT tag) FILTER (WHERE tag <> 'red') AS a, "+aggregate+"(CASE WHEN tag < 'm' THEN 1.5 ELSE k_num % 3 END) AS m FROM tags "+
			"GROUP BY k_num) g ON g.k_num = e.k_num", "e", "unit", statistics)
	}
	return []func(*Writer) Origin{
		joined("join public", "events e JOIN zones z ON z.k_num = e.k_num", "e", "unit", zone),
		joined("join public row unit", "people p JOIN zones z USING (k_num)", "p", "id", zone),
		joined("join public fan-out", "events e JOIN tags t ON t.k_num = e.k_num", "e", "unit", tag),
		differs(joined("join public fan-out row unit", "people p JOIN tags t ON t.k_num = p.k_num", "p", "id", tag),
			joined("join public fan-out row unit", "people p JOIN (SELECT k_num, zone AS tag FROM zones) t ON t.k_num = p.k_num", "p", "id", tag)),
		joined("left join public", "orders o LEFT JOIN tags t ON t.k_num = o.k_num AND t.tag <> 'red'", "o", "buyer", tag),
		joined("left join public row unit", "people p LEFT JOIN zones z ON z.k_num = p.nn", "p", "id", zone),
		differs(joined("public left join", "zones z LEFT JOIN events e ON e.k_num = z.k_num", "e", "unit", zone),
			joined("public left join", "zones z JOIN events e ON e.k_num = z.k_num", "e", "unit", zone)),
		differs(joined("full join public", "tags t FULL JOIN orders o ON o.k_num = t.k_num", "o", "buyer", tag),
			joined("full join public", "tags t RIGHT JOIN orders o ON o.k_num = t.k_num", "o", "buyer", tag)),
		joined("cross join public", "events e, zones z", "e", "unit", zone),
		joined("join chain", "events e JOIN zones z ON z.k_num = e.k_num JOIN tags t ON t.k_num = z.k_num", "e", "unit", tag),
		joined("join parent", "people p JOIN events e ON e.unit = p.id", "e", "unit",
			names{numbers: []string{"p.n4"}, keys: []string{"p.k_text"}}),
		joined("left join child", "people p LEFT JOIN events e ON p.id = e.unit AND e.n4 > 3", "p", "id",
			names{numbers: []string{"e.n4"}, keys: []string{"e.k_text"}, ids: []string{"e.unit", "e.unit"}}),
		joined("natural join", "people p NATURAL JOIN zones z", "p", "id", zone),
		joined("value of public in on", "people p LEFT JOIN events e ON p.id = e.unit AND e.n4 > (SELECT avg(weight) FROM zones)", "p", "id",
			names{numbers: []string{"e.n4"}, ids: []string{"e.unit"}}),
		joined("lateral", "events e CROSS JOIN (SELECT 3 AS three) c JOIN LATERAL (SELECT e.event AS same, e.n4 + c.three AS up, e.n2 > "+
			"c.three AS high) l ON l.same = e.event", "e", "unit",
			names{numbers: []string{"l.up", "l.up"}, keys: []string{"l.high", "l.high"}}),
		joined("left join of few", "(SELECT * FROM people WHERE k_bool) p LEFT JOIN events e ON p.id = e.unit AND e.n4 > 3", "p", "id",
			names{numbers: []string{"e.n4"}, keys: []string{"e.k_text"}, ids: []string{"e.unit"}}),
		joined("left join of few public", "(SELECT * FROM events WHERE k_bool) e LEFT JOIN zones z ON z.k_num = e.k_num", "e", "unit", zone),
		joined("join of few public", "(SELECT * FROM events WHERE k_bool) e JOIN (SELECT * FROM zones WHERE weight > 0) z ON z.k_num = e.k_num",
			"e", "unit", zone),
		joined("left join of joined", "people p LEFT JOIN (people q JOIN events e ON e.unit = q.id) ON p.id = e.unit AND e.n4 = p.n4", "p", "id",
			names{numbers: []string{"e.n4"}, keys: []string{"q.k_text"}, ids: []string{"q.id", "e.unit"}}),
		joined("join of joined", "people p JOIN (people q JOIN orders o ON o.buyer = q.id) ON p.id = q.id AND q.n4 = p.n4 AND o.n4 = p.n4", "o",
			"buyer", names{numbers: []string{"q.n4"}, keys: []string{"p.k_text"}}),
		joined("left join on exists",
			"people p LEFT JOIN events e ON p.id = e.unit AND EXISTS (SELECT 1 FROM orders oo WHERE oo.buyer = p.id AND oo.n4 > p.n4)", "p", "id",
			names{numbers: []string{"e.n4"}}),
		joined("joined query", "people p JOIN (SELECT q.id, q.n4 AS n, e.n2 AS m FROM people q JOIN cards e ON e.unit = q.id) g ON g.id = p.id "+
			"AND g.n = p.n4", "p", "id", names{numbers: []string{"g.n", "g.m"}}),
		joined("self-join", "events a JOIN events b ON a.unit = b.unit", "a", "unit",
			names{numbers: []string{"b.n4", "b.f8"}, keys: []string{"b.k_num"}}),
		joined("joined through a third", "people q JOIN events e ON q.k_num = e.k_num JOIN people p ON p.id = q.id AND p.id = e.unit", "e",
			"unit", names{numbers: []string{"q.n8", "p.n4"}, keys: []string{"p.k_text"}}),
		joined("joined in each branch", "people p JOIN events e ON p.id = e.unit AND e.n4 > 3 OR e.unit = p.id AND p.k_bool", "e", "unit",
			names{numbers: []string{"p.n4"}, keys: []string{"p.k_text"}}),
		joined("self-join on key", "events a JOIN events b USING (event)", "b", "unit", names{numbers: []string{"a.n8"}}),
		unbounded("public columns without bounds", "events e LEFT JOIN zones z ON z.k_num = e.k_num AND z.weight > 0", "e", "unit",
			names{numbers: []string{"z.weight", "z.cost"}}),
		differs(below("z.rate * e.f8"), below("z.rate")),
		differs(groups("avg"), groups("max")),
		joined("groups of public rows by two keys", "orders o LEFT JOIN (SELECT k_num AS kk, tag, count(*) AS c FROM tags GROUP BY 1, 2 "+
			"HAVING count(*) > 0) t ON t.kk = o.k_num AND t.tag <> 'red'", "o", "buyer", names{numbers: []string{"t.c"}, keys: tag.keys}),
		joined("groups of joined public rows", "events e JOIN zones z ON z.k_num = e.k_num JOIN (SELECT y.zone, count(*) AS c, "+
			"max(y.weight % 4) AS m, min(y.opened) AS day FROM zones y LEFT JOIN tags x ON x.k_num = y.k_num "+
			"GROUP BY y.zone) g ON g.zone = z.zone", "e", "unit",
			names{numbers: []string{"g.c", "g.m"}, keys: []string{"g.c", "z.zone"}}),
		joined("path", "items", "", "k_num", names{}),
		joined("path joined", "items i JOIN orders o ON o.order_id = i.order_id", "i", "o.buyer",
			names{numbers: []string{"o.n8"}, keys: []string{"o.k_num"}}),
		joined("path from parent", "orders o LEFT JOIN items i ON i.order_id = o.order_id", "o", "buyer",
			names{numbers: []string{"i.n8"}, keys: []string{"i.k_num"}}),
		joined("path siblings", "items i JOIN items j ON j.order_id = i.order_id", "i", "k_num",
			names{numbers: []string{"j.n4"}, keys: []string{"j.k_text"}}),
		joined("subquery", subquery("events", "unit")+" AS s", "s", "unit", names{}),
		joined("subquery with filter", "(SELECT *, n4 + 1 AS more FROM events WHERE n4 > 0 OR k_bool) s", "s", "unit",
			names{numbers: []string{"s.more"}}),
		keyOfQuery,
		joined("distinct per unit", "(SELECT DISTINCT unit, "+columnsOfFamily+" FROM events) s", "s", "unit", names{}),
		joined("first rows of a unit", "(SELECT DISTINCT ON (unit, k_num) unit, "+columnsOfFamily+
			" FROM events ORDER BY k_num, unit, at, event) s",
			"s", "unit", names{}),
		joined("windows per unit", "(SELECT unit, "+columnsOfFamily+
			", rank() OVER (PARTITION BY unit ORDER BY n4 DESC, day) AS c, row_number() OVER (PARTITION BY unit ORDER BY at, event) AS s,"+
			" sum(n4) OVER (PARTITION BY unit, k_num ORDER BY note) AS a, count(*) FILTER (WHERE n2 > 1) OVER (PARTITION BY unit) AS m FROM "+
			"events) g", "g", "unit", statistics),
		joined("windows per unit", "(SELECT *, max(money) OVER (PARTITION BY unit) AS m, dense_rank() OVER (PARTITION BY unit ORDER BY f8) AS "+
			"c, min(day) OVER (PARTITION BY k_bool, unit) AS d FROM"+
			" (SELECT *, avg(n2) OVER (PARTITION BY unit ORDER BY n4) AS s FROM events) t WHERE n4 IS NOT NULL) g", "g", "unit",
			names{numbers: []string{"g.c", "g.m"}}),
		differs(ordered("k_bool"), ordered("at, event")),
		differs(framed("k_bool"), framed("at, event")),
		joined("union all", "("+strings.Trim(subquery("events", "unit"), "()")+" UNION ALL "+strings.Trim(subquery("orders", "buyer"), "()")+
			") s", "s", "unit", names{}),
		differs(joined("statistics beside rows", "events e JOIN "+strings.Replace(perUnit, "sum(f8)", "avg(f8)", 1)+" g ON g.unit = e.unit", "e",
			"unit", statistics),
			joined("statistics beside rows", "events e JOIN "+perUnit+" g ON g.unit = e.unit", "e", "unit", statistics)),
		joined("statistics beside people", "people p LEFT JOIN "+perUnit+" g ON g.unit = p.id", "p", "id",
			names{numbers: statistics.numbers, ids: []string{"g.unit"}}),
		joined("statistics", "(SELECT g.*, p.* FROM people p JOIN "+perUnit+" g ON g.unit = p.id) s", "s", "id",
			names{numbers: []string{"s.c", "s.s"}}),
		joined("statistics by key", "events e JOIN (SELECT unit, k_num AS k, count(*) AS c, min(n2) AS s FROM events GROUP BY unit, k_num) g "+
			"ON g.unit = e.unit", "e", "unit",
			names{numbers: []string{"g.c", "g.s"}, keys: []string{"g.k"}}),
		about("g.kk", joined("one row per unit and key",
			"people p JOIN (SELECT unit, k_num AS kk, count(*) AS c, sum(n4) AS s FROM events WHERE k_num IS NOT NULL GROUP BY unit, k_num) g ON "+
				"g.unit = p.id", "p", "id",
			names{numbers: []string{"g.c", "g.s"}, keys: []string{"g.kk"}})),
		joined("one row per computed key",
			"(SELECT order_id, n2 % 2 AS k, date_trunc('month', day)::date AS d, count(*) AS c, sum(n2) AS s FROM items GROUP BY 1, n2 % 2, 3 "+
				"HAVING n2 % 2 < 2) g JOIN orders o ON o.order_id = g.order_id", "o", "buyer",
			names{numbers: []string{"g.c", "g.s", "g.k"}}),
		joined("windows by a key of one's own", "(SELECT order_id, max(n2) OVER (PARTITION BY order_id) AS c, rank() OVER (PARTITION BY "+
			"n2 % 2, order_id ORDER BY n2) AS s FROM items) g JOIN orders o ON o.order_id = g.order_id", "o", "buyer",
			names{numbers: []string{"g.c", "g.s"}}),
		joined("one row per key of one's own",
			"orders o LEFT JOIN (SELECT order_id, count(*) AS c, sum(n4) AS s, max(money) AS m, min(k_num) AS k FROM items GROUP BY order_id) g "+
				"ON g.order_id = o.order_id", "o", "buyer", names{numbers: []string{"g.c", "g.s", "g.m"}}),
		joined("distinct keys of one's own",
			"orders o JOIN (SELECT DISTINCT order_id, n2 AS c FROM items WHERE n2 IS NOT NULL) g ON g.order_id = o.order_id", "o", "buyer",
			names{numbers: []string{"g.c"}}),
		joined("one row per unique key",
			"events e JOIN (SELECT event, k_num AS k, count(*) AS c, sum(n2) AS s FROM events GROUP BY k_num, event "+
				"HAVING count(*) > 0) g ON g.event = e.event", "e", "unit", names{numbers: []string{"g.c", "g.s"}, keys: []string{"g.k"}}),
		joined("one row per key of a joined row",
			"items x JOIN (SELECT o.order_id, count(i.item) AS c, sum(i.n2) AS a FROM orders o LEFT JOIN items i ON i.order_id = o.order_id "+
				"GROUP BY o.order_id) g ON g.order_id = x.order_id", "x", "k_num", names{numbers: []string{"g.c", "g.a"}}),
		func(*Writer) Origin {
			o := originOf("from/with twice", "ours a JOIN ours b ON a.unit = b.unit", "b", "unit")
			o.with = "WITH ours AS (SELECT * FROM events WHERE n2 IS NOT NULL) "
			return o
		},
	}
}

// keyOfQuery has a computed column, two queries deep, as a key.
func keyOfQuery(w *Writer) Origin {
	inner := originOf("", "", "x", "unit").place
	key := w.choose(computedKeys(), inner)
	for undeclared(key) { // some queries around cannot take private keys
		key = w.choose(computedKeys(), inner)
	}
	from := "(SELECT *, " + key + " AS computed FROM events x"
	if w.Rand.IntN(2) == 0 {
		from += " WHERE " + w.condition(inner)
	}
	o := originOf("from/key of a query", "(SELECT * FROM "+from+") y) s", "s", "unit")
	o.about = "s.computed"
	return o
}

// relationConditions are conditions on other rows: of the same unit, or public.
func relationConditions() []production {
	rows := regexp.MustCompile(`(^|\.)(id|unit|buyer)$`)
	semi := func(name string, forms ...string) production {
		return production{name: "condition/" + name, write: func(w *Writer, p place) string {
			if !rows.MatchString(p.unit) || !strings.Contains(p.unit, ".") && strings.Contains(name, "exists") {
				return w.Pick(p.names.whole...) + " IN (SELECT k_num FROM tags)"
			}
			return fmt.Sprintf(w.Pick(forms...), p.unit, w.Pick(p.names.whole...))
		}}
	}
	return []production{
		semi("in of unit", "%[1]s IN (SELECT unit FROM events WHERE n4 > 3)", "%[1]s NOT IN (SELECT unit FROM events WHERE k_bool)",
			"%[1]s IN (SELECT buyer FROM orders GROUP BY buyer HAVING count(*) > 2)", "(%[1]s, %[2]s) NOT IN (SELECT unit, n4 FROM events)",
			"(%[1]s, %[2]s) IN (SELECT buyer, nn FROM orders)", "(%[1]s, %[2]s, %[2]s) NOT IN (SELECT buyer, n4, n2 FROM orders)"),
		semi("exists of unit", "EXISTS (SELECT 1 FROM orders oo WHERE oo.buyer = %[1]s AND oo.n4 IS NOT NULL)",
			"NOT EXISTS (SELECT * FROM events ee WHERE ee.unit = %[1]s AND ee.n4 > %[2]s)",
			"EXISTS (SELECT * FROM events ee WHERE ee.unit = %[1]s AND (%[2]s IS NULL OR ee.n4 < %[2]s))",
			"EXISTS (SELECT * FROM events ee WHERE ee.unit = %[1]s AND ee.f8 = %[2]s AND NOT EXISTS (SELECT 1 FROM orders ff WHERE ff.buyer = "+
				"ee.unit AND ff.n4 > %[2]s))"),
		{name: "condition/exists of unit by parts", write: func(w *Writer, p place) string {
			if !rows.MatchString(p.unit) || !strings.Contains(p.unit, ".") {
				return w.Pick(p.names.whole...) + " IN (SELECT k_num FROM tags)"
			}
			from := w.Pick("events ee", "events ee JOIN people pp ON pp.id = ee.unit", "events ee JOIN zones zz ON zz.k_num = ee.k_num",
				"(SELECT unit, n4 + 1 AS n4, n2, f8 FROM events) ee", "events ee LEFT JOIN tags tt ON tt.k_num = ee.k_num AND tt.tag <> 'red'")
			tie := w.Pick("ee.n4 = %[1]s", "ee.n4 < %[1]s", "ee.n4 + ee.n2 > %[1]s", "(ee.n4 = %[1]s OR ee.n2 IS NULL)",
				"ee.f8::float4 = %[1]s::float8", "ee.n4 + %[1]s IS NOT NULL")
			return w.Pick("", "NOT ") + "EXISTS (SELECT 1 FROM " + from + " WHERE ee.unit = " + p.unit + " AND " +
				fmt.Sprintf(tie, w.Pick(p.names.whole...)) + ")"
		}},
		{name: "condition/in public", write: func(w *Writer, p place) string {
			return w.Pick(p.names.whole...) + w.Pick(" IN ", " NOT IN ") + w.Pick("(SELECT k_num FROM tags WHERE tag <> 'red')",
				"(SELECT nullif(k_num, 2) FROM tags)", "(SELECT weight FROM zones)",
				"(SELECT k_num FROM tags GROUP BY k_num HAVING count(*) > 1)")
		}},
		{name: "condition/value of public", write: func(w *Writer, p place) string {
			return fmt.Sprintf("%s %s (SELECT %s)", w.Pick(p.names.whole...), w.Pick("<", ">=", "<>"),
				w.Pick("avg(weight) FROM zones", "max(k_num) FROM tags WHERE tag <> 'red'", "count(*) FROM zones z JOIN tags t ON t.k_num = z.k_num",
					"sum(k_num) FROM tags WHERE false"))
		}},
		{name: "condition/exists public", write: func(w *Writer, p place) string {
			return fmt.Sprintf(w.Pick("EXISTS (SELECT 1 FROM zones zz WHERE zz.k_num = %[1]s AND zz.weight < %[1]s + 5)",
				"NOT EXISTS (SELECT 1 FROM tags zz WHERE zz.k_num = %[1]s)",
				"EXISTS (SELECT 1 FROM (SELECT k_num, count(*) AS c FROM tags GROUP BY k_num) zz WHERE zz.k_num = %[1]s AND zz.c < 3)",
				"EXISTS (SELECT 1 FROM zones zz WHERE zz.weight > 9 AND %[1]s IS NOT NULL)"), w.Pick(p.names.whole...))
		}},
	}
}
