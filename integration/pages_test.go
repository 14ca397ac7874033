package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"noisegate/api"
	"noisegate/internal/pgtest"
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
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended by then
	if err := json.NewDecoder(out).Decode(d); err != nil {
		t.Fatalf("the demo prints no line: %v\n%s", err, &errs)
	}
	d.shell(t, "steward", "noisegate budget set census analyst:ana --form approx --epsilon 10 --delta 1e-6 --new")
	return d
}

// shell runs commands as somebody who has a token, in the demo's folder, and gives what they print.
func (d *demo) shell(t *testing.T, who, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-e", "-c", commands)
	cmd.Dir = d.dir
	cmd.Env = []string{"PATH=" + d.dir + ":/usr/bin:/bin", "NOISEGATE_URL=" + d.URL, "NOISEGATE_TOKEN=" + d.Tokens[who]}
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

// TestPagesOfTheDemo runs the commands of the pages that people read with a demo beside them, as they stand there, and wants the notes,
// hints and suggestions that the pages show, and what their sentences promise.
func TestPagesOfTheDemo(t *testing.T) {
	pgtest.Need(t, "sudo apt-get install -y curl", "curl")
	d := newDemo(t)
	said := regexp.MustCompile(`(?m)^ +(note|hint|suggestion): .*$`)
	for _, p := range []struct {
		name, who string
		says      []string
	}{
		{"first-hour", "analyst", []string{
			"more counts at epsilon 0.1", "nothing spent", "public: 16 values", " Lakes ", ">= ", " 449\n", " 150\n", " visitors "}},
		{"reading-answers", "analyst", []string{"nothing spent", " everybody ", "more_men", "2025-01-05"}},
		{"choosing", "analyst", []string{"600", " 449\n", "discrete_gaussian", "policy: max_rows: "}},
		{"faq", "analyst", []string{"nothing spent", "free: no private row was read"}},
		{"http-api", "analyst", []string{"sex,n,n_low,n_high", `"replayed":true`, `"plan_id":`, `"release_id":`}},
		{"privacy-officer", "analyst", []string{"analyst:ana"}},
		{"changing-data", "steward", []string{"renewed: every answer", "version 2 applied", "analyst:ana"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			page := read(t, "../docs/"+p.name+".md")
			var printed strings.Builder
			for _, block := range blocksOf(page, "sh") {
				printed.WriteString(d.shell(t, p.who, block))
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

// notebook runs the Python of docs/notebooks.md: data frames where pandas is installed, the plot where Matplotlib is too.
func (d *demo) notebook(t *testing.T) {
	t.Helper()
	python := ""
	for _, program := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(program, "-c", "import pandas, requests").Run() == nil {
			python = program
			break
		}
	}
	if python == "" {
		pgtest.Missing(t, "sudo apt-get install -y python3-pandas python3-requests python3-matplotlib", "Python with pandas and requests")
		return
	}
	blocks := blocksOf(read(t, "../docs/notebooks.md"), "python")
	script := blocks[0] + blocks[1]
	if exec.Command(python, "-c", "import matplotlib").Run() == nil {
		script = "import matplotlib; matplotlib.use('Agg')\n" + script + blocks[2] + "print('plotted', os.path.getsize('visits.png') > 1000)\n"
	} else {
		t.Log("Matplotlib is not installed: the plot was not made")
		script += "print('plotted True')\n"
	}
	script += "assert list(d.columns) == ['region', 'n', 'n_low', 'n_high'] and (d.n_low < d.n).all() and float(d.attrs['spent']) >= 0, d\n" + `
try:
    ask("SELECT * FROM people")
except RuntimeError as refused:
    print(refused)
`
	file := filepath.Join(d.dir, "notebook.py")
	write(t, file, script)
	printed := d.shell(t, "analyst", python+" "+file)
	for _, want := range []string{"Lakes", "too low if these bounds leave anything out", "plotted True", "policy/not-aggregate",
		"SELECT count(*) FROM people"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the notebook does not print %q:\n%s", want, printed)
		}
	}
}

// TestCookbook asks every query of docs/cookbook.md, of people in its first part and of rentals in its second, and each is answered.
func TestCookbook(t *testing.T) {
	needShared(t)
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
