package sqlprint

import (
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
	"noisegate.example/sqlrewrite/verify"
)

// A list names its inputs alone, under its own names, whatever the query calls them; its text reads public tables and arguments.
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
		Keys:     []algebra.Expr{algebra.Column{Of: scan.Fields[0]}, algebra.Column{Of: channel}},
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
	l.Keys, l.Ends = []algebra.Expr{algebra.Column{Of: scan.Fields[1]}}, true
	const ends = `SELECT pg_catalog.min("t0"."weight")::pg_catalog.text AS k0, pg_catalog.max("t0"."weight")::pg_catalog.text AS k1, ` +
		`NULL::bigint AS ordinal
`
	if text, _, ok = PrintKeyList(l, 5); !ok || !strings.HasPrefix(text, ends) {
		t.Errorf("%t:\n%s", ok, text)
	}
	if err := verify.Public(text, on); err != nil {
		t.Error(err)
	}
	day := &algebra.Field{Column: &catalog.Column{Name: "day", Type: catalog.Date}}
	count := &algebra.Field{Column: &catalog.Column{Name: "n", Type: catalog.Int2}}
	ranges := algebra.KeyList{Ranges: []algebra.KeyRange{{Of: day, First: 10, Last: 20}, {Of: count, First: -3, Last: 3, Null: true}},
		Keys: []algebra.Expr{algebra.Binary{Op: syntax.Add, L: algebra.Column{Of: day}, R: algebra.Column{Of: count}, T: catalog.Date}}}
	text, _, ok = PrintKeyList(ranges, 5)
	const wantRanges = `SELECT DISTINCT ("r0".x + "r1".x)::pg_catalog.text AS k0, NULL::bigint AS ordinal
FROM (SELECT $1::pg_catalog.date + g.x::integer AS x FROM pg_catalog.generate_series($2::bigint, $3::bigint) AS g(x)) AS "r0" CROSS JOIN ` +
		`(SELECT g.x::smallint AS x FROM pg_catalog.generate_series($4::bigint, $5::bigint) AS g(x) UNION ALL SELECT NULL::smallint) AS "r1"
LIMIT 5`
	if !ok || text != wantRanges {
		t.Errorf("%t:\n%s", ok, text)
	}
	if err := verify.Public(text, on); err != nil {
		t.Error(err)
	}
	at := &algebra.Field{Column: &catalog.Column{Name: "at", Type: catalog.Timestamp}}
	days := algebra.Cast{X: algebra.Column{Of: at}, T: catalog.Date}
	text, _, ok = PrintKeyList(algebra.KeyList{Keys: []algebra.Expr{days}, Granules: []algebra.KeyGranules{{Of: at,
		First: "2020-01-01 00:00:00", Last: "2020-12-31 00:00:00", Null: true, Parts: []algebra.Expr{days, days}}}}, 5)
	const same = `true AND ((v.a)::pg_catalog.date IS NOT DISTINCT FROM (v.b)::pg_catalog.date)`
	if !ok || strings.Count(text, same+" AND ((v.a)") != 2 || !strings.HasPrefix(text, `SELECT DISTINCT ("g0".x)::pg_catalog.date::`) {
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
