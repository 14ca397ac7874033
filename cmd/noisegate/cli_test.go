package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/internal/config"
)

// TestCommandLine runs testdata/cli/*. "answer" prepares what a gateway says to one route; "run" gives a command line, one
// argument a line with \n and \t for line break and tab (lines that begin with $ are variables, the part after "stdin:"
// is standard input), and shows what the gateway was asked, what was printed, and the exit code.
func TestCommandLine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	datadriven.Walk(t, "testdata/cli", func(t *testing.T, path string) {
		g := &fakeGateway{answers: map[string]fakeAnswer{}}
		server := httptest.NewServer(g)
		t.Cleanup(server.Close)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "answer":
				a := fakeAnswer{status: http.StatusOK, body: d.Input}
				d.MaybeScanArgs(t, "status", &a.status)
				var route string
				d.ScanArgs(t, "route", &route)
				if strings.HasSuffix(route, "/export") {
					a.body += "\n" // of its last line
				}
				g.answers[route] = a
				return ""
			case "run", "terminal":
				return runCommand(t, d, g, server.URL)
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func runCommand(t *testing.T, d *datadriven.TestData, g *fakeGateway, url string) string {
	env := config.Environment{"NOISEGATE_URL": url, "NOISEGATE_TOKEN": "token-of-ana"}
	lines, stdin, _ := strings.Cut(d.Input, "stdin:\n")
	var args []string
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if variable, ok := strings.CutPrefix(line, "$"); ok {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
			continue
		}
		args = append(args, strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(line))
	}
	var out, errs bytes.Buffer
	g.asked.Reset()
	a := &app{Streams: Streams{strings.NewReader(stdin), &out, &errs}, env: env, now: fixedClock, terminal: d.Cmd == "terminal"}
	code := a.run(t.Context(), args)
	text := g.asked.String() + out.String()
	for line := range strings.Lines(errs.String()) {
		text += "stderr: " + line
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(url, "URL", here+"/", "").Replace(text) + fmt.Sprintf("exit %d\n", code)
}

func fixedClock() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// fakeGateway answers as it was told, and notes what it was asked.
type fakeGateway struct {
	answers map[string]fakeAnswer // "POST /v1/query" -> answer
	asked   bytes.Buffer
}

type fakeAnswer struct {
	status int
	body   string
}

func (g *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(&g.asked, "asked: %s %s %s\n", r.Method, r.RequestURI, body)
	if r.Header.Get("Authorization") != "Bearer token-of-ana" {
		fmt.Fprintf(&g.asked, "asked without the token\n")
	}
	a, ok := g.answers[r.Method+":"+r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if a.status/100 != 2 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// Whatever the gateway says reaches people as one of the documented exit codes.
func TestExitCodes(t *testing.T) {
	for code, want := range map[string]int{
		"budget/exhausted": exitBudget, "budget/over-query-cap": exitBudget,
		"sql/syntax": exitRefused, "policy/missing-bounds": exitRefused, "plan/missing-delta": exitRefused,
		"request/invalid-epsilon": exitUsage, "auth/expired": exitUsage, "request/in-flight": exitBackend,
		"data/unavailable": exitBackend, "internal": exitBackend, "": exitBackend,
	} {
		if got := exitCode(code); got != want {
			t.Errorf("%s: exit code %d, want %d", code, got, want)
		}
	}
}

// Intervals that people see hold the true ones, and are no wider than their digits make them. There is no -0.
func TestIntervalsForPeople(t *testing.T) {
	for _, c := range []struct {
		value              string
		places             int
		lower, near, upper string
	}{
		{"0.05", 1, "0.0", "0.1", "0.1"}, {"-0.05", 1, "-0.1", "-0.1", "0.0"}, {"-0.4", 0, "-1", "0", "0"}, {"0.4", 0, "0", "0", "1"},
		{"-0.04", 1, "-0.1", "0.0", "0.0"}, {"-1e-30", 12, "-0.000000000001", "0.000000000000", "0.000000000000"}, {"-0", 0, "0", "0", "0"},
		{"43.04", 2, "43.04", "43.04", "43.04"}, {"999.96", 1, "999.9", "1000.0", "1000.0"}, {"1e3", 0, "1000", "1000", "1000"},
		{"-10.5", 0, "-11", "-11", "-10"}, {"NULL", 1, "NULL", "NULL", "NULL"}, {"-∞", 1, "-∞", "-∞", "-∞"},
	} {
		got := [3]string{shorten(c.value, &c.places, down), shorten(c.value, &c.places, nearest), shorten(c.value, &c.places, up)}
		if got != [3]string{c.lower, c.near, c.upper} {
			t.Errorf("%s with %d places: %v, want %+v", c.value, c.places, got, c)
		}
	}
	for x, want := range map[float64][3]string{
		0.0801: {"0.0801", "0.0801", "0.0801"}, 0.08010001: {"0.0801", "0.0801", "0.08011"}, -0.08010001: {"-0.08011", "-0.0801", "-0.0801"},
		999.96: {"999.9", "1000", "1000"}, 999.93: {"999.9", "999.9", "1000"}, 123456: {"1.234e+05", "1.235e+05", "1.235e+05"},
		-1.00004: {"-1.001", "-1", "-1"}, 0: {"0", "0", "0"}, 1e-320: {"1e-320", "1e-320", "1e-320"}, math.Inf(1): {"+Inf", "+Inf", "+Inf"},
	} {
		if got := [3]string{down.figure(x), nearest.figure(x), up.figure(x)}; got != want {
			t.Errorf("%g: %v, want %v", x, got, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x := random.NormFloat64() * math.Pow10(random.IntN(40)-20)
		lo, errLo := strconv.ParseFloat(down.figure(x), 64)
		hi, errHi := strconv.ParseFloat(up.figure(x), 64)
		if errLo != nil || errHi != nil || lo > x || x > hi || hi-lo > 1.0001e-3*math.Abs(x) {
			t.Fatalf("%g is shown between %g and %g, %v, %v", x, lo, hi, errLo, errHi)
		}
	}
}

// Rounding for people never shows less spent, or more left, than is true.
func TestAmountsForPeople(t *testing.T) {
	for _, c := range []struct{ amount, spent, left string }{
		{"0.5", "0.5", "0.5"}, {"0.499999999998", "0.5", "0.499999"}, {"2.500000000002", "2.500001", "2.5"},
		{"1e-9", "1e-9", "1e-9"}, {"0.000000123456", "0.0000001235", "0.0000001234"},
		{"0.003120832764", "0.003121", "0.00312"}, {"4.9999999999e-8", "4.9999999999e-8", "4.9999999999e-8"},
		{"0.000000000001", "0.000000000001", "0.000000000001"}, {"-0.1234567", "-0.1234567", "-0.1234567"}, {"3", "3", "3"}, {"0", "0", "0"},
	} {
		if spent, left := up.shorten(api.Decimal(c.amount)), down.shorten(api.Decimal(c.amount)); spent != c.spent || left != c.left {
			t.Errorf("%s: spent %s, left %s; want %s and %s", c.amount, spent, left, c.spent, c.left)
		}
	}
}

func TestWhatIsLeftIsToldInItsCurrency(t *testing.T) {
	for _, c := range []struct {
		left api.Amounts
		says string
	}{
		{api.Amounts{Epsilon: "2.5", Rho: "0.1", Delta: "5e-8"}, "epsilon 2.5, delta 5e-8"},
		{api.Amounts{Epsilon: "0", Rho: "0.1"}, "rho 0.1"}, // after Gaussian noise: the account goes on
		{api.Amounts{Epsilon: "0", Rho: "0"}, "epsilon 0"},
		{api.Amounts{Epsilon: "0"}, "epsilon 0"}, // pure: there is no ρ
		{api.Amounts{Epsilon: "0", Rho: "without bound"}, "epsilon 0"},
		{api.Amounts{Rho: "0.1"}, "rho 0.1"},
	} {
		if got := amountsText(c.left, down); got != c.says {
			t.Errorf("%+v: %s, want %s", c.left, got, c.says)
		}
	}
	line := spendLine(&api.QueryResponse{ReleaseID: "R", Spent: api.Amounts{Epsilon: "0.7"}, Remaining: api.Amounts{Epsilon: "0", Rho: "0.1"}})
	if line != "spent epsilon 0.7 (rho 0.1 left) · R · ask again: same answer, free" {
		t.Error(line)
	}
}

// An older answer is shown with the remark that the newer one is too dear where the gateway says so; older gateways do not.
func TestNewerThanIsLeft(t *testing.T) {
	for affordable, dear := range map[string]bool{"": false, `, "affordable": true`: false, `, "affordable": false`: true} {
		var answer api.QueryResponse
		if err := json.Unmarshal([]byte(`{"newer": {"as_of": "2026-11-26T06:00:00Z", "price": {"epsilon": "0.5"}`+affordable+`}}`), &answer); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a := &app{Streams: Streams{Out: &out, Err: &out}}
		if err := a.showAnswer(&answer, 0.95); err != nil {
			t.Fatal(err)
		}
		if s := out.String(); !strings.Contains(s, "--latest asks them") || strings.Contains(s, "more than is left") != dear {
			t.Errorf("%s: %s", affordable, s)
		}
	}
}

// No flag takes a secret: other users of a machine can read command lines.
func TestNoSecretFlags(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{{"query", "--token", "x"}, {"serve", "--key", "x"}, {"token", "--secret", "x"}} {
		if code := Run(t.Context(), args, Streams{strings.NewReader(""), &out, &out}, nil); code != exitUsage {
			t.Errorf("%v: exit code %d, want %d", args, code, exitUsage)
		}
	}
}

func TestTokenCommand(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0123456789abcdef", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := config.Environment{
		"NOISEGATE_CONTROL_DSN": "host=/tmp user=noisegate", "NOISEGATE_DATASETS_CENSUS_DSN": "host=/tmp user=noisegate_reader",
		"NOISEGATE_AUTH_ISSUER": "dev", "NOISEGATE_AUTH_AUDIENCE": "noisegate", "NOISEGATE_AUTH_KEYS_HS256_FILE": key,
	}
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		a := &app{Streams: Streams{strings.NewReader(""), &out, &errs}, env: env, now: fixedClock}
		code := a.run(t.Context(), append([]string{"token"}, args...))
		return code, out.String(), errs.String()
	}
	code, token, _ := run("--sub", "ana", "--role", "analyst", "--role", "ml", "--group", "research")
	if code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	claims := decodeClaims(t, token)
	if claims["sub"] != "ana" || claims["iss"] != "dev" || claims["aud"] != "noisegate" ||
		fmt.Sprint(claims["roles"]) != "[analyst ml]" || fmt.Sprint(claims["groups"]) != "[research]" {
		t.Errorf("claims %v", claims)
	}
	for _, args := range [][]string{
		{"--sub", "ana"}, {"--role", "analyst"}, {"--sub", "ana", "--role", "root"},
		{"--sub", "ana", "--role", "analyst", "--lifetime", "-1s"}, {"--sub", "ana", "--role", "analyst", "--lifetime", "9999h"},
	} {
		if code, out, _ := run(args...); code != exitUsage || out != "" {
			t.Errorf("%v: exit code %d, printed %q", args, code, out)
		}
	}
	// A gateway that believes an identity provider has no key to sign with.
	delete(env, "NOISEGATE_AUTH_KEYS_HS256_FILE")
	env["NOISEGATE_AUTH_KEYS_JWKS_URL"] = "https://issuer.example/keys"
	if code, _, errs := run("--sub", "ana", "--role", "analyst"); code != exitUsage || !strings.Contains(errs, "identity provider") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func decodeClaims(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		t.Fatalf("not a token: %q", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}
