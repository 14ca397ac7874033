package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/demodata"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// TestMain puts the demos' servers into memory, where that has room.
func TestMain(m *testing.M) {
	if dir := pgserver.MemoryDir(); dir != "" {
		if err := os.Setenv("TMPDIR", dir); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(m.Run())
}

// surroundings are what of this process's environment says which PostgreSQL to use.
func surroundings() config.Environment {
	env := config.Environment{}
	for _, variable := range []string{pgserver.VersionVariable, pgserver.RepositoryVariable} {
		env[variable] = os.Getenv(variable)
	}
	return env
}

func askedServer(t *testing.T) pgserver.Wanted {
	t.Helper()
	pgtest.NeedServer(t)
	wanted, err := pgserver.WantedIn(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return wanted
}

// runDemo runs a small demo to its end and gives exit code, standard output and standard error.
func runDemo(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	pgtest.NeedServer(t)
	var out, errs bytes.Buffer
	code := Run(t.Context(), append([]string{"demo", "--rows=2000"}, args...), Streams{strings.NewReader(""), &out, &errs},
		surroundings())
	return code, out.String(), errs.String()
}

func TestDemoOnce(t *testing.T) {
	code, out, errs := runDemo(t, "--once", "SELECT sex, count(*) FROM people GROUP BY 1", "--json")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var answer api.QueryResponse
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	if len(answer.Rows) != 2 || answer.Spent.Epsilon != "0.5" {
		t.Errorf("got %s", out)
	}
}

func TestDemoOnceRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"sql", []string{"--once", "SELECT age FROM people"}, exitRefused, "policy/not-aggregate"},
		{"usage", []string{"--once", "SELECT 1", "--rows=1"}, exitUsage, "--rows"},
		{"address", []string{"--once", "SELECT 1", "--http=256.0.0.1:1"}, exitUsage, "--http"},
		{"keep with dsn", []string{"--keep=/tmp/x", "--dsn=postgres://localhost/x"}, exitUsage, "--keep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := runDemo(t, c.args...)
			if code != c.code || !strings.Contains(errs, c.says) || out != "" {
				t.Errorf("exit code %d, want %d; printed %q, %s", code, c.code, out, errs)
			}
		})
	}
}

// startDemo runs a demo in the background. The writer's first line, or all of it, can be read from the reader.
func startDemo(t *testing.T, args ...string) (out io.Reader, stop func() (code int, errs string)) {
	t.Helper()
	pgtest.NeedServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	reader, writer := io.Pipe()
	var errs bytes.Buffer
	exited := make(chan int, 1)
	go func() {
		code := Run(ctx, append([]string{"demo", "--rows=2000", "--http=127.0.0.1:0"}, args...),
			Streams{strings.NewReader(""), writer, &errs}, surroundings())
		writer.Close()
		exited <- code
	}()
	return reader, func() (int, string) {
		cancel()
		_, _ = io.Copy(io.Discard, reader)
		return <-exited, errs.String()
	}
}

// Scripts get one line when the demo is ready, and everything in it works. The key is in no file any more.
func TestDemoJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	temporary := filepath.Dir(keptDir(t))
	t.Setenv("TMPDIR", temporary)
	out, stop := startDemo(t, "--json")
	var line struct {
		HTTP     string            `json:"http"`
		Console  string            `json:"console"`
		Tokens   map[string]string `json:"tokens"`
		Datasets []string          `json:"datasets"`
	}
	if err := json.NewDecoder(out).Decode(&line); err != nil {
		_, errs := stop()
		t.Fatalf("%v: %s", err, errs)
	}
	if entries, err := os.ReadDir(temporary); err != nil || len(entries) > 1 {
		t.Errorf("beside the server's directory there is something left: %v, %v", entries, err)
	}
	if len(line.Tokens) != 3 || len(line.Datasets) != 1 || line.Datasets[0] != demoDataset {
		t.Errorf("got %+v", line)
	}
	ctx := t.Context()
	consoleLogsIn(t, line.Console, line.Tokens["analyst"])
	budget, err := api.NewClient(line.HTTP, line.Tokens["analyst"]).Budget(ctx, demoDataset)
	if err != nil || len(budget.Budgets) != 1 || budget.Budgets[0].Remaining.Epsilon != "3" {
		t.Errorf("the whole budget must be left: %+v, %v", budget, err)
	}
	answer, err := api.NewClient(line.HTTP, line.Tokens["analyst"]).Query(ctx, api.QueryRequest{Dataset: demoDataset, Epsilon: "1",
		SQL: "SELECT region, count(*), sum(amount) FROM visits GROUP BY 1"}, "")
	if err != nil || len(answer.Rows) != len(demodata.Regions()) {
		t.Errorf("visits by region: %+v, %v", answer, err)
	}
	var refusal *api.Problem
	if _, err = api.NewClient(line.HTTP, line.Tokens["analyst"]).Query(ctx, api.QueryRequest{Dataset: demoDataset, Epsilon: "2",
		SQL: "SELECT count(*) FROM people"}, ""); !errors.As(err, &refusal) || refusal.Code != "budget/over-query-cap" {
		t.Errorf("more than a question may cost: %v", err)
	}
	if _, _, err := api.NewClient(line.HTTP, line.Tokens["steward"]).Policy(ctx, demoDataset); err != nil {
		t.Errorf("the steward cannot read the policy: %v", err)
	}
	if _, err := api.NewClient(line.HTTP, line.Tokens["ml"]).Budget(ctx, demoDataset); err != nil {
		t.Errorf("the ML engineer cannot see the budget: %v", err)
	}
	labels, err := api.NewClient(line.HTTP, line.Tokens["ml"]).Labels(ctx, demoEnsemble, api.LabelRequest{Queries: []string{"0", "399"},
		Mechanism: "gnmax", Sigma: "40"}, "")
	if err != nil || len(labels.Labels) != 2 || labels.Spent.Rho != "0.00125" {
		t.Errorf("the ML engineer cannot buy labels: %+v, %v", labels, err)
	}
	clientCommands(t, line.HTTP, line.Tokens)
	if code, errs := stop(); code != exitOK || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// consoleLogsIn does what the console does with its address: the code in the fragment is exchanged for a token, once.
func consoleLogsIn(t *testing.T, address, token string) {
	t.Helper()
	page, code, ok := strings.Cut(address, "/#code=")
	for i, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page+"/v1/login", strings.NewReader(`{"code": "`+code+`"}`))
		if err != nil || !ok {
			t.Fatal(address, err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want || (want == http.StatusOK) != strings.Contains(string(body), token) {
			t.Errorf("login %d: %d %s, %v", i+1, response.StatusCode, body, err)
		}
	}
}

// TestPsqlPage does what docs/psql.md and README.md tell those who have psql, word for word, against the demo.
func TestPsqlPage(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	pgtest.Need(t, "sudo apt-get install -y postgresql-client", "psql")
	page, err := os.ReadFile("../../docs/psql.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	transcript := readmeBlock(t, `$ psql "$URL"`)
	for _, m := range regexp.MustCompile(`(?m)^census=> (.*)$`).FindAllStringSubmatch(transcript, -1) {
		script.WriteString(`psql "$URL" -c "` + m[1] + "\" || true\n")
	}
	commands := regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(string(page), -1)
	for _, m := range commands {
		script.WriteString(m[1] + "\n")
	}
	if len(commands) < 8 {
		t.Fatalf("only %d commands were found in the page", len(commands))
	}
	out, stop := startDemo(t, "--json", "--pg=127.0.0.1:0")
	var line struct{ Postgres string }
	err = json.NewDecoder(out).Decode(&line)
	var printed []byte
	if err == nil {
		shell := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+script.String())
		shell.Env = []string{"PATH=" + os.Getenv("PATH"), "URL=" + line.Postgres, "PGCONNECT_TIMEOUT=20"}
		printed, err = shell.CombinedOutput()
	}
	if code, errs := stop(); err != nil || code != exitOK {
		t.Fatalf("%v, exit code %d: %s\n%s", err, code, errs, printed)
	}
	// The demo is smaller here than what the pages show: some of its answers are of little use.
	printed = regexp.MustCompile(`\d of \d rows are useful; the rest is mostly noise; `).ReplaceAll(printed, nil)
	narrow := func(text string) string { return strings.Join(strings.Fields(text), " ") } // columns are as wide as their values
	for line := range strings.Lines(transcript) {
		typed := strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "census=> ")
		if noisy := strings.Contains(line, " | 1") || strings.HasPrefix(line, "---"); !typed && !noisy &&
			!strings.Contains(narrow(string(printed)), narrow(line)) {
			t.Errorf("the README's commands do not print %q:\n%s", line, printed)
		}
	}
	for _, want := range []string{"NOTICE:  n ± ", "spent ε 0.1; ε 2.9 left", "spent ε 0.05", "Release  (cost=0.00..0.1 ",
		" n_low ", "region,n\n", " public | visits  | table | ana", "Bounds 2025-01-01 to 2025-12-31.", " census | ana "} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("the page's commands do not print %q:\n%s", want, printed)
		}
	}
}

// readmeBlock is the block of README.md that has some text.
func readmeBlock(t *testing.T, holds string) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(readme), "```") {
		if _, text, ok := strings.Cut(block, "\n"); ok && strings.Contains(text, holds) {
			return text
		}
	}
	t.Fatalf("README.md has no block with %q", holds)
	return ""
}

// clientCommands are the commands of an analyst before and around the first question that costs something.
func clientCommands(t *testing.T, url string, tokens map[string]string) {
	t.Helper()
	for _, c := range []struct {
		who  string
		args []string
		code int
		says string
	}{
		{"analyst", []string{"datasets"}, exitOK, "census, people: a row is one person_id\n"},
		{"analyst", []string{"datasets", "census"}, exitOK, " amount | numeric | 0 to 500 by 0.01         |"},
		{"analyst", []string{"datasets", "census"}, exitOK,
			"census, visits: at most 5 rows of one person_id in a group, in at most 3 groups\n"},
		{"analyst", []string{"datasets", "census"}, exitOK, "| public: 16 values\n"},
		{"analyst", []string{"datasets", "nothing"}, exitRefused, "policy/unknown-dataset"},
		{"analyst", []string{"query", "SELECT * FROM regions"}, exitOK, "\n free: no private row was read (epsilon 2"},
		{"analyst", []string{"query", "SELECT * FROM people LIMIT 0"}, exitOK, "\n free: no private row was read ("},
		{"analyst", []string{"estimate", "--dialect=mysql", "SELECT `sex`, COUNT(*) FROM `people` GROUP BY 1 LIMIT 0, 5"}, exitOK,
			"affordable"},
		{"analyst", []string{"estimate", "SELECT `sex` FROM people"}, exitRefused, "sql/syntax"},
		{"steward", []string{"audit", "refusals", "census"}, exitOK, " ana     | sql/syntax"},
		{"steward", []string{"budget", "show"}, exitUsage, "budget show DATASET --accounts"},
		{"steward", []string{"pate", "odometer", demoEnsemble, "--sigma=40"}, exitOK, "2 queries, 2 answered"},
		{"steward", []string{"pate", "epsilon", demoEnsemble, "--sigma=40"}, exitOK, "may be published"},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), c.args, Streams{strings.NewReader(""), &out, &errs},
			config.Environment{"NOISEGATE_URL": url, "NOISEGATE_TOKEN": tokens[c.who]})
		if printed := out.String() + errs.String(); code != c.code || !strings.Contains(printed, c.says) {
			t.Errorf("%s: %v: exit code %d\n%s\nwant %q", c.who, c.args, code, printed, c.says)
		}
	}
}

// The tour shows what it promises: exact raw values next to noisy ones, and the one person only on the raw side.
func TestDemoTour(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	reader, stop := startDemo(t)
	var text strings.Builder
	chunk := make([]byte, 4096)
	for !strings.Contains(text.String(), "Ctrl-C ends the demo.") {
		n, err := reader.Read(chunk)
		text.Write(chunk[:n])
		if err != nil {
			break
		}
	}
	files := tokensWork(t, text.String())
	code, errs := stop()
	if code != exitOK {
		t.Fatalf("exit code %d: %s\n%s", code, errs, text.String())
	}
	for _, file := range files {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a token is left: %v", err)
		}
	}
	for _, want := range []string{
		"ready after", "/docs\n", "raw n", "Married-AF-spouse",
		"raw SQL also lists Holand-Netherlands, with exactly 1 person; the gateway leaves it out",
		"votes of 250 teachers on 400 pictures loaded and sealed", "pate label digits 0 1 2 3 --sigma 40", "/#code=",
		"spent epsilon 0.5 (1.5 left)", "spent epsilon 0.25 (1.25 left)",
		"visits prepared: a copy with few rows of each person", " answered from visits prepared 1 as of ",
		"raw SQL, by subtraction: the one person from Holand-Netherlands works",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the tour does not say %q:\n%s", want, text.String())
		}
	}
	notes := regexp.MustCompile(`(?m)^ note: .*$`)
	said, shown := notes.FindAllString(text.String(), -1), notes.FindAllString(readmeBlock(t, "ready after"), -1)
	if !slices.Equal(said, shown) {
		t.Errorf("the tour's notes are\n%s\nthe README's are\n%s", strings.Join(said, "\n"), strings.Join(shown, "\n"))
	}
	advice := regexp.MustCompile(`(?m)^  (\S+) budget show$`).FindStringSubmatch(text.String())
	if advice == nil {
		t.Fatalf("the tour does not say how to go on:\n%s", text.String())
	}
	if _, err := exec.LookPath(advice[1]); err != nil {
		t.Errorf("what the tour advises to type cannot be started: %v", err)
	}
}

// tokensWork asks as the tour advises, with the files of tokens that it prints, and gives these. One is open to nobody else, and a prompt
// is started with one.
func tokensWork(t *testing.T, tour string) (files []string) {
	t.Helper()
	gateway := regexp.MustCompile(`NOISEGATE_URL=(\S+)`).FindStringSubmatch(tour)
	for _, m := range regexp.MustCompile(`NOISEGATE_TOKEN_FILE=(\S+)`).FindAllStringSubmatch(tour, -1) {
		files = append(files, m[1])
	}
	if gateway == nil || len(files) != 2 || !strings.Contains(tour, "PGPASSWORD=$(cat "+files[0]+") psql 'postgres://ana@127.0.0.1:") {
		t.Errorf("the tour does not say how to ask:\n%s", tour)
		return nil
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("a token's file: %v %v", info, err)
		}
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"budget", "show"}, Streams{strings.NewReader(""), &out, &errs},
			config.Environment{"NOISEGATE_URL": gateway[1], "NOISEGATE_TOKEN_FILE": file}); code != exitOK {
			t.Errorf("%s: exit code %d: %s%s", file, code, out.String(), errs.String())
		}
	}
	return files
}

// What is kept is found again: data, ledger and key.
func TestDemoKeep(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	dir := keptDir(t)
	code, out, errs := runDemo(t, "--keep="+dir, "--once", "SELECT count(*) FROM people")
	if code != exitOK || !strings.Contains(out, "± 95 %") || !strings.Contains(out, "spent epsilon 0.5 (2.5 left)") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if strings.Contains(out, "PostgreSQL") || !strings.Contains(errs, "PostgreSQL") {
		t.Errorf("progress belongs on standard error, so that the answer can be piped: %q", out)
	}
	olderDemo(t, dir)
	code, out, errs = runDemo(t, "--keep="+dir, "--once", "SELECT count(*) FROM people")
	if code != exitOK || !strings.Contains(out, "nothing spent") {
		t.Errorf("exit code %d: the same question must be a replay: %s%s", code, out, errs)
	}
	if !strings.Contains(errs, "invented people of last time") {
		t.Errorf("the data was made again: %s", errs)
	}
}

// olderDemo makes what is kept like that of a demo that prepared nothing.
func olderDemo(t *testing.T, dir string) {
	t.Helper()
	d, _, err := startDemoDatabase(t.Context(), askedServer(t), dir)
	if err == nil {
		err = d.as(t.Context(), d.super, demoProtected, func(conn *pgx.Conn) error {
			_, err := conn.Exec(t.Context(), "DROP SCHEMA noisegate_prepared CASCADE; ALTER TABLE public.visits DROP CONSTRAINT visits_pkey; "+
				"REVOKE ALL ON public.visits FROM noisegate_prepare")
			return err
		})
		err = errors.Join(err, d.close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keptDir is a directory that the server's user can reach, which a test's own is not when root runs it.
func keptDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "noisegate-keep-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "demo")
}
