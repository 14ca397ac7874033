package integration

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/internal/pgtest"
)

// pythonOfTheHowTo finds a Python that has what docs/pate-howto.md asks for; see [pgtest.Need].
func pythonOfTheHowTo(t *testing.T) string {
	t.Helper()
	if python := pythonWith("numpy", "requests"); python != "" {
		return python
	}
	pgtest.Missing(t, "sudo apt-get install -y python3-numpy python3-requests", "Python with NumPy and requests")
	return ""
}

// TestPythonOfTheHowTo runs the Python of docs/pate-howto.md, as it stands there, against a gateway: real requests,
// real NumPy. Of 300 queries on which all teachers agree, 273 pass the check in the mean, with a standard deviation of
// 5, and a label is wrong once in 20,000: the bounds fail a right gateway less than once in 10^12.
func TestPythonOfTheHowTo(t *testing.T) {
	t.Parallel()
	python := pythonOfTheHowTo(t)
	d := pateDataset()
	d.policy = strings.ReplaceAll(strings.Replace(d.policy, "dataset: school", "dataset: census", 1), "epsilon: 100", "epsilon: 200")
	d.name = "census"
	s := newStack(t, d)
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(read(t, "../docs/pate-howto.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of Python", len(blocks))
	}
	// The reader has votes and examples. All teachers agree on three queries of four, and on nothing else.
	script := "import numpy as np\n" +
		"truth = np.arange(500) % 10\n" +
		"votes = np.where(np.arange(500) % 4 > 0, truth, np.arange(250)[:, None] % 10)\n" +
		"X_public = np.eye(10)[truth]\n" +
		blocks[0][1] + blocks[1][1] + `
again = labels(range(400), **confident)
told = np.flatnonzero((again >= 0) & (np.arange(400) % 4 > 0))
assert again.shape == (400,) and again.dtype == more.dtype == np.int32 and len(x) == len(y) and (y == again[again >= 0]).all(), again
assert 200 < len(told) < 300 and (again[told] == truth[told]).mean() > 0.9 and ((-1 <= more) & (more < 10)).all(), again
print(len(y), (more >= 0).sum())
assert price(range(400), **confident)["replayed"] == 400
try:
    labels([500], mechanism="gnmax", sigma=40)
    raise AssertionError("a query that nobody voted on")
except RuntimeError as refused:
    assert str(refused).startswith("pate/unknown-query: "), refused
`
	cmd := exec.CommandContext(t.Context(), python, "-W", "error", "-")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"NOISEGATE_URL=" + s.url, "NOISEGATE_STEWARD_TOKEN=" + s.token(t, "sam", "steward"),
		"NOISEGATE_ML_TOKEN=" + s.token(t, "mel", "ml"), "PYTHONIOENCODING=utf-8"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	// A check costs 1/2·75² and an answer 1/40², counted in steps of a 64th of the checks; the second time is free. The page
	// says how to read that.
	var labels, more, spent, spentMore float64
	var epsilon string
	text := regexp.MustCompile(`left ρ \S+`).ReplaceAllString(out.String(), "")
	if _, err := fmt.Sscanf(text, "at most ε %s at δ = 1e-5\nspent ρ %g \nspent ρ %g \nspent ρ 0 \n%g %g\n", &epsilon, &spent,
		&spentMore, &labels, &more); err != nil {
		t.Fatalf("%v: it printed\n%s", err, &out)
	}
	const check, answer = 1.0 / 2 / 75 / 75, 1.0 / 40 / 40
	charged := func(answers, step float64) float64 { return math.Ceil(answers/step) * step * answer }
	if math.Abs(spent-400*check-charged(labels, 7)) > 1e-8 || math.Abs(spentMore-100*check-charged(more, 2)) > 1e-8 {
		t.Errorf("%g labels and %g more: it printed\n%s", labels, more, &out)
	}
}

// A question whose connection breaks is sent again under the same key, so that it is answered and charged once; what is refused is not.
// Floats keep their shortest digits, large numbers theirs, and an interval without an end has none.
func TestPythonClientAsksAgain(t *testing.T) {
	t.Parallel()
	python := pythonWith("requests")
	if python == "" {
		pgtest.Missing(t, "sudo apt-get install -y python3-requests", "Python with requests")
		return
	}
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if got := r.Header.Get("Authorization"); got != "Bearer t" {
			t.Errorf("the client shows %q", got)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch {
		case len(keys) == 1:
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		case len(keys) == 2: // the first one runs
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code": "request/in-flight", "detail": "wait"}`)
		case strings.Contains(string(body), "refused"):
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"code": "sql/syntax", "detail": "no", "suggestion": "SELECT 1"}`)
		default:
			if !strings.Contains(string(body), `"epsilon": "0.0000001"`) || !strings.Contains(string(body), `"max_error": {"n": "100"}`) ||
				!strings.Contains(string(body), `"at_most": {"epsilon": "0.1", "delta": "0.000000001"}`) {
				t.Errorf("the client sends %s", body)
			}
			_, _ = io.WriteString(w, `{"release_id": "R", "dataset": "d", "replayed": false, "notes": [], "spent": {"epsilon": "0.1", "rho": null, "delta": "0"},
				"remaining": {"epsilon": "1", "rho": null, "delta": "0"},
				"columns": [{"name": "g", "type": "text", "kind": "key", "half_width": null}, {"name": "n", "type": "bigint", "kind": "aggregate", "half_width": 1, "digits": 0}],
				"rows": [[null, "9007199254740993"], ["<b>", 5]], "intervals": [[null, [4, null]], [null, [4.25, 6]]]}`)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "noisegate.py"), read(t, "../api/python/noisegate.py"))
	cmd := exec.CommandContext(t.Context(), python, "-")
	write(t, filepath.Join(dir, ".netrc"), "machine 127.0.0.1 login somebody password else\n") // takes no token's place
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "NOISEGATE_URL=" + server.URL, "NOISEGATE_TOKEN=t"}
	cmd.Stdin = strings.NewReader(`
import noisegate
ng = noisegate.Client(dataset="d")
a = ng.query("SELECT", epsilon=1e-7, max_error={"n": 100}, at_most={"epsilon": 0.1, "delta": 1e-9})
assert a.spent["epsilon"] == noisegate.decimal.Decimal("0.1") and a.rows[0] == (None, "9007199254740993"), a.rows
assert "&lt;b&gt;" in a._repr_html_() and "<b>" not in a._repr_html_()
print(a)
try:
    import pandas
    f = a.frame()
    assert f.n[0] == 9007199254740993 and f.n_high[0] == float("inf") and f.n_low[1] == 4.25, f
except ImportError:
    pass
try:
    ng.query("refused", epsilon="1")
except noisegate.Refused as refused:
    assert refused.code == "sql/syntax" and refused.status == 422 and "suggestion: SELECT 1" in str(refused), refused
`)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(keys) != 4 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] || keys[3] == keys[2] {
		t.Errorf("the keys of the requests are %q", keys)
	}
	if !strings.Contains(string(out), "5 [4, 6]") {
		t.Errorf("it prints\n%s", out)
	}
}
