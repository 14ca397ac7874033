// Package copytext prints what is asked of the rows of prepared copies when they are made: the numbers of units, which rows are
// new, where these come, and ranks of groups.
// It does not know how a copy is filled, nor what is proven of it.
package copytext

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// NeedUnits makes the table of numbers: ids and numbers are keys of each other.
func NeedUnits(table string, id catalog.Type) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (id %s NOT NULL UNIQUE, unit bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY)",
		table, id)
}

// Numbered asks the rows, since keys are indexes: one that is gone, or that a collation's new version has left in another order, may let an
// id have two numbers.
func Numbered(table string) string {
	once := func(column string) string {
		return fmt.Sprintf("NOT EXISTS (SELECT FROM ONLY %s GROUP BY %s HAVING pg_catalog.count(*) > 1)", table, column)
	}
	return "SELECT " + once("id") + " AND " + once("unit")
}

// Added is [Numbered] of the ids of the rows of some times, as the text that adds these names them. OFFSET 0 has it asked of rows.
func Added(table, addUnits string) string {
	ids := strings.TrimSuffix(strings.TrimPrefix(addUnits, "INSERT INTO "+table+" (id) "), " ON CONFLICT DO NOTHING")
	rows := "(SELECT u.id, u.unit FROM ONLY " + table + " AS u OFFSET 0)"
	return "WITH ids AS MATERIALIZED (" + ids + "), theirs AS MATERIALIZED (SELECT u.id, u.unit FROM " + rows + " AS u " +
		"JOIN ids AS i ON i.id = u.id) SELECT NOT EXISTS (SELECT FROM theirs AS t GROUP BY t.id HAVING pg_catalog.count(*) > 1) AND " +
		"NOT EXISTS (SELECT FROM " + rows + " AS u JOIN theirs AS t ON t.unit = u.unit WHERE t.id <> u.id)"
}

// Appended prints a condition on the rows of a source from which rows are appended: those of the times after a parameter, up to the next.
func Appended(t *catalog.Table, parameter int) string {
	if t.Append.Column == "" {
		return ""
	}
	column := "t." + scalar.QuoteIdent(t.Append.Column)
	return fmt.Sprintf(" AND (%[1]s > $%[2]d::%[4]s) AND (%[1]s <= $%[3]d::%[4]s)", column, parameter, parameter+1, catalog.Timestamptz)
}

// RanksBy numbers the groups of a unit, in an order that is another for each unit and seed, and the rows in each, in the order of the rank.
// Both are of one sort.
func RanksBy(c *catalog.Table, set int, hash string) string {
	var keys []string
	for _, name := range c.Copy.Ranks[set].Keys {
		at := slices.IndexFunc(c.Columns, func(column *catalog.Column) bool { return column.Name == name })
		key := fmt.Sprintf("v.c%d", at-c.Copy.Own())
		keys = append(keys, key)
		hash = fmt.Sprintf("pg_catalog.hashtextextended(COALESCE(%s, ''), %s)", key+"::pg_catalog.text", hash)
	}
	by := hash + ", " + strings.Join(keys, ", ")
	return fmt.Sprintf("pg_catalog.dense_rank() OVER (PARTITION BY v.id ORDER BY %s) AS g%d, "+
		"pg_catalog.row_number() OVER (PARTITION BY v.id, %[1]s ORDER BY v.rn) AS n%[2]d", by, set)
}

const (
	merge = "WITH added (@names) AS MATERIALIZED (@rows), " +
		"least AS MATERIALIZED (SELECT a.unit, pg_catalog.min(a.h) AS h FROM added AS a GROUP BY a.unit), " +
		"moved (@names) AS (DELETE FROM ONLY @copy AS c USING least AS f WHERE c.@unit = f.unit AND c.@hash > f.h RETURNING @gone) " +
		"@insertSELECT @made FROM (SELECT r.*, COALESCE(pg_catalog.min(r.rn) FILTER (WHERE NOT r.new) OVER (PARTITION BY r.unit) - 1, " +
		"(SELECT pg_catalog.max(c.@rank) FROM ONLY @copy AS c WHERE c.@unit = r.unit), 0) + " +
		"pg_catalog.row_number() OVER (PARTITION BY r.unit ORDER BY r.h, r.new, r.rn) AS rank " +
		"FROM (SELECT k.*, false AS new FROM moved AS k UNION ALL SELECT a.*, true FROM added AS a) AS r) AS m WHERE m.rank <= @most"
	firstMerge = "WITH added (@names) AS MATERIALIZED (@rows), " +
		"fresh AS MATERIALIZED (SELECT a.* FROM added AS a WHERE NOT EXISTS (SELECT FROM ONLY @copy AS c WHERE c.@unit = a.unit " +
		"AND c.@rank = @most AND c.@hash <= a.h)), " +
		"kept (@names) AS (DELETE FROM ONLY @copy AS c USING (SELECT DISTINCT f.unit FROM fresh AS f) AS f WHERE c.@unit = f.unit " +
		"RETURNING @gone) @insertSELECT @made FROM (SELECT r.*, " +
		"pg_catalog.row_number() OVER (PARTITION BY r.unit ORDER BY r.h, r.new, r.rn) AS rank " +
		"FROM (SELECT k.*, false AS new FROM kept AS k UNION ALL SELECT f.*, true FROM fresh AS f) AS r) AS m WHERE m.rank <= @most"
)

// Merge prints the statement that appends: rows of some times take their places by hash among those of their unit, and rows of the
// copy that come behind the first of them move back. Of rows with one hash those that were there come first. insert is what rows puts
// into columns of the copy, made of outputs. It joins new rows with the copy alone, by its index: of how many they are PostgreSQL knows
// nothing. first is the text that once made the same copy, by moving all rows of such units.
func Merge(c *catalog.Table, insert, rows string, columns, outputs []string) (text, first string) {
	all := strings.Join(outputs, ", ")
	named := strings.NewReplacer("@names", strings.NewReplacer("u.", "", "r.", "").Replace(all), "@rows", rows, "@copy", name(c),
		"@unit", columns[0], "@rank", catalog.RankColumn, "@hash", catalog.HashColumn, "@gone", "c."+strings.Join(columns, ", c."),
		"@insert", insert, "@made", strings.NewReplacer("u.", "m.", "r.rn", "m.rank", "r.", "m.").Replace(all),
		"@most", fmt.Sprint(c.Copy.MaxRows))
	return named.Replace(merge), named.Replace(firstMerge)
}

// Ranked asks the rows of a copy whether, for each of its sets, the rows of one unit that agree in the keys have one number of the group
// and are numbered in the order of the rank, and whether its groups have different numbers without a gap. "": it has no sets.
func Ranked(c *catalog.Table) string {
	var all []string
	for _, set := range c.Copy.Ranks {
		keys := []string{scalar.QuoteIdent(c.Unit.Column)}
		for _, name := range set.Keys {
			keys = append(keys, scalar.QuoteIdent(name))
		}
		all = append(all, fmt.Sprintf("NOT EXISTS (SELECT 1 FROM (SELECT %[1]s AS g, %[2]s AS n, pg_catalog.lag(%[1]s, 1, %[1]s) "+
			"OVER w AS was, pg_catalog.row_number() OVER w AS nth FROM ONLY %[3]s WINDOW w AS (PARTITION BY %[4]s ORDER BY %[5]s)) AS x "+
			"WHERE x.g IS DISTINCT FROM x.was OR x.n IS DISTINCT FROM x.nth) AND NOT EXISTS (SELECT 1 FROM (SELECT %[1]s AS g, "+
			"pg_catalog.row_number() OVER (PARTITION BY %[6]s ORDER BY %[1]s) AS nth FROM ONLY %[3]s WHERE %[2]s = 1) AS x "+
			"WHERE x.g IS DISTINCT FROM x.nth)", set.Group, set.Row, name(c), strings.Join(keys, ", "), catalog.RankColumn, keys[0]))
	}
	if all == nil {
		return ""
	}
	return "SELECT " + strings.Join(all, " AND ")
}

func name(t *catalog.Table) string {
	return scalar.QuoteIdent(t.Schema) + "." + scalar.QuoteIdent(t.Name)
}
