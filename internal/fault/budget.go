package fault

import "fmt"

// The codes of what a budget or the ledger refuses. A refusal changes nothing and costs nothing.
const (
	CodeBudgetExhausted      Code = "budget/exhausted"
	CodeBudgetOverQueryCap   Code = "budget/over-query-cap"
	CodeBudgetReplayMismatch Code = "budget/replay-mismatch"
	CodeBudgetReplayOnly     Code = "budget/replay-only"
	CodeBudgetLostAnswer     Code = "budget/lost-answer"
	CodeBudgetNoAccount      Code = "budget/no-account"
	CodeBudgetUnknownRelease Code = "budget/unknown-release"
	CodeRequestInFlight      Code = "request/in-flight"
)

// Shortage is what the caller's own account lacks for a request, as decimals.
type Shortage struct {
	Currency          string // epsilon, rho or delta: what Needed and Remaining count
	Needed, Remaining string
	AffordableEpsilon string // the largest ε that the account would still admit
}

// BudgetExhausted refuses a charge that the caller's own account does not admit.
func BudgetExhausted(s Shortage) *Error {
	hint := "answers that you have already are free"
	if s.AffordableEpsilon != "0" {
		hint = "an epsilon of " + s.AffordableEpsilon + " still fits; " + hint
	}
	return &Error{
		Code: CodeBudgetExhausted,
		Msg:  fmt.Sprintf("the query needs %s %s and your budget has %s left", s.Currency, s.Needed, s.Remaining),
		Hint: hint,
		Details: []Detail{
			{Name: "currency", Value: s.Currency},
			{Name: "needed", Value: s.Needed},
			{Name: "remaining", Value: s.Remaining},
			{Name: "affordable_epsilon", Value: s.AffordableEpsilon},
		},
	}
}

// BudgetExhaustedForAll refuses a charge that an account shared with others does not admit. Whose is "dataset" or "group".
// It gives no figure: the balance of a shared account tells what the others spent.
func BudgetExhaustedForAll(whose string) *Error {
	return &Error{Code: CodeBudgetExhausted, Msg: "the " + whose + "'s budget is exhausted", Hint: "ask the data steward"}
}

// BudgetOverQueryCap refuses one query that costs more than any single query may, as decimals.
func BudgetOverQueryCap(needed, most string) *Error {
	return &Error{
		Code:    CodeBudgetOverQueryCap,
		Msg:     fmt.Sprintf("the query costs epsilon %s, and one query may cost at most %s", needed, most),
		Hint:    "ask with a smaller epsilon",
		Details: []Detail{{Name: "needed", Value: needed}, {Name: "max_epsilon_per_query", Value: most}},
	}
}

// BudgetReplayMismatch refuses an Idempotency-Key that named another request before.
func BudgetReplayMismatch() *Error {
	return &Error{Code: CodeBudgetReplayMismatch, Msg: "this Idempotency-Key was used for another request",
		Hint: "use a new key for a new request"}
}

// BudgetReplayOnly refuses a new question of a caller who may only read answers that exist.
func BudgetReplayOnly() *Error {
	return &Error{Code: CodeBudgetReplayOnly, Msg: "this account may only read answers that exist already, and this question has none",
		Hint: "ask the data steward for a budget"}
}

// BudgetLostAnswer refuses an Idempotency-Key whose request was charged but ended without an answer. Running it again would
// charge twice under one key.
func BudgetLostAnswer() *Error {
	return &Error{Code: CodeBudgetLostAnswer, Msg: "the request with this Idempotency-Key was charged and ended without an answer",
		Hint: "ask again with a new key; it will be charged again"}
}

// BudgetNoAccount refuses a caller to whom the dataset's policy gives no budget.
func BudgetNoAccount(dataset string) *Error {
	return &Error{Code: CodeBudgetNoAccount, Msg: "you have no budget for the dataset " + Quote(dataset), Hint: "ask the data steward"}
}

// BudgetUnknownRelease answers for releases that do not exist and for those of others alike.
func BudgetUnknownRelease() *Error {
	return &Error{Code: CodeBudgetUnknownRelease, Msg: "you have no such release"}
}

// RequestInFlight refuses a question while the same question, or the same Idempotency-Key, is being answered.
func RequestInFlight() *Error {
	return &Error{Code: CodeRequestInFlight, Msg: "the same request is being answered right now",
		Hint: "ask again in a moment: the answer will be a free replay"}
}
