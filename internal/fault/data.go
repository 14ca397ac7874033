package fault

// CodeDataUnavailable is everything that goes wrong in or on the way to a database.
const CodeDataUnavailable Code = "data/unavailable"

// DataUnavailable is the one answer to every failure of a database. It says nothing of the failure: one that happens while
// private rows are read is itself data. The cause goes to the log.
func DataUnavailable(cause error) *Error {
	return &Error{Code: CodeDataUnavailable, Msg: "the data cannot be read now",
		Hint: "try again later; the operator finds the cause in the log", Err: cause}
}
