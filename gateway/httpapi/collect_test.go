package httpapi

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/collect"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/local"
)

// steward is who enrols devices, with the same key in each run.
func steward(t testing.TB) (ed25519.PrivateKey, string) {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte("a steward's key of a test, 32 B."))
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return private, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// survey is a collection with its devices.
type survey struct {
	*front
	name     string
	private  ed25519.PrivateKey
	protocol *local.Protocol
	sampler  *mechanisms.Sampler
}

// define makes a collection and the protocol of its devices.
func define(t testing.TB, f *front, name string, d api.CollectionDefinition) *survey {
	t.Helper()
	private, public := steward(t)
	d.EnrolmentKey = public
	if _, err := f.client("sam:steward").DefineCollection(t.Context(), name, d); err != nil {
		t.Fatal(err)
	}
	spec, err := f.client("cole:collector").CollectionClient(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	epsilon, err := mechanisms.ParseEpsilon(string(spec.Epsilon))
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.New(local.Parameters{Kind: local.Kind(spec.Kind), Mechanism: local.Mechanism(spec.Mechanism), Epsilon: epsilon,
		Size: max(1, len(spec.Domain))})
	if err != nil {
		t.Fatal(err)
	}
	return &survey{f, name, private, p, mechanisms.NewSamplerFrom(randomtest.Source(t.Name(), name))}
}

// line is a device's report of a value, in the first round.
func (s *survey) line(t testing.TB, device string, truth ...int64) string {
	t.Helper()
	r, err := s.protocol.Report(s.sampler, truth)
	if err != nil {
		t.Fatal(err)
	}
	return s.sealed(t, api.DeviceReport{Device: device, Report: r})
}

// sealed is a line with the token of its device.
func (s *survey) sealed(t testing.TB, r api.DeviceReport) string {
	t.Helper()
	if r.Token == "" {
		r.Token = collect.Enrolment{Collection: s.name, Device: r.Device}.Token(s.private)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func (s *survey) send(t testing.TB, lines string) *api.ReportsTaken {
	t.Helper()
	answer, err := s.client("cole:collector").SendReports(t.Context(), s.name, strings.NewReader(lines))
	if err != nil {
		t.Fatal(err, s.log)
	}
	return answer
}

func (s *survey) estimate(t testing.TB, round int64) *api.CollectionEstimate {
	t.Helper()
	e, err := s.client("ana:analyst").EstimateCollection(t.Context(), s.name, round, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// threeWays is a choice of three values.
func threeWays() api.CollectionDefinition {
	return api.CollectionDefinition{Kind: "choice", Domain: []string{"walk", "bus", "car"}, Mechanism: "auto", Epsilon: "1"}
}

// TestEveryMechanismIsCollected: with every mechanism reports go from devices over HTTP into estimates that are within 5 standard
// deviations of the truth; what is stored adds up to what is counted; and no ledger hears of it.
func TestEveryMechanismIsCollected(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := newFront(t, gatewaytest.Options{}, 4)
	entries := f.Entries(t)
	const devices = 600
	for _, c := range []struct {
		kind, mechanism string
		truths          [][]int64 // in turn
		want            []float64
	}{
		{"choice", "krr", [][]int64{{0}, {0}, {1}}, []float64{400, 200, 0}},
		{"choice", "sue", [][]int64{{0}, {0}, {1}}, []float64{400, 200, 0}},
		{"choice", "oue", [][]int64{{0}, {0}, {1}}, []float64{400, 200, 0}},
		{"choice", "olh", [][]int64{{0}, {0}, {1}}, []float64{400, 200, 0}},
		{"number", "duchi", [][]int64{{local.Grid}, {local.Grid / 2}}, []float64{40}},
		{"number", "piecewise", [][]int64{{local.Grid}, {local.Grid / 2}}, []float64{40}},
		{"number", "laplace", [][]int64{{local.Grid}, {local.Grid / 2}}, []float64{40}},
		{"vector", "laplace", [][]int64{{local.Whole, 0, 0}, {0, local.Whole, 0}}, []float64{0.5, 0.5, 0}},
	} {
		d := threeWays()
		d.Kind, d.Mechanism = c.kind, c.mechanism
		if c.kind == "number" {
			d.Domain, d.Low, d.High = nil, "-20", "60"
		}
		s := define(t, f, c.kind+"-"+c.mechanism, d)
		var batch strings.Builder
		for i := range devices {
			batch.WriteString(s.line(t, fmt.Sprintf("device-%d", i), c.truths[i%len(c.truths)]...))
		}
		if got := s.send(t, batch.String()); got.Taken != devices || got.Repeated != 0 || len(got.Refused) > 0 {
			t.Errorf("%s: %+v", s.name, got)
		}
		e := s.estimate(t, 0)
		if e.Reports != devices || e.Mechanism != c.mechanism || e.Round != 1 || len(e.Estimates) != len(c.want) {
			t.Fatalf("%s: %+v", s.name, e)
		}
		for i, want := range c.want {
			got := e.Estimates[i]
			if math.Abs(got.Estimate-want) > 5*got.SD || got.SD <= 0 || got.Interval[0] >= got.Estimate || got.Interval[1] <= got.Estimate {
				t.Errorf("%s: %+v, want %g", s.name, got, want)
			}
		}
		s.recount(t, 1)
	}
	if f.Entries(t) != entries {
		t.Error("the ledger has entries of a collection")
	}
}

// recount adds up what is stored of a round and compares it with what is counted.
func (s *survey) recount(t *testing.T, round int) {
	t.Helper()
	conn := s.Control.Conn(t, s.Control.LedgerDSN)
	rows, err := conn.Query(t.Context(), `SELECT report FROM noisegate.collect_report JOIN noisegate.collector USING (collector_id)
		WHERE name = $1 AND round = $2`, s.name, round)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	again := s.protocol.NewTally()
	for rows.Next() {
		var text string
		var r local.Report
		if err := rows.Scan(&text); err != nil || json.Unmarshal([]byte(text), &r) != nil {
			t.Fatal(text, err)
		}
		s.protocol.Add(&again, r)
	}
	var counted local.Tally
	if err := conn.QueryRow(t.Context(), `SELECT reports, cells FROM noisegate.collect_tally JOIN noisegate.collector USING (collector_id)
		WHERE name = $1 AND round = $2`, s.name, round).Scan(&counted.Reports, &counted.Cells); err != nil {
		t.Fatal(err)
	}
	if counted.Reports != again.Reports || !slices.Equal(counted.Cells, again.Cells) {
		t.Errorf("%s: counted %+v, stored %+v", s.name, counted, again)
	}
}

// TestDeviceReportsOnceARound: the same report again is taken once; another one of the same device and round is refused, in one batch, in
// the next and at the same time; the next round takes one more.
func TestDeviceReportsOnceARound(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 8)
	d := threeWays()
	d.Rounds = new(int64(2))
	s := define(t, f, "commute", d)
	first := s.sealed(t, api.DeviceReport{Device: "phone", Report: []int64{0}})
	second := s.sealed(t, api.DeviceReport{Device: "phone", Report: []int64{1}})
	spaced := strings.Replace(first, "[0]", "[ 0 ]", 1) // the same report in other bytes of JSON
	for i, c := range []struct {
		lines           string
		taken, repeated int
		refused         []api.RefusedReport
	}{
		{first + first + second, 1, 1, []api.RefusedReport{{Line: 3, Reason: "second-report"}}},
		{first + spaced, 0, 2, nil},
		{second, 0, 0, []api.RefusedReport{{Line: 1, Reason: "second-report"}}},
		{s.sealed(t, api.DeviceReport{Device: "phone", Round: 2, Report: []int64{1}}) + first, 1, 1, nil},
	} {
		got := s.send(t, c.lines)
		if got.Taken != c.taken || got.Repeated != c.repeated || !slices.Equal(got.Refused, c.refused) {
			t.Errorf("batch %d: %+v", i, got)
		}
	}
	for round, want := range []int64{1, 1} {
		if e := s.estimate(t, int64(round+1)); e.Reports != want {
			t.Errorf("round %d has %d reports", round+1, e.Reports)
		}
	}
	// Eight senders at once, with two different reports of each of 50 devices, and reports of 20 devices of their own.
	var wait sync.WaitGroup
	taken := make([]int, 8)
	for i := range taken {
		var batch strings.Builder
		for n := range 50 {
			batch.WriteString(s.sealed(t, api.DeviceReport{Device: fmt.Sprintf("tablet-%d", n), Report: []int64{int64(i % 2)}}))
		}
		for n := range 20 {
			batch.WriteString(s.sealed(t, api.DeviceReport{Device: fmt.Sprintf("watch-%d-%d", i, n), Report: []int64{int64(i % 3)}}))
		}
		wait.Go(func() {
			answer, err := s.client("cole:collector").SendReports(t.Context(), s.name, strings.NewReader(batch.String()))
			if err != nil {
				t.Error(err)
				return
			}
			taken[i] = answer.Taken
		})
	}
	wait.Wait()
	sum := 0
	for _, n := range taken {
		sum += n
	}
	if e := s.estimate(t, 1); sum != 50+8*20 || e.Reports != int64(sum+1) {
		t.Errorf("taken %v of %d devices; %d reports", taken, 50+8*20, e.Reports)
	}
	s.recount(t, 1)
}

// TestRefusedReportsNameNoDevice: each line that is refused is told by its number and reason; neither answer nor log has a device's name or
// token, and the others are taken.
func TestRefusedReportsNameNoDevice(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	s, other := define(t, f, "commute", threeWays()), define(t, f, "sleep", threeWays())
	good := collect.Enrolment{Collection: "commute", Device: "secret-1"}.Token(s.private)
	lines := s.sealed(t, api.DeviceReport{Device: "secret-2", Token: good, Report: []int64{0}}) +
		s.sealed(t, api.DeviceReport{Device: "secret-3", Token: "AAAA", Report: []int64{0}}) +
		strings.Replace(other.sealed(t, api.DeviceReport{Device: "secret-4", Report: []int64{0}}), "sleep", "commute", 1) +
		s.sealed(t, api.DeviceReport{Device: "secret-5", Round: 2, Report: []int64{0}}) +
		s.sealed(t, api.DeviceReport{Device: "secret-6", Round: -1, Report: []int64{0}}) +
		s.sealed(t, api.DeviceReport{Device: "secret-7", Report: []int64{3}}) +
		s.sealed(t, api.DeviceReport{Device: "secret-8", Report: nil}) +
		s.sealed(t, api.DeviceReport{Device: "secret-1", Report: []int64{2}})
	response, text := f.do(t, call{method: "POST", path: "/v1/collect/commute/reports", token: "cole:collector",
		kind: "application/x-ndjson", body: lines})
	want := `{"taken":1,"repeated":0,"refused":[{"line":1,"reason":"not-enrolled"},{"line":2,"reason":"not-enrolled"},` +
		`{"line":3,"reason":"not-enrolled"},{"line":4,"reason":"unknown-round"},{"line":5,"reason":"unknown-round"},` +
		`{"line":6,"reason":"not-a-report"},{"line":7,"reason":"not-a-report"}]}`
	if response.StatusCode != http.StatusOK || strings.TrimSpace(text) != want {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	for name, c := range map[string]struct {
		path, kind, body string
		status           int
		code             fault.Code
	}{
		"a broken line": {"/v1/collect/commute/reports", "application/x-ndjson", lines + `{"device":"secret-9"`, 422, fault.CodeCollectReports},
		"a value":       {"/v1/collect/commute/reports", "application/x-ndjson", `{"device":"secret-9","value":"walk"}`, 422, fault.CodeCollectReports},
		"nothing":       {"/v1/collect/commute/reports", "application/x-ndjson", "", 422, fault.CodeCollectReports},
		"plain JSON":    {"/v1/collect/commute/reports", "application/json", lines, 415, fault.CodeRequestMediaType},
		"nobody's":      {"/v1/collect/secret-0/reports", "application/x-ndjson", lines, 404, fault.CodeCollectUnknown},
		"too large": {"/v1/collect/commute/reports", "application/x-ndjson", strings.Repeat(" ", maxLarge) + lines, 413,
			fault.CodeRequestTooLarge},
	} {
		response, text := f.do(t, call{method: "POST", path: c.path, token: "cole:collector", kind: c.kind, body: c.body})
		if response.StatusCode != c.status || codeOf(t, text) != c.code || strings.Contains(text, "secret-9") || strings.Contains(text, "walk") {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
	if e := s.estimate(t, 1); e.Reports != 1 {
		t.Errorf("%d reports were taken", e.Reports)
	}
	if log := f.log.String(); strings.Contains(log, "secret-") || strings.Contains(log, good) {
		t.Error("the log names a device")
	}
}

// TestCollectionsDoNotChange: a definition stands, whatever is put in its place; what it was defined with is shown with parameters that
// devices can check, and nobody can change or remove a row of it.
func TestCollectionsDoNotChange(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	_, public := steward(t)
	d := threeWays()
	d.EnrolmentKey = public
	sam := f.client("sam:steward")
	first, err := sam.DefineCollection(t.Context(), "commute", d)
	if err != nil || first.Mechanism != "krr" || first.Epsilon != "1" || first.Rounds != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	d.Epsilon, d.Mechanism = "1.0", "krr" // says the same
	if again, err := sam.DefineCollection(t.Context(), "commute", d); err != nil || !again.DefinedAt.Equal(first.DefinedAt) {
		t.Errorf("%+v, %v", again, err)
	}
	for name, change := range map[string]func(*api.CollectionDefinition){
		"ε": func(d *api.CollectionDefinition) { d.Epsilon = "2" }, "rounds": func(d *api.CollectionDefinition) { d.Rounds = new(int64(2)) },
		"domain": func(d *api.CollectionDefinition) { d.Domain = []string{"bus", "walk", "car"} },
	} {
		other := d
		change(&other)
		if _, err := sam.DefineCollection(t.Context(), "commute", other); codeOfError(err) != fault.CodeCollectRedefined {
			t.Errorf("another %s: %v", name, err)
		}
	}
	spec, err := f.client("ana:analyst").CollectionClient(t.Context(), "commute")
	if err != nil || spec.EpsilonLifetime != "1" || len(spec.Examples) != 8 || len(spec.Procedure) == 0 || len(spec.Constants) != 3 {
		t.Errorf("%+v, %v", spec, err)
	}
	for query, code := range map[string]fault.Code{"round=2": fault.CodeCollectRound, "round=0": fault.CodeCollectRound,
		"round=x": fault.CodeCollectRound, "confidence=1": fault.CodeRequestConfidence, "confidence=NaN": fault.CodeRequestConfidence} {
		if _, text := f.do(t, call{method: "GET", path: "/v1/collect/commute/estimate?" + query, token: "ana:analyst"}); codeOf(t, text) != code {
			t.Errorf("%s: %s", query, text)
		}
	}
	s := define(t, f, "commute", threeWays())
	s.send(t, s.line(t, "phone", 1))
	conn := f.Control.Conn(t, f.Control.LedgerDSN)
	for _, sql := range []string{"UPDATE noisegate.collector SET definition = '{}'", "DELETE FROM noisegate.collect_report",
		"UPDATE noisegate.collect_report SET report = '[0]'", "DELETE FROM noisegate.collect_tally", "TRUNCATE noisegate.collector CASCADE"} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("the gateway's role may run %s", sql)
		}
	}
	// SQL does not read reports: the table does not exist for it, alone or joined with people, and estimates are elsewhere.
	for _, sql := range []string{"SELECT count(*) FROM collect.commute", "SELECT * FROM collect.commute",
		"SELECT count(*) FROM people JOIN collect.commute AS c ON c.value = people.region",
		"SELECT region, count(*) FROM people WHERE region IN (SELECT value FROM collect.commute) GROUP BY region"} {
		_, err = f.client("ana:analyst").Estimate(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "1", SQL: sql})
		var p *api.Problem
		if !errors.As(err, &p) || codeOfError(err) != fault.CodeUnknownTable || !strings.Contains(p.Hint, "/v1/collect/{collection}/estimate") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestClientIsWholeNumbers: what a client is told can be read without losing a digit by programs whose numbers are float64.
func TestClientIsWholeNumbers(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for _, mechanism := range []string{"krr", "sue", "oue", "olh"} {
		d := threeWays()
		d.Mechanism = mechanism
		s := define(t, f, mechanism, d)
		_, text := f.do(t, call{method: "GET", path: "/v1/collect/" + s.name + "/client", token: "cole:collector"})
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
			if n, ok := token.(json.Number); ok {
				if x, err := n.Int64(); err != nil || x < -1<<53 || x > 1<<53 {
					t.Errorf("%s: the number %s", mechanism, n)
				}
			}
		}
	}
}
