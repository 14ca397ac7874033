package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

const callsPolicy = `version: 1
dataset: census
tables:
  calls: {unit: {column: person}, max_rows: 4, max_groups: 2, prepare: {max_rows: 2}}
  texts: {unit: {column: person}, max_rows: 4, max_groups: 2, prepare: {max_rows: 2}}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 10, delta: 1e-7}
`

// callsFront is a front with two tables that can be prepared; the role that prepares may not read one of them.
func callsFront(t *testing.T) *front {
	t.Helper()
	f := newFront(t, gatewaytest.Options{}, 4)
	f.Protected.Exec(t, `CREATE TABLE calls (id int PRIMARY KEY, person int); CREATE TABLE texts (LIKE calls INCLUDING ALL);
		INSERT INTO calls SELECT g, g % 20 FROM generate_series(1, 100) g;
		GRANT USAGE ON SCHEMA public TO noisegate_prepare; GRANT SELECT ON calls TO noisegate_prepare`)
	f.Protected.Grant(t)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Text: []byte(callsPolicy),
		Replaces: 1}); err != nil {
		t.Fatal(err)
	}
	return f
}

// whole waits for the end of a run.
func (f *front) whole(t *testing.T, job *api.PrepareJob) *api.PrepareJob {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); job.Ended == nil; time.Sleep(10 * time.Millisecond) {
		var err error
		if job, err = f.client("sam:steward").PrepareJob(t.Context(), gatewaytest.Dataset, job.JobID); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run has not ended within a minute: %+v", job)
		}
	}
	return job
}

// A steward prepares tables over HTTP: the gateway accepts at once, reports progress at an address, and answers questions from the copy
// afterwards. One table's failure leaves the others alone, and costs nothing.
func TestPrepareOverHTTP(t *testing.T) {
	f := callsFront(t)
	response, text := f.do(t, call{method: "POST", path: "/v1/datasets/census/prepare", token: "sam:steward", kind: "application/json",
		body: "{}"})
	job := new(api.PrepareJob)
	if err := json.Unmarshal([]byte(text), job); err != nil || response.StatusCode != http.StatusAccepted || job.By != "sam" {
		t.Fatalf("%d %s %v", response.StatusCode, text, err)
	}
	if at := response.Header.Get("Location"); at != "/v1/datasets/census/prepare/"+job.JobID {
		t.Errorf("the run is at %q", at)
	}
	job = f.whole(t, job)
	if len(job.Tables) != 2 || job.State != "failed" || job.Tables[0].Table != "calls" || job.Tables[0].State != "done" ||
		job.Tables[0].Version != 1 || job.Tables[1].State != "failed" || !strings.Contains(job.Tables[1].Problem, "lacks a right") {
		t.Errorf("%+v", job)
	}
	if err := f.Policies.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := f.client("sam:steward").Prepared(t.Context(), gatewaytest.Dataset)
	if err != nil || !list.CanPrepare || len(list.Jobs) != 1 || list.Jobs[0].JobID != job.JobID || len(list.Tables) != 2 ||
		len(list.Tables[0].Versions) != 1 || !list.Tables[0].Versions[0].Serves || !list.Tables[0].Versions[0].AsOf.Equal(*job.Tables[0].AsOf) ||
		list.Tables[1].MaxRows != 2 || list.Tables[1].Versions == nil || len(list.Tables[1].Versions) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := f.client("ana:analyst").Prepared(t.Context(), gatewaytest.Dataset); codeOfError(err) != fault.CodeAuthForbidden {
		t.Errorf("an analyst sees runs: %v", err)
	}
	answer, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "5",
		SQL: "SELECT count(*) FROM calls"}, "")
	if err != nil || answer.AsOf == nil || !answer.AsOf.Equal(*job.Tables[0].AsOf) {
		t.Errorf("%+v, %v", answer, err)
	}
	if n := f.Charges(t); n != 1 {
		t.Errorf("%d charges, of which one is the question's", n)
	}
	for path, want := range map[string]fault.Code{
		"census/prepare/" + job.JobID + "x": fault.CodeRequestNotFound, "other/prepare/" + job.JobID: fault.CodeUnknownDataset,
	} {
		for _, method := range []string{"GET", "DELETE"} {
			if response, text := f.do(t, call{method: method, path: "/v1/datasets/" + path, token: "sam:steward"}); codeOf(t, text) != want {
				t.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
			}
		}
	}
}

// A run that meets another one on the database says so, and the version before serves; so it is where a table changed.
func TestPrepareOverHTTPMeets(t *testing.T) {
	f := callsFront(t)
	sam := f.client("sam:steward")
	run := func() api.PrepareTable {
		t.Helper()
		job, err := sam.Prepare(t.Context(), gatewaytest.Dataset, api.PrepareRequest{Table: "public.calls"})
		if err != nil {
			t.Fatal(err)
		}
		job = f.whole(t, job)
		if len(job.Tables) != 1 {
			t.Fatalf("%+v", job)
		}
		return job.Tables[0]
	}
	if of := run(); of.Version != 1 || of.Problem != "" {
		t.Errorf("%+v", of)
	}
	if !testing.Short() { // it waits for 3 s
		other := f.Protected.Conn(t, f.Protected.DSN)
		for _, text := range []string{"BEGIN", "LOCK TABLE noisegate_prepared.versions IN SHARE ROW EXCLUSIVE MODE"} {
			if _, err := other.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if of := run(); of.State != "failed" || of.Version != 0 || !strings.Contains(of.Problem, "another run prepares tables") {
			t.Errorf("%+v", of)
		}
		if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	f.Protected.Exec(t, "ALTER TABLE calls ALTER person TYPE bigint")
	if of := run(); of.State != "failed" || !strings.Contains(of.Problem, "policy/stale") {
		t.Errorf("%+v", of)
	}
	f.Protected.Exec(t, "ALTER TABLE calls ALTER person TYPE int")
	if err := f.Policies.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if answer, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "5",
		SQL: "SELECT count(*) FROM calls"}, ""); err != nil || !strings.HasPrefix(answer.DataVersion, "calls prepared 1 as of ") {
		t.Errorf("%+v, %v", answer, err)
	}
}
