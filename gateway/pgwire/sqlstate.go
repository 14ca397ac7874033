package pgwire

import (
	"errors"
	"strings"
	"unicode/utf8"

	"noisegate.example/internal/fault"
)

// SQLSTATEs (PostgreSQL's documentation, Appendix A).
const (
	stateWarning           = "01000"
	stateUnsupported       = "0A000"
	stateProtocol          = "08P01"
	stateText              = "22021"
	stateData              = "22000"
	stateValue             = "22023"
	stateBinary            = "22P03"
	stateBadText           = "22P02"
	stateNoTransaction     = "25P01"
	stateFailedTransaction = "25P02"
	stateNoStatement       = "26000"
	stateLogin             = "28000"
	statePassword          = "28P01"
	stateNoCursor          = "34000"
	stateNoSavepoint       = "3B001"
	stateNoDatabase        = "3D000"
	stateNotAllowed        = "42501"
	stateSyntax            = "42601"
	stateAmbiguousColumn   = "42702"
	stateNoColumn          = "42703"
	stateUnknownSetting    = "42704"
	stateType              = "42804"
	stateNoFunction        = "42883"
	stateNoTable           = "42P01"
	stateNoParameter       = "42P02"
	stateCursorTaken       = "42P03"
	stateStatementTaken    = "42P05"
	stateMemory            = "53200"
	stateTooMany           = "53300"
	stateBudget            = "53400"
	stateTooLarge          = "54000"
	stateNotReady          = "55000"
	stateBusy              = "55006"
	stateSettingFixed      = "55P02"
	stateCancelled         = "57014"
	stateStopping          = "57P01"
	stateUnavailable       = "57P03"
	stateIdle              = "57P05"
	stateInternal          = "XX000"
)

// stateOf gives each code its SQLSTATE; "" for what it does not know, which is a defect.
func stateOf(code fault.Code) string {
	switch code {
	case fault.CodeSyntax:
		return stateSyntax
	case fault.CodeUnsupported, fault.CodeTooComplex, fault.CodeTimeZone:
		return stateUnsupported
	case fault.CodeUnknownTable:
		return stateNoTable
	case fault.CodeUnknownColumn:
		return stateNoColumn
	case fault.CodeUnknownFunction:
		return stateNoFunction
	case fault.CodeAmbiguousColumn:
		return stateAmbiguousColumn
	case fault.CodeTypeMismatch:
		return stateType
	case fault.CodeUnknownDataset:
		return stateNoDatabase
	case fault.CodeRequestInFlight:
		return stateBusy
	case fault.CodeRequestTooMany:
		return stateTooMany
	case fault.CodeRequestMemory:
		return stateMemory
	case fault.CodeRequestTooLarge:
		return stateTooLarge
	case fault.CodeRequestGone, fault.CodeBudgetCancelled:
		return stateCancelled
	case fault.CodeDataUnavailable, fault.CodeLedgerClock, fault.CodePolicyStale, fault.CodeNotPrepared:
		return stateUnavailable
	case fault.CodeInternal, fault.CodeUnverified, fault.CodeUnprintable:
		return stateInternal
	default:
		return stateOfArea(code)
	}
}

// stateOfArea is the SQLSTATE of the codes of an area that have none of their own.
func stateOfArea(code fault.Code) string {
	switch area, _, _ := strings.Cut(string(code), "/"); area {
	case "policy", "plan":
		return stateNotAllowed
	case "budget":
		return stateBudget
	case "request":
		return stateValue
	case "auth":
		return stateLogin
	case "pate", "collect": // labels and reports go over HTTP alone
		return stateUnsupported
	default:
		return ""
	}
}

// place is where a statement stands in the text that the client sent.
type place struct {
	text   string // of the statement
	offset int    // characters of the message before it
}

// position turns a place in the statement into one in the message: characters, counted from 1; 0 for none.
func (p *place) position(at fault.Position) int {
	if p == nil || at.IsZero() {
		return 0
	}
	rest, before := p.text, 0
	for range at.Line - 1 {
		line, after, ok := strings.Cut(rest, "\n")
		if !ok {
			return 0
		}
		rest, before = after, before+utf8.RuneCountInString(line)+1
	}
	return p.offset + before + at.Column
}

// refusalOf is an error of the service as PostgreSQL's clients expect it. Anything but a [fault.Error] is an opaque internal
// error, and so is a code without an SQLSTATE: it must not show what it says.
func refusalOf(err error, at *place) *refusal {
	var own *refusal
	if errors.As(err, &own) {
		return own
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.Internal(err)
	}
	if stateOf(f.Code) == "" {
		f = fault.Internal(err)
	}
	r := &refusal{state: stateOf(f.Code), text: f.Msg, hint: f.Hint, detail: string(f.Code), position: at.position(f.Pos), cause: err}
	if f.Code == fault.CodeRequestNoPrice {
		r.hint = priceHint
	}
	for _, d := range f.Details {
		switch d.Name {
		case "suggestion":
			r.hint = strings.TrimPrefix(r.hint+"\nThis would be accepted: "+d.Value, "\n")
		case "then":
			r.hint += "\nand then, over its answer: " + d.Value
		case "differs":
			r.hint += "\nIts answer differs: " + d.Value
		}
	}
	return r
}

// priceHint says how a session gets a price.
const priceHint = "SET noisegate.epsilon = 0.05, or options=-c noisegate.epsilon=0.05 in the connection"
