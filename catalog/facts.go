package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// Facts are what a schema says of a table beyond what policies rely upon: they help people to write a policy, and prove
// nothing. They are not kept with a policy.
type Facts struct {
	Comment string
	Columns map[string]*ColumnFacts
}

// ColumnFacts are what a schema says of a column's values.
type ColumnFacts struct {
	Comment string
	Lo, Hi  string   // bounds that CHECK constraints give, inclusive or not; "": none
	Values  []string // the only values that CHECK constraints let through, NULL apart; nil: any
}

// Facts are those of a table; nil where none were read.
func (t *TableInfo) Facts() *Facts { return t.facts }

// column finds a column's facts, and makes room for them.
func (t *TableInfo) factsOf(column string) *ColumnFacts {
	if t.facts == nil {
		t.facts = &Facts{Columns: map[string]*ColumnFacts{}}
	}
	if t.facts.Columns[column] == nil {
		t.facts.Columns[column] = &ColumnFacts{}
	}
	return t.facts.Columns[column]
}

// Table is what people wrote of the table; "" without any.
func (f *Facts) Table() string {
	if f == nil {
		return ""
	}
	return f.Comment
}

// Of are the facts of a column, empty without any.
func (f *Facts) Of(column string) ColumnFacts {
	if f == nil || f.Columns[column] == nil {
		return ColumnFacts{}
	}
	return *f.Columns[column]
}

// constrain takes over what a CHECK expression says of its only column. What it does not understand says nothing: a
// conjunct that is left out leaves the others true.
func (f *ColumnFacts) constrain(expression string) {
	p := checkParser{tokens: checkTokens(expression)}
	tree := p.operand()
	if !p.failed && len(p.tokens) == 0 {
		f.take(tree)
	}
}

func (f *ColumnFacts) take(c checkNode) {
	switch {
	case c.op == "AND":
		for _, part := range c.parts {
			f.take(part)
		}
	case c.op == "OR":
		var values []string
		for _, part := range c.parts {
			only := ColumnFacts{}
			if only.take(part); only.Values == nil {
				return
			}
			values = append(values, only.Values...)
		}
		f.only(values)
	case len(c.parts) != 2 || c.parts[0].op != "column":
	case c.op == "=" && c.parts[1].op == "value":
		f.only([]string{c.parts[1].text})
	case c.op == "ANY" && c.parts[1].op == "list":
		var values []string
		for _, item := range c.parts[1].parts {
			if item.op != "value" {
				return
			}
			values = append(values, item.text)
		}
		f.only(values)
	case c.parts[1].op != "value":
	case c.op == ">=" || c.op == ">":
		f.Lo = tighter(f.Lo, c.parts[1].text, 1)
	case c.op == "<=" || c.op == "<":
		f.Hi = tighter(f.Hi, c.parts[1].text, -1)
	}
}

// only keeps the values that two constraints both let through.
func (f *ColumnFacts) only(values []string) {
	if f.Values != nil {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(f.Values, v) })
	}
	f.Values = values
}

// tighter is the larger of two bounds, or, with sign -1, the smaller; of dates too, whose texts are in their order.
func tighter(a, b string, sign int) string {
	if a == "" {
		return b
	}
	x, ok1 := parseDecimal(a)
	y, ok2 := parseDecimal(b)
	order := strings.Compare(a, b)
	if ok1 && ok2 {
		order = x.Cmp(y)
	}
	if order*sign < 0 {
		return b
	}
	return a
}

// checkNode is a part of a CHECK expression as PostgreSQL prints it, with all its parentheses.
type checkNode struct {
	op    string // AND, OR, ANY, =, <=, ...; column, value, list; "": not understood
	text  string // of a value
	parts []checkNode
}

type checkParser struct {
	tokens []string
	failed bool
}

// checkToken finds words, quoted names, texts, numbers, casts with their types, and operators.
var checkToken = regexp.MustCompile(`^(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|` +
	`::(?:"(?:[^"]|"")*"|[a-z_][a-z0-9_]*)(?:\.(?:"(?:[^"]|"")*"|[a-z_][a-z0-9_]*))?` +
	`(?: varying| precision| with(?:out)? time zone)?(?:\([0-9, ]+\))?(?: with(?:out)? time zone)?(?:\[\])?|` +
	`[A-Za-z_][A-Za-z0-9_$]*|[0-9]+(?:\.[0-9]+)?|[<>=!~*+/%-]+|[()\[\],])`)

// checkTokens splits an expression, without casts; nil when it holds what no token is.
func checkTokens(expression string) (tokens []string) {
	for {
		expression = strings.TrimLeft(expression, " \n\t")
		if expression == "" {
			return tokens
		}
		token := checkToken.FindString(expression)
		if token == "" {
			return nil
		}
		if expression = expression[len(token):]; !strings.HasPrefix(token, "::") {
			tokens = append(tokens, token)
		}
	}
}

func (p *checkParser) next() string {
	if len(p.tokens) == 0 {
		p.failed = true
		return ""
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

func (p *checkParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

// operand reads a constant, a name, a list, or an expression in parentheses.
func (p *checkParser) operand() checkNode {
	switch token := p.next(); {
	case p.failed:
		return checkNode{}
	case token == "(":
		inner := p.expression()
		if p.next() != ")" {
			p.failed = true
		}
		return inner
	case token[0] == '\'':
		return checkNode{op: "value", text: strings.ReplaceAll(token[1:len(token)-1], "''", "'")}
	case token[0] >= '0' && token[0] <= '9':
		return checkNode{op: "value", text: token}
	case token == "true", token == "false":
		return checkNode{op: "value", text: token}
	case token == "ARRAY" && p.peek() == "[":
		return p.list()
	case p.peek() == "(" || !isCheckName(token): // a function, or an operator in front
		p.failed = true
		return checkNode{}
	default:
		return checkNode{op: "column"}
	}
}

func isCheckName(token string) bool {
	return token[0] == '"' || token[0] == '_' || token[0] >= 'a' && token[0] <= 'z' || token == "VALUE"
}

func (p *checkParser) list() checkNode {
	list := checkNode{op: "list"}
	for p.next(); !p.failed; {
		list.parts = append(list.parts, p.operand())
		if separator := p.next(); separator == "]" {
			break
		} else if separator != "," {
			p.failed = true
		}
	}
	return list
}

// expression reads operands with one kind of operator between them: PostgreSQL puts all others in parentheses.
func (p *checkParser) expression() checkNode {
	first := p.operand()
	op := p.peek()
	if op == ")" || op == "" {
		return first
	}
	node := checkNode{op: op, parts: []checkNode{first}}
	for p.peek() == op && !p.failed {
		p.next()
		if op == "=" && p.peek() == "ANY" {
			node.op = p.next()
		}
		node.parts = append(node.parts, p.operand())
	}
	return node
}

// beyond reports whether a value as a policy writes it lies beyond bounds of the schema, on one side: sign 1 asks
// whether it is below lo, -1 whether it is above hi. Values that are no numbers or dates lie nowhere.
func beyond(value, bound string, sign int) bool {
	if bound == "" {
		return false
	}
	x, ok1 := parseDecimal(value)
	y, ok2 := parseDecimal(bound)
	switch {
	case ok1 && ok2:
		return x.Cmp(y)*sign < 0
	case ok1 || ok2 || !isDay.MatchString(value) || !isDay.MatchString(bound):
		return false
	default:
		return strings.Compare(value, bound)*sign < 0
	}
}

var isDay = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
