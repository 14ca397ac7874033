package fault

// CodeLedgerClock says that the time of the ledger cannot be told.
const CodeLedgerClock Code = "ledger/clock"

// LedgerClock refuses to write while the clock of the ledger's server is far ahead of the newest entry and of the gateway's: one entry at
// such a time would stop rates and signatures until then.
func LedgerClock(err error) *Error {
	return &Error{Code: CodeLedgerClock, Msg: "the clocks of the ledger's server and the gateway do not agree, and nothing is written",
		Hint: "tell the operator, whom noisegate doctor tells how far apart they are; then ask again", Err: err}
}
