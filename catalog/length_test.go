package catalog

import (
	"fmt"
	"strings"
	"testing"
)

// max_length is read, belongs to texts, bounds what counts of them, and is part of the policy's identity; public keys
// that are longer are refused.
//
// covers: W.2
func TestMaxLength(t *testing.T) {
	schema := &Schema{Tables: []*TableInfo{{TableName: TableName{DefaultSchema, "people"}, OID: 1, Kind: PlainTable, Readable: true,
		Unique: []string{"id"}, Columns: []*ColumnInfo{
			{Name: "id", AttNum: 1, TypMod: -1, Type: Text, TypeName: "text", NotNull: true, Scale: -1},
			{Name: "age", AttNum: 2, TypMod: -1, Type: Int4, TypeName: "integer", Scale: -1},
			{Name: "name", AttNum: 3, TypMod: -1, Type: Text, TypeName: "text", Scale: -1},
			{Name: "short", AttNum: 4, TypMod: 24, Type: Text, TypeName: "character varying(20)", MaxLength: 20, Scale: -1},
		}}}}
	check := func(columns string) (*Snapshot, string) {
		policy, errs := Parse("version: 1\ndataset: d\nneighbours: add-remove\ntables:\n  people:\n    unit: {row: id}\n    columns:\n" +
			columns +
			"budgets:\n  - {dataset: true, form: approx, epsilon: 1, delta: 1e-6}\n")
		if len(errs) > 0 {
			return nil, fmt.Sprint(errs)
		}
		snapshot, errs := Check(policy, schema)
		if len(errs) > 0 {
			return nil, fmt.Sprint(errs)
		}
		return snapshot, ""
	}
	plain, problem := check("      name: {keys: private}\n")
	if problem != "" {
		t.Fatal(problem)
	}
	limited, problem := check("      id: {expose: false, max_length: 10}\n      name: {keys: private, max_length: 2000}\n      short: " +
		"{max_length: 30}\n")
	if problem != "" {
		t.Fatal(problem)
	}
	for name, want := range map[string][2]int64{"id": {DefaultMaxLength, 10}, "name": {DefaultMaxLength, 2000}, "short": {80, 30}} {
		for i, s := range []*Snapshot{plain, limited} {
			if c, _ := s.Tables[0].Column(name); c.LongestText() != want[i] {
				t.Errorf("%s counts up to %d bytes, want %d", name, c.LongestText(), want[i])
			}
		}
	}
	if plain.Digest == limited.Digest {
		t.Error("policies with other lengths have one digest")
	}
	long := strings.Repeat("x", DefaultMaxLength+1)
	for columns, want := range map[string]string{
		"      name: {max_length: 0}\n":                                       "from 1 to 65536",
		"      name: {max_length: 65537}\n":                                   "from 1 to 65536",
		"      name: {max_length: long}\n":                                    "from 1 to 65536",
		"      age: {max_length: 5}\n":                                        "has the type integer",
		"      name: {domain: [a, " + long + "]}\n":                           "more than 1024 bytes",
		"      name: {domain: [a, ab], max_length: 1}\n":                      "more than 1 bytes",
		"      name: {domain: [a, " + long + "], max_length: 2000}\n":         "",
		"      short: {domain: [abc, twenty-characters-ab]}\n":                "",
		"      short: {domain: [abc, twenty-characters-ab], max_length: 3}\n": "more than 3 bytes",
	} {
		if _, problem := check(columns); want == "" && problem != "" || !strings.Contains(problem, want) {
			t.Errorf("%.80s: %q, want %q", columns, problem, want)
		}
	}
}
