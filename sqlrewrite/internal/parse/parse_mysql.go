package parse

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	mysql "github.com/xwb1989/sqlparser"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// The limits on a text in MySQL's dialect. Its parser is Go and does not recurse, but it is slow on deep nesting: 4,096
// words took 35 ms.
const (
	maxMySQLBytes  = 16 << 10
	maxMySQLTokens = 2560 // an IN list of a thousand values and a query around it
)

// parseMySQL reads text in MySQL's dialect and converts the outcome into the closed tree, which means what PostgreSQL
// means by it: where the two databases read the same words differently, the conversion writes out MySQL's meaning (a/b is
// a decimal, NULL sorts first) or refuses. Values are compared as the protected database's columns are declared. The text
// has passed checkText.
func parseMySQL(text string) (*syntax.Query, error) {
	words, err := mySQLWords(text)
	if err != nil {
		return nil, err
	}
	text, words, err = oneStatement(text, words)
	if err != nil {
		return nil, err
	}
	// Not Parse: that one writes the text of some statements to the standard log.
	statement, parseErr := mysql.ParseStrictDDL(text)
	if parseErr != nil {
		return nil, mysqlSyntaxFault(text, words, parseErr)
	}
	c := &mySQLConverter{conversion: conversion{text: text}, words: words}
	query := c.statement(statement)
	if c.refusal != nil {
		return nil, c.refusal
	}
	return query, nil
}

// mysqlWord is a token of the text without comments.
type mysqlWord struct {
	start syntax.Pos
	kind  int
	text  string // as the tokenizer decodes it: without quotes
	raw   string // as it was written
}

// mySQLWords splits text into tokens. It refuses what this tokenizer reads otherwise than MySQL does, so that the parser,
// which reads with the same tokenizer, never sees it.
func mySQLWords(text string) ([]mysqlWord, error) {
	if len(text) > maxMySQLBytes {
		return nil, fault.TooComplex(fault.Position{}, fmt.Sprintf("the query is longer than %d KiB", maxMySQLBytes>>10))
	}
	if at := strings.Index(text, "/*!"); at >= 0 { // in a string too: the tokenizer panics on some of them
		return nil, fault.Unsupported(scalar.Position(text, syntax.Pos(at)), "a version comment /*! ... */", "leave it out")
	}
	var words []mysqlWord
	tokens := mysql.NewStringTokenizer(text)
	for end := 0; ; {
		start := end + len(text[end:]) - len(strings.TrimLeft(text[end:], " \n\r\t"))
		kind, value := tokens.Scan()
		if kind == 0 {
			return words, nil
		}
		end = min(tokens.Position-1, len(text)) // one character ahead
		word := mysqlWord{start: syntax.Pos(start), kind: kind, text: string(value), raw: text[start:end]}
		if refusal := checkMySQLWord(text, words, word); refusal != nil {
			return nil, refusal
		}
		if kind != mysql.COMMENT {
			words = append(words, word)
		}
		if len(words) > maxMySQLTokens {
			return nil, fault.TooComplex(scalar.Position(text, word.start), fmt.Sprintf("the query has more than %d words and symbols",
				maxMySQLTokens))
		}
	}
}

// checkMySQLWord refuses a token that MySQL would not read as the tokenizer did.
func checkMySQLWord(text string, before []mysqlWord, w mysqlWord) *fault.Error {
	at := func() fault.Position { return scalar.Position(text, w.start) } // only refusals pay for it
	switch w.kind {
	case mysql.LEX_ERROR:
		return fault.Syntax(at(), "syntax error near "+fault.Quote(w.raw))
	case mysql.COMMENT:
		if strings.HasPrefix(w.raw, "//") {
			return fault.Syntax(at(), "syntax error near \"//\"")
		}
		if rest, dashes := strings.CutPrefix(w.raw, "--"); dashes && rest != "" && rest[0] > ' ' {
			return fault.Unsupported(at(), "-- without a space after it", "write -- comment, or a - -b")
		}
	case mysql.STRING:
		if !utf8.ValidString(w.text) || strings.Contains(w.text, "\x00") {
			return fault.Unsupported(at(), "a string with bytes that are no text", "")
		}
		if escapesWildcard(w.raw) {
			return fault.Unsupported(at(), `\% or \_ in a string`, `double the backslash: LIKE '50\\%'`)
		}
		if n := len(before); n > 0 && before[n-1].joins(w) {
			return fault.Unsupported(at(), "a string right after a string or a prefix", "write one string in plain quotes")
		}
	case mysql.ID:
		if !utf8.ValidString(w.text) {
			return fault.Syntax(at(), "a name that is not valid UTF-8")
		}
	}
	return nil
}

// joins tells whether MySQL takes a word and the string after it for one string: 'a' 'b', N'a', _utf8 'a'.
func (w mysqlWord) joins(next mysqlWord) bool {
	return w.kind == mysql.STRING || w.kind == mysql.ID && (int(w.start)+len(w.raw) == int(next.start) || w.raw[0] == '_')
}

// escapesWildcard finds \% and \_, which keep their backslash in MySQL and lose it in the tokenizer.
func escapesWildcard(raw string) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] == '\\' {
			i++
			if raw[i] == '%' || raw[i] == '_' {
				return true
			}
		}
	}
	return false
}

// oneStatement cuts trailing semicolons and refuses a second statement.
func oneStatement(text string, words []mysqlWord) (string, []mysqlWord, error) {
	last := len(words)
	for last > 0 && words[last-1].kind == ';' {
		last--
	}
	if last == 0 {
		return "", nil, fault.Syntax(fault.Position{Line: 1, Column: 1}, "the query is empty")
	}
	for i, w := range words[:last] {
		if w.kind == ';' {
			at := scalar.Position(text, words[i+1].start)
			return "", nil, fault.Unsupported(at, "a second statement", "send one statement at a time")
		}
	}
	if last < len(words) {
		text = text[:words[last].start]
	}
	return text, words[:last], nil
}

// mysqlSyntaxFault reads the place out of the parser's message, "syntax error at position 7 near 'x'", which is the end of
// the offending word.
func mysqlSyntaxFault(text string, words []mysqlWord, err error) error {
	var end int
	if _, scanErr := fmt.Sscanf(err.Error(), "syntax error at position %d", &end); scanErr != nil {
		return fault.Syntax(fault.Position{Line: 1, Column: 1}, err.Error())
	}
	for i, w := range words {
		if int(w.start)+len(w.raw) < end-1 {
			continue
		}
		if refusal := laterMySQL(text, words, i); refusal != nil {
			return refusal
		}
		if w.text == "" || strings.Contains(err.Error(), " near ") { // symbols are never named, nor is the end
			return fault.Syntax(scalar.Position(text, w.start), "syntax error near "+fault.Quote(w.raw))
		}
		break
	}
	return fault.Syntax(scalar.Position(text, syntax.Pos(len(text))), "syntax error at the end of the query")
}

// mySQLConverter turns the parser's tree into ours. The parser keeps no positions: the converter finds each name and
// constant again among the words, which it meets in the order of the text.
type mySQLConverter struct {
	conversion
	words []mysqlWord
	next  int // the first word that no node has claimed
}

// claim finds the next word with this decoded text. Names that were not written in quotes are folded to lower case, as
// PostgreSQL does, since MySQL ignores the case of columns.
func (c *mySQLConverter) claim(text string) (at syntax.Pos, name string) {
	for i := c.next; i < len(c.words); i++ {
		if w := c.words[i]; strings.EqualFold(w.text, text) && (text != "" || w.kind == mysql.STRING) {
			c.next = i + 1
			if strings.ContainsAny(w.raw[:1], "`'\"") {
				return w.start, text
			}
			return w.start, strings.ToLower(text)
		}
	}
	return -1, strings.ToLower(text)
}

// mysqlJoints are words that stand between the parts of a query and begin none.
var mysqlJoints = []string{",", ")", "*", "=", "<", ">", "<=", ">=", "<>", "!=", "in", "not", "like", "between", "is", "and", "or",
	"select", "distinct", "as", "from", "where", "group", "by", "having", "order", "limit", "on", "when", "then", "else", "asc", "desc"}

// here is the place of the first word that no node has claimed and that may begin one.
func (c *mySQLConverter) here() syntax.Pos {
	for i := c.next; i < len(c.words); i++ {
		if w := c.words[i]; !slices.Contains(mysqlJoints, strings.ToLower(w.raw)) {
			return w.start
		}
	}
	return -1
}

func (c *mySQLConverter) statement(statement mysql.Statement) *syntax.Query {
	switch s := statement.(type) {
	case mysql.SelectStatement:
		return c.query(s)
	default:
		c.refuse(c.words[0].start, strings.ToUpper(c.words[0].raw), "Noisegate answers SELECT statements")
		return nil
	}
}

// query converts a SELECT, in parentheses or not, or a UNION.
func (c *mySQLConverter) query(statement mysql.SelectStatement) *syntax.Query {
	if !c.enter() {
		return nil
	}
	defer c.leave()
	switch n := statement.(type) {
	case *mysql.Select:
		return c.selectStatement(n)
	case *mysql.ParenSelect:
		return c.query(n.Select)
	case *mysql.Union:
		return c.union(n)
	default:
		c.refuse(c.here(), "this query", "")
		return nil
	}
}

func (c *mySQLConverter) union(n *mysql.Union) *syntax.Query {
	at := c.here()
	c.countJoins(at, 1) // a side costs what a join costs
	set := &syntax.SetOperation{Pos: at, Kind: syntax.Union}
	switch kind := take(&n.Type); kind {
	case mysql.UnionStr, mysql.UnionDistinctStr:
	case mysql.UnionAllStr:
		set.All = true
	default:
		c.refuse(at, strings.ToUpper(kind), "")
	}
	set.Left, set.Right = c.query(take(&n.Left)), c.query(take(&n.Right))
	q := &syntax.Query{Pos: at, Set: set, OrderBy: c.orderBy(take(&n.OrderBy))}
	c.limit(q, take(&n.Limit))
	if take(&n.Lock) != "" {
		c.refuse(at, "FOR UPDATE or LOCK IN SHARE MODE", "a query locks no rows")
	}
	c.spent(n, at)
	return q
}

func (c *mySQLConverter) selectStatement(n *mysql.Select) *syntax.Query {
	at := c.here()
	if c.next == 0 {
		at = c.words[0].start
	}
	switch {
	case n.Lock != "":
		c.refuse(at, "FOR UPDATE or LOCK IN SHARE MODE", "a query locks no rows")
	case n.Hints != "":
		c.refuse(at, "STRAIGHT_JOIN", "leave it out")
	case n.Cache != "":
		c.refuse(at, "SQL_CACHE or SQL_NO_CACHE", "leave it out")
	}
	q := &syntax.Query{Pos: at, Distinct: take(&n.Distinct) != ""}
	for _, item := range take(&n.SelectExprs) {
		q.Items = append(q.Items, c.item(item))
	}
	from := c.from(take(&n.From))
	c.countJoins(at, max(0, len(from)-1))
	for _, relation := range from {
		q.From = append(q.From, c.relation(relation))
	}
	q.Where = c.where(take(&n.Where))
	for _, key := range take(&n.GroupBy) {
		q.GroupBy = append(q.GroupBy, c.expr(key))
	}
	q.Having = c.where(take(&n.Having))
	q.OrderBy = c.orderBy(take(&n.OrderBy))
	c.limit(q, take(&n.Limit))
	n.Comments = nil
	c.spent(n, at)
	return q
}

// from drops the table dual, which MySQL reserves for SELECT without a table and the parser invents where there is no FROM.
func (c *mySQLConverter) from(tables mysql.TableExprs) mysql.TableExprs {
	if len(tables) == 1 {
		t, _ := tables[0].(*mysql.AliasedTableExpr)
		if t != nil && t.Expr == mysql.SimpleTableExpr(mysql.TableName{Name: mysql.NewTableIdent("dual")}) && t.As.IsEmpty() {
			t.Expr = nil
			c.spent(t, -1)
			return nil
		}
	}
	return tables
}

func (c *mySQLConverter) where(n *mysql.Where) syntax.Expr {
	if n == nil {
		return nil
	}
	n.Type = "" // WHERE or HAVING: known from where it stands
	e := c.expr(take(&n.Expr))
	if e == nil {
		c.refuse(-1, "no condition after WHERE or HAVING", "")
	}
	c.spent(n, -1)
	return e
}

func (c *mySQLConverter) item(node mysql.SelectExpr) syntax.Item {
	item := syntax.Item{Pos: c.here()}
	switch n := node.(type) {
	case *mysql.StarExpr:
		item.Expr = c.star(n)
	case *mysql.AliasedExpr:
		item.Expr = c.expr(take(&n.Expr))
		if as := take(&n.As); !as.IsEmpty() {
			_, item.Alias = c.claim(as.String())
		}
		c.spent(n, item.Pos)
	default:
		c.unknown(node)
	}
	return item
}

func (c *mySQLConverter) star(n *mysql.StarExpr) syntax.Expr {
	star := &syntax.Star{Pos: c.here()}
	table := take(&n.TableName)
	if !table.Qualifier.IsEmpty() {
		return c.refuse(star.Pos, "schema.table.*", "give the table an alias and write alias.*")
	}
	if !table.IsEmpty() {
		_, star.Qualifier = c.claim(table.Name.String())
	}
	c.spent(n, star.Pos)
	return star
}

func (c *mySQLConverter) relation(node mysql.TableExpr) syntax.Relation {
	if !c.enter() {
		return nil
	}
	defer c.leave()
	switch n := node.(type) {
	case *mysql.AliasedTableExpr:
		return c.table(n)
	case *mysql.ParenTableExpr:
		if len(n.Exprs) == 1 {
			return c.relation(n.Exprs[0])
		}
		c.refuse(c.here(), "a list of tables in parentheses", "join them")
		return nil
	case *mysql.JoinTableExpr:
		return c.join(n)
	default:
		c.unknown(node)
		return nil
	}
}

func (c *mySQLConverter) table(n *mysql.AliasedTableExpr) syntax.Relation {
	var name mysql.TableName
	switch of := take(&n.Expr).(type) {
	case mysql.TableName:
		name = of
	case *mysql.Subquery:
		return c.derived(n, of)
	default:
		c.unknown(of)
		return nil
	}
	t := &syntax.Table{}
	if !name.Qualifier.IsEmpty() {
		_, t.Schema = c.claim(name.Qualifier.String())
	}
	t.Pos, t.Name = c.claim(name.Name.String())
	if as := take(&n.As); !as.IsEmpty() {
		_, t.Alias = c.claim(as.String())
	}
	switch {
	case n.Hints != nil:
		c.refuse(t.Pos, "an index hint", "leave it out")
	case n.Partitions != nil:
		c.refuse(t.Pos, "PARTITION", "a table is read with all its partitions")
	}
	c.spent(n, t.Pos)
	return t
}

func (c *mySQLConverter) join(n *mysql.JoinTableExpr) syntax.Relation {
	left, right := c.relation(take(&n.LeftExpr)), c.relation(take(&n.RightExpr))
	if left == nil || right == nil {
		return nil
	}
	j := &syntax.Join{Pos: right.At(), Left: left, Right: right, On: c.expr(take(&n.Condition.On))}
	c.countJoins(j.Pos, 1)
	for _, column := range take(&n.Condition.Using) {
		_, name := c.claim(column.String())
		j.Using = append(j.Using, name)
	}
	kind := take(&n.Join)
	plain, natural := strings.CutPrefix(kind, "natural ")
	j.Natural = natural
	switch plain {
	case mysql.JoinStr:
		j.Kind = syntax.InnerJoin
		if j.On == nil && j.Using == nil && !j.Natural {
			j.Kind = syntax.CrossJoin
		}
	case mysql.LeftJoinStr:
		j.Kind = syntax.LeftJoin
	case mysql.RightJoinStr:
		j.Kind = syntax.RightJoin
	default:
		c.refuse(j.Pos, strings.ToUpper(kind), "write JOIN ... ON or JOIN ... USING (column)")
	}
	c.spent(n, j.Pos)
	return j
}

// orderBy converts ORDER BY; MySQL takes NULL for less than any value.
func (c *mySQLConverter) orderBy(nodes mysql.OrderBy) []syntax.OrderItem {
	var items []syntax.OrderItem
	for _, n := range nodes {
		item := syntax.OrderItem{Pos: c.here(), Expr: c.expr(take(&n.Expr)), Nulls: syntax.NullsFirst}
		switch direction := take(&n.Direction); direction {
		case mysql.AscScr:
		case mysql.DescScr:
			item.Descending, item.Nulls = true, syntax.NullsLast
		default:
			c.refuse(item.Pos, direction, "")
		}
		c.spent(n, item.Pos)
		items = append(items, item)
	}
	return items
}

// enter counts one level of nesting; false means that a refusal has already decided.
func (c *mySQLConverter) enter() bool {
	if c.refusal != nil {
		return false
	}
	if c.depth == maxDepth {
		c.tooComplex(c.here(), fmt.Sprintf("the query is nested more than %d levels deep", maxDepth))
		return false
	}
	c.depth++
	return true
}

func (c *mySQLConverter) leave() { c.depth-- }

// unknown refuses a node that the closed tree has no room for, by its name in SQL.
func (c *mySQLConverter) unknown(node mysql.SQLNode) {
	at := c.here()
	switch n := node.(type) {
	case mysql.ValTuple, mysql.ListArg:
		c.refuse(at, "a row of several values in parentheses", "write the columns one by one")
	case *mysql.IntervalExpr:
		c.refuse(at, "INTERVAL", "")
	case *mysql.CollateExpr:
		c.refuse(at, "COLLATE", "texts are compared as the column is declared")
	case *mysql.GroupConcatExpr:
		c.refuse(at, "GROUP_CONCAT", "it shows single values")
	case *mysql.MatchExpr, *mysql.ConvertUsingExpr, *mysql.ValuesFuncExpr:
		c.refuse(at, "this function", "")
	case *mysql.Default:
		c.refuse(at, "DEFAULT", "")
	default:
		kind := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", n), "*"), "sqlparser.")
		c.refuse(at, "this construct ("+kind+")", "")
	}
}
