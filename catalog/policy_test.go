package catalog

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/internal/fault"
)

// TestPolicyFiles holds the files of testdata/policy: each case is a policy file and everything that is wrong with it, with
// its place in the file. Cases of "check" hold it against testSchema, those of "parse" against nothing.
func TestPolicyFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/policy", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			document := d.Input
			if d.HasArg("tables") { // the case shows only the tables of an otherwise good file
				document = "version: 1\ndataset: test\nbudgets: [{dataset: true, form: pure, epsilon: 1}]\ntables:\n  " + d.Input // the library trims
			}
			policy, problems := Parse(document)
			var snapshot *Snapshot
			if d.Cmd == "check" && len(problems) == 0 {
				snapshot, problems = Check(policy, testSchema())
			}
			if len(problems) > 0 {
				return list(t, problems, strings.Count(document, "\n")-strings.Count(d.Input, "\n"))
			}
			if snapshot == nil {
				return "ok\n"
			}
			return describe(snapshot)
		})
	})
}

// list shows errors as a steward sees them; lines are counted from the case's first.
func list(t *testing.T, problems []error, skipped int) string {
	t.Helper()
	var b strings.Builder
	for _, problem := range problems {
		var f *fault.Error
		if !errors.As(problem, &f) || f.Code != fault.CodePolicyInvalid {
			t.Errorf("%v is no policy/invalid fault", problem)
			continue
		}
		pos := f.Pos
		pos.Line -= skipped
		fmt.Fprintf(&b, "%v %s", pos, f.Msg)
		if f.Hint != "" {
			fmt.Fprintf(&b, " (%s)", f.Hint)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// testSchema is a schema with one of everything.
func testSchema() *Schema {
	column := func(number int16, name string, typ Type) *ColumnInfo {
		return &ColumnInfo{Name: name, AttNum: number, TypeOID: uint32(number), TypeName: string(typ), Type: typ, Scale: -1}
	}
	id := column(1, "id", Int4)
	id.NotNull = true
	money, code, mood, grade := column(6, "money", Numeric), column(7, "code", Char), column(8, "mood", Enum), column(9, "grade", Text)
	money.TypeName, money.Scale = "numeric(8,2)", 2
	code.TypeName, code.MaxLength = "character(3)", 3
	mood.TypeName, mood.Enum, mood.EnumValues = "mood", `public."mood"`, []string{"sad", "ok", "happy"}
	grade.TypeName, grade.MaxLength = "character varying(2)", 2
	point := column(10, "location", "")
	point.TypeName = "point"
	people := &TableInfo{TableName: TableName{"public", "people"}, OID: 1, Kind: PlainTable, Readable: true, Unique: []string{"id", "badge"},
		Columns: []*ColumnInfo{id, column(2, "age", Int2), column(3, "born", Date), column(4, "seen", Timestamptz), column(5, "weight", Float8),
			money, code, mood, grade, point, column(11, "badge", Int4), column(12, "active", Bool), column(13, "token", UUID),
			column(14, "ratio", Numeric), column(15, "left_at", Timestamp), column(16, "big", Int8)}}
	child := func(oid uint32, name string, keys ...ForeignKey) *TableInfo {
		return &TableInfo{TableName: TableName{"public", name}, OID: oid, Kind: PartitionedTable, Readable: true, Unique: []string{"id"},
			ForeignKeys: keys,
			Columns:     []*ColumnInfo{id, column(2, "person_id", Int4), column(3, "region", Text), column(4, "weight", Float8)}}
	}
	regions := &TableInfo{TableName: TableName{"geo", "regions"}, OID: 4, Kind: PlainTable, Readable: true, Unique: []string{"name"},
		Columns: []*ColumnInfo{column(1, "name", Text), column(2, "number", Int8), column(3, "empty", Text)}}
	odd := func(oid uint32, name string, change func(*TableInfo)) *TableInfo {
		t := &TableInfo{TableName: TableName{"public", name}, OID: oid, Kind: PlainTable, Readable: true, Columns: []*ColumnInfo{id},
			Unique: []string{"id"}}
		change(t)
		return t
	}
	return &Schema{
		Tables: []*TableInfo{people, regions,
			child(2, "visits", ForeignKey{"person_id", TableName{"public", "people"}, "id"}),
			child(3, "items", ForeignKey{"id", TableName{"public", "visits"}, "id"}),
			odd(5, "a_view", func(t *TableInfo) { t.Kind = "view" }),
			odd(6, "parent", func(t *TableInfo) { t.Inherited = true }),
			odd(7, "forbidden", func(t *TableInfo) { t.Readable = false }),
			odd(8, "old_items", func(t *TableInfo) { t.PartOf = []uint32{3} }),
		},
		Domains: []DomainValues{
			{From: ColumnRef{TableName{"geo", "regions"}, "name"}, Keys: []Key{{Text: "north"}, {Text: "south"}}},
			{From: ColumnRef{TableName{"geo", "regions"}, "number"}, Keys: []Key{{Text: "1"}, {Text: "10"}, {Text: "2"}}},
		},
	}
}

// TestParseReportsEverythingAtOnce: a steward mends a file in one go.
func TestParseReportsEverythingAtOnce(t *testing.T) {
	_, problems := Parse("version: 2\ndataset: Test\nneighbours: replace\ntables: {}\nbudgets: []\n")
	if len(problems) != 5 {
		t.Errorf("got %d errors, want one for each of the five lines: %v", len(problems), errors.Join(problems...))
	}
}

// TestDigestIgnoresLayout: what changes nothing makes no new version, and what changes something does.
func TestDigestIgnoresLayout(t *testing.T) {
	const base = "version: 1\ndataset: d\ntables:\n  people:\n    unit: {row: id}\n    columns: {age: {bounds: [1, 2]}, id: {expose: " +
		"false}}\n" +
		"budgets: [{dataset: true, form: approx, epsilon: 1, delta: 1e-6}]\n"
	sum := func(document string) [32]byte {
		p, problems := Parse(document)
		if len(problems) > 0 {
			t.Fatal(errors.Join(problems...))
		}
		return digest(p, testSchema().For(p))
	}
	same := "# a comment\nbudgets:\n- dataset: true\n  epsilon: 1.0\n  delta: 0.000001\n  form: approx\ndataset: 'd'\nversion: " +
		"1\nneighbours: add-remove\n" +
		"tables:\n  public.people:\n    columns:\n      id: {expose: false}\n      age:\n        bounds: [1, 2]\n    unit: {row: id}\n"
	if sum(base) != sum(same) {
		t.Error("the layout of the file changes the digest")
	}
	for _, edit := range []struct{ old, new string }{
		{"[1, 2]", "[1, 3]"}, {"epsilon: 1", "epsilon: 2"}, {"expose: false", "expose: true"}, {"row: id", "column: id"},
		{"dataset: d", "dataset: e"},
	} {
		if sum(base) == sum(strings.Replace(base, edit.old, edit.new, 1)) {
			t.Errorf("%s -> %s does not change the digest", edit.old, edit.new)
		}
	}
}

// TestHostileFiles: sizes and shapes that are made to hurt are refused quickly.
func TestHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 20; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Join([]string{alias, alias, alias, alias, alias, alias, alias, alias}, ", "))
	}
	var indented strings.Builder
	for i := range 1000 {
		indented.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, document := range map[string]string{
		"large":        strings.Repeat("#", maxDocument+1),
		"aliases":      bomb,
		"brackets":     strings.Repeat("[", 100_000),
		"braces":       strings.Repeat("{a: ", 100_000),
		"list marks":   strings.Repeat("- ", 100_000),
		"key marks":    strings.Repeat("? ", 100_000),
		"indentation":  indented.String(),
		"self":         "a: &a [*a]",
		"two":          "a: 1\n---\nb: 2\n",
		"empty":        "",
		"comment":      "# nothing\n",
		"nul":          "a: \x00",
		"escape":       "a: \x1b[31m",
		"broken utf-8": "a: \xff",
		"tag":          "version: !!binary aGVsbG8=",
		"merge":        "a: &a {b: c}\nd: {<<: *a}\n",
		"exponent":     "version: 1\ndataset: d\ntables: {t: {public: true}}\nbudgets: [{dataset: true, form: pure, epsilon: 1e999999999}]",
	} {
		t.Run(name, func(t *testing.T) {
			policy, problems := Parse(document)
			if policy != nil || len(problems) == 0 {
				t.Fatal("accepted")
			}
			list(t, problems, 0)
		})
	}
}

// FuzzParse feeds the decoder anything at all: it must neither panic nor accept what it cannot check and encode.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"version: 1\ndataset: d\ntables:\n  people: &a\n    unit: {row: id}\n    columns: {age: {bounds: [1, 2]}, mood: {domain: [ok, null]}}\n" +
			"budgets: [{dataset: true, form: approx, epsilon: 1, delta: 1e-6}, {group: g, per: analyst, form: pure, epsilon: 2}]\n",
		"a: &a [*a]", "- - -", "{", "\"", "'", "a: |\n b", "? a\n: b", "%YAML 1.2\n---\n", "a: !!str b", "\t", "a:\r\n- b\r\n", "&a *a",
		"<<: {}", "...", "--- >\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		policy, problems := Parse(document)
		if (policy == nil) != (len(problems) > 0) {
			t.Fatalf("policy %v with errors %v", policy, problems)
		}
		list(t, problems, 0)
		if policy == nil {
			return
		}
		if again, problems := Parse(policy.Document); len(problems) > 0 || string(again.canonical()) != string(policy.canonical()) {
			t.Fatalf("the same document is read in two ways: %v", problems)
		}
		if _, problems := Check(policy, testSchema()); len(problems) > 0 {
			list(t, problems, 0)
		}
	})
}

// TestDocumentedPolicy: the example of docs/policy.md is a good file.
func TestDocumentedPolicy(t *testing.T) {
	page, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/policy.md has no example")
	}
	p, problems := Parse(example)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	if len(p.Tables) != 6 || len(p.Budgets) != 4 {
		t.Errorf("%d tables and %d budgets, want 6 and 4", len(p.Tables), len(p.Budgets))
	}
}

// A column of a public table holds NaN, and numbers of more digits than are read: they come after all others, and before NULL.
func TestKeysThatAreNoDecimalsComeLast(t *testing.T) {
	long := strings.Repeat("9", 41)
	keys := []Key{{Text: "NaN"}, {Null: true}, {Text: "10.00"}, {Text: long}, {Text: "-3.00"}}
	sortKeys(keys, &ColumnInfo{Type: Numeric, Scale: 2})
	if want := []Key{{Text: "-3.00"}, {Text: "10.00"}, {Text: long}, {Text: "NaN"}, {Null: true}}; !slices.Equal(keys, want) {
		t.Errorf("got %v, want %v", keys, want)
	}
}
