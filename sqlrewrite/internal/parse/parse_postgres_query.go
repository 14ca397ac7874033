package parse

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/syntax"
)

// with converts WITH. Whether a query is materialized changes no result, so that it is not kept.
func (c *converter) with(n *pg.WithClause) []syntax.CTE {
	if n == nil {
		return nil
	}
	at := syntax.Pos(take(&n.Location))
	if n.Recursive {
		c.refuse(at, "WITH RECURSIVE", "a query is read once, from top to bottom")
	}
	var all []syntax.CTE
	for _, node := range take(&n.Ctes) {
		cte, ok := node.Node.(*pg.Node_CommonTableExpr)
		if !ok {
			c.unknown(node)
			return nil
		}
		next := c.commonTable(cte.CommonTableExpr)
		if slices.ContainsFunc(all, func(known syntax.CTE) bool { return known.Name == next.Name }) {
			c.refuse(next.Pos, "a second query of WITH with the name "+fault.Quote(next.Name), "give each a name of its own")
		}
		all = append(all, next)
	}
	if len(all) == 0 {
		c.refuse(at, "WITH without a query", "")
	}
	c.spent(n, at)
	return all
}

func (c *converter) commonTable(n *pg.CommonTableExpr) syntax.CTE {
	cte := syntax.CTE{Pos: syntax.Pos(take(&n.Location)), Name: take(&n.Ctename), Columns: c.names(take(&n.Aliascolnames))}
	cte.Query = c.subquery(take(&n.Ctequery), cte.Pos)
	n.Ctematerialized = 0
	c.spent(n, cte.Pos)
	return cte
}

// subquery converts a query inside another; nil after a refusal.
func (c *converter) subquery(node *pg.Node, at syntax.Pos) *syntax.Query {
	if !c.enter(node) {
		return nil
	}
	defer c.leave()
	selected, ok := node.Node.(*pg.Node_SelectStmt)
	if !ok {
		c.refuse(at, "a statement other than SELECT inside a query", "a query cannot write")
		return nil
	}
	return c.selectStatement(selected.SelectStmt, c.placeOf(selected.SelectStmt, at))
}

// derived converts a query in FROM. Its own place is not kept: it is the parenthesis before what it holds.
func (c *converter) derived(n *pg.RangeSubselect) syntax.Relation {
	at := syntax.Pos(strings.LastIndexByte(c.text[:max(0, locate(n))], '('))
	s := &syntax.Subquery{Pos: at, Lateral: take(&n.Lateral), Query: c.subquery(take(&n.Subquery), at)}
	if alias := take(&n.Alias); alias != nil {
		s.Alias, s.Columns = take(&alias.Aliasname), c.names(take(&alias.Colnames))
		c.spent(alias, at)
	}
	c.spent(n, at)
	return s
}

func (c *converter) names(nodes []*pg.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, c.name(n))
	}
	return names
}

// subLink converts EXISTS (query), x IN (query) and a query that stands for a value.
func (c *converter) subLink(n *pg.SubLink) syntax.Expr {
	at := syntax.Pos(take(&n.Location))
	query := c.subquery(take(&n.Subselect), at)
	var e syntax.Expr
	switch kind := take(&n.SubLinkType); {
	case kind == pg.SubLinkType_EXISTS_SUBLINK:
		e = &syntax.Exists{Pos: at, Query: query}
	case kind == pg.SubLinkType_EXPR_SUBLINK:
		e = &syntax.Scalar{Pos: at, Query: query}
	case kind == pg.SubLinkType_ANY_SUBLINK && c.isEquality(take(&n.OperName)):
		e = &syntax.InQuery{Pos: at, X: c.tuple(take(&n.Testexpr)), Query: query}
	case kind == pg.SubLinkType_ARRAY_SUBLINK:
		return c.refuse(at, "ARRAY(SELECT ...)", "it would list the values of single rows; group by the column and count")
	default:
		return c.refuse(at, "an operator with ANY or ALL", "write IN (SELECT ...) or NOT EXISTS (SELECT ...)")
	}
	c.spent(n, at)
	return e
}

// isEquality reports whether an operator is =, or that of IN, which has no name.
func (c *converter) isEquality(operator []*pg.Node) bool {
	return len(operator) == 0 || len(operator) == 1 && c.name(operator[0]) == "="
}

// tuple converts the left side of IN: one expression or a row of them.
func (c *converter) tuple(node *pg.Node) []syntax.Expr {
	row, ok := node.GetNode().(*pg.Node_RowExpr)
	if !ok {
		return []syntax.Expr{c.expr(node)}
	}
	items := c.exprs(take(&row.RowExpr.Args))
	row.RowExpr.RowFormat = 0
	at := syntax.Pos(take(&row.RowExpr.Location))
	c.spent(row.RowExpr, at)
	return items
}
