package fault

import (
	"fmt"
	"strings"
)

// The codes of policies themselves: of the file that a steward writes, and of datasets that lack a valid one.
const (
	CodePolicyInvalid   Code = "policy/invalid"
	CodePolicyStale     Code = "policy/stale"
	CodePolicyConflict  Code = "policy/conflict"
	CodePolicySignature Code = "policy/signature"
	CodeUnknownDataset  Code = "policy/unknown-dataset"
	CodePreparedOnly    Code = "policy/prepared-only"
	CodeNotPrepared     Code = "policy/not-prepared"
	CodeCannotPrepare   Code = "policy/cannot-prepare"
	CodePreparing       Code = "policy/preparing"
)

// PolicyInvalid refuses a policy file: message names what is wrong where. Stewards read it, so it may name anything of the
// schema; it holds no value of a row.
func PolicyInvalid(pos Position, message, hint string) *Error {
	return &Error{Code: CodePolicyInvalid, Pos: pos, Msg: clean(message), Hint: hint}
}

// PolicyUnknown refuses a name that does not exist; kind says of what ("table", "column", "key"), known what there is.
func PolicyUnknown(pos Position, kind, name string, known []string) *Error {
	return unknown(CodePolicyInvalid, kind, pos, name, known)
}

// PolicyStale refuses every query on a dataset whose tables are no longer those that its policy was checked against. What
// changed belongs in the cause: an analyst need not know the schema.
func PolicyStale() *Error {
	return &Error{Code: CodePolicyStale, Msg: "the tables of this dataset changed since its policy was applied",
		Hint: "ask the data's steward to apply the policy again"}
}

// PreparedOnly refuses a question about a table that is read in its prepared copy only, which does not answer it.
func PreparedOnly(table string) *Error {
	return &Error{Code: CodePreparedOnly, Msg: fmt.Sprintf("table %s is read in its prepared copy only, which does not answer this question",
		Quote(table)),
		Hint: "a copy answers counts, sums, means and moments, with public keys and beside public tables that are joined by a unique key; " +
			`leave out max_groups, max_error, report, plan and "prepared": false`}
}

// NotOfCopy refuses a question that the prepared copy of a table does not answer. The table itself answers it, where the policy lets it be
// read.
func NotOfCopy(pos Position, table, why, hint string) *Error {
	return &Error{Code: CodePreparedOnly, Pos: pos, Hint: hint,
		Msg: fmt.Sprintf("the prepared copy of table %s does not answer this question: %s", Quote(table), why)}
}

// NotPrepared refuses every question about a table that is read in its prepared copy only, while no version is what the policy asks for.
func NotPrepared(table string) *Error {
	return &Error{Code: CodeNotPrepared, Msg: fmt.Sprintf("table %s is read in its prepared copy only, and no copy is there that its policy "+
		"asks for", Quote(table)),
		Hint: "ask the data's steward to run noisegate prepare"}
}

// NoPreparer refuses to prepare tables of a dataset for which the gateway has no connection as the role that prepares.
func NoPreparer(dataset string) *Error {
	return &Error{Code: CodeCannotPrepare, Msg: fmt.Sprintf("this gateway does not prepare tables of dataset %s", Quote(dataset)),
		Hint: "give it datasets.NAME.prepare_dsn, or run noisegate prepare where that is known"}
}

// NothingToPrepare refuses to prepare a table that the policy asks no copy of; the name is "" where it asks none at all.
func NothingToPrepare(table string) *Error {
	what := "no table"
	if table != "" {
		what = "no table " + Quote(table)
	}
	return &Error{Code: CodeCannotPrepare, Msg: "the policy in force has prepare for " + what,
		Hint: "write prepare: {max_rows: N} at the table, and apply the policy"}
}

// Preparing refuses a second run that prepares tables of a dataset, while one is running.
func Preparing(dataset, job string) *Error {
	return &Error{Code: CodePreparing, Msg: fmt.Sprintf("tables of dataset %s are being prepared by the run %s", Quote(dataset), job),
		Hint: "wait until it ends, or cancel it", Details: []Detail{{Name: "job_id", Value: job}}}
}

// PolicyConflict refuses a change that was based on another version than the current one; 0 stands for no version at all.
func PolicyConflict(dataset string, current int64) *Error {
	msg := fmt.Sprintf("dataset %s has no policy yet", Quote(dataset))
	if current > 0 {
		msg = fmt.Sprintf("the policy of dataset %s is at version %d, which is not the one that this change replaces", Quote(dataset), current)
	}
	return &Error{Code: CodePolicyConflict, Msg: msg, Hint: "read the current policy and change that one"}
}

// PolicySignature refuses a change of a policy with a signature that does not hold.
func PolicySignature(why string) *Error {
	return &Error{Code: CodePolicySignature, Msg: why, Hint: "a second steward signs the change that is made now: noisegate policy sign"}
}

// PolicySecondSteward refuses a change of a policy that two stewards make; kinds are what of it, by the names of two_for.
func PolicySecondSteward(kinds []string) *Error {
	return &Error{Code: CodePolicySignature, Msg: "one steward alone does not make this change, for which the policy in force wants two: " +
		strings.Join(kinds, ", "), Hint: "another steward signs it with noisegate policy sign; apply it with --approval",
		Details: []Detail{{Name: "two_for", Value: strings.Join(kinds, ", ")}}}
}

// UnknownDataset is the answer for a dataset that does not exist, has no policy, or that the caller may not use.
func UnknownDataset(name string) *Error {
	return &Error{Code: CodeUnknownDataset, Msg: "there is no dataset " + Quote(name)}
}
