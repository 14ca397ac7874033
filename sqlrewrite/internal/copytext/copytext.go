// Package copytext prints what is asked of the rows of prepared copies when they are made: the numbers of units, which rows are
// new, and ranks of groups.
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

// Ranked asks the rows of a copy whether, for each of its sets, the rows of one unit that agree in the keys have one number of the group
// and are numbered in the order of the rank, and whether its groups have different numbers without a gap.
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
