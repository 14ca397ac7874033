package draft

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
)

const adultTable = `CREATE TABLE people (person_id int PRIMARY KEY, age int, workclass text, fnlwgt int, education text, education_num int,
	marital_status text, occupation text, relationship text, race text, sex text, capital_gain int, capital_loss int, hours_per_week int,
	native_country text, income text)`

const pumsTables = `CREATE TABLE pums (age int, sex int, educ int, race int, income int, married int, pid int);
	CREATE TABLE pums_null (age int, sex int, educ int, race int, income int, married int, pid int)`

// shop has one of everything that facts can say.
const shop = `
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s "fine"');
CREATE DOMAIN percent AS int CHECK (VALUE >= 0 AND VALUE <= 100);
CREATE TABLE country (code text PRIMARY KEY, label text);
CREATE TABLE customer (id int PRIMARY KEY, email text UNIQUE, name text NOT NULL, country text REFERENCES country, mood mood NOT NULL,
	age int CHECK (age BETWEEN 0 AND 120), sex char(1) CHECK (sex IN ('m', 'f')) NOT NULL, active bool NOT NULL, score percent,
	balance numeric(8, 2), seen timestamptz, place point, tier text);
COMMENT ON TABLE customer IS E'who buys\nfrom us';
COMMENT ON COLUMN customer.tier IS 'gold, silver';
CREATE TABLE "order" (id int PRIMARY KEY, customer int NOT NULL REFERENCES customer, on_day date NOT NULL);
CREATE TABLE item (order_id int REFERENCES "order", qty smallint CHECK (qty > 0));
CREATE TABLE ticket (id uuid PRIMARY KEY, opened date);
CREATE TABLE log (id int, line text);
CREATE VIEW adults AS SELECT * FROM customer WHERE age >= 18;`

func inspect(t *testing.T, p *pgtest.ProtectedDatabase, policy *catalog.Policy) *catalog.Schema {
	t.Helper()
	schema, err := catalog.Inspect(t.Context(), p.Pool(t), policy)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func drafted(t *testing.T, p *pgtest.ProtectedDatabase, table, column string) string {
	t.Helper()
	text, err := FromSchema(inspect(t, p, nil), "demo", Unit{catalog.TableName{Schema: "public", Name: table}, column})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checked holds a policy against the live schema, as policy check does.
func checked(t *testing.T, p *pgtest.ProtectedDatabase, text string) (*catalog.Snapshot, error) {
	t.Helper()
	policy, problems := catalog.Parse(text)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	snapshot, problems := catalog.Check(policy, inspect(t, p, policy))
	return snapshot, errors.Join(problems...)
}

// filled has every blank filled in as somebody would, and the lines taken in that a person could.
func filled(text string, all bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if all && !strings.Contains(line, "# unit:") { // another unit, in place of the one above
			line = regexp.MustCompile(`^( +)# ( *(?:"[^"]*"|[a-z0-9_.]+):(?: +\{.*| *)\n)`).ReplaceAllString(line, "$1$2")
		}
		switch {
		case strings.Contains(line, "rho:"):
			line = strings.Replace(line, Blank, "0.5", 1)
		case strings.Contains(line, "bounds:") && regexp.MustCompile(`_date|day|seen|opened|update|birth`).MatchString(line):
			line = strings.Replace(strings.Replace(line, Blank, "2020-01-01", 1), Blank, "2030-01-01", 1)
		default:
			line = strings.Replace(strings.Replace(line, Blank, "10", 1), Blank, "20", 1)
		}
		b.WriteString(line)
	}
	return b.String()
}

// What is drafted of real schemas has few blanks, is refused as long as there is one, and accepted with all filled in: also with
// every line taken in that the draft only proposes.
func TestDraftsAreAcceptedOnceFilled(t *testing.T) {
	for name, c := range map[string]struct {
		load          func(*testing.T, *pgtest.ProtectedDatabase)
		table, column string
		blanks        int
		tables        int // with a unit
	}{
		"adult": {func(t *testing.T, p *pgtest.ProtectedDatabase) { p.Exec(t, adultTable) }, "people", "person_id", 2, 1},
		"pums":  {func(t *testing.T, p *pgtest.ProtectedDatabase) { p.Exec(t, pumsTables) }, "pums", "pid", 6, 2},
		"shop": {func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.Exec(t, shop, "INSERT INTO country VALUES ('nl', 'Netherlands')")
		}, "customer", "id", 6, 3},
		"pagila": {func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.LoadDump(t, testfiles.FetchedOr(t, "data/pagila/pagila-schema.sql.gz"))
			p.LoadDump(t, testfiles.FetchedOr(t, "data/pagila/pagila-data.sql.gz"))
		}, "customer", "customer_id", 6, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t)
			c.load(t, p)
			p.Grant(t)
			text := drafted(t, p, c.table, c.column)
			if got := Blanks(text); got != c.blanks {
				t.Errorf("%d blanks, want %d:\n%s", got, c.blanks, text)
			}
			if _, err := checked(t, p, text); err == nil {
				t.Error("accepted with blanks")
			}
			if other := regexp.MustCompile(`\n    # unit: +\{via: rental_id, to: rental\}`).MatchString(text); other != (name == "pagila") {
				t.Errorf("whose a payment is may be told by its rental:\n%s", text)
			}
			for _, all := range []bool{false, true} {
				snapshot, err := checked(t, p, filled(text, all))
				if err != nil {
					t.Fatalf("with all lines %v: %v\n%s", all, err, filled(text, all))
				}
				units := 0
				for _, table := range snapshot.Tables {
					if !table.Public {
						units++
					}
				}
				if units != c.tables || all && name == "pagila" && len(snapshot.Tables) != 15 {
					t.Errorf("with all lines %v: %d tables, %d with a unit:\n%s", all, len(snapshot.Tables), units, filled(text, all))
				}
			}
		})
	}
}

// TestDraftOfEverything: the draft of a schema with one of everything, to the letter.
func TestDraftOfEverything(t *testing.T) {
	p := pgtest.Protected(t, shop)
	compareGolden(t, "testdata/shop.yaml", drafted(t, p, "customer", "id"))
}

// compareGolden holds a draft against a file, to the letter.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v: not %s (REWRITE=1 writes it):\n%s", err, file, got)
	}
}

// Rows change nothing in a draft.
func TestDraftsReadNoRow(t *testing.T) {
	p := pgtest.Protected(t, shop)
	before := drafted(t, p, "customer", "id")
	p.Exec(t, `INSERT INTO country VALUES ('x', 'y'); INSERT INTO customer VALUES (1, 'e', 'n', 'x', 'ok', 3, 'm', true, 5, 1, now(), NULL, 't')`,
		"ANALYZE")
	if after := drafted(t, p, "customer", "id"); after != before {
		t.Errorf("%s\n%s", before, after)
	}
}
