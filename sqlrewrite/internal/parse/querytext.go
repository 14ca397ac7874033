package parse

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// QueryText is a query as its author wrote it, cut into tokens, so that a part of it can be changed and the rest stays as it is. It knows
// just enough to find the clauses: whether a changed text means anything, the rewriter says.
type QueryText struct {
	Text   string
	Tokens []token
}

// token is a word, a quoted name, a string, a number or a sign.
type token struct {
	start, end int // bytes
	depth      int // of parentheses around it; those of a pair are at the depth around them
}

// CutText cuts a text into tokens. Comments and space are none.
func CutText(text string) *QueryText {
	q := &QueryText{Text: text}
	depth := 0
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		end := at + size
		switch {
		case unicode.IsSpace(r):
			at = end
			continue
		case strings.HasPrefix(text[at:], "--"):
			at += lengthUntil(text[at:], "\n")
			continue
		case strings.HasPrefix(text[at:], "/*"):
			at += lengthUntil(text[at:], "*/")
			continue
		case r == '\'' || r == '"' || r == '`':
			for end = at; ; { // a mark that is doubled does not end it
				end += 1 + lengthUntil(text[end+1:], string(r))
				if end >= len(text) || text[end] != byte(r) {
					break
				}
			}
		case isWordRune(r):
			for end < len(text) {
				next, size := utf8.DecodeRuneInString(text[end:])
				if !isWordRune(next) && next != '.' || next == '.' && !unicode.IsDigit(r) {
					break
				}
				end += size
			}
		case r == ')':
			depth = max(depth-1, 0)
		}
		q.Tokens = append(q.Tokens, token{start: at, end: end, depth: depth})
		if r == '(' {
			depth++
		}
		at = end
	}
	return q
}

// Statement is the query without the semicolons that end it, and the comments behind them.
func (q *QueryText) Statement() *QueryText {
	last := len(q.Tokens)
	for q.Word(last-1) == ";" {
		last--
	}
	if last == len(q.Tokens) {
		return q
	}
	return CutText(q.Text[:q.Tokens[last].start])
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// lengthUntil is how many bytes there are to the end of a mark, or in all.
func lengthUntil(text, mark string) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i + len(mark)
	}
	return len(text)
}

// Word is a token in upper case; empty outside the text.
func (q *QueryText) Word(i int) string {
	if i < 0 || i >= len(q.Tokens) {
		return ""
	}
	return strings.ToUpper(q.Text[q.Tokens[i].start:q.Tokens[i].end])
}

// Reads reports whether the tokens from one on are these words.
func (q *QueryText) Reads(i int, words ...string) bool {
	for k, word := range words {
		if q.Word(i+k) != word {
			return false
		}
	}
	return true
}

// At is the token at a position; -1 if there is none.
func (q *QueryText) At(pos fault.Position) int {
	if pos.IsZero() {
		return -1
	}
	return slices.IndexFunc(q.Tokens, func(t token) bool { return scalar.Position(q.Text, syntax.Pos(t.start)) == pos })
}

// Slice is the text of the tokens from, ..., to-1.
func (q *QueryText) Slice(from, to int) string {
	if from >= to {
		return ""
	}
	return q.Text[q.Tokens[from].start:q.Tokens[to-1].end]
}

// Replaced is the text with other words for the tokens from, ..., to-1; for none of them, with words before the token from.
func (q *QueryText) Replaced(from, to int, with string) string {
	if from >= len(q.Tokens) {
		return strings.TrimRight(q.Text, " \t\n;") + " " + with
	}
	start, end := q.Tokens[from].start, q.Tokens[from].start
	if from < to {
		end = q.Tokens[to-1].end
	} else {
		with += " "
	}
	before := q.Text[:start]
	if with == "" {
		before = strings.TrimRight(before, " ")
	}
	return before + with + q.Text[end:]
}

// Closing is the token after the parenthesis that closes the one at open.
func (q *QueryText) Closing(open int) int {
	for i := open + 1; i < len(q.Tokens); i++ {
		if q.Tokens[i].depth == q.Tokens[open].depth && q.Word(i) == ")" {
			return i + 1
		}
	}
	return len(q.Tokens)
}

// SelectAround is the SELECT that a token is in: its tokens from, ..., to-1.
func (q *QueryText) SelectAround(i int) (from, to int) {
	depth := q.Tokens[i].depth
	for from = i; from > 0; from-- {
		if q.Tokens[from].depth <= depth && q.Word(from) == "SELECT" {
			break
		}
		if q.Tokens[from].depth < depth {
			depth = q.Tokens[from].depth
		}
	}
	depth = q.Tokens[from].depth
	for to = from + 1; to < len(q.Tokens); to++ {
		t := q.Tokens[to]
		if t.depth < depth || t.depth == depth && slices.Contains([]string{"UNION", "INTERSECT", "EXCEPT", ";"}, q.Word(to)) {
			break
		}
	}
	return from, to
}

// Clauses are the words that begin the clauses of a SELECT, in their order.
func Clauses() []string {
	return []string{"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH"}
}

// Clause finds a clause of the SELECT from, ..., to-1: its tokens, the word that begins it included. Where there is none, both ends are the
// place where it would stand.
func (q *QueryText) Clause(name string, from, to int) (start, end int) {
	order := Clauses()
	place := slices.Index(order, name)
	start = to
	for i := from; i < to; i++ {
		if q.Tokens[i].depth != q.Tokens[from].depth {
			continue
		}
		switch found := slices.Index(order, q.clauseWord(i)); {
		case found == place:
			start = i
			_, end = q.clauseAfter(i+1, from, to)
			return start, end
		case found > place:
			return i, i
		}
	}
	return start, start
}

// clauseWord is a token that may begin a clause: not GROUP of WITHIN GROUP, nor FROM of IS DISTINCT FROM.
func (q *QueryText) clauseWord(i int) string {
	if q.Reads(i-1, "WITHIN", "GROUP") || q.Reads(i-2, "IS", "DISTINCT", "FROM") || q.Reads(i-2, "NOT", "DISTINCT", "FROM") {
		return ""
	}
	return q.Word(i)
}

// clauseAfter is where the next clause of a SELECT begins.
func (q *QueryText) clauseAfter(i, from, to int) (word string, at int) {
	for ; i < to; i++ {
		if q.Tokens[i].depth == q.Tokens[from].depth && slices.Contains(Clauses(), q.clauseWord(i)) {
			return q.Word(i), i
		}
	}
	return "", to
}

// Boundary is the first token from i on, at its depth, that is one of the words, or ends the parenthesis.
func (q *QueryText) Boundary(i int, words ...string) int {
	if i >= len(q.Tokens) {
		return i
	}
	depth := q.Tokens[i].depth
	for ; i < len(q.Tokens); i++ {
		t := q.Tokens[i]
		if t.depth < depth || t.depth == depth && slices.Contains(words, q.Word(i)) {
			break
		}
	}
	return i
}

// nameAsMySQL gives the outputs of a query their names in MySQL: an expression without an alias is called what its author wrote. Columns
// keep their names.
func nameAsMySQL(query *syntax.Query, text string) {
	for query.Set != nil {
		query = query.Set.Left
	}
	q := CutText(text)
	at := slices.IndexFunc(q.Tokens, func(t token) bool { return t.start >= int(query.Pos) })
	if at < 0 || q.Word(at) != "SELECT" {
		return
	}
	from, to := q.SelectAround(at)
	_, end := q.Clause("SELECT", from, to)
	var names []string
	first := from + 1
	if query.Distinct {
		first++
	}
	for k := first; k < end; {
		next := q.Boundary(k, append(Clauses(), ",")...)
		names = append(names, q.Slice(k, next))
		k = next + 1
	}
	if len(names) != len(query.Items) {
		return
	}
	for i, item := range query.Items {
		switch item.Expr.(type) {
		case *syntax.Column, *syntax.Star:
		default:
			if item.Alias == "" {
				query.Items[i].Alias = names[i]
			}
		}
	}
}

// WithCondition adds a condition to a clause, or the clause.
func (q *QueryText) WithCondition(clause string, from, to int, condition string) string {
	start, end := q.Clause(clause, from, to)
	if start == end {
		return q.Replaced(start, start, clause+" "+condition)
	}
	return q.Replaced(start+1, end, q.Operand(start+1, end)+" AND "+condition)
}

// Operand is a condition that AND may follow.
func (q *QueryText) Operand(from, to int) string {
	if q.Boundary(from, "OR") < to {
		return "(" + q.Slice(from, to) + ")"
	}
	return q.Slice(from, to)
}

// Moved takes a clause that holds token i away, and its condition to another one.
func (q *QueryText) Moved(clause, to string, i int) string {
	from, end := q.SelectAround(i)
	start, stop := q.Clause(clause, from, end)
	if i <= start || i >= stop {
		return ""
	}
	condition := q.Slice(start+1, stop)
	rest := CutText(q.Replaced(start, stop, ""))
	from, end = rest.SelectAround(min(from, len(rest.Tokens)-1))
	return rest.WithCondition(to, from, end, condition)
}
