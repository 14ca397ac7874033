// Package fault is the one error type of Noisegate.
//
// It knows the catalogue of everything that can be refused or go wrong, area by area: each file
// named after an area (sql.go, policy.go, budget.go, ...) lists that area's codes and constructors,
// so that all texts a client may see are read together. It does not know HTTP, PostgreSQL or SQL.
//
// No constructor takes a value that was read from a protected table, and none carries the text of
// an error that the protected database raised: an error raised while private rows are being read is
// itself data. Such errors are kept in [Error.Err], which is for the operator's log only.
package fault

import (
	"errors"
	"fmt"
	"slices"
)

// Code names one kind of error, as "area/name". Codes are part of the public contract: they end the
// "type" of problem documents, and docs/errors.md explains each of them.
type Code string

// Position is a place in the text that the client sent: 1-based line and column, counted in
// characters. The zero Position means that the error has no place in the text.
type Position struct {
	Line   int
	Column int
}

// IsZero reports whether the position is unknown.
func (p Position) IsZero() bool { return p == Position{} }

func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Detail is one machine-readable member of a problem document, such as the ε that is still affordable.
// Details are public facts: functions of the request, the policy and the caller's own budget.
type Detail struct {
	Name  string
	Value string
}

// Error is what every refusal and failure of Noisegate is. Any other error type that reaches the
// border is shown to clients as an opaque internal error.
type Error struct {
	Code    Code
	Msg     string   // lower case; names the offending thing and says what was expected
	Hint    string   // what to write or do instead; may be empty
	Part    string   // the piece of SQL that would help, for programs: a name, a condition, a form of $1; may be empty
	Pos     Position // where in the client's text; may be zero
	Details []Detail // extra members of the problem document
	Err     error    // the cause, for the log only; never shown to a client
}

// Error renders code, position and message. It leaves out the cause on purpose: the text may reach a client.
func (e *Error) Error() string {
	if e.Pos.IsZero() {
		return fmt.Sprintf("%s: %s", e.Code, e.Msg)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Pos, e.Msg)
}

// Unwrap gives the cause to errors.Is and errors.As (a cancelled context, say).
func (e *Error) Unwrap() error { return e.Err }

// At returns a copy of the error that points at pos.
func (e *Error) At(pos Position) *Error {
	c := *e
	c.Pos = pos
	return &c
}

// WithHint returns a copy of the error with another hint.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// WithDetails returns a copy of the error with more details.
func (e *Error) WithDetails(more ...Detail) *Error {
	c := *e
	c.Details = append(slices.Clone(e.Details), more...)
	return &c
}

// WithPart returns a copy of the error with another piece of SQL that would help.
func (e *Error) WithPart(part string) *Error {
	c := *e
	c.Part = part
	return &c
}

// Suggestion is a query that the planner accepts, made of one that it refused. Only here an error repeats the client's own text changed:
// hints are prose, with examples of syntax.
type Suggestion struct {
	SQL     string // the whole query
	Then    string // the second one where it takes two; it marks where the first one's answer goes; empty: one is enough
	Differs string // how its answer differs from the refused query's; empty: where PostgreSQL answers both, it gives the same
}

// WithSuggestion returns a copy of the error with a suggestion as details.
func (e *Error) WithSuggestion(s Suggestion) *Error {
	for _, d := range []Detail{{Name: "suggestion", Value: s.SQL}, {Name: "then", Value: s.Then}, {Name: "differs", Value: s.Differs}} {
		if d.Value != "" {
			e = e.WithDetails(d)
		}
	}
	return e
}

// WithCause returns a copy of the error with a cause for the log.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// CodeOf returns the code of err, or [CodeInternal] when err is not an [Error]. It returns "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var f *Error
	if errors.As(err, &f) {
		return f.Code
	}
	return CodeInternal
}

// untouched marks an error as raised before any protected row can have been read.
type untouched struct{ error }

func (u untouched) Unwrap() error { return u.error }

// Untouched marks err as raised at a point where no protected row can have been read: the reservation
// behind it may be voided. Everything that is not marked keeps its charge.
func Untouched(err error) error {
	if err == nil {
		return nil
	}
	return untouched{err}
}

// excused marks an error that nobody is to blame for.
type excused struct{ error }

func (e excused) Unwrap() error { return e.error }

// Excused marks err as no failure of the asker. The server was down for everybody, or the asker wished that it ends. The charge behind it
// stands all the same.
func Excused(err error) error {
	if err == nil {
		return nil
	}
	return excused{err}
}

// IsExcused reports whether err was marked by [Excused].
func IsExcused(err error) bool {
	var e excused
	return errors.As(err, &e)
}

// IsUntouched reports whether err was marked by [Untouched].
func IsUntouched(err error) bool {
	var u untouched
	return errors.As(err, &u)
}
