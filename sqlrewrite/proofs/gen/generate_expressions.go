package gen

import (
	"fmt"
	"regexp"
	"slices"
)

// The productions of computed values: each refers to columns whose worst values would break a form that is not total.

// computedNumber writes a number that is computed from whole ones or decimals, exactly, and bounded.
func computedNumber(w *Writer, p place) string {
	n := func() string { return w.Pick(p.names.whole...) }
	forms := []string{
		"%[1]s + %[2]s", "%[1]s - %[2]s", "%[1]s * %[2]s", "- %[1]s", "abs(%[1]s)", "%[1]s / 3", "%[1]s / nullif(%[2]s, 0)",
		"%[1]s %% nullif(%[2]s, 0)",
		"coalesce(%[1]s, %[2]s, 0)", "greatest(%[1]s, %[2]s)", "least(%[1]s, 5)", "CASE WHEN %[1]s > 3 THEN %[2]s ELSE 0 END",
		"CASE %[1]s WHEN 0 THEN -1 WHEN 3 THEN %[2]s END", "(%[1]s > %[2]s)::int", "%[1]s::numeric(6,1)", "(%[1]s + %[2]s) * 2", "mod(%[1]s, 4)",
		"round(%[1]s::numeric / 4, 1)",
	}
	if !w.exact { // where PostgreSQL itself fails on some rows
		forms = append(forms, "%[1]s / nullif(%[2]s, 3)", "%[1]s %% %[2]s", "%[1]s / %[2]s", "%[1]s * 300000000")
	}
	return fmt.Sprintf(w.Pick(forms...), n(), n())
}

// roughNumber writes a number that is computed in floating point or from times.
func roughNumber(w *Writer, p place) string {
	f := func() string { return w.Pick(p.names.numbers...) }
	n, day, at := w.Pick(p.names.whole...), w.Pick(p.names.days...), w.Pick(p.names.times...)
	forms := []string{
		f() + " / 7.5", f() + " * " + n, f() + "::float8 * 0.001", "sqrt(abs(" + f() + "))", "power(" + n + ", 2)", n + " ^ 2",
		"floor(" + f() + ")",
		"ceil(" + f() + ")",
		"round(" + f() + "::numeric, 1)", "sign(" + f() + ")", "width_bucket(" + f() + ", 0, 5, 4)",
		"extract(epoch FROM " + at + " - TIMESTAMP '2024-01-01') / 86400",
		day + " - DATE '2024-01-31'", "extract(doy FROM " + day + ")", "extract(hour FROM " + at + ")",
		"extract(epoch FROM " + at + " - " + day + ")", "extract(month FROM age(" + at + ", " + day + "))", "log(abs(" + n + ") + 1)",
		"trunc(" + f() + ")", "extract(month FROM " + w.Pick(p.names.zoned...) + ")",
		"extract(epoch FROM " + w.Pick(p.names.zoned...) + " - TIMESTAMPTZ '2024-06-01 00:00:00+00')",
	}
	if !w.exact {
		forms = append(forms, "sqrt("+f()+")", "ln(abs("+f()+"))", "exp(least("+f()+", 20))", "1 + exp(-1000 * abs("+n+"))", f()+"::int")
	}
	return w.Pick(forms...)
}

func computedConditions() []production {
	return []production{
		{name: "condition/computed number", write: func(w *Writer, p place) string {
			return fmt.Sprintf("%s %s %s", computedNumber(w, p), w.Pick("<", ">=", "<>"), w.Pick("3", "0", "-7.5", w.Pick(p.names.whole...)))
		}},
		{name: "condition/rough number", write: func(w *Writer, p place) string {
			return fmt.Sprintf("%s %s", roughNumber(w, p), w.Pick("< 3", "> 0.5", "IS NULL", "BETWEEN -1 AND 100"))
		}},
		{name: "condition/quotient", write: func(w *Writer, p place) string {
			form := "%s / %s > 0.1"
			if w.exact {
				form = "%s / nullif(%s, 0) > 0.1"
			}
			return fmt.Sprintf(form, w.Pick(p.names.numbers...), w.Pick(p.names.numbers...))
		}},
		{name: "condition/product", write: func(w *Writer, p place) string {
			x, y := w.Pick(p.names.numbers...), w.Pick(p.names.numbers...)
			return fmt.Sprintf("%s::float8 * %s::float8 * %s < 2", x, x, y)
		}},
		{name: "condition/text function", write: func(w *Writer, p place) string {
			t := w.Pick(append(p.names.private, p.names.texts...)...)
			return fmt.Sprintf(w.Pick("upper(%[1]s) = 'X'", "length(%[1]s) > 2", "%[1]s || 'x' LIKE '%%xx'", "substring(%[1]s FROM 1 FOR 1) = 'x'",
				"trim(%[1]s) = ''",
				"position('b' IN %[1]s) = 2", "left(%[1]s, -1) <> ''", "starts_with(%[1]s, 'x')",
				"split_part(%[1]s, 'b', 2) = ''", "replace(%[1]s, 'x', 'yz') = 'yz'", "coalesce(%[1]s, 'none') = 'none'",
				"regexp_replace(%[1]s, '[^x]+', '', 'g') = 'x'",
				"regexp_replace(%[1]s, '(x|b)*$', 'y') = 'y'",
				"concat(%[1]s, 1) = 'x1'", "cast(%[1]s AS varchar(2)) = 'xx'", "%[1]s::char(3) = 'x'", "%[1]s LIKE 'x!_%%' ESCAPE '!'"), t)
		}},
		{name: "condition/regular expression", write: func(w *Writer, p place) string {
			t := w.Pick(append(p.names.private, p.names.texts...)...)
			return t + w.Pick(` ~ '^[xy]+$'`, ` !~ '(x|é)?.{2,5}'`, ` ~* 'E|b$'`, ` SIMILAR TO '%(x|b|w)_?'`, ` !~* '^\w*$'`, ` ~ '[^ -~]'`)
		}},
		{name: "condition/as text", write: func(w *Writer, p place) string {
			return w.Pick(w.Pick(p.names.whole...)+"::text LIKE '1%'", w.Pick(p.names.days...)+"::text < '2024-06'",
				w.Pick(p.names.bools...)+"::text = 'true'",
				"length("+w.Pick(p.names.whole...)+"::text) > 1", "cast("+w.Pick(p.names.whole...)+" AS text) || '!' = '3!'")
		}},
		{name: "condition/time function", write: func(w *Writer, p place) string {
			day, at := w.Pick(p.names.days...), w.Pick(p.names.times...)
			return w.Pick("extract(dow FROM "+day+") = 1", "date_trunc('month', "+at+") = TIMESTAMP '2024-03-01'", day+" + 30 > DATE '2024-03-01'",
				at+" - "+day+" > INTERVAL '12 hours'", day+" + INTERVAL '1 month' < "+at, "date_part('year', "+at+") = 2024",
				"to_char("+at+", 'Dy') = 'Mon'", "date("+at+") = "+day, "extract(day FROM "+at+" - "+day+") > 3",
				"age("+at+", "+day+") < INTERVAL '40 days'",
				day+" - DATE '2024-01-01' < 100", at+" < TIMESTAMP '2024-05-01 12:00Z' - 2 * INTERVAL '20' DAY",
				"date_bin('14 days', "+at+", TIMESTAMP '2024-01-07') >= "+day,
				"extract(hour FROM "+at+"::timestamptz AT TIME ZONE 'America/New_York') < 12",
				"("+at+"::timestamp AT TIME ZONE 'Australia/Lord_Howe')::date > "+day)
		}},
	}
}

func computedAggregates() []production {
	of := func(name, form string) production {
		return production{name: "aggregate/" + name, write: func(w *Writer, p place) string {
			x := computedNumber(w, p)
			if !w.exact && w.Rand.IntN(2) == 0 {
				x = roughNumber(w, p)
			}
			return fmt.Sprintf(form, x)
		}}
	}
	return []production{
		of("sum of computed", "sum(%s)"),
		of("avg of computed", "avg(%s)"),
		of("count of computed", "count(%s)"),
		{name: "aggregate/sum of a choice", write: func(w *Writer, p place) string {
			p.depth = 0
			return fmt.Sprintf("sum(CASE WHEN %s THEN %s ELSE %s END)", w.condition(p), w.Pick(p.names.whole...), w.Pick("0", "-1", "NULL"))
		}},
	}
}

// valueOfQuery finds the value of a query in a condition.
var valueOfQuery = regexp.MustCompile(`[<>=] \(SELECT`)

func computedKeys() []production {
	of := func(name string, kind func(names) []string, forms ...string) production {
		return production{name: "key/" + name, write: func(w *Writer, p place) string {
			return fmt.Sprintf(w.Pick(forms...), w.Pick(kind(p.names)...))
		}}
	}
	onList := func(name string, kind func(names) []string, forms ...string) production {
		return production{name: "key/" + name, write: func(w *Writer, p place) string {
			if !w.Lists {
				return w.Pick(p.names.keys...) + "::text"
			}
			return fmt.Sprintf(w.Pick(forms...), w.Pick(kind(p.names)...))
		}}
	}
	return []production{
		of("of a grid", func(n names) []string { return append(slices.Clone(n.whole), n.days...) }, "%s"),
		of("of a number", func(n names) []string { return n.whole }, "%s > 3", "%s %% 3", "mod(%s, 2)",
			"CASE WHEN %s < 3 THEN 'low' ELSE 'high' END"),
		of("of a time", func(n names) []string { return n.times }, "date_trunc('quarter', %s)", "extract(month FROM %s)",
			"%s::date", "to_char(%s, 'YYYY-MM')", "date_trunc('month', %s)::date"),
		onList("on a list", func(n names) []string { return n.whole }, "sqrt(abs(%s))", "exp(least(%s, 3))"),
		onList("of granules", func(n names) []string { return n.times }, "floor(extract(epoch FROM %[1]s) / 864000)",
			"extract(year FROM %[1]s) * 100 + extract(month FROM %[1]s)", "date_bin('49 days', %[1]s, TIMESTAMP '2024-01-07 06:00')",
			"date_trunc('quarter', %[1]s::timestamptz AT TIME ZONE 'Asia/Kolkata')"),
		{name: "key/of a condition", write: func(w *Writer, p place) string {
			if w.Rand.IntN(4) > 0 { // most have three keys, too few for many bounds to matter
				return w.Pick(p.names.keys...) + "::text"
			}
			p.depth = 0
			for { // a query as a value is no part of a key
				if condition := w.condition(p); !valueOfQuery.MatchString(condition) {
					return "(" + condition + ")"
				}
			}
		}},
		of("as text", func(n names) []string { return n.keys }, "%s::text", "'key ' || %s::text"),
		of("of a text", func(n names) []string { return n.private }, "upper(%s)", "left(%s, 1)", "coalesce(%s, 'none')"),
	}
}

func expressionMutants() []mutant {
	return []mutant{
		{"divisor may be zero", `/ NULLIF\(`, `/ COALESCE(`},
		{"remainder by zero", `% NULLIF\(`, `% COALESCE(`},
		{"decimals not clamped above", `numeric_smaller`, `numeric_larger`},
		{"floats not clamped above: NaN, Infinity", `float8smaller`, `float8larger`},
		{"tiny floats not zero: underflow", `(> \$\d+::double precision\) AND )\(`, `${1}false AND (`},
		{"infinite dates not mapped", `date_smaller`, `date_larger`},
		{"infinite times not mapped", `timestamp_smaller`, `timestamp_larger`},
		{"infinite times with zone not mapped", `timestamptz_smaller`, `timestamptz_larger`},
		{"products in the type of the column", `\)::bigint \* (\$\d+::bigint)`, `)::integer * ($1)::integer`},
		{"absolute value in the type of the column", `pg_catalog\.abs\(\(pg_catalog\.int2larger\((.*?)\)\)::integer\)`, `pg_catalog.abs(pg_catalog.int2larger($1)::smallint)`},
		{"logarithm of zero", `ln\(nullif\(`, `ln(coalesce(`},
		{"root of a negative number", `sqrt\(pg_catalog\.float8larger\(`, `sqrt(pg_catalog.float8smaller(`},
		{"argument of exp not clamped", `exp\(pg_catalog\.float8larger\(`, `exp(pg_catalog.float8smaller(`},
	}
}
