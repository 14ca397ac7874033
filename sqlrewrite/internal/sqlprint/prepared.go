package sqlprint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/copytext"
	"noisegate.example/sqlrewrite/internal/scalar"
)

var errNotPreparable = errors.New("sqlprint: a table that cannot be prepared")

// NewBuild prints what makes a version of a table of a snapshot. Its error is internal: [catalog.Check] lets no other table ask for a copy.
func NewBuild(on *catalog.Snapshot, t *catalog.Table, v catalog.Version) (*Build, error) {
	if t.Prepare < 1 || t.Preparable() != "" || v.Number < 1 {
		return nil, fault.Internal(errNotPreparable)
	}
	unit, _ := t.Column(t.Unit.Column)
	c := on.CopyOf(t, v)
	name, id := on.UnitsOf(t)
	b := &Build{Copy: c, Units: name, on: on}
	units := scalar.QuoteIdent(catalog.PreparedSchema) + "." + scalar.QuoteIdent(b.Units)
	b.NeedUnits, b.Numbered = copytext.NeedUnits(units, id), copytext.Numbered(units)
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
		units, column, rows, where+copytext.Appended(t, 1))
	b.Added = copytext.Added(units, b.AddUnits)
	b.fill(t, fillParts{units: units, id: column, rows: rows, where: where + copytext.Appended(t, 2)})
	copied := TableName(c)
	for _, column := range c.Columns {
		if column.NotNull {
			b.Constrain = append(b.Constrain, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", copied, scalar.QuoteIdent(column.Name)))
		}
	}
	b.Constrain = append(b.Constrain,
		fmt.Sprintf("ALTER TABLE %s ADD CHECK (%s BETWEEN 1 AND %d)", copied, catalog.RankColumn, t.Prepare),
		fmt.Sprintf("ALTER TABLE %s ADD UNIQUE (%s, %s)", copied, scalar.QuoteIdent(unit.Name), catalog.RankColumn))
	b.first.ranked = copytext.Ranked(c)
	b.Conditions = []Precondition{b.condition(t)}
	b.Digest = b.digest()
	if v.Narrow {
		b.Create = strings.Replace(b.Create, "0::bigint", "0::integer", 1)
		b.Digest = sha256.Sum256(append(b.Digest[:], "integer"...)) // or a gateway that knows bigints alone would take it for one of its own
	}
	return b, nil
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
	outer, ranks := []string{"u.unit", "r.rn"}, []string(nil)
	for i, set := range b.Copy.Copy.Ranks {
		empty = append(empty, "0::integer AS "+set.Group, "0::integer AS "+set.Row)
		into, outer = append(into, set.Group, set.Row), append(outer, fmt.Sprintf("r.g%d", i), fmt.Sprintf("r.n%d", i))
		ranks = append(ranks, copytext.RanksBy(b.Copy, i, hashed(unit, "v.id", "$1::bigint")))
	}
	for i, c := range b.Copy.Copied() {
		name := scalar.QuoteIdent(c.Name)
		value := "t." + name
		empty = append(empty, value)
		if c.Type == catalog.Text {
			value = fmt.Sprintf("CASE WHEN (pg_catalog.octet_length(%s) <= %d) THEN %s END", value, c.LongestText(), value)
		}
		inner, outer = append(inner, fmt.Sprintf("%s AS c%d", value, i)), append(outer, fmt.Sprintf("r.c%d", i))
		into = append(into, name)
	}
	if t.Append.Column != "" {
		empty = append(empty, "0::bigint AS "+catalog.HashColumn)
		inner, outer = append(inner, hash+" AS h"), append(outer, "r.h")
		into = append(into, catalog.HashColumn)
	}
	b.Create = fmt.Sprintf("CREATE TABLE %s AS SELECT %s FROM %s AS t WITH NO DATA", TableName(b.Copy), strings.Join(empty, ", "), in.rows)
	rows := fmt.Sprintf("SELECT %s FROM %s AS t WHERE %s", strings.Join(inner, ", "), in.rows, in.where)
	if len(ranks) > 0 { // of the rows that are kept
		rows = fmt.Sprintf("SELECT v.*, %s FROM (%s) AS v WHERE v.rn <= %d", strings.Join(ranks, ", "), rows, t.Prepare)
	}
	ranked := fmt.Sprintf("SELECT %s FROM (%s) AS r JOIN ONLY %s AS u ON u.id = r.id WHERE r.rn <= %d", strings.Join(outer, ", "), rows,
		in.units, t.Prepare)
	insert := fmt.Sprintf("INSERT INTO %s (%s) ", TableName(b.Copy), strings.Join(into, ", "))
	b.Fill, b.Rows = insert+ranked, ranked
	if t.Append.Column != "" {
		b.Merge, b.first.merge = copytext.Merge(b.Copy, insert, ranked, into, outer)
		b.Same = fmt.Sprintf("SELECT NOT EXISTS (SELECT FROM (%s) AS r FULL JOIN ONLY %s AS c ON c.%s = r.unit AND c.%s = r.rn "+
			"WHERE r.unit IS NULL OR c.%[3]s IS NULL OR ROW(%[5]s)::text <> ROW(c.%[6]s)::text)", ranked, TableName(b.Copy), into[0], into[1],
			strings.Join(outer[2:], ", "), strings.Join(into[2:], ", c."))
	}
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
	if t.Append.Column != "" {
		needed[t.Append.Column], solid[t.Append.Column] = true, true
	}
	for _, c := range b.Copy.Copied() {
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
	s := p.Q.RankedCopy()
	if s == nil || p.bounding.MostRank == 0 {
		return ""
	}
	upTo := func(column string, most int64) string {
		if most >= s.Table.Copy.MaxRows { // all rows are
			return ""
		}
		at := slices.IndexFunc(s.Fields, func(f *algebra.Field) bool { return f.Name == column })
		return "(" + p.field(s.Fields[at]) + " <= " + p.number(big.NewInt(most), "integer") + ")"
	}
	if set := p.bounding.Set; set != nil {
		return joinConditions([]string{upTo(catalog.RankColumn, p.bounding.MostRank), upTo(set.Group, p.bounding.SetGroups),
			upTo(set.Row, p.bounding.SetRows)})
	}
	return upTo(catalog.RankColumn, p.bounding.MostRank)
}
