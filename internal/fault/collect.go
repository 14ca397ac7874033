package fault

import (
	"fmt"
	"strconv"
)

// The codes of collections. None names a device or repeats what it sent.
const (
	CodeCollectUnknown    Code = "collect/unknown-collection"
	CodeCollectDefinition Code = "collect/invalid-definition"
	CodeCollectRedefined  Code = "collect/redefined"
	CodeCollectReports    Code = "collect/invalid-reports"
	CodeCollectFull       Code = "collect/full"
	CodeCollectRound      Code = "collect/unknown-round"
)

// CollectUnknown answers for collections that nobody defined.
func CollectUnknown(name string) *Error {
	return &Error{Code: CodeCollectUnknown, Msg: "there is no collection " + Quote(name)}
}

// CollectDefinition refuses the definition of a collection; field is the member that is wrong, want what it must be.
func CollectDefinition(field, want string) *Error {
	return &Error{Code: CodeCollectDefinition, Msg: fmt.Sprintf("%s must be %s", field, want),
		Details: []Detail{{Name: "field", Value: field}}}
}

// CollectRedefined refuses another definition under a name that has one.
func CollectRedefined(name string) *Error {
	return &Error{Code: CodeCollectRedefined, Msg: "the collection " + Quote(name) + " is defined otherwise, and never changes",
		Hint: "devices have randomised their reports for that definition; take another name"}
}

// CollectReports refuses a batch of reports as a whole: its line, counted from 1, cannot be read. Why never repeats what the line holds.
func CollectReports(line int, why string) *Error {
	return &Error{Code: CodeCollectReports, Msg: fmt.Sprintf("line %d: %s", line, why), Hint: "nothing was taken",
		Details: []Detail{{Name: "line", Value: strconv.Itoa(line)}}}
}

// CollectFull refuses reports of a round that has as many as can be counted.
func CollectFull(most int64) *Error {
	return &Error{Code: CodeCollectFull, Msg: fmt.Sprintf("a round counts at most %d reports", most)}
}

// CollectRound refuses a round that a collection does not have.
func CollectRound(rounds int64) *Error {
	return &Error{Code: CodeCollectRound, Msg: fmt.Sprintf("the rounds of this collection are 1 to %d", rounds)}
}
