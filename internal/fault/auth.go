package fault

import (
	"errors"
	"time"
)

// The codes of who may ask.
const (
	CodeAuthMissing   Code = "auth/missing"
	CodeAuthInvalid   Code = "auth/invalid"
	CodeAuthExpired   Code = "auth/expired"
	CodeAuthForbidden Code = "auth/forbidden"
	CodeAuthProvider  Code = "auth/provider"
)

// AuthMissing answers a request that shows no token.
func AuthMissing() *Error {
	return &Error{Code: CodeAuthMissing, Msg: "there is no bearer token", Hint: "send the header Authorization: Bearer TOKEN"}
}

// AuthInvalid answers every token that is not good, whatever is wrong with it: a forger learns nothing from the text.
// The cause goes to the log.
func AuthInvalid(cause error) *Error {
	return &Error{Code: CodeAuthInvalid, Msg: "the token is not valid", Hint: "get a new token from the identity provider", Err: cause}
}

// AuthCode answers a one-time code that was used, is too old or never was one; which of them is not said.
func AuthCode() *Error {
	return &Error{Code: CodeAuthInvalid, Msg: "the code is not valid: it works once, and for a few minutes",
		Hint: "log in with a token; noisegate demo names the files that hold them"}
}

// AuthLogin answers a log-in at the identity provider that is not good; which part of it is not said. The cause goes to the log.
func AuthLogin(cause error) *Error {
	return &Error{Code: CodeAuthInvalid, Msg: "the log-in is not valid: it was begun elsewhere, is too old, or was used before",
		Hint: "log in again", Err: cause}
}

// AuthNotTaken answers a log-in that the identity provider bears out with a token that the gateway does not take. The cause goes to the
// log.
func AuthNotTaken(cause error) *Error {
	return &Error{Code: CodeAuthInvalid, Msg: "the identity provider knows you, and its token is none that this gateway takes",
		Hint: "tell whoever runs the gateway: its log has the reason", Err: cause}
}

// AuthProvider says that nobody can log in at the identity provider just now. The cause goes to the log.
func AuthProvider(cause error) *Error {
	return &Error{Code: CodeAuthProvider, Msg: "the identity provider does not answer as it should",
		Hint: "try again in a moment, or paste a token; the gateway's log has the reason", Err: cause}
}

// AuthExpired answers a genuine token whose time is over.
func AuthExpired(at time.Time) *Error {
	return &Error{Code: CodeAuthExpired, Msg: "the token expired at " + at.UTC().Format(time.RFC3339),
		Hint: "get a new token from the identity provider"}
}

// ErrLongLived is the cause of an [AuthLongLived], by which it is told from an [AuthInvalid], whose bearer is told nothing.
var ErrLongLived = errors.New("the token lives for too long")

// AuthLongLived answers a genuine token that lives for longer than the gateway takes, or does not say how long it does.
func AuthLongLived(most time.Duration) *Error {
	return &Error{Code: CodeAuthInvalid, Msg: "the token lives for too long: from its iat to its exp there may be " + most.String(),
		Hint: "get one that ends sooner (exp), and says when it was made (iat)", Err: ErrLongLived}
}

// AuthOwnAccount answers a steward who acts on an account that their own questions are charged to.
func AuthOwnAccount() *Error {
	return &Error{Code: CodeAuthForbidden, Msg: "nobody acts as steward on an account of their own", Hint: "another steward may do it"}
}

// AuthForbidden answers a caller whose roles do not allow the request. Role is the one that would.
func AuthForbidden(role string) *Error {
	return &Error{Code: CodeAuthForbidden, Msg: "this needs the role " + role, Hint: "the roles claim of the token does not list it"}
}
