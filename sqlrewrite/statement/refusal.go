package statement

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"noisegate.example/internal/fault"
)

// The SQLSTATEs of refusals.
const (
	stateSyntax      = "42601"
	stateUnsupported = "0A000"
	stateReadOnly    = "25006"
	stateNoTable     = "42P01"
	stateInvalid     = "22023"
	stateTooMany     = "54000"
	stateNoParameter = "42P02"
	stateNoFunction  = "42883"
	stateNoSetting   = "42704"
	statePrivilege   = "42501"
	stateInternal    = "XX000"
)

// Refusal is why a statement does not run, in the words of the protocol.
type Refusal struct {
	SQLState string
	Message  string // PostgreSQL's own where it has one
	Hint     string // what to write instead; may be empty
	Position int    // characters of the message up to and with the place, as the protocol counts; 0: none
}

// IsSyntax reports whether the text is no SQL at all.
func (r *Refusal) IsSyntax() bool { return r.SQLState == stateSyntax }

func (r *Refusal) Error() string { return r.SQLState + ": " + r.Message }

// stop carries a refusal out of a walk of the tree; at is its place in bytes of the message, or negative.
type stop struct {
	refusal Refusal
	at      int
}

func halt(at int32, state, hint, format string, args ...any) {
	panic(stop{Refusal{SQLState: state, Message: fmt.Sprintf(format, args...), Hint: hint}, int(at)})
}

// guarded runs f and turns its halt into a refusal that is placed in the message.
func guarded(message string, f func()) (refusal *Refusal) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stop:
			refusal = &r.refusal
			if r.at >= 0 && r.at <= len(message) {
				refusal.Position = utf8.RuneCountInString(message[:r.at]) + 1
			}
		default:
			refusal = &Refusal{SQLState: stateInternal, Message: "internal error while a statement was read"}
		}
	}()
	f()
	return nil
}

// ofText turns the guard's and the parser's error into a refusal.
func ofText(message string, err error) *Refusal {
	var known *fault.Error
	if !errors.As(err, &known) {
		return &Refusal{SQLState: stateInternal, Message: "internal error while a statement was read"}
	}
	r := &Refusal{Message: known.Msg, Hint: known.Hint, Position: characters(message, known.Pos)}
	switch known.Code {
	case fault.CodeSyntax:
		r.SQLState, r.Hint = stateSyntax, "" // the hint speaks of a dialect, which only requests over HTTP have
	case fault.CodeTooComplex:
		r.SQLState = stateUnsupported
	default:
		r.SQLState = stateInternal
	}
	return r
}

// characters is a place of line and column as the protocol counts it; 0: none.
func characters(message string, at fault.Position) int {
	if at.IsZero() {
		return 0
	}
	count, line, column := 1, 1, 1
	for _, r := range message {
		if line == at.Line && column == at.Column {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		count++
	}
	return count
}
