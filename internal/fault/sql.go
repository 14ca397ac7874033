package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The codes of what can be wrong with a query's text. None of them depends on data or budget, and none costs anything.
const (
	CodeSyntax          Code = "sql/syntax"
	CodeUnsupported     Code = "sql/unsupported"
	CodeUnknownTable    Code = "sql/unknown-table"
	CodeUnknownColumn   Code = "sql/unknown-column"
	CodeUnknownFunction Code = "sql/unknown-function"
	CodeAmbiguousColumn Code = "sql/ambiguous-column"
	CodeTypeMismatch    Code = "sql/type-mismatch"
	CodeTooComplex      Code = "sql/too-complex"
	CodeTimeZone        Code = "sql/time-zone"
)

// Syntax says that the text is not SQL at all. The message may quote the analyst's own text: it is theirs already.
func Syntax(pos Position, message string) *Error {
	return &Error{Code: CodeSyntax, Pos: pos, Msg: clean(message),
		Hint: "the request's dialect says how SQL is read: postgresql, unless it says mysql"}
}

// constructs is the page of docs/sql-coverage.md where the gateway serves it: analysts have no repository.
const constructs = "the gateway's page /docs/sql-coverage"

// Unsupported refuses SQL that Noisegate does not take. What names the construct ("a window function"); hint says what to
// write instead; where it is empty, the hint says where to look.
func Unsupported(pos Position, what, hint string) *Error {
	if hint == "" {
		hint = constructs + " lists the constructs that are taken"
	}
	return &Error{Code: CodeUnsupported, Pos: pos, Msg: clean(what) + " is not supported", Hint: hint}
}

// UnknownTable is also the answer for tables that exist but have no policy: known lists only what the analyst may see. Of a collection it
// says where its estimates are.
func UnknownTable(pos Position, name string, known []string) *Error {
	if strings.HasPrefix(name, "collect.") {
		return unknown(CodeUnknownTable, "table", pos, name, nil).WithHint("SQL reads no collections, and joins none: their estimates are at " +
			"GET /v1/collect/{collection}/estimate, and noisegate collect estimate prints them")
	}
	return unknown(CodeUnknownTable, "table", pos, name, known)
}

// TableElsewhere refuses a table that exists under another schema's name, which is what to write.
func TableElsewhere(pos Position, name, written string) *Error {
	e := unknown(CodeUnknownTable, "table", pos, name, nil)
	e.Hint, e.Part = fmt.Sprintf("did you mean %s?", Quote(written)), written
	return e
}

// UnknownColumn is also the answer for columns that exist but are hidden: known lists only what the analyst may see.
func UnknownColumn(pos Position, name string, known []string) *Error {
	return unknown(CodeUnknownColumn, "column", pos, name, known)
}

// UnknownFunction refuses a function that is not on the list of allowed ones, whether or not PostgreSQL has it. For one of another
// system it says how that is written here, and never names one that only sounds like it.
func UnknownFunction(pos Position, name string, known []string) *Error {
	if hint := elsewhere(name); hint != "" {
		return unknown(CodeUnknownFunction, "function", pos, name, nil).WithHint(hint)
	}
	return unknown(CodeUnknownFunction, "function", pos, name, known)
}

// UnknownWindow refuses OVER with a name that the WINDOW clause does not define before it is used.
func UnknownWindow(pos Position, name string, known []string) *Error {
	return unknown(CodeUnknownColumn, "window", pos, name, known)
}

func unknown(code Code, kind string, pos Position, name string, known []string) *Error {
	e := &Error{Code: code, Pos: pos, Msg: fmt.Sprintf("there is no %s %s", kind, Quote(name))}
	names := slices.Compact(slices.Sorted(slices.Values(known)))
	near, ok := Nearest(name, known)
	switch {
	case ok:
		e.Hint, e.Part = fmt.Sprintf("did you mean %s?", Quote(near)), near
	case len(names) == 0:
		e.Hint = fmt.Sprintf("no %s of that name can be seen from here", kind)
	case len(names) > maxNamed:
		e.Hint = listed(code)
	default:
		for i, n := range names {
			names[i] = clean(n)
		}
		e.Hint = fmt.Sprintf("known %ss: %s", kind, strings.Join(names, ", "))
	}
	return e
}

// listed says where all names are that a name of a query or a policy could have been.
func listed(code Code) string {
	switch code {
	case CodeUnknownFunction:
		return constructs + " lists the functions"
	case CodePolicyInvalid:
		return "tables and columns are those that the gateway's role sees in the database"
	default:
		return "noisegate datasets, or GET /v1/datasets, lists tables and columns"
	}
}

// maxNamed is how many names a hint lists.
const maxNamed = 20

// TimeZone refuses what would mean something else in the session's time zone than in UTC, in which statements run.
func TimeZone(pos Position, what, zone string) *Error {
	return &Error{Code: CodeTimeZone, Pos: pos, Msg: clean(what) + " depends on the session's time zone, " + clean(zone),
		Hint: "times are read in UTC: write an offset ('2024-02-29 12:00:00+00'), or SET TIME ZONE 'UTC'"}
}

// UnknownZone says that the server of a dataset has no file of a time zone.
func UnknownZone(zone string) *Error {
	return &Error{Code: CodeTimeZone, Msg: "the dataset's server does not know the time zone " + Quote(zone),
		Hint: "write another name of it, or ask the operator to update the server's time zones (tzdata); nothing was charged"}
}

// ZoneOnSeveralServers refuses a time zone where tables may lie on several servers: each would read its file at its first row.
func ZoneOnSeveralServers(zone string) *Error {
	return &Error{Code: CodeTimeZone, Msg: "the dataset's tables may lie on several servers, which have no time zone " + Quote(zone),
		Hint: "add hours, x - interval '5 hours'; nothing was charged"}
}

// AmbiguousColumn refuses a name that several relations of the query have; relations are their names in the query.
func AmbiguousColumn(pos Position, name string, relations []string) *Error {
	e := &Error{Code: CodeAmbiguousColumn, Pos: pos, Msg: fmt.Sprintf("column %s is ambiguous", Quote(name))}
	if len(relations) > 0 {
		e.Hint = strings.Join(relations, " and ") + " have it: write the name of the one that is meant, and a point, before it"
	}
	return e
}

// TypeMismatch says that an operation does not exist for the types it was given; the message names both. Without a hint
// it says where types are listed.
func TypeMismatch(pos Position, message, hint string) *Error {
	if hint == "" {
		hint = "GET /v1/datasets lists columns with their types; " + constructs + " lists the operations on them"
	}
	return &Error{Code: CodeTypeMismatch, Pos: pos, Msg: clean(message), Hint: hint}
}

// TooComplex refuses text beyond a limit of the parser, named with its bound: "the query has more than 8 joins".
func TooComplex(pos Position, message string) *Error {
	return &Error{Code: CodeTooComplex, Pos: pos, Msg: message, Hint: "ask in several smaller queries"}
}

// maxQuoted is how much of a client's own text an error repeats, in characters.
const maxQuoted = 64

// Quote renders a name from the client's text for a message: in double quotes, control characters escaped, cut at 64
// characters.
func Quote(name string) string {
	if runes := []rune(name); len(runes) > maxQuoted {
		return strconv.Quote(string(runes[:maxQuoted]) + "…")
	}
	return strconv.Quote(name)
}

// clean makes text that repeats the client's words safe for one line of a log or terminal.
func clean(text string) string {
	var b strings.Builder
	for i, r := range []rune(text) {
		switch {
		case i == 4*maxQuoted:
			return b.String() + "…"
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r == '\n', r == '\r', r == '\t':
			b.WriteByte(' ')
		default:
			b.WriteRune(utf8.RuneError)
		}
	}
	return b.String()
}

// Nearest finds the one of known that a slip of the fingers may have turned into name: the smallest edit distance
// (insert, delete, replace, swap of neighbours; letter case is free) of at most a third of the name's length. The first
// in alphabetical order wins a tie.
func Nearest(name string, known []string) (nearest string, ok bool) {
	from := []rune(strings.ToLower(name))
	if len(from) > maxQuoted {
		return "", false
	}
	best := max(1, len(from)/3) + 1
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		to := []rune(strings.ToLower(candidate))
		if len(to) > maxQuoted || len(to)-len(from) >= best || len(from)-len(to) >= best {
			continue
		}
		if d := editDistance(from, to); d < best {
			best, nearest, ok = d, candidate, true
		}
	}
	return nearest, ok
}

// editDistance is the optimal string alignment distance: Levenshtein's plus swaps of neighbours.
func editDistance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
