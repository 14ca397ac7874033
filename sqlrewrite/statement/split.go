package statement

import (
	"fmt"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/parse"
)

// The limits of a message. The parser is C and recurses: its worst shapes of so many tokens need less than the 8 MiB of stack that a
// thread has (TestDeepMessages).
const (
	MaxBytes      = 256 << 10
	maxTokens     = 16384
	maxStatements = 100
	maxDepth      = 400 // levels of the parse tree, two for one of an expression
	maxParameters = 1<<16 - 1
)

// Split divides a message into its statements and says of each what it is. A message without a statement is one of kind Empty. An error
// is a [*Refusal] of the whole message, none of whose statements runs: broken syntax, or a limit.
func Split(message string, names Names) ([]Statement, error) {
	tree, err := parse.Tree(message, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
	if err != nil {
		return nil, ofText(message, err)
	}
	if len(tree.Stmts) > maxStatements {
		return nil, &Refusal{SQLState: stateTooMany, Message: fmt.Sprintf("a message has at most %d statements", maxStatements)}
	}
	if len(tree.Stmts) == 0 {
		return []Statement{{}}, nil
	}
	r := &reader{message: message, names: names}
	all := make([]Statement, len(tree.Stmts))
	for i, raw := range tree.Stmts {
		all[i] = r.statement(raw)
	}
	return all, nil
}

// reader reads the statements of one message.
type reader struct {
	message string
	names   Names
	tokens  []*pg.ScanToken // without comments; nil until somebody asks
}

// statement reads one of the message's statements.
func (r *reader) statement(raw *pg.RawStmt) Statement {
	begin, end := int(raw.StmtLocation), len(r.message)
	if raw.StmtLen > 0 {
		end = begin + int(raw.StmtLen)
	}
	s := r.cut(begin, end)
	s.Refusal = guarded(r.message, func() { r.classify(&s, raw.Stmt, begin, end) })
	if s.Refusal != nil {
		s = Statement{Text: s.Text, Offset: s.Offset, Kind: Refused, Refusal: s.Refusal}
	}
	return s
}

// white is what the grammar takes for white space.
const white = " \t\n\r\f\v"

// cut is the text between two bytes of the message, without the white space around it.
func (r *reader) cut(begin, end int) Statement {
	text := r.message[begin:end]
	begin += len(text) - len(strings.TrimLeft(text, white))
	return Statement{Text: strings.Trim(text, white), Offset: utf8.RuneCountInString(r.message[:begin])}
}

func (r *reader) classify(s *Statement, n *pg.Node, begin, end int) {
	if n.GetSelectStmt() == nil {
		s.Kind, s.Command = Session, r.command(n, begin, end)
		if body := bodyOf(s.Command); body != nil {
			s.Parameters = body.Parameters
		}
		return
	}
	if cancel, ok := r.cancel(n); ok {
		s.Kind, s.Command, s.Parameters = Session, cancel, cancel.Parameter
		return
	}
	if unlock, ok := unlock(n); ok {
		s.Kind, s.Command = Session, unlock
		return
	}
	r.query(s, n, begin, end)
}

// bodyOf is the query within a command whose parameters are the command's own; nil: there is none.
func bodyOf(c Command) *Statement {
	switch c := c.(type) {
	case Declare:
		return &c.Body
	case Copy:
		return &c.Body
	case Explain:
		return &c.Body
	default:
		return nil
	}
}

// body reads the query within a command, which begins at a byte of the message.
func (r *reader) body(n *pg.Node, begin, end int) Statement {
	if n.GetSelectStmt() == nil {
		r.refuse(n, begin, end)
	}
	s := r.cut(begin, end)
	r.query(&s, n, begin, end)
	return s
}

// words are the tokens of a part of the message, without comments.
func (r *reader) words(begin, end int) []*pg.ScanToken {
	if r.tokens == nil {
		scan, err := pg.Scan(r.message)
		if err != nil {
			halt(int32(begin), stateSyntax, "", "the statement has no words")
		}
		for _, t := range scan.Tokens {
			if t.Token != pg.Token_SQL_COMMENT && t.Token != pg.Token_C_COMMENT {
				r.tokens = append(r.tokens, t)
			}
		}
	}
	var part []*pg.ScanToken
	for _, t := range r.tokens {
		if int(t.Start) >= begin && int(t.End) <= end {
			part = append(part, t)
		}
	}
	return part
}

// word is a token in upper case.
func (r *reader) word(t *pg.ScanToken) string { return strings.ToUpper(r.message[t.Start:t.End]) }
