// Package copying reads the statements that fill a prepared copy of a table, node by node, and refuses every other shape. It does not know
// what the rows are that they insert.
package copying

import (
	"slices"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
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
	ranked = "NOT EXISTS (SELECT 1 FROM (SELECT @group AS g, @row AS n, pg_catalog.lag(@group, 1, @group) OVER w AS was, " +
		"pg_catalog.row_number() OVER w AS nth FROM ONLY @copy WINDOW w AS (PARTITION BY @unit @keys ORDER BY @rank)) AS x " +
		"WHERE x.g IS DISTINCT FROM x.was OR x.n IS DISTINCT FROM x.nth) AND NOT EXISTS (SELECT 1 FROM (SELECT @group AS g, " +
		"pg_catalog.row_number() OVER (PARTITION BY @unit ORDER BY @group) AS nth FROM ONLY @copy WHERE @row = 1) AS x " +
		"WHERE x.g IS DISTINCT FROM x.nth)"
)

// Checked refuses texts that do not see of the rows what a proof rests on: ids and numbers are keys of each other; of each set the rows of one
// unit that agree in the keys have one number of the group, and are numbered in the order of the rank, and the groups of a unit are numbered
// without a gap.
func (t Tables) Checked(byNumber, byRank string, sets []catalog.RankSet) {
	if byNumber != t.named(numbered, catalog.RankSet{}) {
		tree.Refuse("ids and numbers that are not seen to be keys of each other")
	}
	want := ""
	for i, s := range sets {
		want += []string{"SELECT ", " AND "}[min(i, 1)] + t.named(ranked, s)
	}
	if byRank != want {
		tree.Refuse("ranks of a copy that are not seen to be those of its sets")
	}
}

// named puts names into a text.
func (t Tables) named(text string, s catalog.RankSet) string {
	quoted := func(name string) string {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	keys := ""
	for _, k := range s.Keys {
		keys += ", " + quoted(k)
	}
	return strings.NewReplacer("@group", s.Group, "@row", s.Row, " @keys", keys, "@rank", t.Rank, "@units", quoted(t.Schema)+"."+quoted(t.Units),
		"@unit", quoted(t.Unit), "@copy", quoted(t.Schema)+"."+quoted(t.Copy)).Replace(text)
}

// Rows are what is inserted into a copy: INSERT INTO copy (columns) SELECT u.unit, r.x, ... FROM (query) AS r JOIN ONLY units AS u ON u.id = r.id
// WHERE r.rank <= most.
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
	if j == nil || j.Jointype != pgquery.JoinType_JOIN_INNER || j.IsNatural || len(j.UsingClause) > 0 || j.JoinUsingAlias != nil || j.Alias != nil || j.Rtindex != 0 {
		tree.Refuse("a copy that is no join with the numbers of units")
	}
	rows, units := j.Larg.GetRangeSubselect(), j.Rarg.GetRangeVar()
	if rows == nil || rows.Lateral || units == nil || units.Catalogname != "" || units.Schemaname != t.Schema || units.Relname != t.Units || units.Inh ||
		units.Relpersistence != "p" {
		tree.Refuse("a copy that is no join with the numbers of units")
	}
	r, u := tree.AliasOf(rows.Alias), tree.AliasOf(units.Alias)
	if r == "" || u == "" || r == u {
		tree.Refuse("names of relations that are not two")
	}
	on, cut := compared(j.Quals, "="), compared(q.WhereClause, "<=")
	if column(on.Lexpr, u) != unitsID {
		tree.Refuse("a join that is not by the unit's id")
	}
	read := Rows{Columns: columns, Query: tree.SelectOf(rows.Subquery), ID: column(on.Rexpr, r), Rank: column(cut.Lexpr, r), Most: int64(tree.Integer(cut.Rexpr))}
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

// Merge is the statement that puts to a copy the rows that one which [Tables.Read] read makes, and ranks them beside those that are there;
// docs/prepared.md says how. "": the insertion is not written as it is to be.
func (t Tables) Merge(insert string, in Rows) string {
	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
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
	return "WITH added (" + list(names) + ") AS MATERIALIZED (" + rows + "), " +
		"fresh AS MATERIALIZED (SELECT a.* FROM added AS a WHERE NOT EXISTS (SELECT FROM ONLY " + copied + " AS c WHERE " +
		gone[0] + " = a.unit AND " + gone[1] + " = " + most + " AND " + gone[last] + " <= a.h)), " +
		"kept (" + list(names) + ") AS (DELETE FROM ONLY " + copied + " AS c USING (SELECT DISTINCT f.unit FROM fresh AS f) AS f " +
		"WHERE " + gone[0] + " = f.unit RETURNING " + list(gone) + ") " +
		head + "SELECT " + list(made) + " FROM (SELECT r.*, pg_catalog.row_number() OVER (PARTITION BY r.unit ORDER BY r.h, r.new, r.rn) AS rank " +
		"FROM (SELECT k.*, false AS new FROM kept AS k UNION ALL SELECT f.*, true FROM fresh AS f) AS r) AS m WHERE m.rank <= " + most
}

// ReadIDs reads the statement that gives numbers to units: INSERT INTO units (id) query ON CONFLICT DO NOTHING.
func (t Tables) ReadIDs(sql string) *pgquery.SelectStmt {
	columns, q, conflict := insertion(sql, t.Schema, t.Units)
	if !slices.Equal(columns, []string{unitsID}) || len(q.TargetList) != 1 || len(q.DistinctClause) != 1 {
		tree.Refuse("ids of units in another form")
	}
	if conflict == nil || conflict.Action != pgquery.OnConflictAction_ONCONFLICT_NOTHING || len(conflict.TargetList) > 0 || conflict.WhereClause != nil {
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
	if len(parsed.Stmts) != 1 || parsed.Stmts[0].StmtLocation != 0 || parsed.Stmts[0].StmtLen != 0 {
		tree.Refuse("not one statement")
	}
	i := parsed.Stmts[0].Stmt.GetInsertStmt()
	if i == nil || i.WithClause != nil || len(i.ReturningList) > 0 || i.Override > pgquery.OverridingKind_OVERRIDING_NOT_SET {
		tree.Refuse("a statement that is no INSERT, or one that no rule covers")
	}
	into := i.Relation
	if into == nil || into.Catalogname != "" || into.Schemaname != schema || into.Relname != name || into.Relpersistence != "p" || into.Alias != nil || !into.Inh {
		tree.Refuse("an INSERT into another table")
	}
	for _, n := range i.Cols {
		c := n.GetResTarget()
		if c == nil || c.Name == "" || len(c.Indirection) > 0 || c.Val != nil || slices.Contains(columns, c.Name) {
			tree.Refuse("a column of INSERT that no rule covers")
		}
		columns = append(columns, c.Name)
	}
	from = tree.SelectOf(i.SelectStmt)
	tree.Plain(from)
	if from.WithClause != nil || from.Larg != nil || from.Rarg != nil || from.HavingClause != nil || len(from.GroupClause) > 0 || from.LimitOffset != nil ||
		from.Op > pgquery.SetOperation_SETOP_NONE {
		tree.Refuse("a clause of the rows that are inserted that no rule covers")
	}
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
