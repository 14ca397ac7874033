package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The codes of requests that are wrong before their SQL is looked at. None of them costs anything.
const (
	CodeRequestBody             Code = "request/invalid-body"
	CodeRequestUnknownField     Code = "request/unknown-field"
	CodeRequestDuplicateField   Code = "request/duplicate-field"
	CodeRequestMissingField     Code = "request/missing-field"
	CodeRequestTooLarge         Code = "request/too-large"
	CodeRequestMediaType        Code = "request/unsupported-media-type"
	CodeRequestNotAcceptable    Code = "request/not-acceptable"
	CodeRequestNotFound         Code = "request/not-found"
	CodeRequestMethod           Code = "request/method-not-allowed"
	CodeRequestPrecondition     Code = "request/precondition-required"
	CodeRequestTooMany          Code = "request/too-many"
	CodeRequestMemory           Code = "request/no-memory"
	CodeRequestOverloaded       Code = "request/overloaded"
	CodeRequestGone             Code = "request/gone"
	CodeRequestEpsilon          Code = "request/invalid-epsilon"
	CodeRequestRho              Code = "request/invalid-rho"
	CodeRequestDelta            Code = "request/invalid-delta"
	CodeRequestConfidence       Code = "request/invalid-confidence"
	CodeRequestMechanism        Code = "request/invalid-mechanism"
	CodeRequestSelection        Code = "request/invalid-selection"
	CodeRequestDialect          Code = "request/invalid-dialect"
	CodeRequestMaxError         Code = "request/invalid-max-error"
	CodeRequestAtMost           Code = "request/invalid-at-most"
	CodeRequestUseful           Code = "request/invalid-require-useful"
	CodeRequestWeights          Code = "request/invalid-weights"
	CodeRequestParams           Code = "request/invalid-params"
	CodeRequestPlan             Code = "request/invalid-plan"
	CodeRequestMaxGroups        Code = "request/invalid-max-groups"
	CodeRequestMaxRows          Code = "request/invalid-max-rows"
	CodeRequestReport           Code = "request/invalid-report"
	CodeRequestVersion          Code = "request/invalid-version"
	CodeRequestWait             Code = "request/invalid-wait"
	CodeRequestMaxRowsTotal     Code = "request/invalid-max-rows-total"
	CodeRequestIdempotencyKey   Code = "request/invalid-idempotency-key"
	CodeRequestCursor           Code = "request/invalid-cursor"
	CodeRequestAccount          Code = "request/invalid-account"
	CodeRequestBudget           Code = "request/invalid-budget"
	CodeRequestConflictingPrice Code = "request/conflicting-price"
	CodeRequestNoPrice          Code = "request/no-price"
)

// RequestBody refuses a body that is not what the route takes; what says in which way, in words of ours.
func RequestBody(what string) *Error {
	return &Error{Code: CodeRequestBody, Msg: "the body " + what}
}

// RequestParameter refuses a parameter of an address.
func RequestParameter(name, want string) *Error {
	return &Error{Code: CodeRequestBody, Msg: "the parameter " + name + " must be " + want}
}

// RequestUnknownField refuses a member that the request does not have.
func RequestUnknownField(name string, known []string) *Error {
	return &Error{Code: CodeRequestUnknownField, Msg: fmt.Sprintf("there is no field %s", Quote(name)),
		Hint: "the fields are " + strings.Join(known, ", ")}
}

// RequestDuplicateField refuses a member that is given twice: which one counts would depend on the reader.
func RequestDuplicateField(name string) *Error {
	return &Error{Code: CodeRequestDuplicateField, Msg: fmt.Sprintf("the field %s is given twice", Quote(name))}
}

// RequestMissingField refuses a request without a member that it needs.
func RequestMissingField(name string) *Error {
	return &Error{Code: CodeRequestMissingField, Msg: fmt.Sprintf("the field %s is missing", Quote(name))}
}

// RequestTooLarge refuses a body or header above its limit in bytes.
func RequestTooLarge(what string, limit int64) *Error {
	return &Error{Code: CodeRequestTooLarge, Msg: fmt.Sprintf("%s is larger than %d bytes", what, limit)}
}

// RequestMediaType refuses a body in a format that the route does not read.
func RequestMediaType(want []string) *Error {
	return &Error{Code: CodeRequestMediaType, Msg: "the body's Content-Type must be " + strings.Join(want, " or ")}
}

// RequestNotAcceptable refuses an Accept header that no format of the route satisfies.
func RequestNotAcceptable(offered []string) *Error {
	return &Error{Code: CodeRequestNotAcceptable, Msg: "the answer cannot be given in the format asked for",
		Hint: "Accept may name " + strings.Join(offered, ", ")}
}

// RequestNotFound answers a path that is no route. It is also the answer for things that exist but are someone else's.
func RequestNotFound(what string) *Error {
	return &Error{Code: CodeRequestNotFound, Msg: "there is no " + what}
}

// RequestMethod answers a known path with another method.
func RequestMethod() *Error {
	return &Error{Code: CodeRequestMethod, Msg: "this path does not take the method"}
}

// RequestPrecondition asks for the version that a change is based on.
func RequestPrecondition() *Error {
	return &Error{Code: CodeRequestPrecondition, Msg: "a change must say which version it replaces",
		Hint: `send If-Match with the ETag that was read, or If-None-Match: * when there is none yet`}
}

// RequestTooMany refuses what costs work while the caller's other requests fill the places and the queue that one caller has.
func RequestTooMany(running, waiting int) *Error {
	return &Error{Code: CodeRequestTooMany,
		Msg:  fmt.Sprintf("of this caller's requests, %d run at a time and %d wait, and there are as many", running, waiting),
		Hint: "send it again when some of them are answered; nothing was charged"}
}

// RequestTooManyOpen refuses a request of a caller who has so many open, before its body is read.
func RequestTooManyOpen(open int) *Error {
	return &Error{Code: CodeRequestTooMany, Msg: fmt.Sprintf("%d requests of this caller are open, and no more may be", open),
		Hint: "send it again when some of them are answered; nothing was charged"}
}

// RequestServerTime refuses a question for which the server would be asked for something before the charge, where what it was asked for by
// this caller took so much of its time of late; after is in how many seconds it may be asked again.
func RequestServerTime(something string, after int) *Error {
	return &Error{Code: CodeRequestTooMany, Msg: "the server was asked for so many " + something + " of this caller's within a minute",
		Hint: "try again in a moment; nothing was charged", Details: []Detail{{Name: "retry_after", Value: strconv.Itoa(after)}}}
}

// RequestLogins refuses a log-in of an address from which there were so many, or while so many are under way.
func RequestLogins(after int) *Error {
	return &Error{Code: CodeRequestTooMany, Msg: "there are too many log-ins at a time", Hint: "try again in a moment",
		Details: []Detail{{Name: "retry_after", Value: strconv.Itoa(after)}}}
}

// RequestTooManyJobs refuses a question that is not waited for while so many others run.
func RequestTooManyJobs(running int) *Error {
	return &Error{Code: CodeRequestTooMany,
		Msg:  fmt.Sprintf("%d questions of this caller run that it does not wait for, and no more may", running),
		Hint: "send it again when some of them are answered; nothing was charged"}
}

// RequestUnknownJob answers a request for a question that this gateway does not know, or has forgotten.
func RequestUnknownJob() *Error {
	return &Error{Code: CodeRequestNotFound,
		Msg:  "there is no such question of yours here: a gateway forgets one ten minutes after its end, and when it is started again",
		Hint: "ask the question again: if it was answered, that is a replay, free"}
}

// RequestBodiesOpen refuses a body while the caller's other bodies take what one caller's may, in bytes.
func RequestBodiesOpen(limit int64) *Error {
	return &Error{Code: CodeRequestTooMany,
		Msg:  fmt.Sprintf("the bodies of this caller's open requests are %d bytes, and no more may be", limit),
		Hint: "send it again when some of them are answered; nothing was charged"}
}

// RequestOverloaded refuses a body while the bodies of all callers take what they may, in bytes.
func RequestOverloaded(limit int64) *Error {
	return &Error{Code: CodeRequestOverloaded, Msg: fmt.Sprintf("the bodies of all open requests are %d bytes, and no more may be", limit),
		Hint: "send it again after Retry-After; nothing was charged"}
}

// RequestMemory refuses a request before its charge, or a replay, while the answers that are not read yet take the memory that there is.
func RequestMemory() *Error {
	return &Error{Code: CodeRequestMemory, Msg: "there is no memory for this answer: others, of yours or of all analysts, are not read yet",
		Hint: "read or close your other answers and cursors, then send it again; nothing was charged"}
}

// RequestNoPlace refuses a request that waited for a place as long as one may.
func RequestNoPlace(waited time.Duration) *Error {
	return &Error{Code: CodeRequestTooMany, Msg: fmt.Sprintf("no place became free for this request within %s", waited),
		Hint: "send it again when your other requests are answered, or later; nothing was charged"}
}

// RequestGone ends a request whose client hung up before anything was begun for it. Nobody is there to read it.
func RequestGone(cause error) *Error {
	return &Error{Code: CodeRequestGone, Msg: "the client hung up before anything was begun for it",
		Hint: "send it again; nothing was charged", Err: cause}
}

// RequestEpsilon refuses an ε; want says what is expected.
func RequestEpsilon(want string) *Error { return invalidField(CodeRequestEpsilon, "epsilon", want) }

// RequestRho refuses a ρ.
func RequestRho(want string) *Error { return invalidField(CodeRequestRho, "rho", want) }

// RequestDelta refuses a δ.
func RequestDelta(want string) *Error { return invalidField(CodeRequestDelta, "delta", want) }

// RequestConfidence refuses a level of confidence.
func RequestConfidence(want string) *Error {
	return invalidField(CodeRequestConfidence, "confidence", want)
}

// RequestMechanism refuses a mechanism that is not known, or not for this account.
func RequestMechanism(want string) *Error {
	return invalidField(CodeRequestMechanism, "mechanism", want)
}

// RequestSelection refuses a selection that is not known.
func RequestSelection(want string) *Error {
	return invalidField(CodeRequestSelection, "selection", want)
}

// RequestDialect refuses a dialect that is not known.
func RequestDialect(want string) *Error { return invalidField(CodeRequestDialect, "dialect", want) }

// RequestMaxError refuses an error bound.
func RequestMaxError(want string) *Error { return invalidField(CodeRequestMaxError, "max_error", want) }

// RequestAtMost refuses the most that a request may be charged.
func RequestAtMost(want string) *Error { return invalidField(CodeRequestAtMost, "at_most", want) }

// RequestUseful refuses a part of the rows.
func RequestUseful(want string) *Error {
	return invalidField(CodeRequestUseful, "require_useful", want)
}

// RequestWeights refuses weights of outputs.
func RequestWeights(want string) *Error { return invalidField(CodeRequestWeights, "weights", want) }

// RequestParams refuses values for the parameters of a text.
func RequestParams(want string) *Error { return invalidField(CodeRequestParams, "params", want) }

// RequestPlan refuses a plan to register, or the use of one.
func RequestPlan(field, want string) *Error { return invalidField(CodeRequestPlan, field, want) }

// RequestMaxGroups refuses a bound on groups.
func RequestMaxGroups(want string) *Error {
	return invalidField(CodeRequestMaxGroups, "max_groups", want)
}

// RequestMaxRows refuses a bound on rows.
func RequestMaxRows(want string) *Error { return invalidField(CodeRequestMaxRows, "max_rows", want) }

// RequestVersion refuses a version of a prepared copy that cannot be asked for.
func RequestVersion(want string) *Error { return invalidField(CodeRequestVersion, "version", want) }

// RequestWait refuses a time that a client waits for, which is at most so many seconds.
func RequestWait(most int) *Error {
	return invalidField(CodeRequestWait, "wait", fmt.Sprintf("a whole number of seconds from 0 to %d", most))
}

// RequestReport refuses a request's report, which would come with the answer.
func RequestReport(want string) *Error {
	return invalidField(CodeRequestReport, "report", want)
}

// NoReport refuses a report of a query that has none.
func NoReport(why string) *Error {
	return &Error{Code: CodeRequestReport, Msg: "there is no report for this query: " + why, Hint: `leave "report" out`}
}

// RequestMaxRowsTotal refuses a bound on rows in all groups together.
func RequestMaxRowsTotal(want string) *Error {
	return invalidField(CodeRequestMaxRowsTotal, "max_rows_total", want)
}

// RequestIdempotencyKey refuses an Idempotency-Key header.
func RequestIdempotencyKey(want string) *Error {
	return invalidField(CodeRequestIdempotencyKey, "Idempotency-Key", want)
}

// RequestCursor refuses a cursor that no page gave out.
func RequestCursor() *Error {
	return invalidField(CodeRequestCursor, "cursor", "the next_cursor of an earlier page")
}

// RequestAccount refuses an account's name.
func RequestAccount() *Error {
	return invalidField(CodeRequestAccount, "account", `"dataset", "group:NAME", "analyst:NAME" or "ensemble:NAME"`)
}

// RequestAnalyst refuses the name of an account that is no analyst's.
func RequestAnalyst() *Error {
	return invalidField(CodeRequestAccount, "account", `"analyst:NAME": failures are counted for each analyst`)
}

// RequestBudget refuses a budget; why says what is wrong with it.
func RequestBudget(why string) *Error {
	return &Error{Code: CodeRequestBudget, Msg: "the budget is not valid: " + why}
}

// RequestConflictingPrice refuses a request that gives more than one price.
func RequestConflictingPrice() *Error {
	return &Error{Code: CodeRequestConflictingPrice, Msg: "only one of epsilon, rho and max_error may be given"}
}

// RequestNoPrice refuses a request that says no price where the policy has no default; epsilon is a price to suggest.
func RequestNoPrice(epsilon string) *Error {
	return &Error{Code: CodeRequestNoPrice, Msg: "the request does not say what it may cost, and the policy has no default",
		Hint: fmt.Sprintf(`give "epsilon" (such as %q), "rho" or "max_error"; a steward can write default_epsilon: %s in a line of the `+
			"policy's budgets", epsilon, epsilon)}
}

// invalidField names the field and what it must be; the value itself is not repeated.
func invalidField(code Code, field, want string) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf("%s must be %s", field, want)}
}
