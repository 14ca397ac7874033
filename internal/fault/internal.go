package fault

// CodeInternal is what a client sees of every error that has no code of its own.
const CodeInternal Code = "internal"

// Internal wraps an unexpected error. The cause goes to the log, the client sees a request id.
func Internal(err error) *Error {
	return &Error{Code: CodeInternal, Msg: "something went wrong inside the gateway", Hint: "give the request id to the operator", Err: err}
}
