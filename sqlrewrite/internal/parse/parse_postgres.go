package parse

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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
	q := &syntax.Query{Pos: at, With: c.with(take(&n.WithClause))}
	if lists := take(&n.ValuesLists); len(lists) > 0 {
		rows := c.values(lists, at)
		q.Items, q.Set = rows.Items, rows.Set
	}
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
	return c.seriesOutput(q)
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

// Rows of constants are written out: VALUES inside a query, and generate_series of constants in FROM or as the only output of a query
// without FROM, are SELECTs of constants with UNION ALL between them. So a calendar is joined with released groups, which may lack some of
// its days.

// maxRows is how many rows of constants a text may stand for: a year has 366 days.
const maxRows = 400

// unionOf joins queries by UNION ALL, so that n of them are log n deep.
func unionOf(at syntax.Pos, rows []*syntax.Query) *syntax.Query {
	if len(rows) == 1 {
		return rows[0]
	}
	half := (len(rows) + 1) / 2
	return &syntax.Query{Pos: at, Set: &syntax.SetOperation{Pos: at, Kind: syntax.Union, All: true,
		Left: unionOf(at, rows[:half]), Right: unionOf(at, rows[half:])}}
}

// countRows refuses a text with too many rows of constants.
func (c *converter) countRows(at syntax.Pos, more int) bool {
	if c.rows += more; c.rows > maxRows {
		c.tooComplex(at, fmt.Sprintf("the query makes more than %d rows of constants", maxRows))
	}
	return c.refusal == nil
}

// values converts VALUES; its clauses other than ORDER BY, LIMIT and OFFSET are left to the caller.
func (c *converter) values(nodes []*pg.Node, at syntax.Pos) *syntax.Query {
	if !c.countRows(at, len(nodes)) {
		return &syntax.Query{}
	}
	var rows []*syntax.Query
	for _, node := range nodes {
		row := &syntax.Query{Pos: at}
		for i, x := range c.exprs(take(&node.GetList().Items)) {
			row.Items = append(row.Items, syntax.Item{Pos: x.At(), Expr: x, Alias: "column" + strconv.Itoa(i+1)})
		}
		if rows = append(rows, row); len(row.Items) != len(rows[0].Items) {
			c.refuse(at, "VALUES of rows of different lengths", "give all rows as many values")
		}
		if c.refusal != nil {
			return &syntax.Query{}
		}
	}
	return unionOf(at, rows)
}

// rangeFunction converts generate_series in FROM; other functions are refused there.
func (c *converter) rangeFunction(node *pg.Node, n *pg.RangeFunction) syntax.Relation {
	var items []*pg.Node
	if len(n.Functions) == 1 {
		items = n.Functions[0].GetList().GetItems()
	}
	names := []*pg.Node(nil)
	if len(items) > 0 && items[0].GetFuncCall() != nil && (len(items) == 1 || items[1].GetNode() == nil) {
		names = items[0].GetFuncCall().GetFuncname()
	}
	if len(names) == 0 || names[len(names)-1].GetString_().GetSval() != "generate_series" {
		c.unknown(node)
		return nil
	}
	n.Functions, n.Lateral = nil, false // constants name no other item of FROM
	call, isCall := c.expr(items[0]).(*syntax.Call)
	if !isCall || !isSeries(call) {
		c.refuse(locate(node), "generate_series with these clauses", "")
		return nil
	}
	s := &syntax.Subquery{Pos: call.Pos, Alias: call.Name}
	s.Columns = []string{call.Name}
	if alias := take(&n.Alias); alias != nil {
		s.Alias = take(&alias.Aliasname)
		s.Columns = []string{s.Alias}
		if names := c.names(take(&alias.Colnames)); len(names) > 0 {
			s.Columns = names
		}
		c.spent(alias, call.Pos)
	}
	c.spent(n, call.Pos)
	s.Query = c.series(call, s.Columns[0], func(x syntax.Expr) syntax.Expr { return x })
	return s
}

// seriesOutput is a query whose only output is generate_series, cast or not, as rows; other queries stay.
func (c *converter) seriesOutput(q *syntax.Query) *syntax.Query {
	if c.refusal != nil || q.Set != nil || len(q.Items) != 1 || len(q.From) > 0 || q.Where != nil || q.Groups() || q.Having != nil ||
		q.Distinct || q.DistinctOn != nil || q.Windows != nil {
		return q
	}
	of := func(x syntax.Expr) syntax.Expr { return x }
	x := q.Items[0].Expr
	for cast, isCast := x.(*syntax.Cast); isCast; cast, isCast = x.(*syntax.Cast) {
		inner := of
		of = func(x syntax.Expr) syntax.Expr {
			return inner(&syntax.Cast{Pos: cast.Pos, X: x, Type: cast.Type, Mods: cast.Mods})
		}
		x = cast.X
	}
	call, isCall := x.(*syntax.Call)
	if !isCall || !isSeries(call) {
		return q
	}
	rows := c.series(call, cmp.Or(q.Items[0].Alias, call.Name), of)
	return &syntax.Query{Pos: q.Pos, With: q.With, Items: rows.Items, Set: rows.Set, OrderBy: q.OrderBy, Limit: q.Limit, Offset: q.Offset}
}

func isSeries(e *syntax.Call) bool {
	return e.Name == "generate_series" && (e.Schema == "" || e.Schema == "pg_catalog") && !e.Star && !e.Distinct && e.Filter == nil &&
		e.Over == nil && len(e.OrderBy)+len(e.Within) == 0
}

// series gives the rows of generate_series: each value, of which the output is made.
func (c *converter) series(e *syntax.Call, name string, output func(syntax.Expr) syntax.Expr) *syntax.Query {
	values := c.wholeSeries(e)
	if values == nil && c.refusal == nil {
		values = c.timeSeries(e)
	}
	if c.refusal == nil && values == nil {
		c.refuse(e.Pos, "generate_series of these arguments, or without rows",
			"it takes whole numbers, or dates and times with an interval: "+
				"generate_series(DATE '2024-01-01', DATE '2024-01-31', INTERVAL '1 day')")
	}
	if !c.countRows(e.Pos, len(values)) {
		return &syntax.Query{}
	}
	var rows []*syntax.Query
	for _, x := range values {
		rows = append(rows, &syntax.Query{Pos: e.Pos, Items: []syntax.Item{{Pos: e.Pos, Expr: output(x), Alias: name}}})
	}
	return unionOf(e.Pos, rows)
}

// wholeSeries are whole numbers; nil where the arguments are none.
func (c *converter) wholeSeries(e *syntax.Call) (values []syntax.Expr) {
	ends := []int64{0, 0, 1}
	if len(e.Args) < 2 || len(e.Args) > len(ends) {
		return nil
	}
	for i, arg := range e.Args {
		literal, isLiteral := arg.(*syntax.Literal)
		text, known := textOf(arg)
		if _, isCast := arg.(*syntax.Cast); !known || isCast || isLiteral && literal.Kind != syntax.IntegerLiteral {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil
		}
		ends[i] = n
	}
	step := ends[2]
	if step == 0 {
		return nil
	}
	for n := ends[0]; (n-ends[1])*step <= 0 && len(values) <= maxRows; n += step {
		values = append(values, c.number(e.Pos, strconv.FormatInt(n, 10)))
	}
	return values
}

// timeSeries are times, from each to the next one by the same interval, as PostgreSQL counts them. Dates are midnights with time zone.
func (c *converter) timeSeries(e *syntax.Call) (values []syntax.Expr) {
	if len(e.Args) != 3 {
		return nil
	}
	first, kind, ok1 := c.constantMoment(e.Args[0])
	last, other, ok2 := c.constantMoment(e.Args[1])
	months, days, micros, ok3 := constantInterval(e.Args[2])
	length := (months*30+days)*scalar.DayUnit + micros
	if !ok1 || !ok2 || !ok3 || length == 0 {
		return nil
	}
	if kinds := []string{kind, other}; !slices.Contains(kinds, "timestamp") || slices.Contains(kinds, "timestamptz") {
		if kind = "timestamptz"; c.ofZone(e.Pos, "generate_series of times with time zone") {
			return nil
		}
	} else {
		kind = "timestamp"
	}
	for at := first; !(length > 0 && at.After(last)) && !(length < 0 && at.Before(last)) && len(values) <= maxRows; {
		values = append(values, c.known(e.Pos, moment{at: at, kind: kind}))
		at = plusMonths(at, months).AddDate(0, 0, int(days)).Add(time.Duration(micros) * time.Microsecond)
	}
	return values
}

// constantMoment reads a date or time that the text has, or the clock gave; its kind is "" where the text names no type.
func (c *converter) constantMoment(e syntax.Expr) (at time.Time, kind string, ok bool) {
	if m, known := c.moments[e]; known {
		return m.at, m.kind, true
	}
	times := []string{"date", "timestamp", "timestamptz"}
	if cast, isCast := e.(*syntax.Cast); isCast && cast.Mods == nil && slices.Contains(times, cast.Type) {
		e, kind = cast.X, cast.Type
		if m, known := c.moments[e]; known {
			return m.at, kind, true
		}
	}
	literal, isLiteral := e.(*syntax.Literal)
	if !isLiteral || literal.Kind != syntax.StringLiteral {
		return at, kind, false
	}
	if at, ok = scalar.Instant(literal.Text); kind == "date" || kind == "timestamp" { // which drop an offset
		at = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	}
	if kind == "date" {
		at = scalar.Truncated(at, "day")
	}
	return at.UTC(), kind, ok && at.Year() > 0
}

// constantInterval reads an interval that the text has.
func constantInterval(e syntax.Expr) (months, days, micros int64, ok bool) {
	if cast, isCast := e.(*syntax.Cast); isCast && cast.Type == "interval" && cast.Mods == nil {
		e = cast.X
	}
	literal, isLiteral := e.(*syntax.Literal)
	if !isLiteral || literal.Kind != syntax.StringLiteral {
		return 0, 0, 0, false
	}
	return scalar.ParseInterval(literal.Text)
}
