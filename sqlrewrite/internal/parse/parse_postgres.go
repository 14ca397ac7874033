package parse

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// parsePostgres reads text with PostgreSQL's own grammar and converts the outcome into the closed tree. The text has
// passed checkText. What the text takes of the clock is what it says now.
func parsePostgres(text string, clock Clock) (*syntax.Query, error) {
	tree, err := grammar(text, analystLimits())
	if err != nil {
		return nil, err
	}
	c := &converter{conversion: conversion{text: text}, Clock: clock}
	query := c.statement(tree.Stmts)
	c.refuseFine()
	if c.refusal != nil {
		return nil, c.refusal
	}
	return query, nil
}

// Tree is PostgreSQL's own parse tree of a text of any number of statements. It refuses with sql/syntax and sql/too-complex.
func Tree(text string, limits Limits) (*pg.ParseResult, error) {
	if refusal := checkText(text, limits); refusal != nil {
		return nil, refusal
	}
	return grammar(text, limits)
}

// grammar parses a text that has passed checkText.
func grammar(text string, limits Limits) (*pg.ParseResult, error) {
	if err := countTokens(text, limits.Tokens); err != nil {
		return nil, err
	}
	tree, err := pg.Parse(text)
	if err != nil {
		return nil, syntaxFault(text, err)
	}
	return tree, nil
}

// countTokens bounds the recursion of the parser by the one number that bounds every shape of it. A token is at least
// one byte, so a text of up to so many bytes needs no count. The scanner does not recurse.
func countTokens(text string, most int) error {
	if len(text) <= most {
		return nil
	}
	scan, err := pg.Scan(text)
	if err != nil {
		return syntaxFault(text, err)
	}
	if len(scan.Tokens) > most {
		at := scalar.Position(text, syntax.Pos(scan.Tokens[most].Start))
		return fault.TooComplex(at, fmt.Sprintf("the query has more than %d words and symbols", most))
	}
	return nil
}

// syntaxFault turns the parser's error into ours. Its message speaks of the analyst's own text, and of no data.
func syntaxFault(text string, err error) error {
	var parsed *parser.Error
	if !errors.As(err, &parsed) {
		return fault.Internal(err)
	}
	if parsed.Cursorpos <= 0 {
		return fault.Syntax(fault.Position{Line: 1, Column: 1}, parsed.Message)
	}
	return fault.Syntax(scalar.Position(text, scalar.ByteOffset(text, parsed.Cursorpos-1)), parsed.Message)
}

// converter turns the parser's tree into ours.
type converter struct {
	conversion
	Clock
	moments map[syntax.Expr]moment // constants that the clock gave
	rows    int                    // of constants, so far
}

func (c *converter) statement(statements []*pg.RawStmt) *syntax.Query {
	if len(statements) == 0 {
		c.refusal = fault.Syntax(fault.Position{Line: 1, Column: 1}, "the query is empty")
		return nil
	}
	if len(statements) > 1 {
		c.refuse(c.firstToken(statements[1].StmtLocation).at, "a second statement", "send one statement at a time")
		return nil
	}
	selected, ok := statements[0].Stmt.Node.(*pg.Node_SelectStmt)
	if ok && len(selected.SelectStmt.ValuesLists) > 0 {
		c.refuse(c.keyword("VALUES"), "VALUES by itself", "Noisegate answers SELECT statements: SELECT * FROM (VALUES (1)) AS t(x)")
		return nil
	}
	if !ok {
		first, hint := c.firstToken(statements[0].StmtLocation), "Noisegate answers SELECT statements"
		if first.word == "EXPLAIN" {
			hint = "ask for an estimate: it shows the plan, the price and the expected error"
		}
		c.refuse(first.at, first.word, hint)
		return nil
	}
	return c.selectStatement(selected.SelectStmt, syntax.Pos(statements[0].StmtLocation))
}

func (c *converter) selectStatement(n *pg.SelectStmt, at syntax.Pos) *syntax.Query {
	c.refuseClauses(n, at)
	if c.refusal != nil {
		return nil
	}
	q := &syntax.Query{Pos: at}
	if lists := take(&n.ValuesLists); len(lists) > 0 {
		q = c.values(lists, at)
	}
	q.With = c.with(take(&n.WithClause))
	if n.Op != pg.SetOperation_SETOP_NONE {
		q.Set = c.setOperation(n, at)
	}
	c.distinct(q, take(&n.DistinctClause))
	for _, item := range take(&n.TargetList) {
		q.Items = append(q.Items, c.item(item))
	}
	from := take(&n.FromClause)
	c.countJoins(at, max(0, len(from)-1))
	for _, relation := range from {
		q.From = append(q.From, c.relation(relation))
	}
	q.Where = c.expr(take(&n.WhereClause))
	c.groupBy(q, take(&n.GroupClause), at)
	q.Having = c.expr(take(&n.HavingClause))
	q.Windows = c.namedWindows(take(&n.WindowClause))
	q.OrderBy = c.orderBy(take(&n.SortClause))
	q.Limit = c.rowCount(take(&n.LimitCount))
	q.Offset = c.rowCount(take(&n.LimitOffset))
	n.LimitOption, n.Op = 0, 0 // looked at by refuseClauses
	c.spent(n, at)
	c.seriesOutput(q)
	return q
}

// distinct converts DISTINCT, which the grammar writes as a list of one absent expression, and DISTINCT ON.
func (c *converter) distinct(q *syntax.Query, nodes []*pg.Node) {
	switch {
	case len(nodes) == 0:
	case nodes[0].Node == nil:
		q.Distinct = true
	default:
		q.DistinctOn = c.exprs(nodes)
	}
}

// setOperation converts the two sides of UNION, INTERSECT and EXCEPT; each level of a chain is one level of nesting.
func (c *converter) setOperation(n *pg.SelectStmt, at syntax.Pos) *syntax.SetOperation {
	set := &syntax.SetOperation{Pos: at, All: take(&n.All)}
	switch n.Op {
	case pg.SetOperation_SETOP_UNION:
		set.Kind = syntax.Union
	case pg.SetOperation_SETOP_INTERSECT:
		set.Kind = syntax.Intersect
	case pg.SetOperation_SETOP_EXCEPT:
		set.Kind = syntax.Except
	default:
		c.refuse(at, n.Op.String(), "")
	}
	c.countJoins(at, 1) // a side costs what a join costs
	if !c.enterAt(at) {
		return nil
	}
	defer c.leave()
	left, right := take(&n.Larg), take(&n.Rarg)
	set.Left = c.selectStatement(left, c.placeOf(left, at))
	set.Right = c.selectStatement(right, c.placeOf(right, at))
	return set
}

// placeOf is where a query that has no place of its own begins to hold something.
func (c *converter) placeOf(n *pg.SelectStmt, otherwise syntax.Pos) syntax.Pos {
	if at := locate(n); at >= 0 {
		return at
	}
	return otherwise
}

// refuseClauses names the clauses of SELECT that are not taken, at their keyword.
func (c *converter) refuseClauses(n *pg.SelectStmt, at syntax.Pos) {
	switch {
	case len(n.TargetList) == 0 && len(n.ValuesLists) == 0 && n.Op == pg.SetOperation_SETOP_NONE:
		c.refuse(at, "an empty select list", "name what to compute: SELECT count(*)")
	case n.IntoClause != nil:
		c.refuse(c.keyword("INTO"), "SELECT INTO", "a query cannot write")
	case n.GroupDistinct:
		c.refuse(c.keyword("GROUP"), "GROUP BY DISTINCT", "write GROUP BY")
	case len(n.LockingClause) > 0:
		c.refuse(c.keyword("FOR"), "FOR UPDATE or FOR SHARE", "a query locks no rows")
	case n.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES:
		c.refuse(c.keyword("TIES"), "WITH TIES", "write LIMIT")
	}
}

func (c *converter) item(node *pg.Node) syntax.Item {
	target, ok := node.Node.(*pg.Node_ResTarget)
	if !ok {
		c.unknown(node)
		return syntax.Item{}
	}
	n := target.ResTarget
	item := syntax.Item{Pos: syntax.Pos(take(&n.Location)), Alias: take(&n.Name)}
	value := take(&n.Val)
	if column, ok := value.Node.(*pg.Node_ColumnRef); ok && endsInStar(column.ColumnRef) {
		item.Expr = c.star(column.ColumnRef)
	} else {
		name := writtenName(value)
		item.Expr = c.expr(value)
		if _, isMoment := c.moments[item.Expr]; isMoment && item.Alias == "" {
			item.Alias = name
		}
	}
	c.spent(n, item.Pos)
	return item
}

func (c *converter) relation(node *pg.Node) syntax.Relation {
	if !c.enter(node) {
		return nil
	}
	defer c.leave()
	switch n := node.Node.(type) {
	case *pg.Node_RangeVar:
		return c.table(n.RangeVar)
	case *pg.Node_JoinExpr:
		return c.join(n.JoinExpr)
	case *pg.Node_RangeSubselect:
		return c.derived(n.RangeSubselect)
	case *pg.Node_RangeFunction:
		return c.rangeFunction(node, n.RangeFunction)
	default:
		c.unknown(node)
		return nil
	}
}

func (c *converter) table(n *pg.RangeVar) *syntax.Table {
	t := &syntax.Table{Pos: syntax.Pos(take(&n.Location)), Database: take(&n.Catalogname), Schema: take(&n.Schemaname),
		Name: take(&n.Relname)}
	if !take(&n.Inh) {
		c.refuse(t.Pos, "ONLY", "a table is read with all its partitions")
	}
	t.Alias = c.alias(take(&n.Alias), t.Pos)
	n.Relpersistence = "" // set by the grammar for every table
	c.spent(n, t.Pos)
	return t
}

func (c *converter) alias(n *pg.Alias, at syntax.Pos) string {
	if n == nil {
		return ""
	}
	if len(n.Colnames) > 0 {
		c.refuse(at, "a list of column names after a table's alias", "rename columns in the select list")
	}
	name := take(&n.Aliasname)
	c.spent(n, at)
	return name
}

func (c *converter) join(n *pg.JoinExpr) syntax.Relation {
	left, right := c.relation(take(&n.Larg)), c.relation(take(&n.Rarg))
	if left == nil || right == nil {
		return nil
	}
	j := &syntax.Join{Pos: right.At(), Left: left, Right: right}
	c.countJoins(j.Pos, 1)
	j.Natural = take(&n.IsNatural)
	if n.Alias != nil || n.JoinUsingAlias != nil {
		c.refuse(j.Pos, "an alias of a join", "give each table its alias")
	}
	j.On = c.expr(take(&n.Quals))
	for _, name := range take(&n.UsingClause) {
		j.Using = append(j.Using, c.name(name))
	}
	switch kind := take(&n.Jointype); kind {
	case pg.JoinType_JOIN_INNER:
		j.Kind = syntax.InnerJoin
		if j.On == nil && j.Using == nil && !j.Natural {
			j.Kind = syntax.CrossJoin
		}
	case pg.JoinType_JOIN_LEFT:
		j.Kind = syntax.LeftJoin
	case pg.JoinType_JOIN_RIGHT:
		j.Kind = syntax.RightJoin
	case pg.JoinType_JOIN_FULL:
		j.Kind = syntax.FullJoin
	default:
		c.refuse(j.Pos, kind.String(), "")
	}
	c.spent(n, j.Pos)
	return j
}

func (c *converter) orderBy(nodes []*pg.Node) []syntax.OrderItem {
	var items []syntax.OrderItem
	for _, node := range nodes {
		sort, ok := node.Node.(*pg.Node_SortBy)
		if !ok {
			c.unknown(node)
			return nil
		}
		n := sort.SortBy
		item := syntax.OrderItem{Pos: locate(n)}
		if n.SortbyDir == pg.SortByDir_SORTBY_USING {
			c.refuse(item.Pos, "ORDER BY ... USING", "write ASC or DESC")
		}
		item.Descending = take(&n.SortbyDir) == pg.SortByDir_SORTBY_DESC
		switch take(&n.SortbyNulls) {
		case pg.SortByNulls_SORTBY_NULLS_FIRST:
			item.Nulls = syntax.NullsFirst
		case pg.SortByNulls_SORTBY_NULLS_LAST:
			item.Nulls = syntax.NullsLast
		default:
			item.Nulls = syntax.NullsDefault
		}
		item.Expr = c.expr(take(&n.Node))
		n.Location = 0 // of USING, or -1
		c.spent(n, item.Pos)
		items = append(items, item)
	}
	return items
}

// rowCount converts LIMIT and OFFSET; NULL and ALL mean that there is none.
func (c *converter) rowCount(node *pg.Node) syntax.Expr {
	count := c.expr(node)
	if literal, ok := count.(*syntax.Literal); ok && literal.Kind == syntax.NullLiteral {
		return nil
	}
	return count
}

// name reads the text of an identifier.
func (c *converter) name(node *pg.Node) string {
	s, ok := node.Node.(*pg.Node_String_)
	if !ok {
		c.unknown(node)
		return ""
	}
	return s.String_.Sval
}

// enter counts one level of nesting; false means that there is nothing to convert.
func (c *converter) enter(node *pg.Node) bool {
	if node == nil || c.refusal != nil {
		return false
	}
	if c.depth == maxDepth {
		return c.enterAt(locate(node))
	}
	c.depth++
	return true
}

// enterAt is enter for what is no node of its own.
func (c *converter) enterAt(at syntax.Pos) bool {
	if c.refusal != nil {
		return false
	}
	if c.depth == maxDepth {
		c.tooComplex(at, fmt.Sprintf("the query is nested more than %d levels deep", maxDepth))
		return false
	}
	c.depth++
	return true
}

func (c *converter) leave() { c.depth-- }

// locate finds the leftmost place in the text that belongs to a parser's node; -1 when the node has none.
func locate(node any) syntax.Pos {
	best := syntax.Pos(-1)
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			walk(v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if field := v.Field(i); field.CanInterface() { // not protobuf's own
					walk(field)
				}
			}
			if at := v.FieldByName("Location"); at.IsValid() && at.Int() > 0 && (best < 0 || at.Int() < int64(best)) {
				best = syntax.Pos(at.Int())
			}
		}
	}
	walk(reflect.ValueOf(node))
	return best
}

// word is a token of the text, in upper case, and where it stands.
type word struct {
	at   syntax.Pos
	word string
}

// words are the tokens from a byte offset on, without comments. It scans again: only refusals need it.
func (c *converter) words(from int32) []word {
	scan, err := pg.Scan(c.text)
	if err != nil {
		return nil
	}
	var words []word
	for _, t := range scan.Tokens {
		if t.Start >= from && t.Token != pg.Token_SQL_COMMENT && t.Token != pg.Token_C_COMMENT {
			words = append(words, word{at: syntax.Pos(t.Start), word: strings.ToUpper(c.text[t.Start:t.End])})
		}
	}
	return words
}

// firstToken is the word that a statement begins with.
func (c *converter) firstToken(from int32) word {
	for _, w := range c.words(from) {
		return w
	}
	return word{at: -1}
}

// keyword finds the first of the given keywords outside parentheses.
func (c *converter) keyword(keywords ...string) syntax.Pos {
	depth := 0
	for _, w := range c.words(0) {
		switch {
		case w.word == "(":
			depth++
		case w.word == ")":
			depth--
		case depth == 0:
			if slices.Contains(keywords, w.word) {
				return w.at
			}
		}
	}
	return -1
}
