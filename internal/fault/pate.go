package fault

import (
	"fmt"
	"strconv"
)

// The codes of private labels. They depend on the request, on the ensemble's definition and on the names of its queries, and cost
// nothing. Only stewards see those about votes.
const (
	CodePateUnknownEnsemble Code = "pate/unknown-ensemble"
	CodePateEnsemble        Code = "pate/invalid-ensemble"
	CodePateSealed          Code = "pate/sealed"
	CodePateRedefined       Code = "pate/redefined"
	CodePateNotSealed       Code = "pate/not-sealed"
	CodePateNoVotes         Code = "pate/no-votes"
	CodePateVotes           Code = "pate/invalid-votes"
	CodePateLayout          Code = "pate/ambiguous-layout"
	CodePateUnknownTable    Code = "pate/unknown-table"
	CodePateUnknownQuery    Code = "pate/unknown-query"
	CodePateParameters      Code = "pate/invalid-parameters"
	CodePateStudent         Code = "pate/invalid-student"
	CodePateConditions      Code = "pate/conditions"
	CodePateNoGain          Code = "pate/no-gain"
)

// PateUnknownEnsemble answers for ensembles that nobody defined.
func PateUnknownEnsemble(name string) *Error {
	return &Error{Code: CodePateUnknownEnsemble, Msg: "there is no ensemble " + Quote(name)}
}

// PateEnsemble refuses the definition of an ensemble; field is the member that is wrong, want what it must be.
func PateEnsemble(field, want string) *Error {
	return &Error{Code: CodePateEnsemble, Msg: fmt.Sprintf("%s must be %s", field, want), Details: []Detail{{Name: "field", Value: field}}}
}

// PateSealed refuses votes where there is no version that takes them.
func PateSealed(name string) *Error {
	return &Error{Code: CodePateSealed, Msg: "the votes of the ensemble " + Quote(name) + " are sealed and never change",
		Hint: "define the ensemble again: that begins a new version, which spends from the same budget"}
}

// PateRedefined refuses votes for a version that was replaced by another one meanwhile, and one of two definitions at once.
func PateRedefined() *Error {
	return &Error{Code: CodePateRedefined, Msg: "the ensemble was defined anew at the same time",
		Hint: "look at the definition, then load its votes"}
}

// PateStillFit adds to a refusal by the buyer's own budget how many labels of the same kind still fit.
func PateStillFit(refused *Error, labels int64) *Error {
	hint := fmt.Sprintf("%d labels still fit; labels that you have already are free", labels)
	switch labels {
	case 0:
		hint = "no label of this kind fits; labels that you have already are free"
	case 1:
		hint = "1 label still fits; labels that you have already are free"
	}
	return refused.WithHint(hint).WithDetails(Detail{Name: "labels", Value: strconv.FormatInt(labels, 10)})
}

// PateNotSealed refuses labels while votes may still change.
func PateNotSealed(name string) *Error {
	return &Error{Code: CodePateNotSealed, Msg: "no version of the ensemble " + Quote(name) + " is sealed yet",
		Hint: "a steward seals it when its votes are complete"}
}

// PateNoVotes refuses to seal nothing.
func PateNoVotes(name string) *Error {
	return &Error{Code: CodePateNoVotes, Msg: "the ensemble " + Quote(name) + " has no votes yet"}
}

// PateVotes refuses a load of votes as a whole. Row is the first that is wrong, counted from 1 as the format counts rows, or 0 when no
// single row is to blame. Why never repeats what the row holds.
func PateVotes(row int64, why string) *Error {
	e := &Error{Code: CodePateVotes, Msg: why, Hint: "nothing was loaded"}
	if row > 0 {
		e.Msg = fmt.Sprintf("row %d: %s", row, why)
		e.Details = []Detail{{Name: "row", Value: strconv.FormatInt(row, 10)}}
	}
	return e
}

// PateLayout refuses an array whose shape does not say what its axes are.
func PateLayout(why string) *Error {
	return &Error{Code: CodePateLayout, Msg: why,
		Hint: "say layout=counts, labels_teacher_major, labels_query_major or onehot"}
}

// PateUnknownTable refuses a table or view of the protected database that the policy does not name for votes, with
// exactly these columns, or that does not exist under exactly the name given. What the reader role may not see does not
// exist.
func PateUnknownTable() *Error {
	return &Error{Code: CodePateUnknownTable, Msg: "the policy and the protected database have no such table of votes with these columns",
		Hint: "the policy names tables of votes, and their columns, under pate.votes; names are matched to the letter, the schema is part " +
			"of the name, and noisegate_reader needs SELECT on it"}
}

// PateUnknownQuery refuses a query that the ensemble did not vote on.
func PateUnknownQuery(key string) *Error {
	return &Error{Code: CodePateUnknownQuery, Msg: "the teachers have not voted on the query " + Quote(key)}
}

// PateParameters refuses a mechanism's parameters; why says what they must be.
func PateParameters(why string) *Error {
	return &Error{Code: CodePateParameters, Msg: why}
}

// PateStudent refuses what an interactive request says of the student; why says what it must be.
func PateStudent(why string) *Error {
	return &Error{Code: CodePateStudent, Msg: why}
}

// PateConditions refuses a sanitised ε whose theorem does not hold for the parameters; why names the condition.
func PateConditions(why string) *Error {
	return &Error{Code: CodePateConditions, Msg: "the smooth sensitivity of these votes is not bounded by the theorem: " + why,
		Hint: "the data-independent epsilon is valid in any case"}
}

// PateNoGain refuses to estimate an ε that cannot be smaller than the one that is free: both were computed without a vote.
func PateNoGain(least, free float64) *Error {
	return &Error{Code: CodePateNoGain,
		Msg:  fmt.Sprintf("a sanitised epsilon of these labels is at least %.6g, and %.6g holds whatever the votes", least, free),
		Hint: "publish that one: it is free. A larger sigma_ss, set when an ensemble is defined, makes the least one smaller",
		Details: []Detail{{Name: "least", Value: strconv.FormatFloat(least, 'g', -1, 64)},
			{Name: "independent", Value: strconv.FormatFloat(free, 'g', -1, 64)}}}
}
