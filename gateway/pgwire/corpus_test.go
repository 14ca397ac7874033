package pgwire_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/pgwire"
	"noisegate.example/internal/testfiles"
)

// corpusPolicy and corpusTables have the tables that the messages of the corpus name.
const corpusPolicy = `version: 1
dataset: census
neighbours: add-remove
tables:
  people:
    unit: {row: person_id}
    columns: {person_id: {expose: false}, age: {bounds: [17, 90]}}
  visits:
    unit: {column: person_id}
    max_rows: 5
    max_groups: 3
    columns: {day: {bounds: [2025-01-01, 2025-12-31]}, region: {domain: {table: regions, column: name}}}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 20, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 10, delta: 1e-7}
`

const corpusTables = `CREATE TABLE regions (name text PRIMARY KEY, inhabitants int);
CREATE TABLE people (person_id int PRIMARY KEY, age smallint);
CREATE TABLE visits (visit_id bigint PRIMARY KEY, person_id int NOT NULL REFERENCES people, day date, region text REFERENCES regions);
INSERT INTO regions VALUES ('north', 1)`

// TestCorpusOverTheWire: the messages about catalogs that clients were recorded with are answered, by simple and by extended
// protocol with NULL parameters, and none of them reaches the ledger.
func TestCorpusOverTheWire(t *testing.T) {
	content, err := os.ReadFile(testfiles.Fetched(t, "corpus/catalog_queries.sql"))
	if err != nil {
		t.Fatal(err)
	}
	d := withTwinOf(t, corpusTables, corpusPolicy)
	conn := d.Connect(t, "").PgConn()
	before := d.Entries(t)
	section, _, _ := strings.Cut(string(content), "-- Section 2")
	heading := regexp.MustCompile(`(?m)^-- \[(W\d+)\] (\w+) \| .*\n`)
	places := heading.FindAllStringSubmatchIndex(section, -1)
	if len(places) < 300 {
		t.Fatalf("%d messages of the corpus, want its 338", len(places))
	}
	// What clients ask of the version that they were recorded with, another one may not have.
	fails := func(id, how string, err error) {
		var refused *pgconn.PgError
		if errors.As(err, &refused) && slices.Contains([]string{"42703", "42883", "42P01"}, refused.Code) &&
			!strings.HasPrefix(conn.ParameterStatus("server_version"), "15.") {
			return
		}
		if err != nil {
			t.Errorf("%s, %s: %v", id, how, err)
		}
	}
	for i, at := range places {
		end := len(section)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		id, expect := section[at[2]:at[3]], section[at[4]:at[5]]
		if expect == "data" || testing.Short() && i%10 != 3 {
			continue
		}
		text := regexp.MustCompile(`\{oid:\w+\}`).ReplaceAllString(strings.TrimSpace(section[at[1]:end]), "16384")
		if !strings.Contains(text, "$1") {
			_, err := conn.Exec(t.Context(), text).ReadAll()
			fails(id, "simple", err)
		}
		described, err := conn.Prepare(t.Context(), "", text, nil)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "42601" && strings.Contains(refused.Message, "multiple commands") {
			continue
		}
		if err != nil {
			fails(id, "described", err)
			continue
		}
		fails(id, "extended", conn.ExecPrepared(t.Context(), "", make([][]byte, len(described.ParamOIDs)), nil, nil).Read().Err)
	}
	if n := d.Entries(t); n != before {
		t.Errorf("%d entries of the ledger, want %d", n, before)
	}
}

// withTwinOf opens a door to tables and a policy of the test's own, with a catalog twin.
func withTwinOf(t *testing.T, tables, policy string) pgwire.Door {
	t.Helper()
	return pgwire.OpenedOver(t, tables, policy, func(g *gatewaytest.Gateway) pgwire.Catalog { return twinOf(t, g) })
}
