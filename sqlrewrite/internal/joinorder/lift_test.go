package joinorder_test

import (
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/internal/joinorder"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// TestWhatAllBranchesHaveIsLifted evaluates conditions before and after, for all values that their comparisons can have: true, false and
// unknown.
func TestWhatAllBranchesHaveIsLifted(t *testing.T) {
	on := rewritetest.ParseSnapshot(t, tables, policy)
	for where, want := range map[string]string{
		"sale.day = day.day AND sale.item > 3 OR day.day = sale.day AND day.week > 4":                      "sale.day=day.day&(item|week)",
		"sale.day = day.day OR (sale.day = day.day AND day.week > 4)":                                      "sale.day=day.day",
		"(sale.day = day.day AND sale.item > 3 OR sale.day = day.week AND day.week > 4) AND sale.item > 3": "",
		"sale.day = day.day AND sale.item > 3 OR day.week > 4 OR sale.day = day.day":                       "",
		"sale.day = day.day AND sale.item = day.week AND sale.item > 3 OR sale.item = day.week AND day.week > 4 " +
			"AND day.day = sale.day": "sale.day=day.day&sale.item=day.week&(item|week)",
	} {
		q, err := parse.Parse("SELECT count(*) FROM sale, day WHERE "+where, parse.DialectPostgres)
		if err != nil {
			t.Fatal(err)
		}
		others := joinorder.Others(new(steps.Count), q, on)
		if want == "" {
			if len(others) > 0 && show(others[0].Where) != show(q.Where) {
				t.Errorf("%s became %s", where, show(others[0].Where))
			}
			continue
		}
		if len(others) != 1 || show(others[0].Where) != want {
			t.Fatalf("%s: %d other orders, want 1 with %s", where, len(others), want)
		}
		atoms := map[string]int{}
		collect(q.Where, atoms)
		for values := range power(3, len(atoms)) {
			at := values
			for name := range atoms {
				atoms[name], at = at%3, at/3
			}
			if before, after := truth(q.Where, atoms), truth(others[0].Where, atoms); before != after {
				t.Fatalf("%s is %d, and lifted %d, where %v", where, before, after, atoms)
			}
		}
	}
}

func power(base, exponent int) int {
	all := 1
	for range exponent {
		all *= base
	}
	return all
}

// nameOf is one name for an equality, whichever side is first, and for what compares a column with a constant.
func nameOf(e syntax.Expr) string {
	b := e.(*syntax.Binary)
	l := b.L.(*syntax.Column)
	r, equal := b.R.(*syntax.Column)
	switch {
	case !equal:
		return l.Name
	case l.Qualifier == "day":
		l, r = r, l
	}
	return l.Qualifier + "." + l.Name + "=" + r.Qualifier + "." + r.Name
}

func show(e syntax.Expr) string {
	b := e.(*syntax.Binary)
	switch b.Op {
	case syntax.And:
		return show(b.L) + "&" + show(b.R)
	case syntax.Or:
		return "(" + show(b.L) + "|" + show(b.R) + ")"
	default:
		return strings.TrimSpace(nameOf(e))
	}
}

func collect(e syntax.Expr, atoms map[string]int) {
	b := e.(*syntax.Binary)
	if b.Op != syntax.And && b.Op != syntax.Or {
		atoms[nameOf(e)] = 0
		return
	}
	collect(b.L, atoms)
	collect(b.R, atoms)
}

// truth is 0 for false, 1 for unknown, 2 for true.
func truth(e syntax.Expr, atoms map[string]int) int {
	b := e.(*syntax.Binary)
	switch b.Op {
	case syntax.And:
		return min(truth(b.L, atoms), truth(b.R, atoms))
	case syntax.Or:
		return max(truth(b.L, atoms), truth(b.R, atoms))
	default:
		return atoms[nameOf(e)]
	}
}
