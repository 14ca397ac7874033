package sqlrewrite

import (
	"fmt"
	"slices"
)

// statisticalAggregates are the aggregates of moments, different values and selections.
func statisticalAggregates() []production {
	numbers := func(n names) []string { return n.numbers }
	one := func(name string, kind func(names) []string, forms ...string) production {
		return production{name: "aggregate/" + name, write: func(w *writer, p place) string {
			return fmt.Sprintf(w.pick(forms...), w.pick(kind(p.names)...))
		}}
	}
	return []production{
		one("variance", numbers, "var_pop(%s)", "var_samp(%s)", "variance(%s)", "stddev_pop(%s)", "stddev_samp(%s)", "stddev(%s)"),
		{name: "aggregate/regression", write: func(w *writer, p place) string {
			name := w.pick("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy")
			return fmt.Sprintf("%s(%s, %s)", name, w.pick(p.names.numbers...), w.pick(p.names.numbers...))
		}},
		one("count(DISTINCT x)", func(n names) []string { return slices.Concat(n.numbers, n.texts, n.days, n.keys, n.private) }, "count(DISTINCT %s)"),
		choosing(one("quantile", numbers, "percentile_disc(0.5) WITHIN GROUP (ORDER BY %s)", "percentile_disc(0.25) WITHIN GROUP (ORDER BY %s DESC)",
			"percentile_cont(0.9) WITHIN GROUP (ORDER BY %s)", "median(%s)")),
		choosing(one("min and max", numbers, "min(%s)", "max(%s)")),
		choosing(one("mode", func(n names) []string { return n.keys }, "mode() WITHIN GROUP (ORDER BY %s)")),
	}
}

func choosing(p production) production {
	p.chooses = true
	return p
}
