package parse

import (
	"slices"
	"strings"

	mysql "github.com/xwb1989/sqlparser"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// subquery converts a query inside another; nil after a refusal.
func (c *mySQLConverter) subquery(n *mysql.Subquery, at syntax.Pos) *syntax.Query {
	if !c.enter() {
		return nil
	}
	defer c.leave()
	q := c.query(take(&n.Select))
	c.spent(n, at)
	return q
}

// derived converts a query in FROM.
func (c *mySQLConverter) derived(n *mysql.AliasedTableExpr, query *mysql.Subquery) syntax.Relation {
	s := &syntax.Subquery{Pos: c.here()}
	s.Query = c.subquery(query, s.Pos)
	_, as := c.claim(take(&n.As).String()) // the grammar demands one
	s.Alias = as
	c.spent(n, s.Pos)
	if s.Query == nil {
		return nil
	}
	return s
}

// exists converts EXISTS (query).
func (c *mySQLConverter) exists(n *mysql.ExistsExpr) syntax.Expr {
	e := &syntax.Exists{Pos: c.here()}
	if e.Query = c.subquery(take(&n.Subquery), e.Pos); e.Query == nil {
		return nil
	}
	c.spent(n, e.Pos)
	return e
}

// scalar converts a query that stands for a value.
func (c *mySQLConverter) scalar(n *mysql.Subquery) syntax.Expr {
	e := &syntax.Scalar{Pos: c.here()}
	if e.Query = c.subquery(n, e.Pos); e.Query == nil {
		return nil
	}
	return e
}

// in converts x [NOT] IN, of constants or of a query, where x may be several columns.
func (c *mySQLConverter) in(n *mysql.ComparisonExpr, at syntax.Pos, not bool) syntax.Expr {
	left, right := take(&n.Left), take(&n.Right)
	c.spent(n, at)
	query, ok := right.(*mysql.Subquery)
	if !ok {
		return c.inList(at, not, c.expr(left), right)
	}
	e := &syntax.InQuery{Pos: at}
	columns, several := left.(mysql.ValTuple)
	if !several {
		columns = mysql.ValTuple{left}
	}
	for _, x := range columns {
		e.X = append(e.X, c.expr(x))
	}
	if e.Query = c.subquery(query, at); e.Query == nil {
		return nil
	}
	if not { // one form, as PostgreSQL's grammar has it
		return &syntax.Unary{Pos: at, Op: syntax.Not, X: e}
	}
	return e
}

// limit converts LIMIT n, LIMIT n OFFSET m and LIMIT m, n, and claims the numbers in the order of the text.
func (c *mySQLConverter) limit(q *syntax.Query, n *mysql.Limit) {
	if n == nil {
		return
	}
	rows, offset := take(&n.Rowcount), take(&n.Offset)
	if c.offsetFirst() {
		q.Offset = c.expr(offset)
		q.Limit = c.expr(rows)
	} else {
		q.Limit = c.expr(rows)
		q.Offset = c.expr(offset)
	}
	if q.Limit == nil {
		c.refuse(q.Pos, "LIMIT without a number", "")
	}
	c.spent(n, q.Pos)
}

// offsetFirst looks whether the next LIMIT is one with a comma.
func (c *mySQLConverter) offsetFirst() bool {
	rest := c.words[min(c.next, len(c.words)):]
	i := slices.IndexFunc(rest, func(w mysqlWord) bool { return w.kind == mysql.LIMIT })
	return i >= 0 && i+2 < len(rest) && rest[i+2].kind == ','
}

// mysqlLater are words that this grammar does not know, with the form to write instead. It stops at the word itself or, where it took
// the word for a name, up to two words after it.
var mysqlLater = map[string]struct {
	what, hint string
	after      int
}{
	"with":      {"WITH", `write the query in FROM, (SELECT ...) AS name, or ask in "dialect": "postgresql"`, 0},
	"all":       {"ALL (SELECT ...)", "write NOT EXISTS (SELECT ...)", 0},
	"any":       {"ANY (SELECT ...)", "write IN (SELECT ...)", 2},
	"some":      {"SOME (SELECT ...)", "write IN (SELECT ...)", 2},
	"over":      {"a window function", `ask in "dialect": "postgresql"`, 1},
	"intersect": {"INTERSECT", `write WHERE x IN (SELECT ...), or ask in "dialect": "postgresql"`, 1},
	"except":    {"EXCEPT", `write WHERE x NOT IN (SELECT ...), or ask in "dialect": "postgresql"`, 1},
	"lateral":   {"LATERAL", "join on a condition", 1},
}

// laterMySQL refuses by its name a construct that the grammar stops at, at word i; nil: it is none.
func laterMySQL(text string, words []mysqlWord, i int) *fault.Error {
	if w := words[i]; w.kind == mysql.WITH && i+1 < len(words) && strings.EqualFold(words[i+1].raw, "rollup") {
		return fault.Unsupported(scalar.Position(text, w.start), "WITH ROLLUP", `write GROUP BY ROLLUP (a, b) in "dialect": "postgresql"`)
	}
	for before := 0; before <= min(i, 2); before++ {
		w := words[i-before]
		known, ok := mysqlLater[strings.ToLower(w.raw)]
		if ok && before <= known.after && (w.kind != mysql.WITH || i == 0) {
			return fault.Unsupported(scalar.Position(text, w.start), known.what, known.hint)
		}
	}
	return nil
}
