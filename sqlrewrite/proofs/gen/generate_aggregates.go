package gen

import (
	"fmt"
	"slices"
)

// statisticalAggregates are the aggregates of moments, different values and selections.
func statisticalAggregates() []production {
	numbers := func(n names) []string { return n.numbers }
	one := func(name string, kind func(names) []string, forms ...string) production {
		return production{name: "aggregate/" + name, write: func(w *Writer, p place) string {
			return fmt.Sprintf(w.Pick(forms...), w.Pick(kind(p.names)...))
		}}
	}
	return []production{
		one("variance", numbers, "var_pop(%s)", "var_samp(%s)", "variance(%s)", "stddev_pop(%s)", "stddev_samp(%s)", "stddev(%s)"),
		{name: "aggregate/regression", write: func(w *Writer, p place) string {
			name := w.Pick("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy",
				"regr_sxx", "regr_syy", "regr_sxy")
			from := p.names.numbers
			if w.exact { // of larger ones PostgreSQL's own digits cancel
				from = p.names.whole
			}
			return fmt.Sprintf("%s(%s, %s)", name, w.Pick(from...), w.Pick(from...))
		}},
		one("count(DISTINCT x)", func(n names) []string { return slices.Concat(n.numbers, n.texts, n.days, n.keys, n.private) },
			"count(DISTINCT %s)"),
		{name: "aggregate/count(DISTINCT (x, y))", write: func(w *Writer, p place) string {
			return fmt.Sprintf("count(DISTINCT (%s, %s))", w.Pick(p.names.whole...), w.Pick(p.names.keys...))
		}},
		choosing(one("quantile", numbers, "percentile_disc(0.5) WITHIN GROUP (ORDER BY %s)",
			"percentile_disc(0.25) WITHIN GROUP (ORDER BY %s DESC)",
			"percentile_cont(0.9) WITHIN GROUP (ORDER BY %s)", "median(%s)")),
		choosing(one("quantile", numbers, "percentile_disc(0.5) WITHIN GROUP (ORDER BY %s)",
			"percentile_disc(0.75) WITHIN GROUP (ORDER BY %s)")), // rare in many shapes
		choosing(one("min and max", numbers, "min(%s)", "max(%s)")),
		choosing(one("quantile of times", func(n names) []string { return slices.Concat(n.days, n.times, n.zoned) },
			"min(%s)", "max(%s)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY %s)")),
		choosing(one("mode", func(n names) []string { return n.keys }, "mode() WITHIN GROUP (ORDER BY %s)")),
	}
}

func choosing(p production) production {
	p.chooses = true
	return p
}

// statisticalMutants lack a defence of these aggregates.
func statisticalMutants() []mutant {
	return []mutant{
		{"factors not clamped", `\(pg_catalog\.int4larger\(pg_catalog\.int4smaller\(("\w+"), [^)]*\), [^)]*\)\)::bigint - `, `$1::bigint - `},
		{"squares not about their middle", ` - (\$\d+::numeric \* pg_catalog\.count)`, ` - 0 * $1`},
		{"sums of many rows not divided", `pg_catalog\.div\((u\.a\d+)::numeric \* \$\d+::bigint, u\.a\d+::numeric\)`, `$1`},
		{"values not capped per unit", `u\.nth <= `, `u.nth <= 1000 * `},
		{"values ranked over units", byUnit + `((, v\.k\d)*) ORDER BY v\.x IS NULL`, `PARTITION BY 1$1 ORDER BY v.x IS NULL`},
		{"values kept at random", `ORDER BY v\.x IS NULL, `, `ORDER BY v.x IS NULL, pg_catalog.random(), `},
		{"histogram without re-weighting", `WHEN u\.total > `, `WHEN u.total > 1000000 * `},
		{"histogram capped per value", `CASE WHEN u\.total > (\$\d+::bigint) THEN [^E]* ELSE u\.n END`, `CASE WHEN u.n > $1 THEN $1 ELSE u.n END`},
		{"rows counted over all units", `OVER \(` + byUnit + `((, v\.k\d)*)\) AS total`, `OVER (PARTITION BY 1$1) AS total`},
		{"modes without a cap", `CASE WHEN u\.n > `, `CASE WHEN u.n > 1000000 * `},
	}
}
