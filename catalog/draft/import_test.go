package draft

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
)

// everySetting has one of everything that metadata of SmartNoise SQL can say.
const everySetting = `engine: postgres
Shop:
  Sales:
    Visits:
      max_ids: 5
      sample_max_ids: false
      rows: 1000
      Visitor: {type: int, private_id: yes}
      spent: {type: float, lower: 0, upper: 1e3, nullable: false}
      tiny: {type: float, lower: 0.001, upper: 0.002}
      level: {type: int, lower: -5.0, upper: 5}
      open: {type: int, lower: 0}
      member: {type: boolean, missing_value: false}
      seen: {type: datetime}
      shop: {type: string, cardinality: 10}
      "Odd name": {type: string, sensitivity: 3}
      place: {type: geometry}
    "odd table": {row_privacy: True, id: {type: int, private_id: true, lower: 0, upper: 9}}
    nobody: {age: {type: int, lower: 0, upper: 120}}
`

// penguins is metadata of Lomas, with a key that is given twice, as some of its examples have.
const penguins = `max_ids: 1
row_privacy: true
censor_dims: False
columns:
  species: {type: string, cardinality: 3, categories: [Adelie, Chinstrap, "no: \"plain\" word"]}
  island: {type: int, precision: 32, cardinality: 2, categories: [0, 1], nullable: true}
  mass: {type: float, precision: 64, lower: 2000.0, upper: 7000.0}
  born: {type: datetime, lower: "1900-01-01", upper: "2050-01-01 12:30:00"}
  sex: {type: string}
rows: 344
censor_dims: True
`

// TestImportOfEverything: what is made of metadata with one of everything, to the letter.
func TestImportOfEverything(t *testing.T) {
	for golden, c := range map[string]struct {
		text string
		ImportParameters
	}{
		"testdata/smartnoise.yaml": {everySetting, ImportParameters{System: SmartNoise, Dataset: "shop"}},
		"testdata/lomas.yaml":      {penguins, ImportParameters{System: Lomas, Dataset: "birds", Table: "penguins"}},
	} {
		got, problems := Import(c.text, c.ImportParameters)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		compareGolden(t, golden, got)
		if _, problems := catalog.Parse(got); len(problems) == 0 {
			t.Errorf("%s: accepted with blanks", golden)
		}
		if _, problems := catalog.Parse(filled(got, false)); len(problems) > 0 {
			t.Errorf("%s: %v", golden, problems)
		}
	}
}

// In the metadata of Lomas columns stand apart from settings: one that is called as a setting is a column all the same.
func TestImportOfColumnsCalledAsSettings(t *testing.T) {
	got, problems := Import(`max_ids: 3
columns:
  rows: {type: int, private_id: true}
  max_ids: {type: int, lower: 0, upper: 5}
  row_privacy: {type: boolean}
`, ImportParameters{System: Lomas, Dataset: "d", Table: "t"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	policy, problems := catalog.Parse(filled(got, false))
	if len(problems) > 0 {
		t.Fatalf("%v in\n%s", problems, got)
	}
	table := policy.Tables[0]
	if table.Unit.Column != "rows" || table.MaxTotal != 3 && table.MaxRows != 3 || len(table.Columns) != 2 {
		t.Errorf("%+v of\n%s", table, got)
	}
}

// The metadata of PUMS that SmartNoise comes with become policies that fit the table, once their few blanks are filled in: a bound on
// a person's rows stays the same bound.
func TestImportOfPUMS(t *testing.T) {
	p := pgtest.Protected(t, pumsTables,
		"CREATE SCHEMA keyed; CREATE TABLE keyed.pums (LIKE pums); ALTER TABLE keyed.pums ADD PRIMARY KEY (pid)",
		"GRANT USAGE ON SCHEMA keyed TO PUBLIC; GRANT SELECT ON keyed.pums TO PUBLIC")
	p.Grant(t)
	for _, c := range []struct {
		file, schema, table string
		blanks              int
		unit                catalog.UnitKind
		total               int64 // rows of one person in all groups
	}{
		{"PUMS", "keyed", "pums", 3, catalog.RowUnit, 1},
		{"PUMS_dup", "public", "pums", 2, catalog.ColumnUnit, 1},
		{"PUMS_pid", "public", "pums", 2, catalog.ColumnUnit, 1},
		{"PUMS_two_table", "public", "pums_null", 3, catalog.ColumnUnit, 3},
	} {
		text, err := os.ReadFile(testfiles.FetchedOr(t, "data/pums/"+c.file+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		got, problems := Import(string(text), ImportParameters{System: SmartNoise, Dataset: "pums", Schema: c.schema})
		if len(problems) > 0 || Blanks(got) != c.blanks {
			t.Fatalf("%s: %v, %d blanks:\n%s", c.file, problems, Blanks(got), got)
		}
		if c.file == "PUMS_two_table" { // public.pums has no key, so that no row of it is one person
			got = strings.Replace(got, "{row: "+Blank+"}", "{column: pid}", 1)
		}
		snapshot, err := checked(t, p, strings.Replace(filled(got, true), "row: 10", "row: pid", 1))
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.file, err, got)
		}
		i := 0
		for snapshot.Tables[i].Name != c.table {
			i++
		}
		if table := snapshot.Tables[i]; table.Unit.Kind != c.unit || min(table.MaxRows*table.MaxGroups, max(table.MaxTotal, 1)) != c.total {
			t.Errorf("%s: %+v", c.file, table)
		}
	}
}

// What is wrong with metadata is said of all of it at once, with its place.
func TestImportRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{
			"- a",
			"1:1 metadata must be a mapping, not a list",
		},
		{
			"a: {s: {t: {x: {type: int}}}}\nb:",
			"2:1 a file holds one collection",
		},
		{
			"a: {}",
			"1:2 the metadata have no table",
		},
		{
			"a: {s: {t: {max_ids: 0, x: {}}}}",
			"1:22 max_ids must be a whole number from 1 to 1000000000|1:28 column \"x\" has no type",
		},
		{
			"a: {s: {t: {x: {type: int, lower: 5, upper: 5}}}}",
			"1:35 lower must be below upper",
		},
		{
			"a: {s: {t: {x: {type: int, lower: five, upper: 0x9}}}}",
			"1:35 \"five\" is not a number|1:48 \"0x9\" is not a number",
		},
		{
			"a: {s: {t: {x: {type: int, private_id: maybe}}}}",
			"1:40 \"maybe\" is neither true nor false",
		},
		{
			"a: {s: {t: {p: {type: int, private_id: 1}, q: {type: int, private_id: 1}}}}",
			"1:44 columns \"p\" and \"q\" have both private_id",
		},
		{
			"a: {s: {T: {x: {type: int}}, t: {X: {type: int}, x: {type: int}}}}",
			"1:33 table \"t\" has no name, or that of another|1:50 column \"x\" has no name, or that of another",
		},
		{
			"a: {s: {t.u: {x: {type: int}}}}",
			"1:9 \"t.u\" cannot be named by a policy: names have at most 63 bytes, and no dot",
		},
		{
			"a: {s: {t: {x: {type: datetime, lower: today, upper: 2020-01-01}}}}",
			"1:40 \"today\" is not a time such as 2024-02-29 or 2024-02-29T12:30:00",
		},
		{
			"a: {s: {t: {x: {type: string, categories: [a, a, [b]]}}}}",
			"1:47 category \"a\" is given twice|" +
				"1:50 a category must be a text, or a whole number in a column of the type int",
		},
		{
			"a: {s: {t: {x: 5}}}",
			"1:16 a column must be a mapping, not a single value",
		},
	} {
		var got []string
		_, problems := Import(c.text, ImportParameters{System: SmartNoise, Dataset: "d"})
		for _, problem := range problems {
			got = append(got, regexp.MustCompile(`^policy/invalid: (\d+:\d+):`).ReplaceAllString(problem.Error(), "$1"))
		}
		if all := strings.Join(got, "|"); !strings.Contains(all, c.want) {
			t.Errorf("%s\n%s\nwant\n%s", c.text, all, c.want)
		}
	}
	if _, problems := Import("rows: 3", ImportParameters{System: Lomas, Dataset: "d", Table: "t"}); len(problems) != 1 {
		t.Error(problems)
	}
	if _, problems := Import(penguins, ImportParameters{System: Lomas, Dataset: "d", Table: "a.b"}); len(problems) != 1 {
		t.Error(problems)
	}
}

// Whatever the metadata say, they are refused, or become a policy file that is sound but for its blanks.
func FuzzImport(f *testing.F) {
	f.Add(everySetting, false)
	f.Add(penguins, true)
	f.Add("a: {s: {t: {x: &c {type: int}, y: *c}}}", false)
	f.Add(strings.Repeat("[", 100), false)
	f.Add("max_ids: 2\ncolumns: {\"a # ___\": {type: boolean}}", true)
	f.Fuzz(func(t *testing.T, text string, lomas bool) {
		p := ImportParameters{System: SmartNoise, Dataset: "d"}
		if lomas {
			p = ImportParameters{System: Lomas, Dataset: "d", Table: "t"}
		}
		got, problems := Import(text, p)
		if len(problems) > 0 {
			if got != "" {
				t.Errorf("%v, and\n%s", problems, got)
			}
			return
		}
		if _, problems := catalog.Parse(strings.ReplaceAll(got, "rho: "+Blank, "rho: 0.5")); len(problems) > 0 {
			t.Errorf("%v\n%s\nfrom\n%s", problems, got, text)
		}
	})
}
