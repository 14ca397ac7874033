package verify

import (
	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// What is read of the parse tree is read here and in the rules, field by field: a field that no rule understands must have its zero value,
// else the statement is refused. TestEveryFieldIsRead sets each field of each node of accepted statements in turn.

// only is the one SELECT of a text.
func only(tree *pgquery.ParseResult) *pgquery.SelectStmt {
	if len(tree.Stmts) != 1 {
		refuse("not one statement")
	}
	raw := tree.Stmts[0]
	if raw == nil || raw.StmtLocation != 0 || raw.StmtLen != 0 {
		refuse("not one statement")
	}
	return selectOf(raw.Stmt)
}

func selectOf(n *pgquery.Node) *pgquery.SelectStmt {
	s := n.GetSelectStmt()
	if s == nil {
		refuse("a statement that is no SELECT")
	}
	return s
}

// words are the parts of a name.
func words(list []*pgquery.Node) []string {
	all := make([]string, len(list))
	for i, n := range list {
		s := n.GetString_()
		if s == nil {
			refuse("a name that is none")
		}
		all[i] = s.Sval
	}
	return all
}

// builtin is the name of what belongs to pg_catalog: a function, or an operator, which is written without its schema and is found there
// first, as the session's search_path is empty.
func builtin(list []*pgquery.Node) string {
	w := words(list)
	if len(w) != 2 || w[0] != "pg_catalog" {
		refuse("a function outside of pg_catalog")
	}
	return w[1]
}

func operator(list []*pgquery.Node) string {
	w := words(list)
	if len(w) != 1 {
		refuse("an operator with a schema")
	}
	return w[0]
}

// types are the names of the types that a cast may name.
var types = map[string]kind{"bool": boolean, "int2": int2, "int4": int4, "int8": int8, "numeric": numeric, "float4": float4, "float8": float8, "text": text,
	"date": date, "timestamp": timestamp, "timestamptz": timestamptz, "interval": interval, "uuid": uuid}

// typeOf reads the type of a cast, with numeric's digits: precision 0 means none are given.
func typeOf(t *pgquery.TypeName) (k kind, precision, scale int) {
	if t == nil || t.TypeOid != 0 || t.Setof || t.PctType || t.Typemod != -1 {
		refuse("a type written in another way")
	}
	k = types[builtin(t.Names)]
	if k == noKind {
		refuse("a cast to type %s", builtin(t.Names))
	}
	switch {
	case len(t.Typmods) == 2 && k == numeric && len(t.ArrayBounds) == 0:
		return k, int(integer(t.Typmods[0])), int(integer(t.Typmods[1]))
	case len(t.Typmods) == 1 && k == numeric && len(t.ArrayBounds) == 0:
		return k, int(integer(t.Typmods[0])), 0
	case len(t.Typmods) != 0:
		refuse("a type with modifiers")
	case len(t.ArrayBounds) == 1 && k == text:
		if i := t.ArrayBounds[0].GetInteger(); i == nil || i.Ival != -1 {
			refuse("an array with bounds")
		}
		return texts, 0, 0
	case len(t.ArrayBounds) != 0:
		refuse("an array type")
	}
	return k, 0, 0
}

// integer is a whole number that stands in the text.
func integer(n *pgquery.Node) int32 {
	c := n.GetAConst()
	if c == nil || c.Isnull {
		refuse("not a whole number")
	}
	i, ok := c.Val.(*pgquery.A_Const_Ival)
	if !ok || i.Ival == nil {
		refuse("not a whole number")
	}
	return i.Ival.Ival
}

// aliasOf is a table's or subquery's alias; lists of column names are not understood.
func aliasOf(a *pgquery.Alias) string {
	if a == nil {
		return ""
	}
	if len(a.Colnames) > 0 || a.Aliasname == "" {
		refuse("an alias with columns")
	}
	return a.Aliasname
}

// conjuncts are the conditions that all must hold.
func conjuncts(n *pgquery.Node, all []*pgquery.Node) []*pgquery.Node {
	if n == nil {
		return all
	}
	b := n.GetBoolExpr()
	if b == nil || b.Boolop != pgquery.BoolExprType_AND_EXPR {
		return append(all, n)
	}
	if b.Xpr != nil {
		refuse("a field of AND")
	}
	for _, arg := range b.Args {
		all = conjuncts(arg, all)
	}
	return all
}

// plain refuses a SELECT with a part that no rule reads.
func plain(s *pgquery.SelectStmt) {
	if s.IntoClause != nil || s.GroupDistinct || len(s.WindowClause) > 0 || len(s.ValuesLists) > 0 || len(s.SortClause) > 0 ||
		s.LimitCount != nil || len(s.LockingClause) > 0 {
		refuse("a clause of SELECT that no rule covers")
	}
	// OFFSET 0 leaves all rows as they are, and PostgreSQL plans the query by itself.
	if c := s.LimitOffset.GetAConst(); s.LimitOffset == nil && s.LimitOption > pgquery.LimitOption_LIMIT_OPTION_DEFAULT ||
		s.LimitOffset != nil && (c == nil || c.Isnull || c.GetIval() == nil || c.GetIval().Ival != 0 || s.LimitOption != pgquery.LimitOption_LIMIT_OPTION_COUNT) {
		refuse("LIMIT or OFFSET")
	}
	if s.Op > pgquery.SetOperation_SETOP_NONE && (s.Op != pgquery.SetOperation_SETOP_UNION || !s.All) || s.Op <= pgquery.SetOperation_SETOP_NONE && s.All {
		refuse("a set operation that is not UNION ALL")
	}
}
