package sqlrewrite

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// queryText is a query as its author wrote it, cut into tokens, so that a part of it can be changed and the rest stays as it is. It knows
// just enough to find the clauses: whether a changed text means anything, the rewriter says.
type queryText struct {
	text   string
	tokens []token
}

// token is a word, a quoted name, a string, a number or a sign.
type token struct {
	start, end int // bytes
	depth      int // of parentheses around it; those of a pair are at the depth around them
}

// cutText cuts a text into tokens. Comments and space are none.
func cutText(text string) *queryText {
	q := &queryText{text: text}
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
			end = at + 1 + lengthUntil(text[at+1:], string(r))
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
		q.tokens = append(q.tokens, token{start: at, end: end, depth: depth})
		if r == '(' {
			depth++
		}
		at = end
	}
	return q
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// lengthUntil is how many bytes there are to the end of a mark, or in all.
func lengthUntil(text, mark string) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i + len(mark)
	}
	return len(text)
}

// word is a token in upper case; empty outside the text.
func (q *queryText) word(i int) string {
	if i < 0 || i >= len(q.tokens) {
		return ""
	}
	return strings.ToUpper(q.text[q.tokens[i].start:q.tokens[i].end])
}

// at is the token at a position; -1 if there is none.
func (q *queryText) at(pos fault.Position) int {
	if pos.IsZero() {
		return -1
	}
	return slices.IndexFunc(q.tokens, func(t token) bool { return position(q.text, syntax.Pos(t.start)) == pos })
}

// slice is the text of the tokens from, ..., to-1.
func (q *queryText) slice(from, to int) string {
	if from >= to {
		return ""
	}
	return q.text[q.tokens[from].start:q.tokens[to-1].end]
}

// replaced is the text with other words for the tokens from, ..., to-1; for none of them, with words before the token from.
func (q *queryText) replaced(from, to int, with string) string {
	if from >= len(q.tokens) {
		return strings.TrimRight(q.text, " \t\n;") + " " + with
	}
	start, end := q.tokens[from].start, q.tokens[from].start
	if from < to {
		end = q.tokens[to-1].end
	} else {
		with += " "
	}
	before := q.text[:start]
	if with == "" {
		before = strings.TrimRight(before, " ")
	}
	return before + with + q.text[end:]
}

// closing is the token after the parenthesis that closes the one at open.
func (q *queryText) closing(open int) int {
	for i := open + 1; i < len(q.tokens); i++ {
		if q.tokens[i].depth == q.tokens[open].depth && q.word(i) == ")" {
			return i + 1
		}
	}
	return len(q.tokens)
}

// selectAround is the SELECT that a token is in: its tokens from, ..., to-1.
func (q *queryText) selectAround(i int) (from, to int) {
	depth := q.tokens[i].depth
	for from = i; from > 0; from-- {
		if q.tokens[from].depth <= depth && q.word(from) == "SELECT" {
			break
		}
		if q.tokens[from].depth < depth {
			depth = q.tokens[from].depth
		}
	}
	depth = q.tokens[from].depth
	for to = from + 1; to < len(q.tokens); to++ {
		t := q.tokens[to]
		if t.depth < depth || t.depth == depth && slices.Contains([]string{"UNION", "INTERSECT", "EXCEPT", ";"}, q.word(to)) {
			break
		}
	}
	return from, to
}

// clauses are the words that begin the clauses of a SELECT, in their order.
func clauses() []string {
	return []string{"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH"}
}

// clause finds a clause of the SELECT from, ..., to-1: its tokens, the word that begins it included. Where there is none, both ends are the place
// where it would stand.
func (q *queryText) clause(name string, from, to int) (start, end int) {
	order := clauses()
	place := slices.Index(order, name)
	start = to
	for i := from; i < to; i++ {
		if q.tokens[i].depth != q.tokens[from].depth {
			continue
		}
		switch found := slices.Index(order, q.word(i)); {
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

// clauseAfter is where the next clause of a SELECT begins.
func (q *queryText) clauseAfter(i, from, to int) (word string, at int) {
	for ; i < to; i++ {
		if q.tokens[i].depth == q.tokens[from].depth && slices.Contains(clauses(), q.word(i)) {
			return q.word(i), i
		}
	}
	return "", to
}

// boundary is the first token from i on, at its depth, that is one of the words, or ends the parenthesis.
func (q *queryText) boundary(i int, words ...string) int {
	if i >= len(q.tokens) {
		return i
	}
	depth := q.tokens[i].depth
	for ; i < len(q.tokens); i++ {
		t := q.tokens[i]
		if t.depth < depth || t.depth == depth && slices.Contains(words, q.word(i)) {
			break
		}
	}
	return i
}

// nameAsMySQL gives the outputs of a query their names in MySQL: an expression without an alias is called what its author wrote. Columns keep
// their names.
func nameAsMySQL(query *syntax.Query, text string) {
	for query.Set != nil {
		query = query.Set.Left
	}
	q := cutText(text)
	at := slices.IndexFunc(q.tokens, func(t token) bool { return t.start >= int(query.Pos) })
	if at < 0 || q.word(at) != "SELECT" {
		return
	}
	from, to := q.selectAround(at)
	_, end := q.clause("SELECT", from, to)
	var names []string
	first := from + 1
	if query.Distinct {
		first++
	}
	for k := first; k < end; {
		next := q.boundary(k, append(clauses(), ",")...)
		names = append(names, q.slice(k, next))
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
