package integration

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The ledger of an earlier version is test data in testdata/upgrade: ledger.sql.gz, a plain dump of a control database
// with answers to queries of all kinds of the golden files, labels and a plan; asked.jsonl, what was asked for them;
// the tables and policies of its datasets.
const oldLedger = "testdata/upgrade"

// recordWith makes that data anew: go test ./integration -run TestLedgerOfAnEarlierVersion -record-with
// /path/to/the/earlier/noisegate. It needs pg_dump.
var recordWith = flag.String("record-with", "", "make integration/testdata/upgrade anew with this binary")

// asked is a request that was answered.
type asked struct {
	As   string          `json:"as"`   // subject
	Role string          `json:"role"` // of the token
	Path string          `json:"path"`
	Key  string          `json:"key,omitempty"` // Idempotency-Key
	Body json.RawMessage `json:"body"`
	// What has to come back, byte for byte: the stored answer of a release, or a part of the response.
	Release string `json:"release,omitempty"`
	Told    string `json:"told,omitempty"`
	// Renewed, when it is not empty, is why an upgraded gateway answers the question anew, and what a refusal must say when it refuses it.
	Renewed string `json:"renewed,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// oldSets are the datasets that the old ledger's policies are for.
func oldSets(t testing.TB) []dataset {
	t.Helper()
	dirs, err := filepath.Glob(oldLedger + "/town*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(err, "no datasets in ", oldLedger)
	}
	var sets []dataset
	for i, dir := range dirs {
		schema := read(t, dir+"/schema.sql")
		sets = append(sets, dataset{name: filepath.Base(dir), policy: read(t, dir+"/policy.yaml"),
			load: func(ctx context.Context, conn *pgx.Conn) error {
				return createAt(ctx, conn, schema, firstOID+i*1000)
			}})
	}
	return sets
}

// A policy is pinned to the object identifiers of tables and types, so those must be the ones that the policies of the
// dump were applied to. They lie far above what a new server has given out, with room between them: servers of other
// versions take other numbers of identifiers for the same statement.
const (
	firstOID = 20000
	apartOID = 20
)

// createAt runs statements, one a line; each CREATE TABLE and CREATE TYPE begins apartOID identifiers after the one before.
func createAt(ctx context.Context, conn *pgx.Conn, schema string, oid int) error {
	for statement := range strings.Lines(schema) {
		if strings.HasPrefix(statement, "CREATE TABLE") || strings.HasPrefix(statement, "CREATE TYPE") {
			if err := skipTo(ctx, conn, oid); err != nil {
				return err
			}
			oid += apartOID
		}
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%w in %s", err, statement)
		}
	}
	return nil
}

// skipTo makes the server's next object identifier the given one: large objects take those before it, and are not kept.
func skipTo(ctx context.Context, conn *pgx.Conn, oid int) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var last int
	if err := tx.QueryRow(ctx, "SELECT lo_create(0)::int").Scan(&last); err != nil {
		return err
	}
	if last >= oid {
		return fmt.Errorf("the server has given out the identifier %d already, and %d is wanted", last, oid)
	}
	if last == oid-1 {
		return nil
	}
	if err := tx.QueryRow(ctx, "SELECT max(lo_create(0)::int) FROM generate_series(1, $1::int)", oid-1-last).Scan(&last); err != nil ||
		last != oid-1 {
		return fmt.Errorf("got the identifier %d, and %d was wanted: %w", last, oid-1, err)
	}
	return nil
}

// ageNote is the note of every replay on its age, which is no part of what is stored.
var ageNote = regexp.MustCompile(`,?\{"code":"replayed","text":"of [^"]*"\}`)

// TestLedgerOfAnEarlierVersion starts today's gateway on a ledger that 7c2e952 made, with the policies that it applied.
// Every answer of that ledger is given again, byte for byte and free, to the same requests; nothing is written into the journal. What is
// renewed says why in asked.jsonl.
//
// needs: postgres
func TestLedgerOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	if *recordWith != "" {
		record(t)
	}
	sets := oldSets(t)
	s := prepareOwnStack(t, "OIDs", sets...)
	loadOldLedger(t, s)
	s.writeConfig(t, sets)
	answers := s.storedAnswers(t)
	s.run(t, "migrate", "--config", s.config)
	s.serve(t)
	t.Cleanup(func() { s.kill() })
	before := s.entries(t)
	renewed := map[string]int{}
	replayed, charged := 0, 0
	for i, q := range oldQuestions(t) {
		status, body := s.post(t, q)
		switch {
		case q.Renewed != "":
			renewed[q.Renewed]++
			if q.Refused == "" {
				charged++
			}
			if q.Refused != "" && !strings.Contains(body, q.Refused) {
				t.Errorf("line %d: renewed because %s: status %d, want %q\n%s\n%s", i+1, q.Renewed, status, q.Refused, q.Body, body)
			}
			continue
		case status != http.StatusOK && status != http.StatusCreated:
			t.Errorf("line %d: status %d for what was answered\n%s\n%s", i+1, status, q.Body, body)
			continue
		}
		told := q.Told
		if q.Release != "" {
			told = strings.TrimSuffix(strings.TrimPrefix(answers[q.Release], "{"), "}")
		}
		if !strings.Contains(ageNote.ReplaceAllString(body, ""), told) || told == "" {
			t.Errorf("line %d: another answer than the one that was stored\n%s\nstored: %s\n   got: %s", i+1, q.Body, told, body)
		} else if replayed++; !free(body) {
			t.Errorf("line %d: it costs\n%s\n%.2000s", i+1, q.Body, body)
		}
	}
	if after := s.entries(t); charged == 0 && after != before {
		t.Errorf("%d entries were added to the journal", after-before)
	}
	t.Logf("%d replayed; renewed: %v", replayed, renewed)
	if replayed < 200 {
		t.Errorf("only %d answers were replayed", replayed)
	}
	// Labels belong to those who bought them: somebody else pays for the same ones.
	bought := asked{As: "another", Role: "ml", Path: "/v1/pate/pets/labels",
		Body: json.RawMessage(`{"queries":["a","b","c"],"mechanism":"gnmax","sigma":"12"}`)}
	if status, body := s.post(t, bought); status != http.StatusOK || free(body) {
		t.Errorf("labels that somebody else bought: %d %s", status, body)
	}
}

// free reports whether a response says that nothing was spent, where it says what was.
func free(body string) bool {
	spent := regexp.MustCompile(`"spent":\{[^}]*\}`).FindString(body)
	return spent == "" || !regexp.MustCompile(`[1-9]`).MatchString(spent)
}

// post sends a request of the data to the gateway.
func (s *stack) post(t testing.TB, q asked) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.tokenOnce(t, q.As, q.Role))
	r.Header.Set("Content-Type", "application/json")
	if q.Key != "" {
		r.Header.Set("Idempotency-Key", q.Key)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text))
}

// tokenOnce is token, the same each time for a subject and a role.
func (s *stack) tokenOnce(t testing.TB, subject, role string) string {
	t.Helper()
	if s.tokens == nil {
		s.tokens = map[string]string{}
	}
	name := role + ":" + subject
	if s.tokens[name] == "" {
		s.tokens[name] = s.token(t, subject, role)
	}
	return s.tokens[name]
}

// storedAnswers are the answers in the ledger, by release.
func (s *stack) storedAnswers(t testing.TB) map[string]string {
	t.Helper()
	rows, err := s.superuser(t, control).Query(t.Context(), "SELECT charge_id, convert_from(answer, 'UTF8') FROM noisegate.charge "+
		"WHERE answer IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	var id, answer string
	if _, err := pgx.ForEachRow(rows, []any{&id, &answer}, func() error { answers[id] = answer; return nil }); err != nil {
		t.Fatal(err)
	}
	return answers
}

func oldQuestions(t testing.TB) (all []asked) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(read(t, oldLedger+"/asked.jsonl")))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var q asked
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// loadOldLedger runs the dump in the control database: statements, and the rows of COPY in between.
func loadOldLedger(t testing.TB, s *stack) {
	t.Helper()
	file, err := os.Open(oldLedger + "/ledger.sql.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, control, "DROP SCHEMA noisegate") // which control.sql made, as the dump does
	conn := s.superuser(t, control)
	defer conn.Close(context.Background())
	copying := regexp.MustCompile(`(?m)^COPY .* FROM stdin;$`)
	for rest := string(text); rest != ""; {
		at := copying.FindStringIndex(rest)
		sql := rest
		if at != nil {
			sql = rest[:at[0]]
		}
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("the dump: %v", err)
		}
		if at == nil {
			return
		}
		rows, after, _ := strings.Cut(rest[at[1]+1:], "\\.\n")
		if _, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(rows), rest[at[0]:at[1]]); err != nil {
			t.Fatalf("the dump: %v in %s", err, rest[at[0]:at[1]])
		}
		rest = after
	}
}

// record makes the data with an earlier binary: it asks every question of questions.jsonl, then for labels and for a plan.
func record(t *testing.T) {
	t.Helper()
	sets := oldSets(t)
	s := prepareOwnStack(t, "OIDs", sets...)
	s.program = *recordWith
	s.writeConfig(t, sets)
	s.run(t, "migrate", "--config", s.config)
	for _, d := range sets {
		file := filepath.Join(s.dir, d.name+".policy.yaml")
		write(t, file, d.policy)
		s.run(t, "policy", "apply", "--config", s.config, file)
	}
	s.serve(t)
	var out bytes.Buffer
	keep := func(q asked) {
		line, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	for line := range strings.Lines(read(t, oldLedger+"/questions.jsonl")) {
		q := asked{As: "ana", Role: "analyst", Path: "/v1/query", Body: json.RawMessage(strings.TrimSpace(line))}
		if len(line)%7 == 0 { // some by key, some by another analyst
			q.Key = fmt.Sprintf("key-%d", out.Len())
		}
		if len(line)%5 == 0 {
			q.As = "bo"
		}
		status, body := s.post(t, q)
		if status != http.StatusOK {
			t.Errorf("not recorded: %d\n%s\n%s", status, line, body)
			continue
		}
		var answer struct {
			Release string `json:"release_id"`
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		q.Release = answer.Release
		if q.Release == "" {
			t.Errorf("nothing was stored for %s", line)
			continue
		}
		keep(q)
	}
	s.recordPlan(t, keep)
	s.recordLabels(t, keep)
	s.kill()
	dump := exec.CommandContext(t.Context(), "pg_dump", "--schema=noisegate", "--dbname="+s.dsn("postgres", control))
	text, err := dump.Output()
	if err != nil {
		t.Fatal("pg_dump: ", err)
	}
	// Commands of psql alone, and a setting that only the dumping version knows.
	text = regexp.MustCompile(`(?m)^(\\(un)?restrict .*|SET transaction_timeout = .*)$`).ReplaceAll(text, nil)
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ledger.sql.gz": zipped.Bytes(), "asked.jsonl": out.Bytes()} {
		if err := os.WriteFile(filepath.Join(oldLedger, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.server.Stop()
}

// recordPlan registers a plan and pays two questions from it.
func (s *stack) recordPlan(t *testing.T, keep func(asked)) {
	t.Helper()
	plan := asked{As: "ana", Role: "analyst", Path: "/v1/plans", Key: "the-plan", Body: json.RawMessage(
		`{"dataset":"town1","delta":"1e-9","mechanisms":[{"mechanism":"laplace","epsilon":"0.5","count":3},{"mechanism":"gaussian","rho":"0.01","count":2}]}`)}
	status, body := s.post(t, plan)
	id := regexp.MustCompile(`"plan_id":"(\w+)"`).FindStringSubmatch(body)
	if id == nil {
		t.Fatalf("no plan: %d %s", status, body)
	}
	plan.Told = id[0]
	keep(plan)
	for _, sql := range []string{"SELECT count(*) FROM people WHERE age > 7", "SELECT sum(age) FROM people"} {
		q := asked{As: "ana", Role: "analyst", Path: "/v1/query"}
		q.Body, _ = json.Marshal(map[string]string{"dataset": "town1", "sql": sql, "plan": id[1]})
		if status, body = s.post(t, q); status != http.StatusOK {
			t.Fatalf("not paid from the plan: %d %s", status, body)
		}
		q.Release = regexp.MustCompile(`"release_id":"(\w+)"`).FindStringSubmatch(body)[1]
		keep(q)
	}
}

// recordLabels seals votes and buys labels of every kind.
func (s *stack) recordLabels(t *testing.T, keep func(asked)) {
	t.Helper()
	votes := filepath.Join(s.dir, "votes.csv")
	write(t, votes, "query,cat,dog\na,58,2\nb,3,57\nc,30,30\nd,60,0\n")
	for _, args := range [][]string{
		{"define", "pets", "--dataset", "town1", "--teachers", "60", "--classes", "cat,dog", "--epsilon", "600", "--delta", "1e-5",
			"--sanitise-order", "3", "--sanitise-sigma-ss", "4", "--sanitise-delta", "1e-7"},
		{"import", "pets", votes, "--seal"},
	} {
		cmd := s.command(append([]string{"pate"}, args...)...)
		cmd.Env = append(cmd.Env, "NOISEGATE_URL="+s.url, "NOISEGATE_TOKEN="+s.token(t, "sam", "steward"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, body := range []string{
		`{"queries":["a","b","c"],"mechanism":"gnmax","sigma":"12"}`,
		`{"queries":["a","d"],"mechanism":"lnmax","noise_scale":"4"}`,
		`{"queries":["a","b","c","d"],"mechanism":"confident","threshold":"45","sigma1":"9","sigma2":"6"}`,
		`{"queries":["a","b"],"mechanism":"gumbel","gamma":"0.5"}`,
		`{"queries":["a","b"],"mechanism":"interactive","threshold":"20","sigma1":"8","sigma2":"5","student_confidence":"0.9","student":{"a":["0.01","0.99"],"b":["0.95","0.05"]}}`,
		`{"queries":["c","d"],"mechanism":"gnmax","sigma":"9","return":"histogram"}`,
	} {
		q := asked{As: "mel", Role: "ml", Path: "/v1/pate/pets/labels", Body: json.RawMessage(body)}
		if status, body := s.post(t, q); status != http.StatusOK {
			t.Fatalf("no labels: %d %s\n%s", status, body, q.Body)
		}
		_, again := s.post(t, q) // the answer for labels that are there already
		q.Told = regexp.MustCompile(`"labels":\[.*?\](,"[a-z])`).FindString(again)
		keep(q)
	}
	epsilon := asked{As: "sam", Role: "steward", Path: "/v1/pate/pets/epsilon", Body: json.RawMessage(`{"mechanism":"gnmax","sigma":"12"}`)}
	if status, body := s.post(t, epsilon); status != http.StatusOK {
		t.Fatalf("no sanitised epsilon: %d %s", status, body)
	}
	_, again := s.post(t, epsilon)
	epsilon.Told = regexp.MustCompile(`"epsilon":[^,]*,`).FindString(again)
	keep(epsilon)
}
