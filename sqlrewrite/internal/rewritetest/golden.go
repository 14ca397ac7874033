package rewritetest

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
)

// RunGoldenFile runs a file of testdata: its tables and policies make the snapshot that the cases below them are about.
func RunGoldenFile(t *testing.T, file string, answer func(*testing.T, *datadriven.TestData, *catalog.Snapshot) string) {
	t.Helper()
	var tables string
	var snapshot *catalog.Snapshot
	datadriven.RunTest(t, GoldenFile(file), func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "tables":
			tables = d.Input
			return ""
		case "policy":
			snapshot = ParseSnapshot(t, tables, d.Input)
			return ""
		default:
			return answer(t, d, snapshot)
		}
	})
}

// GoldenFile is where a golden file is, or one of the identities that 7c2e952 stored ("stored/...").
func GoldenFile(name string) string {
	room := "plan"
	for _, f := range goldenFiles() {
		if f[1] == name {
			room = f[0]
		}
	}
	return RepoFile("sqlrewrite/internal/" + room + "/testdata/" + name)
}

// goldenPlan is a case of a golden file and its plan.
type goldenPlan struct {
	test *datadriven.TestData
	plan *plan.Plan
}

// goldenPlans are made once, for all tests that look at them; nobody changes them.
var goldenPlans struct {
	sync.Once
	all []goldenPlan
}

// EachGoldenPlan visits the plans of the golden files; of a question with several releases, those of each.
func EachGoldenPlan(t *testing.T, visit func(*datadriven.TestData, *plan.Plan)) {
	t.Helper()
	goldenPlans.Do(func() { goldenPlans.all = planGolden(t) })
	for _, g := range goldenPlans.all {
		visit(g.test, g.plan)
	}
}

func planGolden(t *testing.T) (plans []goldenPlan) {
	t.Helper()
	for _, clause := range GoldenClauses() {
		RunGoldenFile(t, clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
			if d.Cmd == "plan" {
				p, err := pipeline.Rewrite(d.Input, snapshot, ParseOptions(t, d))
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				for _, block := range p.Different() {
					plans = append(plans, goldenPlan{new(*d), block})
				}
			}
			return d.Expected
		})
	}
	return plans
}

// goldenFiles are the golden files, most of them one a clause, with the rooms that they test. The order is that of the corpus of package
// verify.
func goldenFiles() [][2]string {
	return [][2]string{
		{"bind", "from"}, {"bind", "join"}, {"bind", "path"}, {"bind", "subquery"}, {"bind", "unitwindow"}, {"bind", "semijoin"},
		{"sqlprint", "steady"}, {"bind", "union"}, {"bind", "select"}, {"bind", "where"}, {"bind", "expr"}, {"bind", "groupby"},
		{"bind", "keys"}, {"bind", "aggregate"}, {"bind", "having"}, {"bind", "orderby"}, {"bind", "limit"}, {"stability", "bounding"},
		{"stability", "max_rows_total"}, {"plan", "report"}, {"bind", "grid"}, {"plan", "price"}, {"plan", "moments"}, {"bind", "distinct"},
		{"plan", "quantile"}, {"plan", "topk"}, {"bind", "post"}, {"plan", "several"}, {"bind", "times"}, {"bind", "lookup"},
		{"bind", "implied"}, {"bind", "ownkey"}, {"bind", "views"}, {"bind", "bought"},
		{"parse", "parse"}, {"parse", "unsupported"}, {"parse", "mysql_parse"}, {"parse", "mysql_unsupported"}, {"free", "free"},
		{"suggest", "suggest"},
	}
}

// GoldenFiles are all golden files.
func GoldenFiles() []string { return goldenFilesOf(func(string) bool { return true }) }

// GoldenClauses are the golden files of plans.
func GoldenClauses() []string {
	return goldenFilesOf(func(room string) bool { return room != "parse" && room != "free" && room != "suggest" })
}

func goldenFilesOf(rooms func(string) bool) (names []string) {
	for _, f := range goldenFiles() {
		if rooms(f[0]) {
			names = append(names, f[1])
		}
	}
	return names
}

// Golden holds the plans of a room's golden files, one per clause, which read as a specification: the tables and the policy at the top,
// then
// queries with the plan and the SQL that runs ("plan"), or with the refusal as a user sees it ("refuse"). After a deliberate change:
// make golden, and read the difference.
func Golden(t *testing.T, room string) {
	for _, clause := range goldenFilesOf(func(of string) bool { return of == room }) {
		t.Run(clause, func(t *testing.T) {
			RunGoldenFile(t, clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
				switch d.Cmd {
				case "plan", "refuse":
					p, err := pipeline.Rewrite(d.Input, snapshot, ParseOptions(t, d))
					if (err != nil) != (d.Cmd == "refuse") {
						d.Fatalf(t, "%s: err = %v", d.Cmd, err)
					}
					if err != nil {
						return parsetest.ShowFault(err)
					}
					for _, s := range StatementsOf(p) {
						CheckArgs(t, d, s.SQL, s.Args)
					}
					if p.Post != nil {
						CheckArgs(t, d, p.Post.SQL(), p.Post.Args())
					}
					return showPlan(p, d)
				default:
					d.Fatalf(t, "unknown command %q", d.Cmd)
					return ""
				}
			})
		})
	}
}

// ParseSnapshot checks a policy document against tables described one per paragraph: a name, then indented columns "name type [not
// null] [unique] [references table(column)]", "unique column column", "index column column", and "values column value ..." for what a
// public table holds; "view" and a query, in one line, make it a view. "rows n" and "equal column n" are what is approved of a public
// table: without them 16 rows, 4 of each value.
func ParseSnapshot(t testing.TB, tables, document string) *catalog.Snapshot {
	t.Helper()
	schema := &catalog.Schema{}
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "view":
			last := schema.Tables[len(schema.Tables)-1]
			last.Kind, last.View = "view", &catalog.ViewInfo{Definition: strings.TrimPrefix(strings.TrimSpace(line), "view ")}
		case fields[0] == "unique":
			last := schema.Tables[len(schema.Tables)-1]
			last.Keys = append(last.Keys, fields[1:])
		case fields[0] == "rows":
			last := schema.Tables[len(schema.Tables)-1]
			last.MostRows, _ = strconv.ParseInt(fields[1], 10, 64)
		case fields[0] == "equal":
			c, _ := schema.Tables[len(schema.Tables)-1].Column(fields[1])
			c.MostEqual, _ = strconv.ParseInt(fields[2], 10, 64)
		case fields[0] == "index":
			last := schema.Tables[len(schema.Tables)-1]
			last.Indexes = append(last.Indexes, fields[1:])
		case fields[0] == "values":
			d := catalog.DomainValues{From: catalog.ColumnRef{Table: schema.Tables[len(schema.Tables)-1].TableName, Column: fields[1]}}
			for _, text := range fields[2:] {
				d.Keys = append(d.Keys, catalog.Key{Text: text})
			}
			schema.Domains = append(schema.Domains, d)
		case !strings.HasPrefix(line, " "):
			schema.Tables = append(schema.Tables, &catalog.TableInfo{
				TableName: catalog.TableName{Schema: "public", Name: fields[0]}, OID: uint32(16400 + len(schema.Tables)),
				Kind: catalog.PlainTable, Readable: true})
		default:
			addColumn(t, schema.Tables[len(schema.Tables)-1], fields)
		}
	}
	policy, errs := catalog.Parse(document)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, t := range schema.Tables {
		if t.MostRows == 0 {
			t.MostRows = 16
		}
		for _, c := range t.Columns {
			if c.MostEqual == 0 && !slices.Contains(t.Unique, c.Name) {
				c.MostEqual = 4
			}
		}
	}
	snapshot, errs := catalog.Check(policy, schema)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return snapshot
}

func addColumn(t testing.TB, table *catalog.TableInfo, fields []string) {
	c := &catalog.ColumnInfo{Name: fields[0], AttNum: int16(len(table.Columns) + 1), TypMod: -1, TypeName: fields[1], Scale: -1}
	name, labels, _ := strings.Cut(strings.TrimSuffix(fields[1], ")"), "(")
	types := map[string]catalog.Type{"smallint": catalog.Int2, "integer": catalog.Int4, "bigint": catalog.Int8, "numeric": catalog.Numeric,
		"real": catalog.Float4, "double": catalog.Float8, "text": catalog.Text, "varchar": catalog.Text, "char": catalog.Char,
		"boolean": catalog.Bool, "date": catalog.Date, "timestamp": catalog.Timestamp, "timestamptz": catalog.Timestamptz,
		"uuid": catalog.UUID, "enum": catalog.Enum}
	var known bool
	if c.Type, known = types[name]; !known {
		t.Fatalf("unknown type %s", name)
	}
	c.TypeOID = uint32(1000 + len(name))
	switch {
	case c.Type == catalog.Enum:
		c.Enum, c.EnumValues = `"public"."mood"`, strings.Split(labels, ",")
	case c.Type == catalog.Numeric && labels != "":
		precision, scale, _ := strings.Cut(labels, ",")
		p, _ := strconv.Atoi(precision)
		c.Scale, _ = strconv.Atoi(scale)
		c.TypMod = int32(p<<16|c.Scale&0x7ff) + 4
	case name == "varchar":
		characters, _ := strconv.Atoi(labels)
		c.TypMod = int32(characters) + 4
	}
	rest := strings.Join(fields[2:], " ")
	c.NotNull = strings.Contains(rest, "not null")
	if strings.Contains(rest, "unique") {
		table.Unique = append(table.Unique, c.Name)
	}
	if _, to, found := strings.Cut(rest, "references "); found {
		name, column, _ := strings.Cut(strings.TrimSuffix(to, ")"), "(")
		table.ForeignKeys = append(table.ForeignKeys, catalog.ForeignKey{Column: c.Name, ToColumn: column,
			To: catalog.TableName{Schema: "public", Name: name}})
	}
	table.Columns = append(table.Columns, c)
}

// GoldenNow is when the questions of golden files are asked.
func GoldenNow() time.Time { return time.Date(2024, 3, 15, 13, 45, 6, 789_000_000, time.UTC) }

// ParseOptions reads epsilon=, rho=, delta=, mechanism=, currency=, max_rows=, max_groups=, max_rows_total= of a directive. The default is
// ε = 1.
func ParseOptions(t testing.TB, d *datadriven.TestData) plan.Options {
	t.Helper()
	o := plan.Options{Now: GoldenNow(), Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95}
	var err error
	for _, arg := range d.CmdArgs {
		value := ""
		if len(arg.Vals) > 0 {
			value = arg.Vals[0]
		}
		switch arg.Key {
		case "epsilon":
			o.Epsilon, err = mechanisms.ParseEpsilon(value)
		case "rho":
			o.Rho, err = mechanisms.ParseRho(value)
		case "delta":
			o.Delta, err = mechanisms.ParseDelta(value)
		case "mechanism":
			o.Mechanism = plan.MechanismChoice(value)
		case "selection":
			o.Selection = mechanisms.Name(value)
		case "report":
			o.Report = plan.Report(value)
		case "currency":
			o.Currency = catalog.Form(value)
		case "max_rows_total":
			o.MaxTotal, err = strconv.ParseInt(value, 10, 64)
		case "max_rows":
			o.MaxRows, err = strconv.ParseInt(value, 10, 64)
		case "max_groups":
			o.MaxGroups, err = strconv.ParseInt(value, 10, 64)
		case "show":
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
		if err != nil {
			d.Fatalf(t, "%s: %v", arg.Key, err)
		}
	}
	if o.Rho == 0 && o.Epsilon == 0 {
		o.Epsilon = mechanisms.EpsilonUnit
	}
	return o
}
