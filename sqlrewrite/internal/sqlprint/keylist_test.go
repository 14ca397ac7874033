package sqlprint

import (
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
	"noisegate.example/sqlrewrite/verify"
)

// A list names its inputs alone, under names of its own, whatever they are called in the query; its text reads public tables and arguments.
func TestPrintKeyList(t *testing.T) {
	table := &catalog.Table{Schema: "public", Name: "vendor", Public: true, MostRows: 10, Columns: []*catalog.Column{
		{Name: "nation", AttNum: 1, Type: catalog.Text, TypMod: 19}, {Name: "weight", AttNum: 2, Type: catalog.Int4}}}
	scan := &algebra.Scan{Table: table, Leaf: algebra.Leaf{Alias: "another"}}
	for _, c := range table.Columns {
		scan.Fields = append(scan.Fields, &algebra.Field{Column: c, Relation: "another", Public: true})
	}
	channel := &algebra.Field{Column: &catalog.Column{Name: "channel", Type: catalog.Text}}
	elsewhere := &algebra.Field{Column: &catalog.Column{Name: "secret", Type: catalog.Text}}
	equal := func(f *algebra.Field, text string) algebra.Expr {
		return algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: f}, R: algebra.Constant{T: f.Type, Text: text}, T: catalog.Bool}
	}
	l := algebra.KeyList{Scans: []*algebra.Scan{scan},
		Declared: []algebra.DeclaredKeys{{Of: channel, Keys: []catalog.Key{{Text: "mail"}, {Null: true}}}},
		Keys:     []*algebra.Field{scan.Fields[0], channel},
		Where:    algebra.Binary{Op: syntax.Or, L: equal(scan.Fields[1], "3"), R: equal(channel, "mail"), T: catalog.Bool}}
	text, args, ok := PrintKeyList(l, 5)
	const want = `SELECT DISTINCT ("t0"."nation"::pg_catalog.text COLLATE pg_catalog."C")::pg_catalog.text AS k0, "d0".k AS k1, ` +
		`NULL::bigint AS ordinal
FROM ONLY "public"."vendor" AS "t0" CROSS JOIN ` +
		`(SELECT u.k AS k, u.k::pg_catalog.text AS x FROM pg_catalog.unnest($1::pg_catalog.text[]) AS u(k)) AS "d0"
WHERE (("t0"."weight" = $2::integer) OR ("d0".x COLLATE pg_catalog."default" = $3::pg_catalog.text))
LIMIT 5`
	if !ok || text != want || len(args) != 3 {
		t.Errorf("%t, %d arguments:\n%s", ok, len(args), text)
	}
	on := &catalog.Snapshot{Tables: []*catalog.Table{table}}
	if err := verify.Public(text, on); err != nil {
		t.Error(err)
	}
	l.Keys, l.Ends = scan.Fields[1:], true
	const ends = `SELECT pg_catalog.min("t0"."weight")::pg_catalog.text AS k0, pg_catalog.max("t0"."weight")::pg_catalog.text AS k1, ` +
		`NULL::bigint AS ordinal
`
	if text, _, ok = PrintKeyList(l, 5); !ok || !strings.HasPrefix(text, ends) {
		t.Errorf("%t:\n%s", ok, text)
	}
	if err := verify.Public(text, on); err != nil {
		t.Error(err)
	}
	l.Where = equal(elsewhere, "a")
	if text, _, ok := PrintKeyList(l, 5); ok {
		t.Errorf("a list reads what is none of its inputs: %s", text)
	}
}
