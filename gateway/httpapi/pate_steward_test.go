package httpapi

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestVotesOfATable imports a table of the protected database: by its exact name, all or nothing, and by stewards only.
func TestVotesOfATable(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	f.Protected.Exec(t, `CREATE TABLE "Votes" ("Teacher" int, item text, "la""bel" int);
		INSERT INTO "Votes" SELECT teacher, 'q' || item, item % 4 FROM generate_series(1, 100) teacher, generate_series(0, 9) item;
		CREATE VIEW votes AS SELECT "Teacher" + 0 AS "Teacher", item, 'zero' AS label FROM "Votes";
		CREATE TABLE empty_votes (teacher int, item text, label text)`)
	f.Protected.Grant(t)
	f.Protected.Exec(t, "CREATE TABLE hidden_votes (teacher int, item text, label text)")
	sam := f.client("sam:steward")
	f.votes(t, "{table: Votes, unit: Teacher, query: item, label: 'la\"bel'}",
		"{table: Votes, unit: Teacher, query: item, label: 'label\"::text FROM x --'}",
		"{table: votes, unit: Teacher, query: item, label: label}", "{table: votes, unit: teacher, query: item, label: label}",
		"{table: votes, unit: item, query: item, label: item}",
		"{table: hidden_votes, unit: teacher, query: item, label: label}", "{table: empty_votes, unit: teacher, query: item, label: label}",
		"{table: VOTES, unit: Teacher, query: item, label: label}")
	ensemble(t, f, "digits")
	for name, c := range map[string]struct {
		table api.VoteTable
		want  fault.Code
	}{
		"another case": {api.VoteTable{Schema: "public", Table: "VOTES", Teacher: "Teacher", Query: "item", Label: "label"},
			fault.CodePateUnknownTable},
		"another column": {api.VoteTable{Schema: "public", Table: "votes", Teacher: "teacher", Query: "item", Label: "label"},
			fault.CodePateUnknownTable},
		"one column only": {api.VoteTable{Schema: "public", Table: "votes", Teacher: "item", Query: "item", Label: "item"},
			fault.CodePateUnknownTable},
		"another schema": {api.VoteTable{Schema: "PUBLIC", Table: "votes", Teacher: "Teacher", Query: "item", Label: "label"},
			fault.CodePateUnknownTable},
		"no schema": {api.VoteTable{Table: "votes", Teacher: "Teacher", Query: "item", Label: "label"}, fault.CodePateUnknownTable},
		"SQL for a table": {api.VoteTable{Schema: "public", Table: `Votes"; DROP TABLE people; --`, Teacher: "Teacher", Query: "item",
			Label: "label"}, fault.CodePateUnknownTable},
		"SQL for a name": {api.VoteTable{Schema: "public", Table: "Votes", Teacher: "Teacher", Query: "item",
			Label: `label"::text FROM x --`}, fault.CodePateUnknownTable},
		"not granted": {api.VoteTable{Schema: "public", Table: "hidden_votes", Teacher: "teacher", Query: "item", Label: "label"},
			fault.CodePateUnknownTable},
		"the catalog": {api.VoteTable{Schema: "pg_catalog", Table: "pg_class", Teacher: "oid", Query: "relname", Label: "relkind"},
			fault.CodePateUnknownTable},
		"empty": {api.VoteTable{Schema: "public", Table: "empty_votes", Teacher: "teacher", Query: "item", Label: "label"},
			fault.CodePateVotes},
		"other labels": {api.VoteTable{Schema: "public", Table: "votes", Teacher: "Teacher", Query: "item", Label: "label"},
			fault.CodePateVotes},
	} {
		if _, err := sam.LoadVoteTable(t.Context(), "digits", c.table); codeOfError(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	table := api.VoteTable{Schema: "public", Table: "Votes", Teacher: "Teacher", Query: "item", Label: `la"bel`}
	if _, err := f.client("ana:analyst,ml").LoadVoteTable(t.Context(), "digits", table); codeOfError(err) != fault.CodeAuthForbidden {
		t.Error(err)
	}
	loaded, err := sam.LoadVoteTable(t.Context(), "digits", table)
	if err != nil || loaded.Queries != 10 || loaded.State != "loaded" {
		t.Fatalf("%+v, %v", loaded, err)
	}
	if _, err := sam.SealEnsemble(t.Context(), "digits"); err != nil {
		t.Fatal(err)
	}
	got, err := f.client("mel:ml").Labels(t.Context(), "digits",
		api.LabelRequest{Queries: []string{"q7", "q2"}, Mechanism: "gnmax", Sigma: "5"}, "")
	if err != nil || *got.Labels[0].Label != 3 || *got.Labels[1].Label != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	// A teacher who votes twice is refused, whatever the table's own keys allow.
	f.Protected.Exec(t, `INSERT INTO "Votes" VALUES (5, 'q1', 2)`)
	ensemble(t, f, "again")
	if _, err := sam.LoadVoteTable(t.Context(), "again", table); codeOfError(err) != fault.CodePateVotes ||
		strings.Contains(err.Error(), "row") {
		t.Errorf("%v", err)
	}
}

// votes names tables of votes in the policy.
func (f *front) votes(t testing.TB, tables ...string) {
	t.Helper()
	now, err := f.Policy(t.Context(), gatewaytest.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	text := gatewaytest.Policy + "pate:\n  votes:\n    - " + strings.Join(tables, "\n    - ") + "\n"
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Text: []byte(text),
		Replaces: now.Version}); err != nil {
		t.Fatal(err)
	}
}

// TestImportsAreNamedAndWrittenDown: votes are read from the tables that the policy names, with the columns that it
// names, and no others, hidden columns and the tables of people among them; what is refused after it was read says no
// row, and every import is an entry of the chain.
//
// covers: L10
func TestImportsAreNamedAndWrittenDown(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	f.Protected.Exec(t, `CREATE TABLE votes AS SELECT teacher, 'q' || item AS item, item % 4 AS label, 'x' || teacher AS secret FROM generate_series(1, 100) teacher, generate_series(0, 9) item`)
	f.Protected.Grant(t)
	sam := f.client("sam:steward")
	ensemble(t, f, "digits")
	load := func(table api.VoteTable) fault.Code {
		_, err := sam.LoadVoteTable(t.Context(), "digits", table)
		if err != nil && strings.ContainsAny(strings.ReplaceAll(err.Error(), "100", ""), "0123456789") { // 100 teachers were declared
			t.Errorf("%v", err)
		}
		return codeOfError(err)
	}
	imports := func() (all []api.AuditEntry) {
		t.Helper()
		page, err := sam.Audit(t.Context(), gatewaytest.Dataset, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if e.Kind == "import" {
				all = append(all, e)
			}
		}
		return all
	}
	votes := api.VoteTable{Schema: "public", Table: "votes", Teacher: "teacher", Query: "item", Label: "label"}
	hidden, people := votes, api.VoteTable{Schema: "public", Table: "people", Teacher: "id", Query: "region", Label: "secret"}
	hidden.Label = "secret"
	for _, table := range []api.VoteTable{votes, hidden, people} {
		if code := load(table); code != fault.CodePateUnknownTable {
			t.Errorf("%+v without a policy: %s", table, code)
		}
	}
	f.votes(t, "{table: votes, unit: teacher, query: item, label: label}")
	for _, table := range []api.VoteTable{hidden, people} {
		if code := load(table); code != fault.CodePateUnknownTable {
			t.Errorf("%+v: %s", table, code)
		}
	}
	if all := imports(); len(all) != 0 {
		t.Errorf("nothing was read, and %+v", all)
	}
	if code := load(votes); code != "" {
		t.Error(code)
	}
	f.Protected.Exec(t, `UPDATE votes SET label = 77 WHERE teacher = 50 AND item = 'q3'`)
	if code := load(votes); code != fault.CodePateVotes {
		t.Error(code)
	}
	if _, err := sam.LoadVotes(t.Context(), "digits", "text/csv", "", strings.NewReader("nonsense")); err == nil {
		t.Error("nonsense is loaded")
	}
	all := imports()
	if len(all) != 3 || all[2].Subject != "sam" || all[2].Account != `{"imports_votes_of":"digits","version":1,"source":"public.votes"}` || all[1].Account != all[2].Account ||
		all[0].Account != `{"imports_votes_of":"digits","version":1,"source":"a file"}` {
		t.Errorf("%+v", all)
	}
	if err := f.Ledger.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestVoteUploads: what the border refuses of a file of votes.
func TestVoteUploads(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ensemble(t, f, "digits")
	put := call{method: http.MethodPut, path: "/v1/pate/digits/votes", token: "sam:steward", kind: "text/csv", body: votes(3)}
	for name, c := range map[string]struct {
		edit func(*call)
		want int
	}{
		"a pickle":        {func(c *call) { c.kind = "application/octet-stream" }, 415},
		"no type":         {func(c *call) { c.kind = "" }, 415},
		"compressed":      {func(c *call) { c.header = http.Header{"Content-Encoding": {"gzip"}} }, 415},
		"unknown layout":  {func(c *call) { c.path += "?layout=guess" }, 422},
		"unknown option":  {func(c *call) { c.path += "?teacher=3" }, 400},
		"a table, layout": {func(c *call) { c.path, c.kind, c.body = c.path+"?layout=counts", "application/json", "{}" }, 400},
		"a table, more":   {func(c *call) { c.kind, c.body = "application/json", `{"sql":"SELECT 1"}` }, 400},
		"ml":              {func(c *call) { c.token = "mel:ml" }, 403},
		"nobody":          {func(c *call) { c.token = "" }, 401},
		"no ensemble":     {func(c *call) { c.path = "/v1/pate/letters/votes" }, 404},
		"good":            {func(*call) {}, 200},
	} {
		request := put
		c.edit(&request)
		if response, text := f.do(t, request); response.StatusCode != c.want {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
}

// sealedForEpsilon is an ensemble that was defined with the parameters of a sanitised ε, and whose votes on n queries are final.
func sealedForEpsilon(t *testing.T, f *front, name string, n int) {
	t.Helper()
	sam := f.client("sam:steward")
	_, err := sam.DefineEnsemble(t.Context(), name, api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100, Classes: digits(),
		Budget:   &api.BudgetLimit{Form: "approx", Epsilon: "50", Delta: "1e-4"},
		Sanitise: &api.SanitiseParameters{Order: "8", SigmaSS: "8", Delta: "1e-7"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sam.LoadVotes(t.Context(), name, "text/csv", "", strings.NewReader(votes(n))); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SealEnsemble(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// TestSanitisedEpsilon: it is charged to dataset and ensemble whatever it says, drawn once, and the same for every steward.
func TestSanitisedEpsilon(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam, sue, mel := f.client("sam:steward"), f.client("sue:steward"), f.client("mel:ml")
	sealedForEpsilon(t, f, "digits", 40)
	ask := api.AnalysisRequest{Mechanism: "confident", Sigma1: "20", Sigma2: "15", Threshold: "70"}
	if _, err := sam.SanitisedEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateParameters {
		t.Errorf("of no labels: %v", err)
	}
	bought, err := mel.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(0, 30), Mechanism: "confident", Sigma1: "20",
		Sigma2: "15", Threshold: "70"}, "")
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for _, l := range bought.Labels {
		if l.Status == "answered" {
			answered++
		}
	}
	untouched := f.Entries(t)
	estimate, err := sam.EstimateEpsilon(t.Context(), "digits", ask)
	if err != nil || estimate.Queries != 30 || !(estimate.Least < estimate.Independent) || estimate.Delta != "1e-7" ||
		f.Entries(t) != untouched {
		t.Fatalf("%+v %v", estimate, err)
	}
	first, err := sam.SanitisedEpsilon(t.Context(), "digits", ask)
	if err != nil {
		t.Fatal(err)
	}
	if first.Spent != estimate.Price || first.Epsilon < estimate.Least || first.Epsilon > estimate.Independent {
		t.Errorf("%+v was estimated to be %+v", first, estimate)
	}
	if first.Queries != 30 || first.Answered != answered || first.Replayed || first.Spent.Epsilon == "0" ||
		first.Spent.Delta != "1e-7" || !(first.Epsilon >= 0) {
		t.Errorf("%+v", first)
	}
	entries := f.Entries(t)
	for name, steward := range map[string]*api.Client{"sam": sam, "sue": sue} {
		again, err := steward.SanitisedEpsilon(t.Context(), "digits", ask)
		if err != nil || again.Epsilon != first.Epsilon || !again.Replayed || again.Spent.Epsilon != "0" {
			t.Errorf("%s: %+v, %v", name, again, err)
		}
	}
	if f.Entries(t) != entries {
		t.Error("a replay changed the ledger")
	}
	// More labels are another run, and a version has one epsilon.
	if _, err := mel.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(30, 35), Mechanism: "confident", Sigma1: "20",
		Sigma2: "15", Threshold: "70"}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := sue.SanitisedEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateParameters {
		t.Errorf("a second one of a version: %v", err)
	}
	// The labels that were named. It says that the others are not covered.
	ask.Queries = queries(0, 30)
	slices.Reverse(ask.Queries)
	if again, err := sue.SanitisedEpsilon(t.Context(), "digits", ask); err != nil || !again.Replayed || again.Epsilon != first.Epsilon ||
		again.Queries != 30 || again.SoldSince != 5 ||
		!strings.Contains(again.Covers, "the 30 labels that were sold of version 1") ||
		!strings.HasSuffix(again.Covers, ": 5 more labels of version 1 are sold by now") {
		t.Errorf("%+v, %v", again, err)
	}
	if first.SoldSince != 0 || strings.Contains(first.Covers, "more labels") ||
		!strings.Contains(first.Covers, "the 30 labels that were sold of version 1") {
		t.Errorf("the first: %+v", first)
	}
	ask.Queries = queries(0, 40)
	if _, err := sue.SanitisedEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateParameters {
		t.Errorf("of labels that were not released: %v", err)
	}
	if _, err := sue.SanitisedEpsilon(t.Context(), "digits", api.AnalysisRequest{Mechanism: "lnmax", NoiseScale: "20",
		Queries: queries(0, 1)}); codeOfError(err) == "" {
		t.Error("the theorem is about Gaussian noise")
	}
	if _, err := mel.SanitisedEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodeAuthForbidden {
		t.Error(err)
	}
}

// TestAnalysisOfVotes: stewards see what a run costs by each method; nobody else does, and nothing is charged.
func TestAnalysisOfVotes(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 40)
	sam, mel := f.client("sam:steward"), f.client("mel:ml")
	entries := f.Entries(t)
	all := api.AnalysisRequest{Mechanism: "gnmax", Sigma: "10", All: true, Exact: true}
	if _, err := mel.AnalyseVotes(t.Context(), "digits", all); codeOfError(err) != fault.CodeAuthForbidden {
		t.Error(err)
	}
	got, err := sam.AnalyseVotes(t.Context(), "digits", all)
	if err != nil || got.Queries != 40 || got.Points[len(got.Points)-1] != 40 {
		t.Fatalf("%+v, %v", got, err)
	}
	total := map[string]float64{}
	for _, l := range got.Lines {
		if total[l.Method], err = strconv.ParseFloat(l.Epsilon[len(l.Epsilon)-1].String(), 64); err != nil {
			t.Error(l.Method, err)
		}
		if wantSecret := strings.HasPrefix(l.Method, "rdp_tight") || l.Method == "rdp" ||
			strings.HasPrefix(l.Method, "exact_local"); l.Secret != wantSecret {
			t.Errorf("%s: secret is %v", l.Method, l.Secret)
		}
	}
	// 40 queries at 1/σ² = 0.01: μ² = 0.8.
	if !(total["exact_local_tight"] < total["rdp_tight"] && total["rdp_tight"] <= total["rdp_independent_tight"] &&
		total["pld"] < total["rdp_independent_tight"] && math.Abs(total["pld"]-3.5) < 1) {
		t.Errorf("%v", total)
	}
	// An interactive run names its queries, with the student's view of each.
	interactive := api.AnalysisRequest{Mechanism: "interactive", Sigma1: "20", Sigma2: "10", Threshold: "50", StudentConfidence: "0.9"}
	if _, err := sam.AnalyseVotes(t.Context(), "digits", interactive); codeOfError(err) != fault.CodePateStudent {
		t.Error(err)
	}
	interactive.Queries, interactive.Student = []string{"q0"}, map[string][]api.Decimal{"q0": {"0.25", "0.25", "0.25", "0.25"}}
	if got, err := sam.AnalyseVotes(t.Context(), "digits", interactive); err != nil || got.Queries != 1 || !(got.Answered > 0.5) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, r := range map[string]api.AnalysisRequest{
		"nothing released": {Mechanism: "gnmax", Sigma: "10"},
		"both":             {Mechanism: "gnmax", Sigma: "10", All: true, Queries: queries(0, 1)},
	} {
		if _, err := sam.AnalyseVotes(t.Context(), "digits", r); codeOfError(err) != fault.CodePateParameters {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.Entries(t) != entries {
		t.Error("an analysis changed the ledger")
	}
}

// TestSanitisedEpsilonOfRechosenParameters: a version that an earlier gateway sealed over the votes of another one,
// with other parameters, publishes no ε: its parameters were chosen when the votes could be seen. One with the first's parameters publishes
// the ε of its labels.
//
// covers: L7
func TestSanitisedEpsilonOfRechosenParameters(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam, mel := f.client("sam:steward"), f.client("mel:ml")
	sealedForEpsilon(t, f, "digits", 40)
	ask := api.AnalysisRequest{Mechanism: "confident", Sigma1: "20", Sigma2: "15", Threshold: "70"}
	buy := func() {
		t.Helper()
		if _, err := mel.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(0, 25), Mechanism: "confident", Sigma1: "20",
			Sigma2: "15", Threshold: "70"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := mel.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(0, 5), Mechanism: "confident", Sigma1: "20",
		Sigma2: "15", Threshold: "70"}, ""); err != nil {
		t.Fatal(err)
	}
	before := f.Entries(t)
	if none, err := sam.EstimateEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateNoGain {
		t.Errorf("of so few labels that it cannot be below the free one: %+v, %v", none, err)
	}
	if f.Entries(t) != before {
		t.Error("an estimate changed the ledger")
	}
	buy()
	first, err := sam.SanitisedEpsilon(t.Context(), "digits", ask)
	if err != nil || first.Version != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	sealedForEpsilon(t, f, "digits", 40) // the same votes again, version 2
	buy()
	if second, err := sam.SanitisedEpsilon(t.Context(), "digits", ask); err != nil || second.Version != 2 || second.Queries != 25 ||
		!strings.Contains(second.Covers, "version 2") {
		t.Errorf("%+v, %v", second, err)
	}
	f.Control.Exec(t, `SET session_replication_role = replica; INSERT INTO noisegate.pate_ensemble (name, version, dataset, classes, teachers,
			max_teachers_per_person, sanitise, defined_by, queries, digest, loaded_by, loaded_at, sealed_by, sealed_at)
		SELECT name, 3, dataset, classes, teachers, max_teachers_per_person, '{"order":"8","sigma_ss":"9","delta":"1e-7"}', defined_by, queries, digest, loaded_by, loaded_at, sealed_by,
			clock_timestamp() FROM noisegate.pate_ensemble WHERE version = 2;
		INSERT INTO noisegate.pate_votes SELECT n.ensemble_id, query_no, key, counts FROM noisegate.pate_ensemble n, noisegate.pate_votes v JOIN noisegate.pate_ensemble o USING (ensemble_id)
		WHERE n.version = 3 AND o.version = 2`)
	buy()
	entries := f.Entries(t)
	if third, err := sam.SanitisedEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateParameters {
		t.Errorf("%+v, %v", third, err)
	}
	if f.Entries(t) != entries {
		t.Error("a refusal changed the ledger")
	}
}
