package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Client talks to a gateway. It is safe for concurrent use. Refusals and failures that the gateway reports come back
// as [*Problem]; other errors are those of the connection.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// maxResponse bounds what the client reads of one response.
const maxResponse = 256 << 20

// NewClient returns a client for the gateway at base ("http://127.0.0.1:8080") that shows token as its bearer token.
func NewClient(base, token string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{Timeout: 10 * time.Minute}}
}

// Query runs a query, or replays its answer. idempotencyKey may be empty; with a key, a repeated call gives the first
// call's answer. With q.Wait no request lasts longer than that: it comes back for the answer until there is one, or the context ends.
func (c *Client) Query(ctx context.Context, q QueryRequest, idempotencyKey string) (*QueryResponse, error) {
	answer, job, err := c.Begin(ctx, q, idempotencyKey)
	for err == nil && answer == nil {
		answer, err = c.Answer(ctx, job.JobID, pollWait)
	}
	return answer, err
}

// pollWait is the seconds that one request waits for the answer to a running question. Proxies wait longer.
const pollWait = 20

// Begin is [Client.Query] that comes back when q.Wait is over: without an answer, with what [Client.Answer] asks for it by.
func (c *Client) Begin(ctx context.Context, q QueryRequest, idempotencyKey string) (*QueryResponse, *QueryJob, error) {
	return c.answerOrJob(ctx, call{method: http.MethodPost, path: "/v1/query", body: q, header: keyed(idempotencyKey)})
}

// Answer waits for so many seconds for the answer of a question that goes on; nil, and no error, while there is none.
func (c *Client) Answer(ctx context.Context, jobID string, wait int) (*QueryResponse, error) {
	answer, _, err := c.answerOrJob(ctx, call{method: http.MethodGet,
		path: "/v1/query/" + url.PathEscape(jobID) + "?wait=" + strconv.Itoa(wait)})
	return answer, err
}

func (c *Client) answerOrJob(ctx context.Context, what call) (*QueryResponse, *QueryJob, error) {
	both, err := send[struct {
		QueryJob
		QueryResponse
	}](ctx, c, what)
	if err != nil {
		return nil, nil, err
	}
	if both.JobID != "" {
		return nil, &both.QueryJob, nil
	}
	return &both.QueryResponse, nil, nil
}

// keyed is the header of a request that may have an Idempotency-Key.
func keyed(idempotencyKey string) http.Header {
	header := http.Header{}
	if idempotencyKey != "" {
		header.Set("Idempotency-Key", idempotencyKey)
	}
	return header
}

// CancelQuery stops the caller's running question of this idempotencyKey at the next boundary. Its charge stands, and asking again is a new
// charge; the call that asked it gets budget/cancelled.
func (c *Client) CancelQuery(ctx context.Context, idempotencyKey string) (*Cancellation, error) {
	return send[Cancellation](ctx, c, call{method: http.MethodDelete, path: "/v1/query",
		header: http.Header{"Idempotency-Key": {idempotencyKey}}})
}

// CancelJob is CancelQuery for a question that nobody waits for, by its job.
func (c *Client) CancelJob(ctx context.Context, job string) (*Cancellation, error) {
	return send[Cancellation](ctx, c, call{method: http.MethodDelete, path: "/v1/query/" + url.PathEscape(job)})
}

// Estimate prices a query. It costs nothing and touches no row.
func (c *Client) Estimate(ctx context.Context, q QueryRequest) (*EstimateResponse, error) {
	return send[EstimateResponse](ctx, c, call{method: http.MethodPost, path: "/v1/query/estimate", body: q})
}

// RegisterPlan pays for a list of noises at once. With an idempotencyKey, a repeated call gives the first call's plan.
func (c *Client) RegisterPlan(ctx context.Context, p PlanRequest, idempotencyKey string) (*Plan, error) {
	return send[Plan](ctx, c, call{method: http.MethodPost, path: "/v1/plans", body: p, header: keyed(idempotencyKey)})
}

// Plan shows what is left of one of the caller's plans.
func (c *Client) Plan(ctx context.Context, id string) (*Plan, error) {
	return send[Plan](ctx, c, call{method: http.MethodGet, path: "/v1/plans/" + url.PathEscape(id)})
}

// Datasets lists what the caller may ask about.
func (c *Client) Datasets(ctx context.Context) (*DatasetList, error) {
	return send[DatasetList](ctx, c, call{method: http.MethodGet, path: "/v1/datasets"})
}

// Dataset describes one dataset.
func (c *Client) Dataset(ctx context.Context, name string) (*Dataset, error) {
	return send[Dataset](ctx, c, call{method: http.MethodGet, path: datasetPath(name)})
}

// Budget gives the caller's own budgets: of one dataset, or of all when dataset is empty.
func (c *Client) Budget(ctx context.Context, dataset string) (*BudgetResponse, error) {
	path := "/v1/budget"
	if dataset != "" {
		path += "?dataset=" + url.QueryEscape(dataset)
	}
	return send[BudgetResponse](ctx, c, call{method: http.MethodGet, path: path})
}

// Releases lists the caller's past answers, newest first; cursor is empty for the first page.
func (c *Client) Releases(ctx context.Context, cursor string) (*ReleaseList, error) {
	path := "/v1/releases"
	if cursor != "" {
		path += "?cursor=" + url.QueryEscape(cursor)
	}
	return send[ReleaseList](ctx, c, call{method: http.MethodGet, path: path})
}

// Release gives one past answer of the caller.
func (c *Client) Release(ctx context.Context, id string) (*Release, error) {
	return send[Release](ctx, c, call{method: http.MethodGet, path: "/v1/releases/" + url.PathEscape(id)})
}

// Policy gives a dataset's policy document (YAML) and its version, for stewards.
func (c *Client) Policy(ctx context.Context, dataset string) (document []byte, version int64, err error) {
	body, header, err := c.do(ctx, call{method: http.MethodGet, path: datasetPath(dataset) + "/policy"})
	if err != nil {
		return nil, 0, err
	}
	version, err = strconv.ParseInt(strings.Trim(header.Get("ETag"), `"`), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("api: the policy came without a version: %w", err)
	}
	return body, version, nil
}

// SetPolicy replaces a dataset's policy document if it still has the given version; version 0 means that there is none yet.
func (c *Client) SetPolicy(ctx context.Context, dataset string, document []byte, version int64) (*PolicyApplied, error) {
	return c.UpdatePolicy(ctx, dataset, PolicyUpdate{Document: document, Replaces: version})
}

// ApprovalHeader has a second steward's signature under a change of a policy, an [Approval] as JSON without characters beyond ASCII.
const ApprovalHeader = "Noisegate-Approval"

// PolicyUpdate is a policy document, the version that it replaces, and a second steward's signature.
type PolicyUpdate struct {
	Document []byte
	Replaces int64     // 0: there is none yet
	Approval *Approval // nil: none
}

// UpdatePolicy is [Client.SetPolicy] for changes that take two stewards.
func (c *Client) UpdatePolicy(ctx context.Context, dataset string, update PolicyUpdate) (*PolicyApplied, error) {
	header := http.Header{"Content-Type": {"application/yaml"}}
	if update.Replaces == 0 {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", strconv.Quote(strconv.FormatInt(update.Replaces, 10)))
	}
	if update.Approval != nil {
		header.Set(ApprovalHeader, update.Approval.String())
	}
	return send[PolicyApplied](ctx, c, call{method: http.MethodPut, path: datasetPath(dataset) + "/policy", raw: update.Document,
		header: header})
}

// String is the approval as JSON on one line, without characters beyond ASCII: a header takes no others.
func (a Approval) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // texts and times always encode
	}
	var b strings.Builder
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Accounts lists all accounts of a dataset, for stewards.
func (c *Client) Accounts(ctx context.Context, dataset string) (*AccountList, error) {
	return send[AccountList](ctx, c, call{method: http.MethodGet, path: datasetPath(dataset) + "/budgets"})
}

// Account gives one account ("dataset", "group:x" or "analyst:x"), for stewards.
func (c *Client) Account(ctx context.Context, dataset, account string) (*Account, error) {
	return send[Account](ctx, c, call{method: http.MethodGet, path: accountPath(dataset, account)})
}

// SetAccount opens an account or changes its limit, for stewards.
func (c *Client) SetAccount(ctx context.Context, dataset, account string, limit BudgetLimit) (*Account, error) {
	return c.ChangeAccount(ctx, dataset, account, LimitChange{BudgetLimit: limit})
}

// ChangeAccount is [Client.SetAccount], with a second steward's signature where that is needed.
func (c *Client) ChangeAccount(ctx context.Context, dataset, account string, change LimitChange) (*Account, error) {
	return send[Account](ctx, c, call{method: http.MethodPut, path: accountPath(dataset, account), body: change})
}

// Refill raises the cap of an account that exists, for stewards.
func (c *Client) Refill(ctx context.Context, dataset, account string, refill Refill) (*Account, error) {
	return send[Account](ctx, c, call{method: http.MethodPost, path: accountPath(dataset, account) + "/refill", body: refill})
}

// Freeze stops all charges on an account that exists, or lets them go on, for stewards. Replays stay free.
func (c *Client) Freeze(ctx context.Context, dataset, account string, frozen bool) (*Account, error) {
	action := "/thaw"
	if frozen {
		action = "/freeze"
	}
	return send[Account](ctx, c, call{method: http.MethodPost, path: accountPath(dataset, account) + action})
}

// ResetFailures lets the failures of an analyst ("analyst:ana") until now count no more, for stewards.
func (c *Client) ResetFailures(ctx context.Context, dataset, account string) (*Failures, error) {
	return send[Failures](ctx, c, call{method: http.MethodPost, path: accountPath(dataset, account) + "/reset-failures"})
}

// SetBack lets the time of a dataset's ledger go on from an earlier one, for stewards.
func (c *Client) SetBack(ctx context.Context, dataset string, clock Clock) (*Clock, error) {
	return send[Clock](ctx, c, call{method: http.MethodPost, path: "/v1/datasets/" + url.PathEscape(dataset) + "/clock", body: clock})
}

// Audit gives a page of the ledger's journal, newest first, for stewards: of one dataset, or of all when dataset is empty; cursor is
// empty for the first page.
func (c *Client) Audit(ctx context.Context, dataset, cursor string) (*AuditPage, error) {
	return c.journal(ctx, map[string]string{"dataset": dataset, "cursor": cursor})
}

// AuditRequests is [Client.Audit] with what was asked.
func (c *Client) AuditRequests(ctx context.Context, dataset, cursor string) (*AuditPage, error) {
	return c.journal(ctx, map[string]string{"dataset": dataset, "cursor": cursor, "requests": "true"})
}

// Export gives the whole journal of a dataset, or of all when dataset is empty, for stewards: an [AuditEntry] a line, oldest first, then an
// [ExportEnd] and, with a key of receipts, the gateway's signature. The caller closes it.
func (c *Client) Export(ctx context.Context, dataset string) (io.ReadCloser, error) {
	path := "/v1/audit/export"
	if dataset != "" {
		path += "?dataset=" + url.QueryEscape(dataset)
	}
	response, err := c.open(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

func (c *Client) journal(ctx context.Context, parameters map[string]string) (*AuditPage, error) {
	query := url.Values{}
	for name, value := range parameters {
		if value != "" {
			query.Set(name, value)
		}
	}
	path := "/v1/audit"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return send[AuditPage](ctx, c, call{method: http.MethodGet, path: path})
}

// DraftPolicy drafts a policy from the schema of a dataset, for stewards. Without a unit ("people.person_id") it may give candidates alone.
func (c *Client) DraftPolicy(ctx context.Context, dataset, unit string) (*PolicyDraft, error) {
	path := datasetPath(dataset) + "/policy/draft"
	if unit != "" {
		path += "?unit=" + url.QueryEscape(unit)
	}
	return send[PolicyDraft](ctx, c, call{method: http.MethodGet, path: path})
}

// Refusals counts, for stewards, the questions of each analyst that the gateway refused since it started.
func (c *Client) Refusals(ctx context.Context, dataset string) (*RefusalList, error) {
	return send[RefusalList](ctx, c, call{method: http.MethodGet, path: datasetPath(dataset) + "/refusals"})
}

// Verify has the gateway read its ledger of a dataset again, for stewards.
func (c *Client) Verify(ctx context.Context, dataset string) (*Verification, error) {
	return send[Verification](ctx, c, call{method: http.MethodPost, path: datasetPath(dataset) + "/verify"})
}

// Prepare begins to make new versions of prepared copies, for stewards: of the tables that the policy has prepare for, or of one of them.
// It does not wait for them; [Client.PrepareJob] says how far they are.
func (c *Client) Prepare(ctx context.Context, dataset string, r PrepareRequest) (*PrepareJob, error) {
	return send[PrepareJob](ctx, c, call{method: http.MethodPost, path: datasetPath(dataset) + "/prepare", body: r})
}

// Prepared lists, for stewards, the prepared copies of a dataset's tables, and the gateway's runs.
func (c *Client) Prepared(ctx context.Context, dataset string) (*PreparedList, error) {
	return send[PreparedList](ctx, c, call{method: http.MethodGet, path: datasetPath(dataset) + "/prepare"})
}

// PrepareJob returns the state of a run of [Client.Prepare].
func (c *Client) PrepareJob(ctx context.Context, dataset, job string) (*PrepareJob, error) {
	return send[PrepareJob](ctx, c, call{method: http.MethodGet, path: datasetPath(dataset) + "/prepare/" + url.PathEscape(job)})
}

// CancelPrepare ends a run of [Client.Prepare]; what it has already made stays. It does not wait for the end.
func (c *Client) CancelPrepare(ctx context.Context, dataset, job string) (*PrepareJob, error) {
	return send[PrepareJob](ctx, c, call{method: http.MethodDelete, path: datasetPath(dataset) + "/prepare/" + url.PathEscape(job)})
}

func datasetPath(dataset string) string { return "/v1/datasets/" + url.PathEscape(dataset) }

func accountPath(dataset, account string) string {
	return datasetPath(dataset) + "/budgets/" + url.PathEscape(account)
}

// call is one HTTP exchange; body is sent as JSON, raw and stream as they are.
type call struct {
	method, path string
	body         any
	raw          []byte
	stream       io.Reader
	header       http.Header
}

// send performs a call and decodes its JSON answer.
func send[T any](ctx context.Context, c *Client, what call) (*T, error) {
	body, _, err := c.do(ctx, what)
	if err != nil {
		return nil, err
	}
	answer := new(T)
	if err := json.Unmarshal(body, answer); err != nil {
		return nil, fmt.Errorf("api: %s %s: the answer is not what was expected: %w", what.method, what.path, err)
	}
	return answer, nil
}

func (c *Client) do(ctx context.Context, what call) ([]byte, http.Header, error) {
	response, err := c.open(ctx, what)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, nil, err
	}
	return body, response.Header, nil
}

// open sends a request, and gives the response to one that was not refused. The caller closes its body.
func (c *Client) open(ctx context.Context, what call) (*http.Response, error) {
	payload := what.raw
	header := what.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if what.body != nil {
		var err error
		if payload, err = json.Marshal(what.body); err != nil {
			return nil, err
		}
		header.Set("Content-Type", "application/json")
	}
	content := what.stream
	if content == nil {
		content = bytes.NewReader(payload)
	}
	request, err := http.NewRequestWithContext(ctx, what.method, c.base+what.path, content)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	request.Header = header
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	return nil, problemOf(response, body)
}

// unreached says which gateway gave no answer, and what to look at.
func (c *Client) unreached(ctx context.Context, err error) error {
	var called *url.Error
	if ctx.Err() != nil || !errors.As(err, &called) {
		return err
	}
	base := c.base
	if u, err := url.Parse(base); err == nil {
		base = u.Redacted()
	}
	return fmt.Errorf("no gateway answers at %s: %w; is the address right (http://HOST:PORT; --url or NOISEGATE_URL of the program "+
		"noisegate), and is the gateway running?", base, called.Err)
}

// problemOf reads the problem document of a refusal; an answer without one (from a proxy, say) becomes a plain error.
func problemOf(response *http.Response, body []byte) error {
	problem := new(Problem)
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(body, problem) != nil || problem.Code == "" {
		return fmt.Errorf("api: the server answered %s without a problem document", response.Status)
	}
	return problem
}
