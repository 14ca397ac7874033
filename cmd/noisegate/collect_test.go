package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/gateway/collect"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/local"
)

// specOf is what a gateway sends devices about a question.
func specOf(t testing.TB, spec api.CollectionClient) api.CollectionClient {
	t.Helper()
	epsilon, err := mechanisms.ParseEpsilon(string(spec.Epsilon))
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.New(local.Parameters{Kind: local.Kind(spec.Kind), Mechanism: local.Mechanism(spec.Mechanism), Epsilon: epsilon,
		Size: max(1, len(spec.Domain))})
	if err != nil {
		t.Fatal(err)
	}
	spec.Constants = map[string]string{}
	for _, c := range p.Constants() {
		spec.Constants[c.Name] = c.Value.RatString()
	}
	for _, e := range p.Examples() {
		spec.Examples = append(spec.Examples, api.ClientExample{Truth: e.Truth, Draws: e.Draws, Report: e.Report})
	}
	return spec
}

// offline runs a command that asks no gateway.
func offline(t testing.TB, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &app{Streams: Streams{strings.NewReader(stdin), &o, &e}, env: config.Environment{}, now: fixedClock}
	code = a.run(t.Context(), args)
	return code, o.String(), e.String()
}

func writeJSON(t testing.TB, value any) (file string) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "spec.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestReferenceClient: values become reports of the protocol, each with what came with the value; an error names the line of what is no
// value, and does not repeat it.
func TestReferenceClient(t *testing.T) {
	for _, c := range []struct {
		spec        api.CollectionClient
		values, bad []string
	}{
		{api.CollectionClient{Kind: "choice", Domain: []string{"walk", "bus", "car"}, Mechanism: "oue", Epsilon: "1"},
			[]string{`"walk"`, `"car"`}, []string{`"secret"`, `7654321`, `null`, `["walk"]`}},
		{api.CollectionClient{Kind: "number", Low: "-10", High: "30.5", Mechanism: "piecewise", Epsilon: "1"},
			[]string{`-10`, `3.25`, `1e9`, `"5"`, `-1E-3`}, []string{`"secret"`, `1e7654321`, `null`, `[1]`}},
		{api.CollectionClient{Kind: "number", Low: "0", High: "1", Mechanism: "laplace", Epsilon: "1"}, []string{`0.5`}, []string{`""`}},
		{api.CollectionClient{Kind: "vector", Domain: []string{"cat", "dog"}, Mechanism: "laplace", Epsilon: "1"},
			[]string{`[0.5,0.5]`, `[1,0]`, `[0.3333,0.6666]`}, []string{`[0.7654321,0.5]`, `[1]`, `[-1,2]`, `[null,1]`, `0.7654321`}},
	} {
		spec := specOf(t, c.spec)
		d, err := newDevice(spec)
		if err != nil {
			t.Fatal(err)
		}
		file := writeJSON(t, spec)
		var lines strings.Builder
		for i, v := range c.values {
			fmt.Fprintf(&lines, "{\"device\":\"d%d\",\"token\":\"t\",\"round\":%d,\"value\":%s}\n", i, i+1, v)
		}
		code, out, errs := offline(t, lines.String(), "collect", "randomize", "--spec", file)
		if code != exitOK || errs != "" {
			t.Errorf("%s %s: exit %d, %s", spec.Kind, spec.Mechanism, code, errs)
		}
		reports := strings.Split(strings.TrimSpace(out), "\n")
		for i, text := range reports {
			var r api.DeviceReport
			if err := json.Unmarshal([]byte(text), &r); err != nil || d.protocol.Check(r.Report) != nil || r.Device != fmt.Sprintf("d%d", i) ||
				r.Token != "t" || r.Round != int64(i+1) {
				t.Errorf("%s %s: %s", spec.Kind, spec.Mechanism, text)
			}
		}
		if len(reports) != len(c.values) {
			t.Errorf("%d reports of %d values", len(reports), len(c.values))
		}
		for _, v := range append(c.bad, `1,"secret":1`) {
			code, out, errs := offline(t, "\n{\"device\":\"d\",\"value\":"+v+"}\n", "collect", "randomize", "--spec", file)
			if code != exitUsage || out != "" || !strings.Contains(errs, "line 2: ") || strings.Contains(errs, "secret") ||
				strings.Contains(errs, "7654321") {
				t.Errorf("%s %s of %s: exit %d, %s%s", spec.Kind, spec.Mechanism, v, code, out, errs)
			}
		}
	}
}

// TestReferenceClientTrustsNoSpec: a gateway that gives other probabilities than its ε allows finds no device.
func TestReferenceClientTrustsNoSpec(t *testing.T) {
	good := func() api.CollectionClient {
		return specOf(t, api.CollectionClient{Kind: "choice", Domain: []string{"walk", "bus"}, Mechanism: "krr", Epsilon: "1"})
	}
	for name, change := range map[string]func(*api.CollectionClient){
		"less noise":           func(s *api.CollectionClient) { s.Constants["uniform"] = "1/1000" },
		"another ε":            func(s *api.CollectionClient) { s.Epsilon = "0.5" },
		"another mechanism":    func(s *api.CollectionClient) { s.Mechanism = "oue" },
		"a missing constant":   func(s *api.CollectionClient) { delete(s.Constants, "p") },
		"one more constant":    func(s *api.CollectionClient) { s.Constants["bonus"] = "1" },
		"another example":      func(s *api.CollectionClient) { s.Examples[3].Report = []int64{5} },
		"too few examples":     func(s *api.CollectionClient) { s.Examples = s.Examples[:2] },
		"an unknown kind":      func(s *api.CollectionClient) { s.Kind = "picture" },
		"auto":                 func(s *api.CollectionClient) { s.Mechanism = "none" },
		"no ε":                 func(s *api.CollectionClient) { s.Epsilon = "" },
		"a range of nothing":   func(s *api.CollectionClient) { s.Kind, s.Low, s.High = "number", "1", "1" },
		"an ε of little sense": func(s *api.CollectionClient) { s.Epsilon = "1000" },
	} {
		spec := good()
		if _, err := newDevice(spec); err != nil {
			t.Fatal(err)
		}
		change(&spec)
		code, out, _ := offline(t, `{"value":"walk"}`, "collect", "randomize", "--spec", writeJSON(t, spec))
		if code != exitUsage || out != "" {
			t.Errorf("%s: exit %d, %s", name, code, out)
		}
	}
}

// TestEnrolment: a token that the command line signs is the one that a gateway checks.
func TestEnrolment(t *testing.T) {
	key := filepath.Join(t.TempDir(), "enrol.key")
	code, public, _ := offline(t, "", "budget", "key", key)
	if code != exitOK {
		t.Fatal(code)
	}
	if _, err := journal.ParsePublicKey([]byte(public)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := journal.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := offline(t, "{\"device\":\"phone-1\"}\n\n{\"device\":\"phone 2\"}\n", "collect", "enrol", "commute", "--key", key)
	want := ""
	for _, device := range []string{"phone-1", "phone 2"} {
		want += fmt.Sprintf("{\"device\":%q,\"token\":%q}\n", device, collect.Enrolment{Collection: "commute", Device: device}.Token(private))
	}
	if code != exitOK || out != want || errs != "" {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	for _, line := range []string{`{"device":""}`, `{"device":"a\nb"}`, `{"name":"a"}`, `["a"]`, `{"device":"` + strings.Repeat("a", 129) + `"}`} {
		if code, out, _ := offline(t, line, "collect", "enrol", "commute", "--key", key); code != exitUsage || out != "" {
			t.Errorf("%s: exit %d, %s", line, code, out)
		}
	}
}

// TestBatchesFit: a file of any size is sent in batches that the gateway takes, every line once and in its order.
func TestBatchesFit(t *testing.T) {
	var file strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&file, "%d%s\n", i, strings.Repeat("x", i%400))
	}
	var all []byte
	var sizes []int
	err := batches(strings.NewReader(file.String()), func(batch []byte, lines int) error {
		if len(batch) > maxBatch || lines > collect.MaxLines || lines != bytes.Count(batch, []byte("\n")) {
			t.Errorf("a batch of %d lines, %d bytes", lines, len(batch))
		}
		all, sizes = append(all, batch...), append(sizes, lines)
		return nil
	})
	if err != nil || string(all) != file.String() || len(sizes) < 3 || !slices.Contains(sizes, collect.MaxLines) {
		t.Errorf("%v: batches of %v", err, sizes)
	}
}
