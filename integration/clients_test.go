//go:build clients

// These tests need a dozen programs that nothing else does, so they are no part of the others: make clients runs them.

package integration

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/internal/pgtest"
)

// clientsPeople is how many people there are, and visits. Scripts check counts of visits to within 4,000, and those next to a mean to
// within 9,900: noise of scale 150 and 450 is beyond once in 10^9, and of scale 10, which counts of people have, never.
const clientsPeople = 40_000

// environment is what a client of libpq reads, for a new analyst: nothing was asked before, and the budget is whole.
func (s *wireStack) environment(t *testing.T, subject, mode string) []string {
	t.Helper()
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C.UTF-8", "TZ=UTC", "PYTHONDONTWRITEBYTECODE=1",
		"PGHOST=" + s.host, "PGPORT=" + s.port,
		"PGDATABASE=census", "PGUSER=" + subject, "PGPASSWORD=" + s.token(t, subject, "analyst"), "PGCONNECT_TIMEOUT=20", "PGSSLMODE=" + mode,
		"PGSSLROOTCERT=" + s.root, "PGOPTIONS=-c noisegate.epsilon=0.1", nodePath(t)}
}

// client is a program and its script.
type client struct {
	name    string
	install string   // the line that installs it
	probe   []string // prints its version, and fails where it is not installed
	script  []string // nil: psql, whose script is made of blocks
	row     string   // how its row of the page begins, where that is not with its name
}

const pythonOfDebian = "/usr/bin/python3" // whose modules are packages

// pinnedHere installs versions that are no packages.
const pinnedHere = "integration/testdata/clients/install.sh "

func clients(t *testing.T) []client {
	t.Helper()
	python := func(name, packages, version string) client {
		return client{name, "apt-get install -y " + packages, []string{pythonOfDebian, "-c", version},
			[]string{pythonOfDebian, "-u", "testdata/clients/with_" + strings.ToLower(name) + ".py"}, ""}
	}
	pinned := func(name, row, script, version string) client {
		venv := "python"
		if name == "dbt" || name == "Superset" {
			venv = strings.ToLower(name)
		}
		in := cached(t, venv+"/bin/python")
		return client{name, pinnedHere + venv, []string{in, "-c", version}, []string{in, "-u", "testdata/clients/" + script}, row}
	}
	rust := cached(t, "rust/release/tokio-postgres-script")
	java := func(jar string) []string {
		return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", jar, "testdata/clients/Pgjdbc.java"}
	}
	debian, newest := java("/usr/share/java/postgresql.jar"), java(cached(t, "java/postgresql.jar"))
	return []client{
		{name: "psql", install: "apt-get install -y postgresql-client", probe: []string{"psql", "--version"}},
		{"psql-tab", "apt-get install -y postgresql-client python3", []string{"psql", "--version"},
			[]string{pythonOfDebian, "-u", "testdata/clients/with_psql_tab.py"}, `psql [0-9.]+, Tab`},
		python("psycopg2", "python3-psycopg2", "import psycopg2; print(psycopg2.__version__.split()[0])"),
		python("psycopg3", "python3-psycopg", "import psycopg; print(psycopg.__version__)"),
		python("asyncpg", "python3-asyncpg", "import asyncpg; print(asyncpg.__version__)"),
		python("SQLAlchemy", "python3-sqlalchemy python3-psycopg2", "import sqlalchemy, psycopg2; print(sqlalchemy.__version__)"),
		python("pandas", "python3-pandas python3-sqlalchemy python3-psycopg2", "import pandas, sqlalchemy, psycopg2; print(pandas.__version__)"),
		{"pgjdbc", "apt-get install -y libpostgresql-jdbc-java default-jdk-headless",
			append(slices.Clip(debian), "--version"), debian, ""},
		{"pgjdbc-newest", pinnedHere + "java",
			append(slices.Clip(newest), "--version"), newest, `pgjdbc 42\.7\.`},
		{"node-postgres", "apt-get install -y nodejs node-pg", []string{"node", "-e", "console.log(require('pg/package.json').version)"},
			[]string{"node", "testdata/clients/node_postgres.js"}, ""},
		python("psqlodbc", "odbc-postgresql python3-pyodbc",
			"import pyodbc; assert 'PostgreSQL Unicode' in pyodbc.drivers(); print('with pyodbc', pyodbc.version)"),
		pinned("SQLAlchemy2", `SQLAlchemy 2\.`, "with_sqlalchemy.py", "import sqlalchemy, psycopg2; print(sqlalchemy.__version__)"),
		pinned("pandas3", `pandas 3\.`, "with_pandas.py", "import pandas, sqlalchemy, psycopg2; print(pandas.__version__)"),
		pinned("ADBC", "", "with_adbc.py", "import adbc_driver_postgresql, pyarrow; print(adbc_driver_postgresql.__version__)"),
		pinned("dbt", "", "with_dbt.py", "from importlib.metadata import version; print(version('dbt-core'), version('dbt-postgres'))"),
		pinned("Superset", "", "with_superset.py", "from importlib.metadata import version; print(version('apache-superset'))"),
		{"tokio-postgres", pinnedHere + "rust",
			[]string{rust, "--version"}, []string{rust}, ""},
	}
}

// TestClients runs the script of each client against the real binary, in clear and over TLS. A script prints a line "ok ..." for each
// thing that it found as it should be, "FAIL ..." for the others. The page says how many there are.
func TestClients(t *testing.T) {
	s := newWireStack(t, clientsPeople)
	page := read(t, "../docs/psql-clients.md")
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			probe := exec.CommandContext(t.Context(), c.probe[0], c.probe[1:]...)
			probe.Env = []string{"PATH=" + os.Getenv("PATH"), nodePath(t)}
			version, err := probe.CombinedOutput()
			if err != nil {
				pgtest.Without(t, c.install, c.name)
			}
			for _, mode := range []string{"disable", "verify-full"} {
				env := s.environment(t, strings.ToLower(c.name)+"-"+mode, mode)
				began := time.Now()
				found := runClient(t, c, env)
				passed := 0
				for _, line := range found {
					switch {
					case strings.HasPrefix(line, "ok "):
						passed++
					case strings.HasPrefix(line, "FAIL "):
						t.Errorf("sslmode=%s: %s", mode, line)
					}
				}
				t.Logf("%s, sslmode=%s: %d passed in %.1f s", versionIn(string(version)), mode, passed, time.Since(began).Seconds())
				row := cmp.Or(c.row, c.name+" ")
				if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s[^|]*\|.*\| %d \|$`, row, passed)).MatchString(page) {
					t.Errorf("docs/psql-clients.md has no row of %s that ends with %d", c.name, passed)
				}
			}
		})
	}
}

// cached is a file that make clients needs and no package brings: .ci/run installs it.
func cached(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs("../.cache/clients/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// nodePath is where packages of Debian and those of make clients are.
func nodePath(t *testing.T) string {
	t.Helper()
	return "NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs:" + cached(t, "node_modules")
}

// versionIn is the first number with a dot in what a program prints.
func versionIn(text string) string {
	return cmp.Or(regexp.MustCompile(`\d+(\.\d+)+`).FindString(text), "unknown version")
}

// scriptTime is what a script may take; the slowest, Superset, takes 6 s of a processor's time.
const scriptTime = 3 * time.Minute

// runClient gives the lines of a script.
func runClient(t *testing.T, c client, env []string) []string {
	t.Helper()
	if c.script == nil {
		return runPsql(t, env)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.script[0], c.script[1:]...)
	cmd.Env = env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s\n%s", err, &out, &errs)
	}
	return strings.Split(out.String(), "\n")
}

// runPsql types each block of the script into a new psql, and looks for what it should print: a pattern in each line that follows "---
// prints", none of those after "--- never".
func runPsql(t *testing.T, env []string) (found []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	for block := range strings.SplitSeq(read(t, "testdata/clients/psql.txt"), "\n\n") {
		typed, wanted, ok := strings.Cut(block, "\n--- prints\n")
		if !ok {
			t.Fatalf("a block says nothing of what it prints:\n%s", block)
		}
		wanted, unwanted, _ := strings.Cut(wanted, "\n--- never\n")
		cmd := exec.CommandContext(ctx, "psql", "--no-psqlrc", "--set=VERBOSITY=verbose", "--pset=pager=off")
		cmd.Env, cmd.Stdin = env, strings.NewReader(typed+"\n")
		printed, err := cmd.CombinedOutput()
		verdict := "ok"
		if err != nil {
			verdict = "FAIL " + err.Error()
		}
		for _, pattern := range strings.Split(strings.TrimSpace(wanted), "\n") {
			if !regexp.MustCompile("(?m)" + pattern).Match(printed) {
				verdict = "FAIL without " + pattern
			}
		}
		for _, pattern := range strings.Fields(unwanted) {
			if regexp.MustCompile("(?m)" + pattern).Match(printed) {
				verdict = "FAIL with " + pattern
			}
		}
		if verdict == "ok" {
			printed = nil
		}
		found = append(found, verdict+" "+strings.TrimSpace(typed+"\n"+string(printed)))
	}
	return found
}
