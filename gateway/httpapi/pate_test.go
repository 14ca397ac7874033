package httpapi

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/stattest"
)

// digits are the classes of most tests.
func digits() []string { return []string{"0", "1", "2", "3"} }

// ensemble defines an ensemble of 100 teachers with a generous budget.
func ensemble(t testing.TB, f *front, name string) {
	t.Helper()
	_, err := f.client("sam:steward").DefineEnsemble(t.Context(), name, api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100,
		Classes: digits(), Budget: &api.BudgetLimit{Form: "zcdp", Rho: "10"}})
	if err != nil {
		t.Fatal(err)
	}
}

// votes is a CSV file of n queries, q0, q1, ...: all teachers agree on the class that the query's number gives, but for
// every fifth, on which they are split.
func votes(n int) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(append([]string{"query"}, digits()...))
	for i := range n {
		counts := []string{"0", "0", "0", "0"}
		counts[i%4] = "100"
		if i%5 == 4 {
			counts = []string{"25", "25", "25", "25"}
		}
		_ = w.Write(append([]string{fmt.Sprintf("q%d", i)}, counts...))
	}
	w.Flush()
	return b.String()
}

// sealedEnsemble is an ensemble whose votes on n queries are final.
func sealedEnsemble(t testing.TB, f *front, name string, n int) {
	t.Helper()
	ensemble(t, f, name)
	sam := f.client("sam:steward")
	if _, err := sam.LoadVotes(t.Context(), name, "text/csv", "", strings.NewReader(votes(n))); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SealEnsemble(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func queries(from, to int) []string {
	var keys []string
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprintf("q%d", i))
	}
	return keys
}

// TestLabelsAreChargedOnce: what somebody paid for is given again, free, to them; rejections too; only what is new is charged.
//
// covers: A84
func TestLabelsAreChargedOnce(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	mel := f.client("mel:ml")
	ask := api.LabelRequest{Queries: queries(0, 10), Mechanism: "confident", Sigma1: "5", Sigma2: "5", Threshold: "62"}
	// Of 12 checks, each is off its threshold by 37 votes or more, and of 11 labels the second class is 100 votes away: two draws beyond 50.
	if stattest.Exceeds(12*stattest.GaussianBeyond(5, 37), 11*2*3*stattest.GaussianBeyond(5, 50)) {
		t.Fatal("this test would fail by chance")
	}
	first, err := mel.Labels(t.Context(), "digits", ask, "")
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for i, l := range first.Labels {
		want := "answered"
		if i%5 == 4 {
			want = "rejected" // 25 votes
		}
		if l.Query != fmt.Sprintf("q%d", i) || l.Status != want || l.Replayed || (l.Label == nil) != (want == "rejected") {
			t.Errorf("%+v", l)
		}
		if l.Label != nil {
			answered++
			if *l.Label != i%4 || l.Class != fmt.Sprint(i%4) {
				t.Errorf("query %d is labelled %d, %s", i, *l.Label, l.Class)
			}
		}
	}
	// The check costs 1/2·5² = 0.02, an answer 1/5² = 0.04.
	if first.Spent.Rho != api.Decimal(rhoOf5(10, answered)) || first.WorstCase.Rho != api.Decimal(rhoOf5(10, 10)) ||
		first.ReleaseID == "" || first.Spent.Epsilon != "" {
		t.Errorf("spent %+v, worst case %+v", first.Spent, first.WorstCase)
	}
	entries := f.Entries(t)
	second, err := mel.Labels(t.Context(), "digits", ask, "")
	if err != nil {
		t.Fatal(err)
	}
	if second.Spent.Rho != "0" || second.ReleaseID != "" || f.Entries(t) != entries {
		t.Errorf("a replay: paid %+v, or changed the ledger", second.Spent)
	}
	for i := range second.Labels {
		want := first.Labels[i]
		want.Replayed = true
		if diff := cmp.Diff(want, second.Labels[i]); diff != "" {
			t.Error(diff)
		}
	}
	// Two new queries, one of them twice, among old ones; 5 and 5.0 are one parameter.
	ask.Queries, ask.Sigma1 = []string{"q10", "q0", "q11", "q10"}, "5.0"
	third, err := mel.Labels(t.Context(), "digits", ask, "")
	if err != nil {
		t.Fatal(err)
	}
	if third.Spent.Rho != api.Decimal(rhoOf5(2, 2)) || !third.Labels[1].Replayed || third.Labels[0].Replayed ||
		*third.Labels[3].Label != *third.Labels[0].Label {
		t.Errorf("%+v", third)
	}
	// Other parameters are another question.
	ask.Queries, ask.Sigma2 = []string{"q0"}, "6"
	if fourth, err := mel.Labels(t.Context(), "digits", ask, ""); err != nil || fourth.Labels[0].Replayed || fourth.Spent.Rho == "0" {
		t.Errorf("%+v, %v", fourth, err)
	}
	shown, err := f.client("sam:steward").Ensemble(t.Context(), "digits")
	if err != nil || shown.Answered != int64(answered+3) || shown.Rejected != 2 || shown.State != "sealed" || shown.Queries != 20 {
		t.Errorf("%+v, %v", shown, err)
	}
}

// rho is the cost of a Confident batch with σ1 = 8 and σ2 = 5, in text; rhoOf5 with σ1 = 5.
func rho(checks, answered int) string {
	return strconv.FormatFloat(float64(checks)*0.0078125+float64(answered)*0.04, 'f', -1, 64)
}

func rhoOf5(checks, answered int) string {
	return strconv.FormatFloat(float64(2*checks+4*answered)/100, 'f', -1, 64)
}

// TestPateModes buys one label in each mode.
func TestPateModes(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 10)
	mel := f.client("mel:ml")
	student := map[string][]api.Decimal{"q0": {"0.97", "0.01", "0.01", "0.01"}, "q1": {"0.25", "0.25", "0.25", "0.25"}}
	for name, c := range map[string]struct {
		ask                api.LabelRequest
		status, rho, label string
	}{
		"lnmax":     {api.LabelRequest{Mechanism: "lnmax", NoiseScale: "4"}, "answered", "", "0 1"},
		"gnmax":     {api.LabelRequest{Mechanism: "gnmax", Sigma: "5"}, "answered", "0.08", "0 1"},
		"gumbel":    {api.LabelRequest{Mechanism: "gumbel", Gamma: "0.5"}, "answered", "", "0 1"},
		"histogram": {api.LabelRequest{Mechanism: "gnmax", Sigma: "5", Return: "histogram"}, "answered", "0.08", "0 1"},
		"interactive": {api.LabelRequest{Mechanism: "interactive", Sigma1: "8", Sigma2: "5", Threshold: "50", StudentConfidence: "0.9",
			Student: student}, "", "0.055625", "0 1"},
	} {
		c.ask.Queries = []string{"q0", "q1"}
		got, err := mel.Labels(t.Context(), "digits", c.ask, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		labels := fmt.Sprint(*got.Labels[0].Label, " ", *got.Labels[1].Label)
		if labels != c.label || c.rho != "" && got.Spent.Rho != api.Decimal(c.rho) {
			t.Errorf("%s: labels %s, spent %+v", name, labels, got.Spent)
		}
		if (len(got.Labels[0].Histogram) > 0) != (name == "histogram") || got.Terms.Meaning == "" {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "interactive" && (got.Labels[0].Status != "reinforced" || got.Labels[1].Status != "answered") {
			t.Errorf("%s: %+v", name, got.Labels)
		}
	}
	// Another view of the student is another question.
	ask := api.LabelRequest{Queries: []string{"q0"}, Mechanism: "interactive", Sigma1: "8", Sigma2: "5", Threshold: "50",
		StudentConfidence: "0.9",
		Student:           map[string][]api.Decimal{"q0": {"0.97", "0.01", "0.01", "0.01"}}}
	if got, err := mel.Labels(t.Context(), "digits", ask, ""); err != nil || !got.Labels[0].Replayed {
		t.Errorf("%+v, %v", got, err)
	}
	ask.Student["q0"][1] = "0.010"
	if got, err := mel.Labels(t.Context(), "digits", ask, ""); err != nil || !got.Labels[0].Replayed {
		t.Errorf("0.01 and 0.010 differ: %+v, %v", got, err)
	}
	ask.Student["q0"] = []api.Decimal{"0.96", "0.02", "0.01", "0.01"}
	if got, err := mel.Labels(t.Context(), "digits", ask, ""); err != nil || got.Labels[0].Replayed {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSealedVotesDoNotChange over HTTP; pate's own tests try it in the database.
//
// covers: A82
func TestSealedVotesDoNotChange(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam, mel := f.client("sam:steward"), f.client("mel:ml")
	ensemble(t, f, "digits")
	expect := func(what string, err error, want fault.Code) {
		t.Helper()
		if got := codeOfError(err); got != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	ask := api.LabelRequest{Queries: []string{"q0"}, Mechanism: "gnmax", Sigma: "5"}
	_, err := mel.Labels(t.Context(), "digits", ask, "")
	expect("labels of a draft", err, fault.CodePateNotSealed)
	_, err = mel.Labels(t.Context(), "letters", ask, "")
	expect("labels of nothing", err, fault.CodePateUnknownEnsemble)
	_, err = sam.SealEnsemble(t.Context(), "digits")
	expect("sealing nothing", err, fault.CodePateNoVotes)
	twice := "teacher,query,label\nt1,q0,1\nt1,q0,2\n"
	_, err = sam.LoadVotes(t.Context(), "digits", "text/csv", "", strings.NewReader(twice))
	expect("voting twice", err, fault.CodePateVotes)
	for range 2 { // a second load replaces the first
		if _, err = sam.LoadVotes(t.Context(), "digits", "text/csv", "", strings.NewReader(votes(3))); err != nil {
			t.Fatal(err)
		}
	}
	_, err = sam.LoadVotes(t.Context(), "digits", "text/csv", "", strings.NewReader(votes(5)+"q5,1,2,3\n"))
	expect("a broken load", err, fault.CodePateVotes)
	sealed, err := sam.SealEnsemble(t.Context(), "digits")
	if err != nil || sealed.Queries != 3 || sealed.State != "sealed" {
		t.Fatalf("%+v, %v: a load that failed left something behind", sealed, err)
	}
	_, err = sam.LoadVotes(t.Context(), "digits", "text/csv", "", strings.NewReader(votes(3)))
	expect("votes after the seal", err, fault.CodePateSealed)
	_, err = sam.SealEnsemble(t.Context(), "digits")
	expect("sealing twice", err, fault.CodePateSealed)
	if _, err = mel.Labels(t.Context(), "digits", ask, ""); err != nil {
		t.Fatal(err)
	}
	// A new version begins with nothing, and spends from the same account.
	again, err := sam.DefineEnsemble(t.Context(), "digits", api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100,
		Classes: digits()})
	if err != nil || again.Version != 2 || again.State != "defined" || again.Spent.Rho != "0.04" {
		t.Errorf("%+v, %v", again, err)
	}
	if got, err := mel.Labels(t.Context(), "digits", ask, ""); err != nil || !got.Labels[0].Replayed || got.Version != 1 {
		t.Errorf("while a version is prepared, the last sealed one answers: %+v, %v", got, err)
	}
}

// TestPateRefusals: what is refused costs nothing and names what is wrong.
func TestPateRefusals(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 10)
	entries := f.Entries(t)
	for name, c := range map[string]struct {
		body string
		want fault.Code
	}{
		"no queries":       {`{"queries":[],"mechanism":"gnmax","sigma":"5"}`, fault.CodeRequestMissingField},
		"unknown query":    {`{"queries":["q0","q99"],"mechanism":"gnmax","sigma":"5"}`, fault.CodePateUnknownQuery},
		"no text":          {`{"queries":["q0\u0000"],"mechanism":"gnmax","sigma":"5"}`, fault.CodePateUnknownQuery},
		"no sigma":         {`{"queries":["q0"],"mechanism":"gnmax"}`, fault.CodePateParameters},
		"foreign":          {`{"queries":["q0"],"mechanism":"gnmax","sigma":"5","gamma":"1"}`, fault.CodePateParameters},
		"no mechanism":     {`{"queries":["q0"],"sigma":"5"}`, fault.CodePateParameters},
		"negative":         {`{"queries":["q0"],"mechanism":"gnmax","sigma":"-5"}`, fault.CodePateParameters},
		"zero":             {`{"queries":["q0"],"mechanism":"gnmax","sigma":"0"}`, fault.CodePateParameters},
		"NaN":              {`{"queries":["q0"],"mechanism":"gnmax","sigma":"NaN"}`, fault.CodePateParameters},
		"student":          {`{"queries":["q0"],"mechanism":"gnmax","sigma":"5","student":{"q0":[1,0,0,0]}}`, fault.CodePateStudent},
		"no student":       {`{"queries":["q0"],"mechanism":"interactive","sigma1":"5","sigma2":"5","threshold":"1","student_confidence":"0.9"}`, fault.CodePateStudent},
		"other student":    {`{"queries":["q0"],"mechanism":"interactive","sigma1":"5","sigma2":"5","threshold":"1","student_confidence":"0.9","student":{"q1":[1,0,0,0]}}`, fault.CodePateStudent},
		"short student":    {`{"queries":["q0"],"mechanism":"interactive","sigma1":"5","sigma2":"5","threshold":"1","student_confidence":"0.9","student":{"q0":[1,0,0]}}`, fault.CodePateStudent},
		"no probabilities": {`{"queries":["q0"],"mechanism":"interactive","sigma1":"5","sigma2":"5","threshold":"1","student_confidence":"0.9","student":{"q0":[1,1,0,0]}}`, fault.CodePateStudent},
		"too expensive":    {`{"queries":["q0"],"mechanism":"gnmax","sigma":"0.01"}`, fault.CodeBudgetExhausted},
		"unknown field":    {`{"queries":["q0"],"mechanism":"gnmax","sigma":"5","epsilon":1}`, fault.CodeRequestUnknownField},
		"type":             {`{"queries":"q0","mechanism":"gnmax","sigma":"5"}`, fault.CodeRequestBody},
	} {
		response, text := f.do(t, call{method: http.MethodPost, path: "/v1/pate/digits/labels", token: "mel:ml", kind: "application/json",
			body: c.body})
		if got := codeOf(t, text); got != c.want {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
	for name, d := range map[string]api.EnsembleDefinition{
		"no teachers": {Dataset: gatewaytest.Dataset, Classes: digits(), Budget: &api.BudgetLimit{Form: "zcdp", Rho: "1"}},
		"one class":   {Dataset: gatewaytest.Dataset, Teachers: 3, Classes: []string{"a"}, Budget: &api.BudgetLimit{Form: "zcdp", Rho: "1"}},
		"twice": {Dataset: gatewaytest.Dataset, Teachers: 3, Classes: []string{"a", "a"},
			Budget: &api.BudgetLimit{Form: "zcdp", Rho: "1"}},
		"no budget": {Dataset: gatewaytest.Dataset, Teachers: 3, Classes: digits()},
		"no hash": {Dataset: gatewaytest.Dataset, Teachers: 3, Classes: digits(), PartitionSHA256: "abc",
			Budget: &api.BudgetLimit{Form: "zcdp", Rho: "1"}},
		"beyond everyone": {Dataset: gatewaytest.Dataset, Teachers: 3, Classes: digits(), MaxTeachersPerPerson: new(int64(4)),
			Budget: &api.BudgetLimit{Form: "zcdp", Rho: "1"}},
	} {
		if _, err := f.client("sam:steward").DefineEnsemble(t.Context(), "other", d); codeOfError(err) != fault.CodePateEnsemble {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.Entries(t) != entries {
		t.Error("a refusal changed the ledger")
	}
}

// TestPateBudgets: a caller's cap and the ensemble's both hold, and the ensemble's is shared.
func TestPateBudgets(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 40)
	sam := f.client("sam:steward")
	if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, "ensemble:digits", api.BudgetLimit{Form: "zcdp", Rho: "1"}); err != nil {
		t.Fatal(err)
	}
	ask := api.LabelRequest{Queries: queries(0, 20), Mechanism: "gnmax", Sigma: "5"} // ρ 0.8
	if _, err := f.client("mel:ml").Labels(t.Context(), "digits", ask, ""); err != nil {
		t.Fatal(err)
	}
	ask.Queries = queries(20, 30)
	_, err := f.client("max:ml").Labels(t.Context(), "digits", ask, "")
	if codeOfError(err) != fault.CodeBudgetExhausted {
		t.Errorf("%v", err)
	}
	ask.Queries = queries(20, 25)
	if _, err := f.client("max:ml").Labels(t.Context(), "digits", ask, ""); err != nil {
		t.Errorf("what still fits is bought: %v", err)
	}
	_, err = f.client("ana:analyst,ml").Labels(t.Context(), "digits",
		api.LabelRequest{Queries: queries(25, 26), Mechanism: "gnmax", Sigma: "5"}, "")
	if codeOfError(err) != fault.CodeBudgetExhausted {
		t.Errorf("%v", err)
	}
	account, err := sam.Account(t.Context(), gatewaytest.Dataset, "ensemble:digits")
	if err != nil || account.Spent.Rho != "1" {
		t.Errorf("%+v, %v", account, err)
	}
	if response, _ := f.do(t, call{method: http.MethodPost, path: "/v1/pate/digits/labels", token: "ana:analyst",
		kind: "application/json", body: `{}`}); response.StatusCode != http.StatusForbidden {
		t.Errorf("an analyst may buy labels: %d", response.StatusCode)
	}
}

// TestLabelsUnderAKey: a key stands for one request.
//
// covers: A68
func TestLabelsUnderAKey(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 10)
	mel := f.client("mel:ml")
	ask := api.LabelRequest{Queries: queries(0, 5), Mechanism: "gnmax", Sigma: "5"}
	first, err := mel.Labels(t.Context(), "digits", ask, "k1")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := mel.Labels(t.Context(), "digits", ask, "k1"); err != nil || second.Spent.Rho != "0" ||
		*second.Labels[4].Label != *first.Labels[4].Label {
		t.Errorf("%+v, %v", second, err)
	}
	for _, keys := range [][]string{queries(0, 4), queries(0, 6)} {
		ask.Queries = keys
		if _, err := mel.Labels(t.Context(), "digits", ask, "k1"); codeOfError(err) != fault.CodeBudgetReplayMismatch {
			t.Errorf("%d queries: %v", len(keys), err)
		}
	}
}

// TestLabelArrays: labels come as an array for NumPy where that is asked for. The checks are off the threshold by 37
// votes or more, 7.4 standard deviations: a right gateway fails once in 10^11 runs.
func TestLabelArrays(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 5)
	ask := call{method: http.MethodPost, path: "/v1/pate/digits/labels", token: "mel:ml", kind: "application/json",
		header: http.Header{"Accept": {"application/x-npy"}},
		body:   `{"queries":["q0","q1","q4"],"mechanism":"confident","threshold":62,"sigma1":5,"sigma2":5}`}
	response, text := f.do(t, ask)
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/x-npy" ||
		response.Header.Get("Noisegate-Spent-Rho") != rhoOf5(3, 2) {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	if !strings.HasPrefix(text, "\x93NUMPY\x01\x00") || !strings.HasSuffix(text, "\x00\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff") ||
		(len(text)-12)%64 != 0 {
		t.Errorf("%q", text)
	}
	ask.header = http.Header{"Accept": {"text/html"}}
	if response, _ := f.do(t, ask); response.StatusCode != http.StatusNotAcceptable {
		t.Errorf("%d", response.StatusCode)
	}
}

// TestLabelEstimates: the price of a batch, its inverse, and a warning.
func TestLabelEstimates(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 10)
	mel := f.client("mel:ml")
	entries := f.Entries(t)
	got, err := mel.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Count: new(int64(50)), Mechanism: "confident",
		Threshold: "70", Sigma1: "8",
		Sigma2: "5", AnswerRate: new(0.5), Epsilon: "2", Delta: "1e-5"})
	if err != nil {
		t.Fatal(err)
	}
	if got.WorstCase.Rho != api.Decimal(rho(50, 50)) || got.Expected.Rho != api.Decimal(rho(50, 25)) || !got.Affordable ||
		got.Epsilon == "" || len(got.Notes) != 0 {
		t.Errorf("%+v", got)
	}
	// Of 200 checks answers are charged in steps of four, as a purchase charges them: 101 as 104.
	stepped, err := mel.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Count: new(int64(200)), Mechanism: "confident",
		Threshold: "70", Sigma1: "8", Sigma2: "5", AnswerRate: new(0.505)})
	if err != nil || stepped.Expected.Rho != api.Decimal(rho(200, 104)) {
		t.Errorf("%+v, %v", stepped, err)
	}
	// The ρ that is (2, 1e-5)-DP is between 0.0957 and 0.1434: two labels of 0.0478125, not three.
	if got.EpsilonBuys == nil || *got.EpsilonBuys != 2 {
		t.Errorf("%d labels", *got.EpsilonBuys)
	}
	loud, err := mel.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Queries: queries(0, 10), Mechanism: "gnmax", Sigma: "60"})
	if err != nil || len(loud.Notes) != 1 || loud.Notes[0].Code != "noise-too-large" {
		t.Errorf("%+v, %v", loud, err)
	}
	if _, err := mel.EstimateLabels(t.Context(), "digits", api.LabelEstimateRequest{Mechanism: "gnmax",
		Sigma: "60"}); codeOfError(err) != fault.CodePateParameters {
		t.Error(err)
	}
	if f.Entries(t) != entries {
		t.Error("an estimate changed the ledger")
	}
}

// TestLabelsThatFailStayPaid: once votes may have been read, a failure keeps the worst case, says nothing of its cause, and leaves no
// label behind; who asks again pays again.
//
// covers: F10
func TestLabelsThatFailStayPaid(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 10)
	mel := f.client("mel:ml")
	ask := api.LabelRequest{Queries: queries(0, 5), Mechanism: "gnmax", Sigma: "10"} // ρ 0.05
	spent := func() api.Decimal {
		t.Helper()
		shown, err := f.client("sam:steward").Ensemble(t.Context(), "digits")
		if err != nil {
			t.Fatal(err)
		}
		return shown.Spent.Rho
	}
	f.Control.Exec(t, `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'canary %', NEW.label; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON noisegate.pate_answer FOR EACH ROW EXECUTE FUNCTION public.fail()`)
	_, err := mel.Labels(t.Context(), "digits", ask, "")
	if codeOfError(err) != fault.CodeDataUnavailable || strings.Contains(err.Error(), "canary") || strings.Contains(f.log.String(), "canary") {
		t.Errorf("storing fails: %v", err)
	}
	if got := spent(); got != "0.05" {
		t.Errorf("spent %s", got)
	}
	f.Control.Exec(t, "DROP TRIGGER fail ON noisegate.pate_answer")
	if got, err := mel.Labels(t.Context(), "digits", ask, ""); err != nil || got.Labels[0].Replayed || spent() != "0.1" {
		t.Errorf("%+v, %v, spent %s", got, err, spent())
	}
	f.Control.Exec(t, "ALTER TABLE noisegate.pate_votes DISABLE TRIGGER ALL; UPDATE noisegate.pate_votes SET counts = '\\x00' WHERE "+
		"key = 'q7'")
	ask.Queries = []string{"q7"}
	if _, err := mel.Labels(t.Context(), "digits", ask, ""); codeOfError(err) != fault.CodeDataUnavailable || spent() != "0.11" {
		t.Errorf("votes that were tampered with: %v, spent %s", err, spent())
	}
}
