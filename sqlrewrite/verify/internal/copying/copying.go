// Package copying reads the statements that fill a prepared copy of a table, node by node, and refuses every other shape. It does not know
// what the rows are that they insert.
package copying

import (
	"slices"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// The columns of the table that has a number for each unit.
const unitsID, unitsNumber = "id", "unit"

// Tables are the tables of a copy, both in one schema.
type Tables struct {
	Schema string
	Copy   string
	Units  string // has a number for each unit
	Unit   string // the column of the copy with that number
	Rank   string // and the one that numbers the rows of each unit
}

const (
	numbered = "SELECT NOT EXISTS (SELECT FROM ONLY @units GROUP BY id HAVING pg_catalog.count(*) > 1) AND " +
		"NOT EXISTS (SELECT FROM ONLY @units GROUP BY unit HAVING pg_catalog.count(*) > 1)"
	added = "WITH ids AS MATERIALIZED (@ids), theirs AS MATERIALIZED (SELECT u.id, u.unit FROM " + rows +
		" AS u JOIN ids AS i ON i.id = u.id) " +
		"SELECT NOT EXISTS (SELECT FROM theirs AS t GROUP BY t.id HAVING pg_catalog.count(*) > 1) AND " +
		"NOT EXISTS (SELECT FROM " + rows + " AS u JOIN theirs AS t ON t.unit = u.unit WHERE t.id <> u.id)"
	rows = "(SELECT u.id, u.unit FROM ONLY @units AS u OFFSET 0)" // which no index is asked for
)

// Checked refuses texts that do not see of the rows that ids and numbers are keys of each other: of all, and of the ids that a text adds.
func (t Tables) Checked(all, ofAdded, adds string) {
	units := quoted(t.Schema) + "." + quoted(t.Units)
	ids, ok := strings.CutPrefix(adds, "INSERT INTO "+units+" ("+unitsID+") ")
	ids, ends := strings.CutSuffix(ids, " ON CONFLICT DO NOTHING")
	named := func(text string) string { return strings.NewReplacer("@units", units, "@ids", ids).Replace(text) }
	if !ok || !ends || all != named(numbered) || ofAdded != named(added) {
		tree.Refuse("ids and numbers that are not seen to be keys of each other")
	}
}

// quoted is a name as SQL has it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Rows are what is inserted into a copy: INSERT INTO copy (columns) SELECT u.unit, r.x, ... FROM (query) AS r JOIN ONLY units AS u ON
// u.id = r.id WHERE r.rank <= most.
type Rows struct {
	Columns []string // of the copy; the first gets the unit's number
	Query   *pgquery.SelectStmt
	ID      string   // the column of the query by which numbers are found
	Rank    string   // the column of the query that is at most Most
	Outputs []string // columns of the query that the other columns of the copy get
	Most    int64
}

// Read reads the statement that fills a copy.
func (t Tables) Read(sql string) Rows {
	columns, q, conflict := insertion(sql, t.Schema, t.Copy)
	if conflict != nil || len(q.DistinctClause) > 0 || len(q.TargetList) != len(columns) || len(columns) < 2 || len(q.FromClause) != 1 {
		tree.Refuse("the rows of a copy in another form")
	}
	j := q.FromClause[0].GetJoinExpr()
	if j == nil || j.Jointype != pgquery.JoinType_JOIN_INNER {
		tree.Refuse("a copy that is no join with the numbers of units")
	}
	tree.Reads(j, "Jointype", "Larg", "Rarg", "Quals")
	rows, units := j.Larg.GetRangeSubselect(), j.Rarg.GetRangeVar()
	if rows == nil || units == nil || units.Schemaname != t.Schema || units.Relname != t.Units || units.Relpersistence != "p" {
		tree.Refuse("a copy that is no join with the numbers of units")
	}
	tree.Reads(rows, "Subquery", "Alias")
	tree.Reads(units, "Schemaname", "Relname", "Relpersistence", "Alias")
	r, u := tree.AliasOf(rows.Alias), tree.AliasOf(units.Alias)
	if r == "" || u == "" || r == u {
		tree.Refuse("names of relations that are not two")
	}
	on, cut := compared(j.Quals, "="), compared(q.WhereClause, "<=")
	if column(on.Lexpr, u) != unitsID {
		tree.Refuse("a join that is not by the unit's id")
	}
	read := Rows{Columns: columns, Query: tree.SelectOf(rows.Subquery), ID: column(on.Rexpr, r), Rank: column(cut.Lexpr, r),
		Most: int64(tree.Integer(cut.Rexpr))}
	for i, n := range q.TargetList {
		o := n.GetResTarget()
		switch {
		case o == nil || o.Name != "" || len(o.Indirection) > 0:
			tree.Refuse("an output of a copy that no rule covers")
		case i > 0:
			read.Outputs = append(read.Outputs, column(o.Val, r))
		case column(o.Val, u) != unitsNumber:
			tree.Refuse("a unit that is not the number of one")
		}
	}
	return read
}

// Merge is the statement that puts to a copy the rows that one which [Tables.Read] read makes, each in its place among those of its unit;
// docs/prepared.md says how. "": the insertion is not written as it is to be.
func (t Tables) Merge(insert string, in Rows) string {
	last := len(in.Columns) - 1
	if last < 2 {
		return ""
	}
	var into, gone, names, made []string
	for i, name := range in.Columns {
		as := "c" + strconv.Itoa(i-2)
		switch i {
		case 0:
			name, as = quoted(name), "unit"
		case 1:
			as = "rn"
		case last:
			as = "h"
		default:
			name = quoted(name)
		}
		into, gone, names, made = append(into, name), append(gone, "c."+name), append(names, as), append(made, "m."+as)
	}
	made[1] = "m.rank"
	list := func(all []string) string { return strings.Join(all, ", ") }
	copied, most := quoted(t.Schema)+"."+quoted(t.Copy), strconv.FormatInt(in.Most, 10)
	head := "INSERT INTO " + copied + " (" + list(into) + ") "
	rows, ok := strings.CutPrefix(insert, head)
	if !ok {
		return ""
	}
	unit, rank, hash := gone[0], gone[1], gone[last]
	return "WITH added (" + list(names) + ") AS MATERIALIZED (" + rows + "), " +
		"least AS MATERIALIZED (SELECT a.unit, pg_catalog.min(a.h) AS h FROM added AS a GROUP BY a.unit), " +
		"moved (" + list(names) + ") AS (DELETE FROM ONLY " + copied + " AS c USING least AS f " +
		"WHERE " + unit + " = f.unit AND " + hash + " > f.h RETURNING " + list(gone) + ") " +
		head + "SELECT " + list(made) + " FROM (SELECT r.*, " +
		"COALESCE(pg_catalog.min(r.rn) FILTER (WHERE NOT r.new) OVER (PARTITION BY r.unit) - 1, " +
		"(SELECT pg_catalog.max(" + rank + ") FROM ONLY " + copied + " AS c WHERE " + unit + " = r.unit), 0) + " +
		"pg_catalog.row_number() OVER (PARTITION BY r.unit ORDER BY r.h, r.new, r.rn) AS rank " +
		"FROM (SELECT k.*, false AS new FROM moved AS k UNION ALL SELECT a.*, true FROM added AS a) AS r) AS m WHERE m.rank <= " + most
}

// ReadIDs reads the statement that gives numbers to units: INSERT INTO units (id) query ON CONFLICT DO NOTHING.
func (t Tables) ReadIDs(sql string) *pgquery.SelectStmt {
	columns, q, conflict := insertion(sql, t.Schema, t.Units)
	if !slices.Equal(columns, []string{unitsID}) || len(q.TargetList) != 1 || len(q.DistinctClause) != 1 {
		tree.Refuse("ids of units in another form")
	}
	if conflict == nil || conflict.Action != pgquery.OnConflictAction_ONCONFLICT_NOTHING || len(conflict.TargetList) > 0 ||
		conflict.WhereClause != nil {
		tree.Refuse("ids of units that are not left out where they are there")
	}
	return q
}

// insertion reads INSERT INTO schema.name (columns) SELECT.
func insertion(sql, schema, name string) (columns []string, from *pgquery.SelectStmt, conflict *pgquery.OnConflictClause) {
	parsed, err := pgquery.Parse(sql)
	if err != nil {
		tree.Refuse("PostgreSQL's grammar does not read it")
	}
	i := tree.Statement(parsed).GetInsertStmt()
	if i == nil || i.Override > pgquery.OverridingKind_OVERRIDING_NOT_SET {
		tree.Refuse("a statement that is no INSERT, or one that no rule covers")
	}
	tree.Reads(i, "Relation", "Cols", "SelectStmt", "OnConflictClause", "Override")
	into := i.Relation
	if into == nil || into.Schemaname != schema || into.Relname != name || into.Relpersistence != "p" || !into.Inh {
		tree.Refuse("an INSERT into another table")
	}
	tree.Reads(into, "Schemaname", "Relname", "Relpersistence", "Inh")
	for _, n := range i.Cols {
		c := n.GetResTarget()
		if c == nil || c.Name == "" || slices.Contains(columns, c.Name) {
			tree.Refuse("a column of INSERT that no rule covers")
		}
		tree.Reads(c, "Name")
		columns = append(columns, c.Name)
	}
	from = tree.SelectOf(i.SelectStmt)
	tree.Plain(from)
	if from.Op > pgquery.SetOperation_SETOP_NONE {
		tree.Refuse("rows that are inserted of two queries")
	}
	tree.Reads(from, "DistinctClause", "TargetList", "FromClause", "WhereClause", "LimitOption", "Op")
	return columns, from, i.OnConflictClause
}

// compared is a comparison of two operands.
func compared(n *pgquery.Node, op string) *pgquery.A_Expr {
	e := n.GetAExpr()
	if e == nil || e.Kind != pgquery.A_Expr_Kind_AEXPR_OP || e.Lexpr == nil || e.Rexpr == nil || tree.Operator(e.Name) != op {
		tree.Refuse("a condition of a copy that no rule covers")
	}
	return e
}

// column is the name of a column of a relation.
func column(n *pgquery.Node, of string) string {
	c := n.GetColumnRef()
	if c == nil || len(c.Fields) != 2 {
		tree.Refuse("what is no column of a relation")
	}
	w := tree.Words(c.Fields)
	if w[0] != of {
		tree.Refuse("a column of another relation")
	}
	return w[1]
}
