package sqlrewrite

import (
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate/catalog"
)

// costKeys lists the names in the table of costs that a plan's expressions have.
func costKeys(q *boundQuery) []string {
	var keys []string
	var exprs func(list ...expr)
	var item func(n fromItem)
	exprs = func(list ...expr) {
		for _, e := range list {
			switch e := e.(type) {
			case nil, column, constant, keyRef, valueRef, computed, unitAggregate:
			case exists:
				item(e.from)
				exprs(e.where)
			case inRows:
				item(e.from)
				exprs(e.where)
			case in:
				keys = append(keys, "= "+kindOfType(e.x.typ()))
			default:
				keys = append(keys, costKey(e))
			}
			if e != nil {
				exprs(children(e)...)
			}
		}
	}
	item = func(n fromItem) {
		switch n := n.(type) {
		case *joined:
			item(n.left)
			item(n.right)
			exprs(n.on)
		case *rowCap:
			item(n.of)
		case *derived:
			for _, q := range n.parts {
				if q.from != nil {
					item(q.from)
				}
				exprs(q.where)
				exprs(q.keys...)
				exprs(q.outputs...)
			}
		}
	}
	item(q.source.node)
	exprs(q.where)
	for _, k := range q.keys {
		exprs(k.x)
	}
	for _, m := range q.measures {
		exprs(m.filter, m.x, m.y)
	}
	return keys
}

// Every builtin that a golden statement computes with has a price that was measured.
func TestEveryBuiltinIsPriced(t *testing.T) {
	measured := measured()
	var missing []string
	for _, clause := range goldenClauses() {
		var tables string
		var snapshot *catalog.Snapshot
		datadriven.RunTest(t, "testdata/"+clause, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "tables":
				tables = d.Input
			case "policy":
				snapshot = parseSnapshot(t, tables, d.Input)
			case "plan":
				p, err := Rewrite(d.Input, snapshot, parseOptions(t, d))
				if err != nil {
					t.Fatalf("%s: %v", d.Input, err)
				}
				for _, key := range costKeys(p.query) {
					if _, ok := priceNamed(key); (!ok || measured[key] == "") && !slices.Contains(missing, key) {
						missing = append(missing, key)
						t.Errorf("%q has no measured price: %s", key, d.Input)
					}
				}
			}
			return d.Expected
		})
	}
}
