package pgwire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/internal/fault"
)

// refusal is an error as the protocol has it. What the service refuses becomes one in refusalOf; all others are made here, so
// that their texts are read together. None has a value of a protected table or a text of a protected database.
type refusal struct {
	state    string // SQLSTATE
	text     string
	hint     string // may be empty
	detail   string // may be empty
	position int    // in characters of the client's text; 0: none
	ends     bool   // the session
	cause    error  // for the log
}

// Error implements error.
func (r *refusal) Error() string { return r.state + ": " + r.text }

// Unwrap gives the cause.
func (r *refusal) Unwrap() error { return r.cause }

// message is what is sent.
func (r *refusal) message(fatal bool) *pgproto3.ErrorResponse {
	severity := "ERROR"
	if fatal || r.ends {
		severity = "FATAL"
	}
	return &pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: r.state, Message: clean(r.text),
		Hint: clean(r.hint), Detail: clean(r.detail), Position: int32(r.position)}
}

// clean makes a text one that ends at its end: the protocol ends texts with a zero byte.
func clean(text string) string { return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?") }

// fatal is the refusal as one that ends the session.
func fatal(r *refusal) *refusal {
	ends := *r
	ends.ends = true
	return &ends
}

func fatalf(state, format string, args ...any) *refusal {
	return &refusal{state: state, text: fmt.Sprintf(format, args...), ends: true}
}

func refusef(state, format string, args ...any) *refusal {
	return &refusal{state: state, text: fmt.Sprintf(format, args...)}
}

func (r *refusal) hinting(hint string) *refusal {
	r.hint = hint
	return r
}

// Before there is a session.

func tooManyStrangers() *refusal {
	return fatalf(stateTooMany, "too many clients are logging in")
}

func tooManySessions(text string) *refusal { return fatalf(stateTooMany, "%s", text) }

func violation(text string) *refusal { return fatalf(stateProtocol, "%s", text) }

func unsupportedVersion() *refusal {
	return fatalf(stateUnsupported, "unsupported frontend protocol: server supports 3.0 to 3.%d", newestMinor)
}

func badOptions() *refusal {
	return fatalf(stateSyntax, "options are -c name=value").hinting("such as options=-c noisegate.epsilon=0.05")
}

func clearText() *refusal {
	return fatalf(stateLogin, "this connection is not encrypted, and a token would cross the network in clear").hinting(
		"connect with sslmode=verify-full")
}

func noUser() *refusal {
	return fatalf(stateLogin, "no PostgreSQL user name specified in startup packet")
}

// wrongPassword has one text for every token that is not good; that a genuine one expired, or lives for too long, helps whom it belongs to.
func wrongPassword(user string, err error) *refusal {
	r := fatalf(statePassword, "password authentication failed for user %s", fault.Quote(user)).hinting(
		"the user is the subject of the token, and the token is the password")
	if fault.CodeOf(err) == fault.CodeAuthExpired {
		r.hint = "the token expired: get a new one from the identity provider"
	}
	var f *fault.Error
	if errors.Is(err, fault.ErrLongLived) && errors.As(err, &f) {
		r.hint = f.Msg + "; " + f.Hint
	}
	r.cause = err
	return r
}

// wrongBearer is [wrongPassword] of OAUTHBEARER, in PostgreSQL's words.
func wrongBearer(user string, err error) *refusal {
	r := wrongPassword(user, err)
	r.state, r.text = stateLogin, "OAuth bearer authentication failed for user "+fault.Quote(user)
	return r
}

func noDatabase(name string) *refusal {
	return fatalf(stateNoDatabase, "database %s does not exist", fault.Quote(name)).hinting("the database is the name of a dataset")
}

// The end of a session.

func stopping() *refusal {
	return fatalf(stateStopping, "terminating connection due to administrator command")
}

// idleTooLong ends a session whose client says nothing: for too long, or while others need its place.
func idleTooLong(place bool) *refusal {
	if place {
		return fatalf(stateIdle, "terminating connection: all places are taken, and this session was idle longest").hinting("connect again")
	}
	return fatalf(stateIdle, "terminating connection due to idle-session timeout").hinting("connect again, or raise wire.idle")
}

func expired(err error) *refusal {
	r := fatalf(stateLogin, "the token of this session is not valid any more").hinting("connect again with a new token")
	r.cause = err
	return r
}

func messageTooLong(limit int) *refusal {
	return refusef(stateTooLarge, "a message has more than %d bytes", limit)
}

// Of statements.

func unsupported(what string) *refusal { return refusef(stateUnsupported, "%s is not supported", what) }

func cancelled() *refusal { return refusef(stateCancelled, "canceling statement due to user request") }

func failedTransaction() *refusal {
	return refusef(stateFailedTransaction, "current transaction is aborted, commands ignored until end of transaction block")
}

func noStatement(name string) *refusal {
	return refusef(stateNoStatement, "prepared statement %s does not exist", fault.Quote(name))
}

func noPortal(name string) *refusal {
	return refusef(stateNoCursor, "portal %s does not exist", fault.Quote(name))
}

func noCursor(name string) *refusal {
	return refusef(stateNoCursor, "cursor %s does not exist", fault.Quote(name))
}

func noCatalog() *refusal {
	return refusef(stateUnavailable, "the catalog is not available").hinting("questions about exposed tables are answered")
}
