package sqlprint

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
)

var errNotPreparable = errors.New("sqlprint: a table that cannot be prepared")

// NewBuild prints what makes a version of a table of a snapshot. Its error is internal: [catalog.Check] lets no other table ask for a copy.
func NewBuild(on *catalog.Snapshot, t *catalog.Table, version int64) (*Build, error) {
	if t.Prepare < 1 || t.Preparable() != "" || version < 1 {
		return nil, fault.Internal(errNotPreparable)
	}
	unit, _ := t.Column(t.Unit.Column)
	c := on.CopyOf(t, catalog.Version{Number: version})
	name, id := on.UnitsOf(t)
	b := &Build{Copy: c, Units: name, on: on}
	units := scalar.QuoteIdent(catalog.PreparedSchema) + "." + scalar.QuoteIdent(b.Units)
	b.NeedUnits, b.Numbered = needUnits(units, id), numbered(units)
	rows := "ONLY " + TableName(t)
	if t.Partitioned {
		rows = TableName(t)
	}
	column := `t.` + scalar.QuoteIdent(unit.Name)
	where := "(" + column + " IS NOT NULL)"
	if unit.Type == catalog.Text { // the rows of a longer one belong to nobody, as everywhere
		where += fmt.Sprintf(" AND (pg_catalog.octet_length(%s) <= %d)", column, unit.LongestText())
	}
	b.AddUnits = fmt.Sprintf("INSERT INTO %s (id) SELECT DISTINCT %s AS id FROM %s AS t WHERE %s ON CONFLICT DO NOTHING",
		units, column, rows, where)
	b.fill(t, fillParts{units: units, id: column, rows: rows, where: where})
	copied := TableName(c)
	for _, column := range c.Columns {
		if column.NotNull {
			b.Constrain = append(b.Constrain, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", copied, scalar.QuoteIdent(column.Name)))
		}
	}
	b.Constrain = append(b.Constrain,
		fmt.Sprintf("ALTER TABLE %s ADD CHECK (%s BETWEEN 1 AND %d)", copied, catalog.RankColumn, t.Prepare),
		fmt.Sprintf("ALTER TABLE %s ADD UNIQUE (%s, %s)", copied, scalar.QuoteIdent(unit.Name), catalog.RankColumn))
	b.Conditions = []Precondition{b.condition(t)}
	b.Digest = b.digest()
	return b, nil
}

// needUnits makes the table of numbers: ids and numbers are keys of each other.
func needUnits(table string, id catalog.Type) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (id %s NOT NULL UNIQUE, unit bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY)",
		table, id)
}

// numbered asks the rows, since keys are indexes: one that is gone, or that a collation's new version has left in another order, may let an
// id have two numbers.
func numbered(table string) string {
	once := func(column string) string {
		return fmt.Sprintf("NOT EXISTS (SELECT FROM ONLY %s GROUP BY %s HAVING pg_catalog.count(*) > 1)", table, column)
	}
	return "SELECT " + once("id") + " AND " + once("unit")
}

// fillParts are the parts of the texts of a build that are the same in all of them.
type fillParts struct{ units, id, rows, where string }

// fill prints the statements that make the copy and fill it: a unit keeps the rows that come first by a hash of the unit and the row's key.
func (b *Build) fill(t *catalog.Table, in fillParts) {
	unit, _ := t.Column(t.Unit.Column)
	hash, order := hashed(unit, in.id, "$1::bigint"), ""
	for _, name := range t.RowKey() {
		key, _ := t.Column(name)
		column := "t." + scalar.QuoteIdent(name)
		hash, order = hashed(key, column, hash), order+", "+column
	}
	into := []string{scalar.QuoteIdent(unit.Name), catalog.RankColumn}
	empty := []string{"0::bigint AS " + into[0], "0::integer AS " + into[1]}
	inner := []string{in.id + " AS id", fmt.Sprintf("pg_catalog.row_number() OVER (PARTITION BY %s ORDER BY %s%s) AS rn", in.id, hash, order)}
	outer := []string{"u.unit", "r.rn"}
	for i, c := range b.Copy.Columns[2:] {
		name := scalar.QuoteIdent(c.Name)
		value := "t." + name
		empty = append(empty, value)
		if c.Type == catalog.Text {
			value = fmt.Sprintf("CASE WHEN (pg_catalog.octet_length(%s) <= %d) THEN %s END", value, c.LongestText(), value)
		}
		inner, outer = append(inner, fmt.Sprintf("%s AS c%d", value, i)), append(outer, fmt.Sprintf("r.c%d", i))
		into = append(into, name)
	}
	b.Create = fmt.Sprintf("CREATE TABLE %s AS SELECT %s FROM %s AS t WITH NO DATA", TableName(b.Copy), strings.Join(empty, ", "), in.rows)
	b.Fill = fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM (SELECT %s FROM %s AS t WHERE %s) AS r "+
		"JOIN ONLY %s AS u ON u.id = r.id WHERE r.rn <= %d",
		TableName(b.Copy), strings.Join(into, ", "), strings.Join(outer, ", "), strings.Join(inner, ", "), in.rows, in.where, in.units, t.Prepare)
}

// hashed hashes a value of a column into another hash.
func hashed(c *catalog.Column, value, into string) string {
	if c.Type.IsInteger() {
		return fmt.Sprintf("pg_catalog.hashint8extended(%s::bigint, %s)", value, into)
	}
	return fmt.Sprintf("pg_catalog.hashtextextended(%s, %s)", asTextSQL(value), into)
}

// condition is what must hold of the source: its columns, and that rows have keys.
func (b *Build) condition(t *catalog.Table) Precondition {
	p := preconditionOf(t)
	key := t.RowKey()
	p.Keys = [][]string{key}
	needed := map[string]bool{t.Unit.Column: true}
	solid := map[string]bool{}
	for _, name := range key {
		needed[name], solid[name] = true, true
	}
	for _, c := range b.Copy.Columns[2:] {
		needed[c.Name] = true
		solid[c.Name] = solid[c.Name] || c.NotNull
	}
	for _, c := range t.Columns {
		if needed[c.Name] {
			column := preconditionColumn(c)
			column.NotNull = solid[c.Name]
			p.Columns = append(p.Columns, column)
		}
	}
	return p
}

// onlyRanked prints the condition that leaves of each unit of a copy the rows that count; "" where all do.
func (p *StatementPrinter) onlyRanked() string {
	s := p.Q.CopyOf()
	if s == nil || p.bounding.MostRank == 0 || p.bounding.MostRank >= s.Table.Copy.MaxRows {
		return ""
	}
	for _, f := range s.Fields {
		if f.Name == catalog.RankColumn {
			return "(" + p.field(f) + " <= " + p.number(big.NewInt(p.bounding.MostRank), "integer") + ")"
		}
	}
	panic("sqlrewrite: a copy without ranks")
}
