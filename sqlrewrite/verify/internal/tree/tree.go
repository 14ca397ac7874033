// Package tree reads nodes of PostgreSQL's parse tree, and refuses those that it does not understand. It does not know what they mean.
package tree

import (
	"reflect"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// What is read of the parse tree is read here and in the rules, field by field: a field that no rule understands must have its zero value,
// else the statement is refused. TestEveryFieldIsRead sets each field of each node of accepted statements in turn.

// Reads refuses a node with a field that is set and that its rule does not name. Where a node stands in the text says nothing.
func Reads(node any, fields ...string) {
	n := reflect.ValueOf(node).Elem()
	for i := range n.NumField() {
		if n.Field(i).IsZero() {
			continue
		}
		if f := n.Type().Field(i); f.IsExported() && f.Name != "Location" && !slices.Contains(fields, f.Name) {
			Refuse("a field of %s that no rule reads: %s", n.Type().Name(), f.Name)
		}
	}
}

// Statement is the one statement of a text, and Only the one SELECT.
func Statement(tree *pgquery.ParseResult) *pgquery.Node {
	if len(tree.Stmts) != 1 || tree.Stmts[0] == nil || tree.Stmts[0].StmtLocation != 0 || tree.Stmts[0].StmtLen != 0 {
		Refuse("not one statement")
	}
	return tree.Stmts[0].Stmt
}

func Only(tree *pgquery.ParseResult) *pgquery.SelectStmt { return SelectOf(Statement(tree)) }

func SelectOf(n *pgquery.Node) *pgquery.SelectStmt {
	s := n.GetSelectStmt()
	if s == nil {
		Refuse("a statement that is no SELECT")
	}
	return s
}

// Words are the parts of a name.
func Words(list []*pgquery.Node) []string {
	all := make([]string, len(list))
	for i, n := range list {
		s := n.GetString_()
		if s == nil {
			Refuse("a name that is none")
		}
		all[i] = s.Sval
	}
	return all
}

// Builtin is the name of what belongs to pg_catalog: a function, or an operator, which is written without its schema and is found there
// first, as the session's search_path is empty.
func Builtin(list []*pgquery.Node) string {
	w := Words(list)
	if len(w) != 2 || w[0] != "pg_catalog" {
		Refuse("a function outside of pg_catalog")
	}
	return w[1]
}

func Operator(list []*pgquery.Node) string {
	w := Words(list)
	if len(w) != 1 {
		Refuse("an operator with a schema")
	}
	return w[0]
}

// Integer is a whole number that stands in the text.
func Integer(n *pgquery.Node) int32 {
	c := n.GetAConst()
	if c == nil || c.Isnull {
		Refuse("not a whole number")
	}
	i, ok := c.Val.(*pgquery.A_Const_Ival)
	if !ok || i.Ival == nil {
		Refuse("not a whole number")
	}
	return i.Ival.Ival
}

// AliasOf is a table's or subquery's alias; lists of column names are not understood.
func AliasOf(a *pgquery.Alias) string {
	if a == nil {
		return ""
	}
	if len(a.Colnames) > 0 || a.Aliasname == "" {
		Refuse("an alias with columns")
	}
	return a.Aliasname
}

// Conjuncts are the conditions that all must hold.
func Conjuncts(n *pgquery.Node, all []*pgquery.Node) []*pgquery.Node {
	if n == nil {
		return all
	}
	b := n.GetBoolExpr()
	if b == nil || b.Boolop != pgquery.BoolExprType_AND_EXPR {
		return append(all, n)
	}
	if b.Xpr != nil {
		Refuse("a field of AND")
	}
	for _, arg := range b.Args {
		all = Conjuncts(arg, all)
	}
	return all
}

// Plain refuses a SELECT with a part that no rule reads.
func Plain(s *pgquery.SelectStmt) {
	if s.IntoClause != nil || s.GroupDistinct || len(s.WindowClause) > 0 || len(s.ValuesLists) > 0 || len(s.SortClause) > 0 ||
		s.LimitCount != nil || len(s.LockingClause) > 0 {
		Refuse("a clause of SELECT that no rule covers")
	}
	// OFFSET 0 leaves all rows as they are, and PostgreSQL plans the query by itself.
	if c := s.LimitOffset.GetAConst(); s.LimitOffset == nil && s.LimitOption > pgquery.LimitOption_LIMIT_OPTION_DEFAULT ||
		s.LimitOffset != nil && (c == nil || c.Isnull || c.GetIval() == nil || c.GetIval().Ival != 0 ||
			s.LimitOption != pgquery.LimitOption_LIMIT_OPTION_COUNT) {
		Refuse("LIMIT or OFFSET")
	}
	if s.Op > pgquery.SetOperation_SETOP_NONE && (s.Op != pgquery.SetOperation_SETOP_UNION || !s.All) ||
		s.Op <= pgquery.SetOperation_SETOP_NONE && s.All {
		Refuse("a set operation that is not UNION ALL")
	}
}
