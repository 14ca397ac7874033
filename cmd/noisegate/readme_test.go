package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// TestReadme does what README.md asks its readers to do, word for word, in a new directory: files are written, and every line behind a $
// runs in one shell. Only the address and the socket's directory are put in, and sudo is left out: the server's files belong to the user
// who runs the test, or that user is root.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pgtest.Need(t, "sudo apt-get install -y postgresql-client curl", "psql", "createdb", "curl")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	server := ownersServer(ctx, t)
	dir := t.TempDir()
	bin := buildBinary(ctx, t, dir)
	sockets := socketDir(t, server)
	address := pgtest.FreeAddress(t)
	script := strings.NewReplacer("/run/postgresql", sockets, "127.0.0.1:8080", address, "sudo ", "").Replace(readmeScript(t, string(readme)))

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "deploy"), filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	programs, err := pgtest.Programs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\ntrap 'kill $(jobs -p) && wait' EXIT\n"+script)
	shell.Dir = dir
	shell.Env = []string{"PATH=" + bin + ":" + programs.Bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "NOISEGATE_URL=http://" + address,
		"PGHOST=" + sockets, "PGPORT=5432", "PGUSER=" + pgserver.Superuser}
	var out bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &out
	if err := shell.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	// 0.5 for the question of step 5 and 0.1 for curl's, of a budget of 3: 24 more at 0.1 are left.
	for _, want := range []string{"applied 001_catalog.sql", "census: version 1 applied", "Never-married", "spent epsilon 0.5 (2.5 left)",
		"about 24 more counts at epsilon 0.1", "| answered |", "spent rho 0.013889"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the README's commands do not print %q:\n%s", want, &out)
		}
	}
}

// The commands that the README's readers type first exist.
func TestReadmeMakeTargets(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile(`(?m)^\$ make (\w+)$`).FindAllStringSubmatch(string(readme), -1)
	if len(targets) != 2 {
		t.Fatalf("%d make commands, want demo and test", len(targets))
	}
	for _, target := range targets {
		cmd := exec.CommandContext(t.Context(), "make", "-n", target[1])
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("make %s: %v: %s", target[1], err, out)
		}
	}
}

// readmeScript turns the README's blocks into a shell script: yaml blocks with file=NAME become files, console blocks
// become commands. Blocks under "<!-- readme: make -->" are left to TestReadmeMakeTargets.
func readmeScript(t *testing.T, readme string) string {
	t.Helper()
	var script strings.Builder
	var inside, file string
	skipped, commands := false, 0
	continued := false
	for line := range strings.Lines(readme) {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && inside != "":
			if file != "" {
				script.WriteString("END_OF_FILE\n")
			}
			inside, file, skipped = "", "", false
		case isFence:
			inside = fence
			if name, ok := strings.CutPrefix(fence, "yaml file="); ok {
				file = name
				fmt.Fprintf(&script, "cat > %s <<'END_OF_FILE'\n", file)
			}
		case strings.TrimSpace(line) == "<!-- readme: make -->":
			skipped = true
		case file != "":
			script.WriteString(line)
		case inside == "console" && !skipped:
			command, isCommand := strings.CutPrefix(line, "$ ")
			if isCommand || continued {
				script.WriteString(command)
				continued = strings.HasSuffix(command, "\\\n")
				commands++
			}
		}
	}
	if commands < 10 {
		t.Fatalf("only %d commands were found in the README", commands)
	}
	return script.String()
}

// ownersServer is "your own database" of the README: a server as a package leaves it, with a database census and a few people
// in it.
func ownersServer(ctx context.Context, t *testing.T) *pgserver.Server {
	t.Helper()
	programs, err := pgtest.Programs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	server, err := pgserver.Start(ctx, pgserver.Options{Programs: programs, Cached: true, Memory: true, Settings: durable()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	run := func(database, sql string) {
		conn, err := pgx.Connect(ctx, server.DSN(pgserver.Superuser, database))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%v in %s", err, sql)
		}
	}
	// Who gets in is decided as in a fresh package of PostgreSQL: everybody under the own name only, but for the superuser.
	run("postgres", `DO $$ BEGIN
		EXECUTE format('COPY (VALUES (%L), (%L)) TO %L', 'local all `+pgserver.Superuser+` trust', 'local all all peer', current_setting('hba_file'));
		PERFORM pg_reload_conf();
	END $$`)
	run("postgres", "CREATE DATABASE census")
	run("census", `CREATE TABLE people (person_id int PRIMARY KEY, age int, marital_status text, native_country text);
		INSERT INTO people SELECT n, 17 + n % 74, (ARRAY['Never-married', 'Married', 'Divorced'])[1 + n % 3], 'Utopia'
		FROM generate_series(1, 5000) n`)
	return server
}

func buildBinary(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-o", filepath.Join(bin, "noisegate"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// socketDir is where a private server's socket is.
func socketDir(t *testing.T, server *pgserver.Server) string {
	t.Helper()
	u, err := url.Parse(server.DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("host")
}
