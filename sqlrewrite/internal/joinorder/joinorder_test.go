package joinorder_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

const (
	tables = `buyer
  buyer integer not null unique
  town  integer not null
  trade integer not null
sale
  sale  integer not null unique
  buyer integer not null
  day   integer not null
  item  integer not null
line
  line integer not null unique
  sale integer not null references sale(sale)
  item integer not null
  bin  integer not null
day
  day  integer not null unique
  week integer not null
  rows 4096
item
  item  integer not null unique
  maker integer not null
  rows 32768
place
  town   integer not null unique
  nation integer not null
  rows 300
nation
  nation integer not null unique
  region integer not null
  rows 25
offer
  offer integer not null unique
  item  integer not null
  bin   integer not null
  rows 2000
`
	policy = `version: 1
dataset: test
neighbours: add-remove
tables:
  buyer: {unit: {row: buyer}}
  sale:
    unit: {column: buyer}
    max_rows: 4
    max_groups: 4
  line:
    unit: {via: sale, to: sale}
    max_rows: 8
    max_groups: 8
  day: {public: true}
  item: {public: true}
  place: {public: true}
  nation: {public: true}
  offer: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
)

// links are how tables may be joined.
var links = []struct{ left, right, equality string }{
	{"sale", "buyer", "sale.buyer = buyer.buyer"}, {"line", "sale", "line.sale = sale.sale"}, {"sale", "day", "sale.day = day.day"},
	{"sale", "item", "item.item = sale.item"}, {"line", "item", "line.item = item.item"}, {"buyer", "place", "buyer.town = place.town"},
	{"place", "nation", "nation.nation = place.nation"}, {"line", "offer", "offer.bin = line.bin"},
	{"offer", "item", "offer.item = item.item"},
	{"day", "nation", "day.week = nation.region"}, {"buyer", "nation", "buyer.trade = nation.region"},
}

// filters are columns that WHERE may compare with constants.
var filters = map[string]string{"buyer": "buyer.town", "line": "line.bin", "item": "item.maker", "offer": "offer.bin",
	"nation": "nation.region"}

// generated are tables that equalities join, and others now and then.
func generated(r *rand.Rand) (from, equalities []string) {
	from = []string{[]string{"buyer", "sale", "line"}[r.IntN(3)]}
	size := 2 + r.IntN(3)
	for tries := 0; len(from) < size && tries < 100; tries++ {
		l := links[r.IntN(len(links))]
		left, right := slices.Contains(from, l.left), slices.Contains(from, l.right)
		switch {
		case left && !right:
			from = append(from, l.right)
		case right && !left:
			from = append(from, l.left)
		}
	}
	if r.IntN(8) == 0 && !slices.Contains(from, "day") {
		from = append(from, "day")
	}
	for _, l := range links {
		if slices.Contains(from, l.left) && slices.Contains(from, l.right) && (len(equalities) < len(from)-1 || r.IntN(2) == 0) {
			equalities = append(equalities, l.equality)
		}
	}
	return from, equalities
}

// permutations are all orders.
func permutations(of []string) (all [][]string) {
	if len(of) < 2 {
		return [][]string{of}
	}
	for i := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]string{of[i]}, rest...))
		}
	}
	return all
}

// written joins tables in WHERE, or in the ON of the first join that has both of them.
func written(from, equalities []string, on bool, filter string) string {
	where := slices.Clone(equalities)
	list := strings.Join(from, ", ")
	if on {
		list = from[0]
		for i, name := range from[1:] {
			known := func(column string) bool { return slices.Contains(from[:i+2], strings.Split(column, ".")[0]) }
			var here []string
			where = slices.DeleteFunc(where, func(e string) bool {
				l, r, _ := strings.Cut(e, " = ")
				if known(l) && known(r) {
					here = append(here, e)
				}
				return known(l) && known(r)
			})
			if here == nil {
				list += " CROSS JOIN " + name
			} else {
				list += " JOIN " + name + " ON " + strings.Join(here, " AND ")
			}
		}
	}
	if filter != "" {
		where = append(where, filter)
	}
	sql := "SELECT count(*) FROM " + list
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	return sql
}

var joins = flag.Int("joins", 60, "generated joins that are asked in all orders of FROM")

// TestOneVerdictForAllOrders asks generated joins in all orders of FROM, with equalities in WHERE and in ON: all have one verdict, and one
// price. Only where a public table has several rows for one of a person, and two tables of people are joined, the bound on a person's rows
// follows the order that was written: it did before, and answers that were bought keep their names.
func TestOneVerdictForAllOrders(t *testing.T) {
	on := rewritetest.ParseSnapshot(t, tables, policy)
	accepted, refused := 0, map[fault.Code]int{}
	for i := range *joins {
		r := rand.New(rand.NewPCG(89, uint64(i)))
		from, equalities := generated(r)
		filter := ""
		if last := filters[from[len(from)-1]]; last != "" && r.IntN(2) == 0 {
			filter = last + " > 3"
		}
		multiplied := slices.Contains(from, "sale") && slices.Contains(from, "line") &&
			slices.ContainsFunc(from, func(name string) bool { return name == "offer" || name == "nation" || name == "place" })
		var first string
		for _, order := range permutations(from) {
			for _, in := range []bool{false, true} {
				sql := written(order, equalities, in, filter)
				verdict := verdictOf(sql, on, !multiplied)
				if first == "" {
					first = verdict
				}
				if verdict != first {
					t.Errorf("%s\n  %s, and another order of it: %s", sql, verdict, first)
				}
			}
		}
		if code, isRefused := strings.CutPrefix(first, "refused: "); isRefused {
			refused[fault.Code(code)]++
		} else {
			accepted++
		}
	}
	t.Logf("%d of %d joins are accepted; refused are %v", accepted, *joins, refused)
	if accepted*3 < *joins || refused[fault.CodeFanOut] == 0 || len(refused) > 2 {
		t.Errorf("%d of %d joins are accepted; refused are %v", accepted, *joins, refused)
	}
}

// verdictOf is the code of a refusal, or what the answer costs and, if asked for, how noisy it is.
func verdictOf(sql string, on *catalog.Snapshot, noise bool) string {
	p, err := pipeline.Rewrite(sql, on, rewritetest.Sharp())
	switch {
	case err != nil:
		return "refused: " + string(fault.CodeOf(err))
	case noise:
		return fmt.Sprint(p.Loss(), p.Mechanisms())
	default:
		return fmt.Sprint(p.Loss())
	}
}
