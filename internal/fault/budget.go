package fault

import (
	"fmt"
	"strconv"
	"time"
)

// The codes of what a budget or the ledger refuses. A refusal changes nothing and costs nothing.
const (
	CodeBudgetExhausted      Code = "budget/exhausted"
	CodeBudgetOverQueryCap   Code = "budget/over-query-cap"
	CodeBudgetOverAtMost     Code = "budget/over-at-most"
	CodeBudgetUnderFloor     Code = "budget/under-floor"
	CodeBudgetMechanism      Code = "budget/mechanism"
	CodeBudgetReplayMismatch Code = "budget/replay-mismatch"
	CodeBudgetReplayOnly     Code = "budget/replay-only"
	CodeBudgetFrozen         Code = "budget/frozen"
	CodeBudgetOwnRaise       Code = "budget/own-raise"
	CodeBudgetTrancheClosed  Code = "budget/tranche-closed"
	CodeBudgetRateLimited    Code = "budget/rate-limited"
	CodeBudgetLostAnswer     Code = "budget/lost-answer"
	CodeBudgetNoAccount      Code = "budget/no-account"
	CodeBudgetUnknownRelease Code = "budget/unknown-release"
	CodeBudgetSignature      Code = "budget/signature"
	CodeBudgetCancelled      Code = "budget/cancelled"
	CodeBudgetTiming         Code = "budget/timing"
	CodeBudgetFailures       Code = "budget/failures"
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
	if s.Currency == "delta" {
		hint = "ask with a smaller epsilon or delta; answers that you have already are free"
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

// BudgetRefusedForAll refuses a charge that an account shared with others does not take now, whichever it is and by whichever
// rule: cap, tranche or rate. Which one it is would compare the price with what the others left of it, for nothing.
func BudgetRefusedForAll() *Error {
	return &Error{Code: CodeBudgetExhausted, Msg: "an account that you share with others does not take this charge now",
		Hint: "a smaller epsilon or delta may fit, or the same later where the account has a rate or is released in parts; " +
			"ask the data steward"}
}

// QueryCap is a price in ε and what one query may cost at most, as decimals. Of a price in ρ it has that and the δ at which it counts as
// so much ε; empty: the price is one in ε.
type QueryCap struct{ Needed, Most, Rho, Delta string }

// BudgetOverQueryCap refuses one query that costs more than any single query may.
func BudgetOverQueryCap(c QueryCap) *Error {
	e := &Error{
		Code:    CodeBudgetOverQueryCap,
		Msg:     fmt.Sprintf("the query costs epsilon %s, and one query may cost at most %s", c.Needed, c.Most),
		Hint:    "ask with a smaller epsilon",
		Details: []Detail{{Name: "needed", Value: c.Needed}, {Name: "max_epsilon_per_query", Value: c.Most}},
	}
	if c.Rho != "" {
		e.Msg = fmt.Sprintf("the query costs rho %s, which counts as epsilon %s at delta %s, and one query may cost at most epsilon %s", c.Rho,
			c.Needed, c.Delta, c.Most)
		e.Hint = "ask with a smaller rho"
	}
	return e
}

// Price is what a request would be charged, as decimals. Epsilon is empty where no finite ε is known.
type Price struct{ Epsilon, Rho, Delta string }

// BudgetOverAtMost refuses a request that would be charged more than it says that it may be.
func BudgetOverAtMost(p Price) *Error {
	e := &Error{Code: CodeBudgetOverAtMost,
		Hint: "look at the price, and name at least it; or ask at a smaller one. A delta that at_most does not name is 0"}
	text := "rho " + p.Rho
	if p.Epsilon != "" {
		text, e.Details = "epsilon "+p.Epsilon, []Detail{{Name: "epsilon", Value: p.Epsilon}}
	}
	if p.Delta != "0" {
		text += ", delta " + p.Delta
	}
	e.Msg = fmt.Sprintf("the request costs %s, and its at_most is less", text)
	e.Details = append(e.Details, Detail{Name: "rho", Value: p.Rho}, Detail{Name: "delta", Value: p.Delta})
	return e
}

// BudgetUnderFloor refuses a release of protected rows that costs less than any may: what is left of every channel that no noise covers is
// bounded by the number of questions. What is "the question", "a slot of the plan" and the like; least is the floor in
// ε, leastRho the ρ that stands for it.
func BudgetUnderFloor(what, least, leastRho string) *Error {
	return &Error{
		Code: CodeBudgetUnderFloor,
		Msg: fmt.Sprintf("%s costs less than epsilon %s, or rho %s of Gaussian noise, and nothing that reads protected rows may", what,
			least, leastRho),
		Hint:    "ask with at least that epsilon or rho: the answer is the more accurate for it",
		Details: []Detail{{Name: "min_epsilon", Value: least}, {Name: "min_rho", Value: leastRho}},
	}
}

// BudgetMechanism refuses a charge with a mechanism that an account does not take. Scope is dataset, group, analyst or
// ensemble; takes is what it takes.
func BudgetMechanism(scope, takes string) *Error {
	return &Error{
		Code:    CodeBudgetMechanism,
		Msg:     fmt.Sprintf("the %s account takes %s noise only", scope, takes),
		Hint:    fmt.Sprintf("ask with mechanism %s; answers that you have already are free", takes),
		Details: []Detail{{Name: "mechanism", Value: takes}},
	}
}

// BudgetFailures refuses a new question of an analyst so many of whose questions failed within a day.
func BudgetFailures(failures int64) *Error {
	return &Error{
		Code: CodeBudgetFailures,
		Msg:  fmt.Sprintf("%d of your questions failed within 24 hours after they had begun, and a failure may depend on the data", failures),
		Hint: "ask the data steward (noisegate budget reset-failures), or ask again when the failures are a day old; answers that you " +
			"have already are free",
		Details: []Detail{{Name: "failures", Value: strconv.FormatInt(failures, 10)}},
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

// BudgetFrozen refuses a new question on an account that a steward stopped for now.
func BudgetFrozen() *Error {
	return &Error{Code: CodeBudgetFrozen, Msg: "new questions are stopped for now",
		Hint: "ask the data steward; answers that you have already are free"}
}

// BudgetOwnRaise refuses a new question of who raised one of its accounts last, alone: nobody gives themselves budget.
func BudgetOwnRaise() *Error {
	return &Error{Code: CodeBudgetOwnRaise, Msg: "you raised an account that would pay for this, and nobody else agreed to it",
		Hint: "let another steward set it higher, or sign as the second (noisegate budget set --signature, noisegate policy sign); answers " +
			"that you have already are free"}
}

// BudgetTrancheClosed refuses a charge that the caller's own account admits only once more of its cap is released.
func BudgetTrancheClosed(s Shortage, opens time.Time) *Error {
	e := BudgetExhausted(s)
	e.Code = CodeBudgetTrancheClosed
	e.Msg = fmt.Sprintf("the query needs %s %s and your budget has %s left until more of it is released", s.Currency, s.Needed, s.Remaining)
	e.Details = append(e.Details, Detail{Name: "opens", Value: opens.UTC().Format(time.RFC3339)})
	return e
}

// BudgetRateLimited refuses a charge that the caller's own account admits after a while.
func BudgetRateLimited(wait time.Duration) *Error {
	seconds := strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
	return &Error{Code: CodeBudgetRateLimited, Msg: "your queries cost more a minute than your budget lets through",
		Hint: "ask again in " + seconds + " s, or with a smaller epsilon", Details: []Detail{{Name: "retry_after", Value: seconds}}}
}

// BudgetLostAnswer refuses an Idempotency-Key whose request was charged but ended without an answer. Running it again would
// charge twice under one key.
func BudgetLostAnswer() *Error {
	return &Error{Code: CodeBudgetLostAnswer, Msg: "the request with this Idempotency-Key was charged and ended without an answer",
		Hint: "ask again with a new key; it will be charged again"}
}

// BudgetCancelled answers a question that its analyst cancelled. Once it was charged the charge stands, however far it was.
func BudgetCancelled(charged bool) *Error {
	if !charged {
		return &Error{Code: CodeBudgetCancelled, Msg: "the question was cancelled; it was not charged"}
	}
	return &Error{Code: CodeBudgetCancelled, Msg: "the question was cancelled, and its charge stands",
		Hint: "asking it again is a new charge, under a new Idempotency-Key if you give one"}
}

// BudgetTiming refuses a question on a dataset whose guarantee covers time, which cannot be had for it. Why says what is wrong.
func BudgetTiming(why string) *Error {
	return &Error{Code: CodeBudgetTiming, Msg: "this dataset's guarantee covers time: " + why, Hint: "ask the data steward"}
}

// BudgetNoAccount refuses a caller to whom the dataset's policy gives no budget.
func BudgetNoAccount(dataset string) *Error {
	return &Error{Code: CodeBudgetNoAccount, Msg: "you have no budget for the dataset " + Quote(dataset), Hint: "ask the data steward"}
}

// BudgetUnknownRelease answers both for releases that do not exist and for those of others.
func BudgetUnknownRelease() *Error {
	return &Error{Code: CodeBudgetUnknownRelease, Msg: "you have no such release"}
}

// BudgetSignature refuses to raise a cap without a steward's signature under just that. Why says what is wrong.
func BudgetSignature(why string) *Error {
	return &Error{Code: CodeBudgetSignature, Msg: why, Hint: "sign anew what the account has now: noisegate budget refill --key"}
}

// BudgetSecondSteward refuses a steward who alone opens an account or gives one more, where the policy in force wants two for that.
func BudgetSecondSteward() *Error {
	return &Error{Code: CodeBudgetSignature, Msg: "the policy in force has cap in two_for: a second steward signs what opens an account " +
		"or gives one more than it has",
		Hint: "another steward signs with noisegate budget set or budget refill, --key and --for; send it with --signature"}
}

// RequestInFlight refuses a question while the same question, or the same Idempotency-Key, is being answered.
func RequestInFlight() *Error {
	return &Error{Code: CodeRequestInFlight, Msg: "the same request is being answered right now",
		Hint: "ask again in a moment: the answer will be a free replay"}
}
