package fault

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// CodeInternal is what a client sees of every error without a specific code.
const CodeInternal Code = "internal"

// CodeUnverified is a statement that is not proven to move as little as its price was computed for.
const CodeUnverified Code = "internal/unverified"

// Unverified refuses to run a statement. The cause says which rule it breaks and how it is written, for the log: its
// constants are parameters, so that no value is in it.
func Unverified(cause error) *Error {
	return &Error{Code: CodeUnverified, Msg: "the statement of this query could not be proven to be private, and was not run",
		Hint: "nothing was charged; give the request id to the operator, and write the query in another way", Err: cause}
}

// CodeUnprintable is a statement that the server of its data does not take.
const CodeUnprintable Code = "internal/unprintable"

// Unprintable refuses a question whose statement the server does not take, before it is charged. Its argument is PostgreSQL's code of the
// error, for the log: no row was read, so that it depends on none.
func Unprintable(state string) *Error {
	return &Error{Code: CodeUnprintable,
		Msg:  "the server does not take the statement of this query: a mistake of the gateway's, or the server lacks something",
		Hint: "nothing was charged; asking again does not help; give the request id to the operator, and write the query in another way",
		Err:  errors.New("the server does not take a statement: SQLSTATE " + state)}
}

// Internal wraps an unexpected error. The cause goes to the log, the client sees a request id.
func Internal(err error) *Error {
	return &Error{Code: CodeInternal, Msg: "something went wrong inside the gateway", Hint: "give the request id to the operator", Err: err}
}

// Panicked is the error of a panic, for the deferred function that recovers from it. Of the panic only its type and place are kept: its
// text ("index out of range [5]") can be a function of data.
func Panicked(p any) *Error {
	callers := make([]uintptr, 16)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)]) // without this function and the deferred one
	for {
		frame, more := frames.Next()
		if !more {
			return Internal(fmt.Errorf("panic of type %T", p))
		}
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return Internal(fmt.Errorf("panic of type %T in %s:%d", p, frame.Function, frame.Line))
		}
	}
}
