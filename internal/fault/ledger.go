package fault

// CodeLedgerClock says that the time of the ledger cannot be told.
const CodeLedgerClock Code = "ledger/clock"

// LedgerClock refuses to write while the clock of the ledger's server is far ahead of the newest entry and of the gateway's: one entry at
// such a time would stop rates and signatures until then.
func LedgerClock(err error) *Error {
	return &Error{Code: CodeLedgerClock, Msg: "the clocks of the ledger's server and the gateway do not agree, and nothing is written",
		Hint: "tell the operator, whom noisegate doctor tells how far apart they are; then ask again", Err: err}
}

// LedgerSetBack refuses to let a dataset's time go on from one that is not the time, or where there is nothing to set back.
func LedgerSetBack(why string) *Error {
	return &Error{Code: CodeRequestBody, Msg: "the time of the dataset is not set back: " + why,
		Hint: "set the clocks of the ledger's server and of the gateway first; then give a time within 60 s of both"}
}

// LedgerSetBackSignature refuses to set the time of a dataset back without a second steward's signature under just that.
func LedgerSetBackSignature(why string) *Error {
	return &Error{Code: CodeBudgetSignature, Msg: why,
		Hint: "another steward signs with noisegate budget clock --key, --for and --as; send it with --signature, at the time that was signed"}
}
