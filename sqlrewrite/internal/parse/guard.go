package parse

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// The limits on a query's text. They hold before the text reaches a parser, or while its tree is converted, so that no
// text can make either recurse, allocate or run for long. PostgreSQL's parser is C: when its stack overflows the process
// dies without a chance to recover, which happens at some 22,000 repetitions of "+1" on a stack of 8 MiB. The test of
// A45 runs the worst shapes of maxTokens tokens on a quarter of that stack.
const (
	MaxBytes  = 64 << 10
	maxTokens = 4096
	maxDepth  = 64   // levels of expressions and joins in the tree; a chain of ANDs or ORs is one level
	maxJoins  = 15   // relations of FROM, less one
	maxInList = 1000 // values of one IN list
	maxDigits = 1000 // digits and decimal exponent of one number: 1e999999999 would be a gigabyte

	// maxOperatorWork bounds the sum of the squares of the lengths of all runs of operator characters. PostgreSQL's
	// scanner reads to the end of such a run for every token that it takes from it, so that it needs 18 s for 64 KiB of
	// "+-+" and 8 s for nested comments; at this bound, some 10 ms. One run may have 1,448 characters.
	maxOperatorWork = 1 << 21
)

// operatorCharacters are the characters of PostgreSQL's operators, among them those that open and close comments.
const operatorCharacters = "~!@#^&|`?+-*/%<>="

// Dialect is the SQL that an analyst declares a text to be written in. All dialects become one tree, with one meaning.
type Dialect string

// The dialects. The zero value is PostgreSQL's.
const (
	DialectPostgres Dialect = "postgresql"
	DialectMySQL    Dialect = "mysql"
)

// Parse is [ParseAt] without a clock: current_date and its like are refused.
func Parse(text string, dialect Dialect) (*syntax.Query, error) {
	return ParseAt(text, dialect, Clock{})
}

// Clock is the time of a request, by which current_date and its like are read.
type Clock struct {
	Now  time.Time // zero: they are refused
	Zone string    // of the session, where that is not UTC: they are refused, since a day begins elsewhere there
}

// IsTimeless reports whether a text parses, and means the same at any time: without a clock it is the same tree.
func IsTimeless(text string, dialect Dialect) bool {
	timed, refused := ParseAt(text, dialect, Clock{Now: time.Unix(0, 0)})
	untimed, none := Parse(text, dialect)
	return refused == nil && none == nil && reflect.DeepEqual(timed, untimed)
}

// ParseAt turns text into the closed syntax tree; current_date and its like are what they are by a clock. It refuses with
// sql/syntax, sql/unsupported and sql/too-complex. A panic on the way is an internal error of this query alone: parsers
// meet hostile text first.
func ParseAt(text string, dialect Dialect, clock Clock) (query *syntax.Query, err error) {
	defer func() {
		if r := recover(); r != nil {
			query, err = nil, fault.Internal(fmt.Errorf("panic while parsing: %v", r))
		}
	}()
	if refusal := checkText(text, analystLimits()); refusal != nil {
		return nil, refusal
	}
	switch dialect {
	case "", DialectPostgres:
		return parsePostgres(text, clock)
	case DialectMySQL:
		query, err := parseMySQL(text)
		if err == nil {
			nameAsMySQL(query, text)
		}
		return query, err
	default:
		return nil, fault.Unsupported(fault.Position{}, "the dialect "+fault.Quote(string(dialect)), "write postgresql or mysql")
	}
}

// Limits bound a text before a parser sees it: its bytes, and its words and symbols.
type Limits struct{ Bytes, Tokens int }

// analystLimits are those of a query over protected tables.
func analystLimits() Limits { return Limits{Bytes: MaxBytes, Tokens: maxTokens} }

// checkText refuses what no parser should see. NUL ends a string in C: what follows it would be accepted unread.
func checkText(text string, limits Limits) *fault.Error {
	if len(text) > limits.Bytes {
		return fault.TooComplex(fault.Position{}, fmt.Sprintf("the query is longer than %d KiB", limits.Bytes>>10))
	}
	run, work := 0, 0
	for at, r := range text {
		if r < utf8.RuneSelf && strings.IndexByte(operatorCharacters, byte(r)) >= 0 {
			work += 2*run + 1 // the squares' differences
			run++
		} else {
			run = 0
		}
		if work > maxOperatorWork {
			return fault.TooComplex(scalar.Position(text, syntax.Pos(at)), "the query has too long sequences of operator characters")
		}
		if r == 0 {
			return fault.Syntax(scalar.Position(text, syntax.Pos(at)), "the query contains a NUL character")
		}
		if r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)) {
			return fault.Syntax(scalar.Position(text, syntax.Pos(at)), "the query is not valid UTF-8")
		}
	}
	return nil
}
