package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/pgtest"
)

// demo is a running "noisegate demo", and a folder in which "noisegate" is the binary under test.
type demo struct {
	URL    string            `json:"http"`
	Tokens map[string]string `json:"tokens"`
	dir    string
}

// newDemo starts a demo with all its people, in which ana has the budget for all pages.
func newDemo(t *testing.T) *demo {
	t.Helper()
	d := &demo{dir: t.TempDir()}
	if err := os.Symlink(binary, filepath.Join(d.dir, "noisegate")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "demo", "--json", "--http=127.0.0.1:0", "--pg=127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has already ended
	if err := json.NewDecoder(out).Decode(d); err != nil {
		t.Fatalf("the demo prints no line: %v\n%s", err, &errs)
	}
	d.shell(t, "steward", "noisegate budget set census analyst:ana --form approx --epsilon 10 --delta 1e-6 --new")
	return d
}

// shell runs commands as somebody who has a token ("": as somebody who says which), in the demo's folder, and gives what they print.
func (d *demo) shell(t *testing.T, who, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-e", "-c", commands)
	cmd.Dir = d.dir
	cmd.Env = []string{"PATH=" + d.dir + ":/usr/bin:/bin"}
	if who != "" {
		cmd.Env = append(cmd.Env, "NOISEGATE_URL="+d.URL, "NOISEGATE_TOKEN="+d.Tokens[who])
	}
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, printed)
	}
	return string(printed)
}

func blocksOf(page, language string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// TestPagesOfTheDemo runs the commands of the pages that people read while they try a demo, as they stand there, and wants the notes, hints
// and suggestions that the pages show, and what their sentences promise.
func TestPagesOfTheDemo(t *testing.T) {
	t.Parallel()
	pgtest.Need(t, "sudo apt-get install -y curl", "curl")
	d := newDemo(t)
	exports := regexp.MustCompile(`(?m)^export .*$`)
	percent := regexp.MustCompile(`(?m)^ Widowed +\| +\d\.\d \| \d\.\d to \d\.\d$`)
	said := regexp.MustCompile(`(?m)^ +(note|hint|suggestion): .*$`)
	for _, p := range []struct {
		name, who string
		says      []string
	}{
		{"first-hour", "", []string{
			"more counts at epsilon 0.1", "nothing spent", "public: 16 values", " Lakes ", ">= ", " 240\n", " 150\n", " visitors "}},
		{"reading-answers", "analyst", []string{"nothing spent", " everybody ", "more_men", "2025-01-05", "of 16 groups noise alone reaches"}},
		{"choosing", "analyst", []string{"600", " 449\n", "discrete_gaussian", "policy: max_rows: "}},
		{"faq", "analyst", []string{"nothing spent", "free: no private row was read"}},
		{"prepared", "steward,analyst", []string{`"state":"done"`, `"version":2`, "in a prepared table", " 96 |", " 180 |"}},
		{"http-api", "analyst", []string{"sex,n,n_low,n_high", `"replayed":true`, `"plan_id":`, `"release_id":`}},
		{"privacy-officer", "analyst", []string{"analyst:ana"}},
		{"changing-data", "steward", []string{"renewed: every answer", "version 2 applied", "analyst:ana"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			page := read(t, "../docs/"+p.name+".md")
			var printed strings.Builder
			set := "" // by the page, for all its commands
			if p.who == "" {
				set = strings.Replace(exports.FindString(page), "http://127.0.0.1:8080", d.URL, 1) + "\n"
				write(t, filepath.Join(d.dir, "ana.token"), d.Tokens["analyst"])
			}
			who := strings.Split(p.who, ",") // of each block; the last one of all others
			for i, block := range blocksOf(page, "sh") {
				printed.WriteString(d.shell(t, who[min(i, len(who)-1)], set+exports.ReplaceAllString(block, "")))
			}
			if p.who == "" && !percent.MatchString(printed.String()) {
				t.Errorf("no percentage is rounded as the question asks:\n%s", &printed)
			}
			for _, sum := range regexp.MustCompile(`hour costs an ε of 0\.([0-9])`).FindAllStringSubmatch(page, -1) {
				paid := regexp.MustCompile(`(?m)^ spent epsilon 0\.1[ ,]`).FindAllString(printed.String(), -1)
				if strconv.Itoa(len(paid)) != sum[1] {
					t.Errorf("the page says that it costs 0.%s, and %d times 0.1 was spent", sum[1], len(paid))
				}
			}
			for _, want := range append(p.says, said.FindAllString(strings.Join(blocksOf(page, "text"), ""), -1)...) {
				if !strings.Contains(printed.String(), want) {
					t.Errorf("the commands do not print %q:\n%s", want, &printed)
				}
			}
		})
	}
	t.Run("notebooks", func(t *testing.T) { d.notebook(t) })
}

// notebook runs the Python of docs/notebooks.md: data frames where pandas is installed, the plot where Matplotlib is too, cells where
// IPython is.
func (d *demo) notebook(t *testing.T) {
	t.Helper()
	python := pythonWith("pandas", "requests")
	if python == "" {
		pgtest.Missing(t, "sudo apt-get install -y python3-pandas python3-requests python3-matplotlib python3-ipython",
			"Python with pandas and requests")
		return
	}
	page := read(t, "../docs/notebooks.md")
	d.shell(t, "analyst", strings.Join(blocksOf(page, "sh"), ""))
	blocks := blocksOf(page, "python")
	script := blocks[0] + blocks[1] + `
assert list(d.columns) == ['region', 'n', 'n_low', 'n_high'] and (d.n_low < d.n).all() and str(d.n.dtype) == 'Int64', d
assert ng.query("SELECT region, count(*) AS n FROM visits GROUP BY 1", epsilon=0.1).replayed
assert ng.query("SELECT region, count(*) AS n FROM visits GROUP BY 1", epsilon=0.1, wait=0).replayed
assert len(list(ng.releases())) >= 1 and ng.budget()[0]["dataset"] == "census" and len(visits) == len(list(visits))
try:
    ng.query("SELECT * FROM people")
except noisegate.Refused as refused:
    print(refused)
capped = "SELECT sex, avg(age) AS age FROM people GROUP BY 1"
left = ng.budget()[0]["remaining"]
try:
    ng.query(capped, epsilon=0.1, at_most={"epsilon": 0.09})
    assert False, "it was paid"
except noisegate.Refused as refused:
    assert refused.code == "budget/over-at-most" and ng.budget()[0]["remaining"] == left, refused
assert ng.query(capped, epsilon=0.1, at_most={"epsilon": 0.1}).spent["epsilon"] == noisegate.decimal.Decimal("0.1")
assert ng.query(capped, epsilon=0.1, at_most={"epsilon": 0}).replayed
`
	if pythonWith("matplotlib") == "" {
		t.Log("Matplotlib is not installed: the plots were not made")
		script += "print('plotted True')\n"
	} else {
		script = "import matplotlib; matplotlib.use('Agg')\n" + script + blocks[2] + `
import os
bars = [c for c in ax.containers if hasattr(c, "errorbar") and c.errorbar is not None]
assert len(bars) == 1 and len(bars[0]) == len(d) and ax.get_ylabel().startswith("n"), bars
days = ng.query("SELECT date_trunc('month', day) AS month, count(*) AS n, sum(amount) AS paid FROM visits GROUP BY 1", epsilon="0.1")
both = days.plot(y=["n", "paid"])
assert len(both.lines) >= 2 and both.get_legend() is not None
both.figure.savefig("months.png", bbox_inches="tight")
print('plotted', os.path.getsize("visits.png") > 1000 and os.path.getsize("months.png") > 1000)
`
	}
	if pythonWith("IPython") == "" {
		t.Log("IPython is not installed: no cell was run")
	} else {
		cell := strings.SplitN(strings.TrimSpace(blocksOf(page, "text")[0]), "\n", 2)
		script += "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n" +
			"shell.run_line_magic('load_ext', 'noisegate')\n" +
			"answer = shell.run_cell_magic('noisegate', " + strconv.Quote(strings.TrimPrefix(cell[0], "%%noisegate ")) + ", " +
			strconv.Quote(cell[1]) + ")\n" +
			"assert shell.user_ns['visits'] is answer and answer.replayed and '<table>' in answer._repr_html_()\n"
	}
	file := filepath.Join(d.dir, "notebook.py")
	write(t, file, script)
	printed := d.shell(t, "analyst", python+" -W error "+file)
	for _, want := range []string{"Lakes", "too low if these bounds leave anything out", "plotted True", "policy/not-aggregate",
		"SELECT count(*) FROM people", "spent epsilon 0.1"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the notebook does not print %q:\n%s", want, printed)
		}
	}
	if keep := os.Getenv("NOISEGATE_PLOTS"); keep != "" { // to look at them
		d.shell(t, "analyst", "cp *.png "+keep)
	}
}

// pythonWith is a Python that has these modules; "" where none has.
func pythonWith(modules ...string) string {
	for _, program := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(program, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return program
		}
	}
	return ""
}

// TestCookbook asks every query of docs/cookbook.md, of people in its first part and of rentals in its second, and each is answered.
func TestCookbook(t *testing.T) {
	t.Parallel()
	s := newStack(t, census(t), pagila(t))
	people, rentals, _ := strings.Cut(read(t, "../docs/cookbook.md"), "\n## Many rows a person\n")
	rentals, others, found := strings.Cut(rentals, "\n## Forms of other systems\n")
	if !found {
		t.Fatal("the page has other parts")
	}
	asked := 0
	for _, part := range []struct{ dataset, text string }{{"census", people}, {"pagila", rentals}, {"census", others}} {
		client := s.analyst(t, "cook-"+part.dataset)
		for _, block := range blocksOf(part.text, "sql") {
			for sql := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(block), ";"), ";\n") {
				asked++
				answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: part.dataset, SQL: sql, Epsilon: "0.5", Delta: "1e-9"}, "")
				if err != nil || len(answer.Rows) == 0 {
					t.Errorf("%s\n%v", sql, err)
				}
			}
		}
	}
	if asked < 37 {
		t.Errorf("only %d queries", asked)
	}
}
