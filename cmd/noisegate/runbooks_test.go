package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// systemctl stands for the service manager's program: it knows one service, which is a process of this binary.
const systemctl = `#!/bin/bash
start() {
	noisegate serve >> serve.log 2>&1 &
	echo $! > serve.pid
	for _ in $(seq 300); do
		kill -0 $! 2> /dev/null || exit 1
		(: < "/dev/tcp/${LISTEN/://}") 2> /dev/null && return
		sleep 0.1
	done
	exit 1
}
stop() {
	kill "-$1" "$(cat serve.pid)" 2> /dev/null || return 0
	kill -CONT "$(cat serve.pid)" 2> /dev/null
	for _ in $(seq 300); do
		kill -0 "$(cat serve.pid)" 2> /dev/null || return 0
		sleep 0.1
	done
	exit 1
}
case "$1 $2" in
"start noisegate") start ;;
"stop noisegate") stop TERM ;;
"restart noisegate") stop TERM; start ;;
"reload noisegate")
	before=$(grep -c "were read again" serve.log)
	kill -HUP "$(cat serve.pid)"
	for _ in $(seq 300); do
		[ "$(grep -c "were read again" serve.log)" -gt "$before" ] && exit 0
		sleep 0.1
	done
	exit 1
	;;
"kill --signal=KILL") stop KILL ;;
*) exit 2 ;;
esac
`

// runbook is one section of the page.
type runbook struct {
	name  string
	steps []runbookStep
}

// runbookStep is a command, a part of what it prints, and the status with which it exits.
type runbookStep struct {
	command string
	prints  []string
	status  int
}

// exitsWith begins the line of a page that names the status of the command before it; without one it is 0.
const exitsWith = "exit status "

// runbooks are the sections of a page that have commands.
func runbooks(page string) (all []runbook) {
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		name, heading := strings.CutPrefix(line, "## ")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case heading:
			all = append(all, runbook{name: name})
		case strings.HasPrefix(line, "```"):
			inside = strings.HasPrefix(line, "```console")
		case !inside:
		case isCommand:
			book := &all[len(all)-1]
			book.steps = append(book.steps, runbookStep{command: command})
		case strings.HasPrefix(line, exitsWith):
			steps := all[len(all)-1].steps
			_, _ = fmt.Sscanf(line, exitsWith+"%d", &steps[len(steps)-1].status)
		default:
			steps := all[len(all)-1].steps
			steps[len(steps)-1].prints = append(steps[len(steps)-1].prints, strings.TrimSpace(line))
		}
	}
	return all
}

// TestRunbooks breaks an installation in each way of docs/runbooks.md, and does what stands there, line by line: a command
// must print what is shown, and exit with the status that is named there, or 0.
func TestRunbooks(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	pgtest.Need(t, "sudo apt-get install -y postgresql-client openssl", "psql", "pg_dump", "pg_restore", "dropdb", "openssl", "bash")
	page, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	o := newOperator(ctx, t)
	before := map[string]func(){
		"A backup, each night": func() { o.ask(t, "SELECT count(*) FROM people", http.StatusOK) },
		"A steward's key leaked": func() { // eve's, which signed what is in force, and something else
			o.shell(t, `for name in sam eve; do noisegate budget key $name.key --steward $name > $name.pub; done
				cat sam.pub eve.pub > stewards.pub
				cp noisegate.yaml one.yaml
				sed -i 's/quantum: 0s/quantum: 0s, steward_keys_file: stewards.pub/' noisegate.yaml
				systemctl restart noisegate
				sed 's/max_epsilon_per_query: 1,/max_epsilon_per_query: 0.9,/' `+o.policy+` > other.yaml
				noisegate policy sign other.yaml --key eve.key --as eve --for sam > approval.json
				noisegate policy apply other.yaml --approval approval.json --key sam.key
				noisegate budget set census analyst:ana --epsilon 100 --key eve.key --as eve --for sam > limit.json`)
		},
		"A gateway does not answer": func() {
			o.shell(t, "kill -STOP $(cat serve.pid)\n"+ // it does not stand still at once
				"for i in $(seq 600); do [ $(grep -L '^State:.T' /proc/$(cat serve.pid)/task/*/status | wc -l) = 0 ] && exit; sleep 0.1; done; exit 1")
			client := http.Client{Timeout: time.Second}
			if response, err := client.Get("http://" + o.address + "/healthz"); err == nil {
				response.Body.Close()
				t.Error("a stopped process answers")
			}
		},
		"A clock is wrong": func() {
			o.control(t, `ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO clock_unturned;
				CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE SET search_path = '' AS
					$$SELECT pg_catalog.clock_unturned() + interval '1 hour'$$`)
			o.shell(t, "systemctl restart noisegate")
			o.ask(t, "SELECT count(*) FROM people WHERE age > 33", http.StatusServiceUnavailable)
		},
		"A ledger's time is of the future": func() {
			o.control(t, "SET session_replication_role = replica; UPDATE noisegate.chain SET at = at + interval '1 hour'")
			o.ask(t, "SELECT count(*) FROM people WHERE age > 34", http.StatusOK)
		},
		"A ledger is broken": func() {
			o.control(t, "SET session_replication_role = replica; UPDATE noisegate.entry SET analyst = 'bob' WHERE analyst = 'ana'")
		},
		"The control database is lost": func() { o.superuser(t, "postgres", "DROP DATABASE "+demoControl+" WITH (FORCE)") },
		"Failover": func() { // to a server that lacks what was committed last: under the running gateway
			o.receipts(t, o.ask(t, "SELECT count(*) FROM people WHERE age > 40", http.StatusOK), o.askFor(t, map[string]string{
				"sql": "SELECT count(*) FROM people WHERE age > 42", "mechanism": "gaussian", "rho": "0.001"}, http.StatusOK))
			o.shell(t, "dropdb --force noisegate_demo; pg_restore --create --exit-on-error --dbname=postgres control.dump")
			o.logs(t, "the ledger is older than it was")
			o.ask(t, "SELECT count(*) FROM people WHERE age > 45", http.StatusServiceUnavailable)
		},
		"An older ledger was put back": func() {
			o.receipts(t, o.ask(t, "SELECT count(*) FROM people WHERE age > 55", http.StatusOK))
			o.write(t, "receipts/0.json", "what somebody took for a receipt\n")
			o.write(t, "receipts/1.json", `{"dataset": "census", "id": "\u0000", "answer_sha256": "`+strings.Repeat("0", 64)+`",
				"at": "2026-11-27T00:00:00Z", "key": "k", "signature": "AAAA"}`)
			o.shell(t, `systemctl stop noisegate
				dropdb --force noisegate_demo
				pg_restore --create --exit-on-error --dbname=postgres control.dump
				systemctl start noisegate`)
			o.logs(t, "the ledger is older than it was")
			o.ask(t, "SELECT count(*) FROM people WHERE age > 45", http.StatusServiceUnavailable)
		},
	}
	after := map[string]func(){
		"An analyst leaves": func() {
			o.ask(t, "SELECT count(*) FROM people WHERE age > 30", http.StatusUnprocessableEntity)
			o.ask(t, "SELECT count(*) FROM people", http.StatusOK) // it was bought
			o.shell(t, "noisegate budget thaw census analyst:ana")
		},
		"A steward's key leaked": func() {
			set := "noisegate budget set census analyst:ana --epsilon 100 "
			if out, err := o.try(set + "--signature limit.json"); err == nil || !strings.Contains(out, "none of the stewards' keys signed this") {
				t.Errorf("what the old key signed: %v, %s", err, out)
			}
			o.shell(t, set+"--key eve.new.key --as eve --for sam > limit.json; "+set+"--signature limit.json")
			o.shell(t, "mv one.yaml noisegate.yaml; systemctl restart noisegate")
		},
		"A token leaked": func() {
			o.ask(t, "SELECT count(*) FROM people", http.StatusUnauthorized)
			o.shell(t, "sed -i '/^subject ana$/d' revoked; systemctl reload noisegate")
			o.ask(t, "SELECT count(*) FROM people", http.StatusOK)
		},
		"The key of tokens leaked": func() {
			o.ask(t, "SELECT count(*) FROM people", http.StatusUnauthorized)
			o.analyst = o.token(t, "ana", "analyst")
			o.env = append(o.env, "NOISEGATE_TOKEN="+o.token(t, "sam", "steward")) // the last one of a name counts
			o.ask(t, "SELECT count(*) FROM people", http.StatusOK)
		},
		"A gateway does not answer": func() { o.ask(t, "SELECT count(*) FROM people", http.StatusOK) },
		"A clock is wrong": func() {
			o.control(t, `DROP FUNCTION pg_catalog.clock_timestamp(); ALTER FUNCTION pg_catalog.clock_unturned() RENAME TO clock_timestamp`)
			o.shell(t, "systemctl restart noisegate")
			o.ask(t, "SELECT count(*) FROM people WHERE age > 33", http.StatusOK)
		},
		"A ledger is broken": func() {
			o.shell(t, "systemctl start noisegate")
			o.logs(t, "a ledger is broken")
			o.ask(t, "SELECT count(*) FROM people WHERE age > 60", http.StatusServiceUnavailable)
			o.shell(t, "systemctl stop noisegate; dropdb --force noisegate_demo; pg_restore --create --dbname=postgres control.dump")
			// Freezing and thawing were written since the dump: the anchor knows. And the next start enters the keys of now.
			o.shell(t, `rm noisegate.anchor*; systemctl start noisegate; systemctl stop noisegate
				pg_dump --format=custom --file=control.dump noisegate_demo
				systemctl start noisegate`)
		},
		"The control database is lost": func() { o.ask(t, "SELECT count(*) FROM people", http.StatusOK) },
		"Failover": func() {
			o.shell(t, "noisegate audit reconcile --receipts receipts") // all is booked, and a directory there is no error
			o.goesOn(t, "SELECT count(*) FROM people WHERE age > 50")
		},
		"An older ledger was put back": func() { o.goesOn(t, "SELECT count(*) FROM people WHERE age > 65") },
	}
	books := runbooks(string(page))
	alerts, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range regexp.MustCompile(`docs/runbooks\.md, "([^"]+)"`).FindAllStringSubmatch(string(alerts), -1) {
		if !slices.ContainsFunc(books, func(b runbook) bool { return b.name == named[1] }) {
			t.Errorf("an alert names the runbook %q, which is not there", named[1])
		}
	}
	for _, book := range books {
		if len(book.steps) == 0 {
			t.Errorf("%s: nothing to execute", book.name)
		}
		if do := before[book.name]; do != nil {
			do()
		}
		for _, step := range book.steps {
			out, err := o.try(step.command)
			if status := exitStatus(err); status != step.status {
				t.Fatalf("%s: %s: exit status %d, want %d: %v\n%s\n%s", book.name, step.command, status, step.status, err, out, o.log(t))
			}
			for _, want := range step.prints {
				if !strings.Contains(out, want) {
					t.Fatalf("%s: %s does not print %q:\n%s\n%s", book.name, step.command, want, out, o.log(t))
				}
			}
		}
		if do := after[book.name]; do != nil {
			do()
		}
		delete(before, book.name)
		delete(after, book.name)
	}
	if len(before)+len(after) > 0 || len(books) < 7 {
		t.Errorf("%d sections; not on the page: %v %v", len(books), before, after)
	}
}

// operator is who runs a site as a service, from a shell.
type operator struct {
	*site
	ctx     context.Context
	env     []string
	analyst string
	read    int // bytes of the log that logs has been through
}

// newOperator is an operator of a site that serves, with an anchor and receipts.
func newOperator(ctx context.Context, t *testing.T) *operator {
	t.Helper()
	s := newSite(t)
	if err := s.database.as(ctx, s.database.super, "postgres", func(conn *pgx.Conn) error {
		var server int
		if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000").Scan(&server); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, "pg_dump", "--version").Output()
		var program int
		if _, scan := fmt.Sscanf(string(out), "pg_dump (PostgreSQL) %d", &program); err == nil && scan == nil && program < server {
			pgtest.Without(t, fmt.Sprintf("sudo apt-get install -y postgresql-client-%d", server), fmt.Sprintf("pg_dump of version %d", server))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	bin := buildBinary(ctx, t, s.dir)
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(systemctl), 0o700); err != nil {
		t.Fatal(err)
	}
	o := &operator{site: s, ctx: ctx, analyst: s.token(t, "ana", "analyst"), env: []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "LISTEN=" + s.address,
		"PGHOST=" + socketDir(t, s.database.server), "PGPORT=5432", "PGUSER=" + pgserver.Superuser,
		"NOISEGATE_CONFIG=" + s.config, "NOISEGATE_URL=http://" + s.address, "NOISEGATE_TOKEN=" + s.token(t, "sam", "steward"),
		"NOISEGATE_CONTROL_ANCHOR=noisegate.anchor", "NOISEGATE_CONTROL_RECEIPT_KEY_FILE=receipt.key",
		"NOISEGATE_AUTH_REVOKED_FILE=revoked",
	}}
	t.Cleanup(func() {
		_ = exec.Command("bash", "-c", "kill -KILL $(cat "+filepath.Join(s.dir, "serve.pid")+")").Run()
	})
	o.shell(t, "touch revoked; openssl genpkey -algorithm ed25519 -out receipt.key; noisegate migrate; noisegate policy apply "+s.policy+
		"; systemctl start noisegate")
	return o
}

// try runs commands, and gives all that they print.
func (o *operator) try(commands string) (string, error) {
	shell := exec.CommandContext(o.ctx, "bash", "-ec", commands)
	shell.Dir, shell.Env = o.dir, o.env
	out, err := shell.CombinedOutput()
	return string(out), err
}

// exitStatus is that of a command; -1 where it did not end by itself.
func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

func (o *operator) shell(t *testing.T, commands string) {
	t.Helper()
	if out, err := o.try(commands); err != nil {
		t.Fatalf("%s: %v\n%s\n%s", commands, err, out, o.log(t))
	}
}

// log is what the gateways said so far.
func (o *operator) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.dir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// logs waits until the log has a text, after the one that it waited for before: an older line says nothing of now.
func (o *operator) logs(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if at := strings.Index(o.log(t)[o.read:], text); at >= 0 {
			o.read += at + len(text)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say %q:\n%s", text, o.log(t)[o.read:])
		}
	}
}

// goesOn waits until a question is answered: gateways learn within a second that a dataset goes on.
func (o *operator) goesOn(t *testing.T, sql string) {
	t.Helper()
	o.logs(t, "a ledger is taken up again")
	o.ask(t, sql, http.StatusOK)
}

// ask asks a question as an analyst, and wants a status. It gives the answer's receipt.
func (o *operator) ask(t *testing.T, sql string, status int) (receipt string) {
	t.Helper()
	return o.askFor(t, map[string]string{"sql": sql, "epsilon": "0.1"}, status)
}

// askFor is ask, for another price.
func (o *operator) askFor(t *testing.T, question map[string]string, status int) (receipt string) {
	t.Helper()
	question["dataset"] = demoDataset
	sql := question["sql"]
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(o.ctx, http.MethodPost, "http://"+o.address+"/v1/query", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+o.analyst)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, o.log(t))
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		t.Errorf("%s: status %d, want %d\n%s", sql, response.StatusCode, status, o.log(t))
	}
	return response.Header.Get("Noisegate-Receipt")
}

// receipts keeps receipts where the page looks for them.
func (o *operator) receipts(t *testing.T, receipts ...string) {
	t.Helper()
	if slices.Contains(receipts, "") {
		t.Fatal("an answer carries no receipt")
	}
	o.shell(t, "mkdir -p receipts/lost+found")
	o.write(t, "receipts/ana.json", strings.Join(receipts, "\n")+"\n")
}

func (o *operator) control(t *testing.T, sql string) { t.Helper(); o.superuser(t, demoControl, sql) }

func (o *operator) superuser(t *testing.T, database, sql string) {
	t.Helper()
	if err := o.database.as(o.ctx, o.database.super, database, func(conn *pgx.Conn) error {
		_, err := conn.Exec(o.ctx, sql)
		return err
	}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
