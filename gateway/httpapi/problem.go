package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

// problemType is what the type of every problem begins with; the code follows.
const problemType = "urn:noisegate:problem:"

// statusGone is for logs alone, as nginx has it: the client closed the connection.
const statusGone = 499

// statusOf gives each code its HTTP status; what it does not know is a defect.
func statusOf(code fault.Code) int {
	switch code {
	case fault.CodeAuthMissing, fault.CodeAuthInvalid, fault.CodeAuthExpired:
		return http.StatusUnauthorized
	case fault.CodeAuthForbidden:
		return http.StatusForbidden
	case fault.CodeRequestNotFound, fault.CodeUnknownDataset, fault.CodeBudgetUnknownRelease, fault.CodePlanUnknown,
		fault.CodePateUnknownEnsemble, fault.CodeCollectUnknown:
		return http.StatusNotFound
	case fault.CodeRequestMethod:
		return http.StatusMethodNotAllowed
	case fault.CodeRequestNotAcceptable:
		return http.StatusNotAcceptable
	case fault.CodeRequestInFlight, fault.CodePateRedefined, fault.CodeCollectRedefined, fault.CodePreparing:
		return http.StatusConflict
	case fault.CodePolicyConflict:
		return http.StatusPreconditionFailed
	case fault.CodeRequestTooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.CodeRequestMediaType:
		return http.StatusUnsupportedMediaType
	case fault.CodeRequestPrecondition:
		return http.StatusPreconditionRequired
	case fault.CodeRequestGone:
		return statusGone
	case fault.CodeRequestTooMany, fault.CodeRequestMemory, fault.CodeBudgetRateLimited:
		return http.StatusTooManyRequests
	case fault.CodeDataUnavailable, fault.CodeLedgerClock, fault.CodeAuthProvider, fault.CodePolicyStale, fault.CodeNotPrepared,
		fault.CodeRequestOverloaded:
		return http.StatusServiceUnavailable
	case fault.CodeSyntax:
		return http.StatusBadRequest
	case fault.CodeInternal, fault.CodeUnverified, fault.CodeUnprintable:
		return http.StatusInternalServerError
	default:
		return statusOfArea(code)
	}
}

// statusOfArea is the status of the codes of an area that have none of their own.
func statusOfArea(code fault.Code) int {
	switch area, _, _ := strings.Cut(string(code), "/"); area {
	case "request":
		return http.StatusBadRequest
	case "sql", "policy", "plan", "budget", "pate", "collect":
		return http.StatusUnprocessableEntity
	default:
		return http.StatusInternalServerError
	}
}

// problemOf makes the document of an error. Anything but a [fault.Error] is an opaque internal error.
func problemOf(err error, requestID string) *api.Problem {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.Internal(err)
	}
	status := statusOf(f.Code)
	own := []fault.Code{fault.CodeInternal, fault.CodeUnverified, fault.CodeUnprintable}
	if status == http.StatusInternalServerError && !slices.Contains(own, f.Code) {
		f = fault.Internal(err) // a code without a status must not show what it says
	}
	p := &api.Problem{
		Type: problemType + string(f.Code), Title: strings.NewReplacer("/", " ", "-", " ").Replace(string(f.Code)), Status: status,
		Detail: f.Msg, Hint: f.Hint, Code: string(f.Code), RequestID: requestID,
	}
	if !f.Pos.IsZero() {
		p.Position = &api.Position{Line: f.Pos.Line, Column: f.Pos.Column}
	}
	for _, d := range f.Details {
		if p.Extra == nil {
			p.Extra = map[string]string{}
		}
		p.Extra[d.Name] = d.Value
	}
	return p
}

// problem sends an error.
func (x *exchange) problem(err error) {
	p := problemOf(err, x.id)
	body, encodeErr := json.Marshal(p)
	if encodeErr != nil { // strings and numbers always encode
		p.Status, body = http.StatusInternalServerError, []byte(`{"code":"internal"}`)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		x.w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusConflict:
		after := "1"
		if seconds := p.Extra["retry_after"]; seconds != "" {
			after = seconds
		}
		x.w.Header().Set("Retry-After", after)
	}
	x.send(payload{status: p.Status, kind: "application/problem+json", body: body})
}
