package verify

import (
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/catalog"
)

// town is a snapshot with a table of every kind of unit and a column of every type, and pins for all of it.
func town() (*catalog.Snapshot, []Pin) {
	table := func(name string, oid uint32, unit catalog.Unit, columns string, keys ...[]string) (*catalog.Table, Pin) {
		t := &catalog.Table{Schema: "public", Name: name, OID: oid, Unit: unit, Public: unit.Kind == catalog.NoUnit, Unique: keys}
		p := Pin{Schema: "public", Table: name, OID: oid, Keys: keys}
		for i, c := range strings.Split(columns, ",") {
			column, typ, _ := strings.Cut(strings.TrimSpace(c), " ")
			typ, digits, _ := strings.Cut(typ, "!")
			typmod := int32(-1)
			_, _ = fmt.Sscan(digits, &typmod)
			col := &catalog.Column{Name: column, AttNum: int16(i + 1), TypeOID: uint32(100 + i), TypMod: typmod, Type: catalog.Type(typ),
				Exposed: true}
			t.Columns = append(t.Columns, col)
			p.Columns = append(p.Columns, PinnedColumn{Name: column, AttNum: col.AttNum, TypeOID: col.TypeOID, TypMod: typmod,
				NotNull: unit.Kind == catalog.RowUnit && column == unit.Column})
		}
		return t, p
	}
	digits := func(precision, scale int) string { return fmt.Sprint("numeric!", precision<<16|scale&0x7ff+4) }
	people, a := table("people", 1, catalog.Unit{Kind: catalog.RowUnit, Column: "person_id"},
		"person_id integer, age integer, ward integer, big bigint, small smallint, "+
			"height double precision, single real, balance "+digits(10, 2)+", ratio numeric, name text, code character, code5 character!9, "+
			"born date, at timestamp without time zone, seen timestamp with time zone, married boolean, token uuid, mood enum, "+
			"tiny "+digits(3, 300)+", tinier "+digits(3, 301)+", round "+digits(3, -1)+", long "+digits(301, 0), []string{"person_id"})
	visits, b := table("visits", 2, catalog.Unit{Kind: catalog.ColumnUnit, Column: "person_id"},
		"visit_id bigint, person_id integer, ward integer, minutes integer, "+
			"reason text, fee numeric, cost double precision, code character, age integer", []string{"visit_id"}, []string{"person_id", "ward"})
	payments, c := table("payments", 3,
		catalog.Unit{Kind: catalog.PathUnit, Column: "visit_id", ToSchema: "public", ToTable: "visits", ToColumn: "visit_id"},
		"payment_id bigint, visit_id bigint, amount integer", []string{"payment_id"})
	payments.Columns[0].Identifies = "unit"
	shops, d := table("shops", 4, catalog.Unit{}, "shop_id integer, name text, opened timestamp without time zone", []string{"shop_id"})
	tags, e := table("tags", 5, catalog.Unit{}, "shop_id integer, tag text")
	return &catalog.Snapshot{Tables: []*catalog.Table{people, visits, payments, shops, tags}}, []Pin{a, b, c, d, e}
}

var (
	constants = regexp.MustCompile(`«([^»]*)»`)
	// Windows over rows of people partition by scattered ids (sorted.go).
	byUnit = regexp.MustCompile(`PARTITION BY ((?:\w+\.)?"?(?:unit|person_id|visit_id|id|p)\b"?)`)
	clamps = regexp.MustCompile(`C(2|4|8|N|F|D|T)\(("\w+"|\w+\.\w+)(?:, ([^,()]+), ([^,()]+))?\)`)
)

// expand writes out clamps, @ and arguments.
func expand(sql string) (string, []any) {
	sql = clamps.ReplaceAllStringFunc(sql, func(c string) string {
		m := clamps.FindStringSubmatch(c)
		f := map[string][2]string{"2": {"int2", "smallint"}, "4": {"int4", "integer"}, "8": {"int8", "bigint"}, "N": {"numeric_", "numeric"},
			"F": {"float8", "double precision"}, "D": {"date_", "@date"}, "T": {"timestamp_", "timestamp without time zone"}}[m[1]]
		lo, hi := m[3], m[4]
		if m[1] == "D" {
			lo, hi = "1900-01-01", "2024-12-31"
		}
		if m[1] == "T" {
			lo, hi = "1900-01-01 00:00:00", "2024-12-31 00:00:00"
		}
		return fmt.Sprintf("@%slarger(@%ssmaller(%s, «%s»::%s), «%s»::%s)", f[0], f[0], m[2], hi, f[1], lo, f[1])
	})
	sql = byUnit.ReplaceAllString(sql, "PARTITION BY @int8xor($1::bigint, «7640891576956012809»::bigint)")
	var args []any
	sql = constants.ReplaceAllStringFunc(sql, func(c string) string {
		args = append(args, strings.Trim(c, "«»"))
		return fmt.Sprintf("$%d", len(args))
	})
	for i := range args {
		if strings.Contains(sql, fmt.Sprintf("$%d::@text[]", i+1)) {
			args[i] = strings.Split(args[i].(string), ",")
		}
	}
	return strings.ReplaceAll(sql, "@", "pg_catalog."), args
}

// A function, operator, cast or constant that may raise an error for some row is refused, and its safe twin is proven: by name, argument
// types and ranges.
func TestUnsafeExpressions(t *testing.T) {
	text, err := os.ReadFile("testdata/unsafe/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	on, pins := town()
	counts := map[bool]int{}
	for line := range strings.Lines(string(text)) {
		wanted, expression, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found || wanted != "ok" && wanted != "no" {
			continue
		}
		counts[wanted == "ok"]++
		sql, args := expand(`SELECT @count(*) FILTER (WHERE ((` + expression + `) IS NULL))::@text FROM ONLY "public"."people"`)
		c := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins, Zones: []string{"Asia/Tokyo", "EST5EDT"}}
		err := Statement(sql, args, on, c)
		if (err == nil) != (wanted == "ok") || unsafeForAny(sql, args, on, c, err) {
			t.Errorf("%s: %s: %v", wanted, expression, err)
		}
	}
	t.Logf("%d unsafe, %d safe", counts[false], counts[true])
}

// Statements whose sensitivity is not what is claimed are refused, and their sound twins are proven.
func TestUnsafeStatements(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"statements", "totals"} {
		part, err := os.ReadFile("testdata/unsafe/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(part, "\n\n"...))
	}
	on, pins := town()
	counts := map[bool]int{}
	for paragraph := range strings.SplitSeq(text.String(), "\n\n") {
		head, body, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
		var wanted string
		var groups, most, l1, l2 int64
		var keys int
		n, _ := fmt.Sscan(head, &wanted, &groups, &most, &keys, &l1, &l2)
		if n < 3 || wanted != "ok" && wanted != "no" {
			continue
		}
		counts[wanted == "ok"]++
		sql, args := expand(body)
		c := Claim{Keys: keys, Groups: big.NewInt(groups), PerGroup: []*big.Int{big.NewInt(most)}, Pins: pins}
		if n == 6 {
			c.Norms = []Norm{{Columns: []int{0}, L1: big.NewInt(l1), L2Squared: big.NewInt(l2)}}
		}
		err := Statement(sql, args, on, c)
		if (err == nil) != (wanted == "ok") || unsafeForAny(sql, args, on, c, err) {
			t.Errorf("%s: %s: %v", head, body, err)
		}
	}
	t.Logf("%d unsafe, %d safe", counts[false], counts[true])
}

// A pin of another table or column than the snapshot's is none.
func TestPinsAreTheSnapshots(t *testing.T) {
	on, pins := town()
	claim := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins}
	sql, args := expand(`SELECT @count(*)::@text FROM ONLY "public"."people"`)
	if err := Statement(sql, args, on, claim); err != nil {
		t.Fatal(err)
	}
	pins[0].OID++
	if Statement(sql, args, on, claim) == nil {
		t.Error("proven with a pin of another table")
	}
	pins[0].OID--
	pins[0].Columns[1].TypeOID++
	if Statement(sql, args, on, claim) == nil {
		t.Error("proven with a pin of another column")
	}
}

// An argument that the text does not name has no type for PostgreSQL (42P18), which would say so after the charge.
func TestUnsafeUnnamedArguments(t *testing.T) {
	on, pins := town()
	claim := Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(1)}, Pins: pins}
	const sql = `SELECT pg_catalog.count(*)::pg_catalog.text FROM ONLY "public"."people" WHERE ("age" > $1::integer)`
	if err := Statement(sql, []any{"5"}, on, claim); err != nil {
		t.Error(err)
	}
	if Statement(sql, []any{"5", "6"}, on, claim) == nil {
		t.Error("proven with an argument that nothing names")
	}
}

// A cast to an enum of the snapshot is taken in a public query, as PostgreSQL spells its name: with quotes where it needs them.
func TestUnsafeEnums(t *testing.T) {
	for written, cast := range map[string]string{"public.mood": "public.mood", `public."Mood"`: `"public"."Mood"`, `"public"."mood"`: "public.mood"} {
		on := &catalog.Snapshot{Tables: []*catalog.Table{{Columns: []*catalog.Column{{Type: catalog.Enum, Enum: written}}}}}
		if err := Public("SELECT x.v FROM pg_catalog.unnest($1::pg_catalog.text[]) AS x(v) WHERE x.v::"+cast+" IS NOT NULL", on); err != nil {
			t.Errorf("%s: %v", written, err)
		}
		if Public("SELECT $1::public.other", on) == nil {
			t.Errorf("%s: another type", written)
		}
	}
}

// A public query reads public tables and its arguments, and what computes of these; whatever else it names is refused.
func TestUnsafePublicQueries(t *testing.T) {
	on, _ := town()
	for _, sql := range []string{
		`SELECT s.name FROM "public"."shops" AS s WHERE s.shop_id = $1::integer ORDER BY s.name`,
		`WITH a AS (SELECT s.shop_id FROM "public"."shops" AS s) SELECT pg_catalog.count(*) FROM a`,
		`SELECT pg_catalog.age(s.opened, s.opened) FROM "public"."shops" AS s`,
	} {
		if err := Public(sql, on); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for what, sql := range map[string]string{
		"a table of people":         `SELECT p.age FROM "public"."people" AS p`,
		"a table that is not there": `SELECT p.age FROM "public"."peoples" AS p`,
		"a table in a subquery":     `SELECT 1 WHERE EXISTS (SELECT 1 FROM "public"."people" AS p)`,
		"a table without a schema":  `SELECT p.age FROM people AS p`,
		"a name of the system's":    `WITH pg_class AS (SELECT 1 AS x) SELECT x FROM pg_class`,
		"another database":          `SELECT s.name FROM other."public"."shops" AS s`,
		"a function that reads":     `SELECT pg_catalog.query_to_xml('SELECT age FROM people', true, true, '')`,
		"a type that reads":         `SELECT 'people'::pg_catalog.regclass`,
		"the clock":                 `SELECT pg_catalog.age(s.opened) FROM "public"."shops" AS s`,
		"a new table":               `SELECT s.name INTO "public"."copy" FROM "public"."shops" AS s`,
		"locks":                     `SELECT s.name FROM "public"."shops" AS s FOR UPDATE`,
		"an operator of a schema":   `SELECT s.name FROM "public"."shops" AS s WHERE s.shop_id OPERATOR(public.=) 1`,
		"an order of an operator's": `SELECT s.name FROM "public"."shops" AS s ORDER BY s.name USING <`,
		"a sample":                  `SELECT s.name FROM "public"."shops" AS s TABLESAMPLE SYSTEM (50)`,
		"no query":                  `DELETE FROM "public"."shops"`,
	} {
		if Public(sql, on) == nil {
			t.Errorf("%s is proven to read nothing private: %s", what, sql)
		}
	}
	if Public(`SELECT s.name FROM "public"."shops" AS s`, nil) == nil {
		t.Error("a table is proven to be none of a query over released values")
	}
}
