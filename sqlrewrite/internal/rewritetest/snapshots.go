package rewritetest

import (
	"os"
	"strings"
	"testing"

	"noisegate.example/catalog"
)

// WardTables and WardPolicy are rows of one person each, in 12 groups.
const (
	WardTables = "visits\n  visit_id integer not null unique\n  ward integer not null\n  season integer not null\n  minutes integer not null\n"
	WardPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  visits: {unit: {row: visit_id}, columns: {ward: {domain: [1, 2, 3, 4]}, season: {domain: [1, 2, 3]}, minutes: {bounds: [0, 40]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
)

// TownSnapshot has one table of people.
func TownSnapshot(t testing.TB) *catalog.Snapshot {
	return ParseSnapshot(t, `people
  id      integer not null unique
  sex     text not null
  grade   integer
  country text
  age     integer not null
  born    date`, `version: 1
dataset: town
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      sex:     {domain: [Female, Male]}
      grade:   {domain: [2, 10, null]}
      country: {keys: private}
      born:    {keys: private}
      age:     {bounds: [0, 100]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
}

// PostSnapshot is that of testdata/post: private tables of two kinds and a public one.
func PostSnapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	data, err := os.ReadFile(GoldenFile("post"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(string(data), "\n----\n", 3)
	_, tables, _ := strings.Cut(parts[0], "tables\n")
	_, policy, _ := strings.Cut(parts[1], "policy\n")
	return ParseSnapshot(t, tables, policy)
}
