package integration

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/api"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
)

// wireStack is a gateway that speaks PostgreSQL's protocol in clear and over TLS, with a catalog twin on a separate server.
type wireStack struct {
	*stack
	host, port, root string
	twins            *stack // the server of the catalog twin
}

// newWireStack makes one over the tables of the demonstration, with so many people, each with one visit, on separate servers that log all
// statements.
func newWireStack(t *testing.T, people int) *wireStack {
	t.Helper()
	policy := strings.NewReplacer("epsilon: 20,", "epsilon: 2000,", "epsilon: 3,", "epsilon: 30,", "delta: 1e-6", "delta: 1e-4",
		"delta: 1e-7", "delta: 1e-6").Replace(read(t, "../cmd/noisegate/demo_policy.yaml"))
	census := dataset{name: "census", policy: policy, load: func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, read(t, "../cmd/noisegate/demo_schema.sql")+fmt.Sprintf(read(t, "testdata/clients/data.sql"), people))
	}}
	s := &wireStack{stack: prepareStackOn(t, loggingServer(t), census), twins: &stack{server: loggingServer(t)}}
	// Elsewhere the reader's statements and their parameters are in no log.
	for _, setting := range []string{"log_statement = 'all'", "log_parameter_max_length = '-1'"} {
		s.exec(t, "postgres", "ALTER ROLE noisegate_reader SET "+setting)
	}
	return s.opened(t, census)
}

// newWireStackOver makes one over datasets; the first has a catalog twin.
func newWireStackOver(t *testing.T, sets ...dataset) *wireStack {
	t.Helper()
	s := &wireStack{stack: prepareStack(t, sets...), twins: &stack{server: ownServer(t, nil)}}
	return s.opened(t, sets...)
}

// opened makes the twin and the gateway ready.
func (s *wireStack) opened(t *testing.T, sets ...dataset) *wireStack {
	t.Helper()
	s.twins.exec(t, "postgres", "CREATE DATABASE "+sets[0].name)
	s.writeConfig(t, sets)
	address := pgtest.FreeAddress(t)
	var err error
	if s.host, s.port, err = net.SplitHostPort(address); err != nil {
		t.Fatal(err)
	}
	certificate, key := s.certificate(t)
	s.root = certificate
	twin := fmt.Sprintf("catalog_dsn: %q, quantum:", s.twins.dsn(pgserver.Superuser, sets[0].name))
	write(t, s.config, strings.Replace(read(t, s.config), "quantum:", twin, 1)+
		fmt.Sprintf("wire: {listen: %q, tls_cert_file: %q, tls_key_file: %q}\n", address, certificate, key))
	s.ready(t, sets)
	return s
}

// loggingServer is a server that writes what it logs to a file.
func loggingServer(t *testing.T) *pgserver.Server {
	t.Helper()
	return ownServer(t, map[string]string{"logging_collector": "on", "log_line_prefix": "%d|%u|", "log_statement": "all"})
}

// certificate makes one for this machine that signs itself, and gives its files.
func (s *wireStack) certificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(s.dir, "wire.crt"), filepath.Join(s.dir, "wire.key")
	write(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return certificate, key
}

// connect is a client of the analyst ana, at ε 1 for each question, as a pgx client makes of it. It keeps the notices.
func (s *wireStack) connect(t *testing.T, dataset string, notices *[]string) *pgx.Conn {
	t.Helper()
	return connected(t, s.clientConfig(t, dataset), notices)
}

// clientConfig is how the analyst ana connects.
func (s *wireStack) clientConfig(t *testing.T, dataset string) *pgx.ConnConfig {
	t.Helper()
	at := url.URL{Scheme: "postgres", User: url.UserPassword("ana", s.tokenOnce(t, "ana", "analyst")), Path: "/" + dataset,
		Host: net.JoinHostPort(s.host, s.port), RawQuery: "sslmode=disable&options=-c%20noisegate.epsilon%3D1"}
	config, err := pgx.ParseConfig(at.String())
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func connected(t *testing.T, config *pgx.ConnConfig, notices *[]string) *pgx.Conn {
	t.Helper()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if notices != nil {
			*notices = append(*notices, fmt.Sprint(*n))
		}
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// said is what a client receives for a statement: of an answer, its columns and how many rows; of a refusal, all of it. Words are its texts
// with their values.
func said(t *testing.T, conn *pgx.Conn, sql string, mode pgx.QueryExecMode) (verdict, words string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, mode)
	n := 0
	var b strings.Builder
	if err == nil {
		for rows.Next() {
			n++
			fmt.Fprintln(&b, rows.RawValues())
			for _, v := range rows.RawValues() {
				b.Write(v)
			}
		}
		err = rows.Err()
	}
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		verdict = fmt.Sprint(refused.Code, " ", refused.Message, " | ", refused.Detail, " | ", refused.Hint, " | ", refused.Position)
		return verdict, verdict
	case err != nil:
		t.Fatalf("%s: %v", sql, err)
	}
	for _, f := range rows.FieldDescriptions() {
		verdict += fmt.Sprint(f.Name, " ", f.DataTypeOID, ", ")
	}
	return verdict + fmt.Sprint(n, " rows"), b.String()
}

// logged is a statement in the log of a server, and the values of its parameters.
type logged struct{ database, user, text, values string }

// statements are those that a server has logged so far.
func (s *stack) statements(t *testing.T) (all []logged) {
	t.Helper()
	text := s.plain(t, "postgres", "SELECT pg_catalog.pg_read_file(pg_catalog.pg_current_logfile())")[0][0]
	entries := regexp.MustCompile(`(?m)^([^|\s]*)\|([^|\s]*)\|(\w+):  `).FindAllStringSubmatchIndex(text, -1)
	for i, at := range entries {
		end := len(text)
		if i+1 < len(entries) {
			end = entries[i+1][0]
		}
		said := strings.TrimSpace(text[at[1]:end])
		if sql, ok := strings.CutPrefix(said, "statement: "); ok {
			said = sql
		} else if rest, ok := strings.CutPrefix(said, "execute "); ok {
			_, said, _ = strings.Cut(rest, ": ")
		} else {
			if strings.HasPrefix(said, "parameters: ") && len(all) > 0 {
				all[len(all)-1].values += said
			}
			continue
		}
		all = append(all, logged{database: text[at[2]:at[3]], user: text[at[4]:at[5]], text: said})
	}
	return all
}

// section gives the messages of a section of the shared corpus, by name: what is expected of each, and its text.
func section(t *testing.T, number int) (names []string, expect, text map[string]string) {
	t.Helper()
	part := strings.Split(read(t, testfiles.Fetched(t, "corpus/catalog_queries.sql")), "\n-- Section ")[number]
	heading := regexp.MustCompile(`(?m)^-- \[(\w+)\] ([^|]*) \| .*\n`)
	expect, text = map[string]string{}, map[string]string{}
	own := verdicts(t)
	places := heading.FindAllStringSubmatchIndex(part, -1)
	for i, at := range places {
		end := len(part)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		name := part[at[2]:at[3]]
		names = append(names, name)
		expect[name] = cmp.Or(own[name], part[at[4]:at[5]])
		text[name] = regexp.MustCompile(`\{oid:\w+\}`).ReplaceAllString(strings.TrimSpace(part[at[1]:end]), "16384")
	}
	return names, expect, text
}

// TestEachServerSeesItsOwn reads the logs of both servers while clients ask: of queries about catalogs the protected database sees nothing,
// and of questions about data the twin sees nothing.
//
// covers: A54
func TestEachServerSeesItsOwn(t *testing.T) {
	t.Parallel()
	s := newWireStack(t, 500)
	conn := s.connect(t, "census", nil)
	ask := func(sql string) {
		t.Helper()
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
			if verdict, _ := said(t, conn, sql, mode); strings.HasPrefix(verdict, "XX") || strings.HasPrefix(verdict, "57") {
				t.Errorf("%s: %s", sql, verdict)
			}
		}
	}
	seen := func(server *stack, marker string) (all int) {
		t.Helper()
		for _, one := range server.statements(t) {
			if one.database == "census" && strings.Contains(one.text+one.values, marker) {
				all++
			}
		}
		return all
	}
	const warm = "SELECT count(*) FROM people WHERE workclass = 'marked-before'"
	ask(warm)
	known := map[string]bool{}
	for _, one := range s.statements(t) {
		known[one.text] = true
	}

	for _, sql := range []string{
		"SELECT relname, 'marked-catalog' FROM pg_class WHERE relname IN ('people', 'visits')",
		"SELECT table_name, 'marked-catalog' FROM information_schema.tables",
		"SELECT 'people'::regclass, 'marked-catalog', pg_relation_size('people'), has_table_privilege('people', 'SELECT')",
		"EXPLAIN SELECT count(*) FROM people WHERE workclass = 'marked-catalog'",
		"SELECT * FROM noisegate.columns WHERE 'marked-catalog' > ''",
		"SELECT * FROM people WHERE 'marked-catalog' > ''",
		"SELECT 'marked-catalog' FROM pg_class, people",
		"SELECT 'marked-catalog' FROM pg_class WHERE EXISTS (WITH people AS (SELECT 1) SELECT FROM people) AND EXISTS (SELECT FROM visits)",
		"SELECT count(*) FROM pg_class WHERE relname = 'marked-catalog' UNION ALL SELECT count(*) FROM people",
	} {
		ask(sql)
	}
	t.Run("recorded messages", func(t *testing.T) {
		names, expect, text := section(t, 1)
		for _, name := range names {
			if expect[name] != "data" {
				_, _ = conn.PgConn().Exec(t.Context(), text[name]).ReadAll() // that all are answered is another test
			}
		}
		if len(names) < 300 {
			t.Errorf("%d messages", len(names))
		}
	})
	if n := seen(s.twins, "marked-catalog"); n < 6 {
		t.Errorf("the twin saw %d of the queries about catalogs: the test looks at the wrong log", n)
	}
	for _, one := range s.statements(t) {
		if one.database == "census" && one.user != pgserver.Superuser && !known[one.text] {
			t.Errorf("the protected server was asked %.300s", one.text)
		}
	}

	conn = s.connect(t, "census", nil)
	before := len(s.twins.statements(t))
	for _, sql := range []string{
		"SELECT count(*) FROM people WHERE workclass = 'marked-data'",
		"SELECT sex, avg(age) FROM people WHERE workclass = 'marked-data' GROUP BY sex",
		"SELECT count(*) FROM people WHERE EXISTS (WITH p AS (SELECT 1) SELECT FROM p) AND workclass = 'marked-data'",
		"WITH pg_class AS (SELECT age FROM people WHERE workclass = 'marked-data') SELECT count(*) FROM pg_class",
		"SELECT * FROM regions WHERE name <> 'marked-data'",
		"COPY (SELECT count(*) FROM people WHERE workclass = 'marked-data') TO STDOUT",
	} {
		if strings.HasPrefix(sql, "COPY") {
			if _, err := conn.PgConn().CopyTo(t.Context(), io.Discard, sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			continue
		}
		ask(sql)
	}
	if n := seen(s.stack, "marked-data"); n < 3 {
		t.Errorf("the protected server saw %d of the questions: the test looks at the wrong log", n)
	}
	for _, one := range s.twins.statements(t)[before:] {
		if one.database == "census" {
			t.Errorf("the twin's server was asked %.300s", one.text)
		}
	}
}

// TestChartsOverBothDoors asks what BI tools make of charts (section 2 of the corpus): the verdict is the corpus's, and the same over
// HTTP and by both protocols; what was charged at one door is a free replay at the other.
func TestChartsOverBothDoors(t *testing.T) {
	t.Parallel()
	names, expect, text := section(t, 2)
	s := newWireStack(t, 500)
	client := s.analyst(t, "ana")
	conn := s.connect(t, "census", nil)
	empty := s.connect(t, "census", nil)
	if _, err := empty.Exec(t.Context(), "SET noisegate.preview = empty; SET noisegate.epsilon = 0.1",
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SET noisegate.epsilon = 0.1; SET noisegate.delta = 1e-9",
		pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if len(names) != 71 {
		t.Errorf("%d queries, want 71", len(names))
	}
	for _, name := range names {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: text[name], Epsilon: "0.1", Delta: "1e-9"}, "")
		over := ""
		switch {
		case err != nil:
			over = "refuse " + problemOf(t, err).Code
		case answer.Replayed: // of what was charged, or of what was free
			over = expect[name]
		case answer.Spent.Epsilon == "0":
			over = "free"
		default:
			over = "answer"
		}
		want := strings.Replace(expect[name], "preview", "refuse policy/not-aggregate", 1)
		if over != want {
			t.Errorf("%s over HTTP: %s, want %s", name, over, want)
		}
		_, before := said(t, conn, "SHOW noisegate.budget", pgx.QueryExecModeSimpleProtocol)
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec} {
			verdict, _ := said(t, conn, text[name], mode)
			code, refused := strings.CutPrefix(over, "refuse ")
			switch {
			case refused != strings.Contains(verdict, " | "+code+" | "):
				t.Errorf("%s, mode %v: %s, over HTTP %s", name, mode, verdict, over)
			case !refused && !strings.HasSuffix(verdict, fmt.Sprintf(" %d rows", len(answer.Rows))):
				t.Errorf("%s, mode %v: %s, over HTTP %d rows", name, mode, verdict, len(answer.Rows))
			}
			if verdict, _ := said(t, empty, text[name], mode); expect[name] == "preview" && !strings.HasSuffix(verdict, " 0 rows") {
				t.Errorf("%s, mode %v, empty previews: %s", name, mode, verdict)
			}
		}
		if _, after := said(t, conn, "SHOW noisegate.budget", pgx.QueryExecModeSimpleProtocol); after != before {
			t.Errorf("%s: charged again: %s, before %s", name, after, before)
		}
	}
}

// replayedAt is when what a replay is of was bought, and how much was left at which minute, which the clock of the test decides.
var replayedAt = regexp.MustCompile(`a replay of [-0-9T:]+Z|of \d+ \w+ \d\d:\d\d UTC`)

// TestAttacksOverTheWire aims the attacks of the other door at this one: with a person and without, all that a client is told is the
// same but for noise, by both protocols; a refusal is free.
//
// covers: A29 A31 A35 A36 A39
func TestAttacksOverTheWire(t *testing.T) {
	t.Parallel()
	s := newWireStackOver(t, aimed("present", true), aimed("absent", false))
	texts := guardedFailures()
	for _, list := range attacks() {
		texts = append(texts, list...)
	}
	slices.Sort(texts[len(guardedFailures()):])
	answered := 0
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		var told [2]string
		var notices [2][]string
		conns := [2]*pgx.Conn{s.connect(t, "present", &notices[0]), s.connect(t, "absent", &notices[1])}
		for _, sql := range texts {
			if strings.Contains(sql, "$1") {
				continue // the client asks for its value
			}
			for i, conn := range conns {
				notices[i] = nil
				before := s.entries(t)
				told[i], _ = said(t, conn, sql, mode)
				if strings.HasPrefix(told[i], "XX") || strings.HasPrefix(told[i], "57") && i == 0 {
					t.Errorf("%s: %s", sql, told[i])
				}
				if s.entries(t) != before && strings.Contains(told[i], " | ") {
					t.Errorf("%s: refused, and charged", sql)
				}
			}
			if told[0] != told[1] && !strings.HasPrefix(told[1], "57P03") { // the second dataset has no catalog twin
				t.Errorf("%s: with the person\n%s\nwithout\n%s", sql, told[0], told[1])
			}
			for i := range notices {
				for j, notice := range notices[i] {
					notices[i][j] = replayedAt.ReplaceAllString(notice, "a replay")
				}
			}
			if fmt.Sprint(notices[0]) != fmt.Sprint(notices[1]) {
				t.Errorf("%s: with the person %q, without %q", sql, notices[0], notices[1])
			}
			if strings.HasSuffix(told[0], " rows") {
				answered++
			}
		}
	}
	if answered < 22 {
		t.Errorf("only %d are answered", answered)
	}
	s.alive(t)
}

// TestCanariesStayInsideTheWire looks for values of people in all that this door says and logs.
//
// covers: A30 A78
func TestCanariesStayInsideTheWire(t *testing.T) {
	t.Parallel()
	s := newWireStackOver(t, people(ampleBudget))
	var notices []string
	conn := s.connect(t, "people", &notices)
	if _, err := conn.Exec(t.Context(), "SET noisegate.delta = 1e-9"); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, sql := range append(canaries(), "COPY people TO STDOUT", "EXPLAIN SELECT city, count(*) FROM people GROUP BY city",
		"SELECT * FROM pg_stats", "SELECT most_common_vals FROM pg_stats WHERE tablename = 'people'", "SELECT reltuples FROM pg_class",
		"SELECT * FROM pg_stat_user_tables", "SELECT query FROM pg_stat_activity", "SELECT * FROM noisegate.releases") {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
			_, words := said(t, conn, sql, mode)
			fmt.Fprintln(&all, words)
		}
	}
	fmt.Fprintln(&all, notices)
	if !strings.Contains(all.String(), "city1") {
		t.Fatalf("no city of 200 people was shown: the test asked nothing\n%s", &all)
	}
	for name, text := range map[string]string{"answers": all.String(), "log": s.log.String()} {
		for _, canary := range []string{"canary-city", "canary-secret"} {
			if strings.Contains(text, canary) {
				t.Errorf("%s: %q came out\n%s", name, canary, text)
			}
		}
	}
	if text := s.log.String(); strings.Contains(text, "zwq") || strings.Contains(text, s.tokenOnce(t, "ana", "analyst")) {
		t.Errorf("A78: the log holds a literal of a query or a token\n%s", text)
	}
}

// TestAnswersLeaveTheWireAtBoundaries: what is charged leaves no earlier than the first boundary, which is moved by a tenth of the
// quantum at most, with rows or without.
//
// needs: postgres
// covers: A33 A34 A35 W.3
func TestAnswersLeaveTheWireAtBoundaries(t *testing.T) {
	t.Parallel()
	const quantum = 400 * time.Millisecond
	set := people(ampleBudget)
	set.quantum = quantum.String()
	conn := newWireStackOver(t, set).connect(t, "people", nil)
	for i, sql := range []string{"SELECT count(*) FROM people", "SELECT club, count(*) FROM people GROUP BY club",
		"SELECT club, count(*) FROM people GROUP BY club HAVING count(*) > 100000", "COPY (SELECT sum(age) FROM people) TO STDOUT"} {
		began := time.Now()
		var err error
		if strings.HasPrefix(sql, "COPY") {
			_, err = conn.PgConn().CopyTo(t.Context(), io.Discard, sql)
		} else {
			_, err = conn.Exec(t.Context(), sql, []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec}[i%2])
		}
		if took := time.Since(began); err != nil || took < quantum*9/10 {
			t.Errorf("%s: %v after %v, want an answer no earlier than the boundary of %v", sql, err, took, quantum)
		}
	}
}

// deaf is a connection whose client hears nothing more from some moment on, as behind a network that fails, until it ends.
type deaf struct {
	net.Conn
	from *atomic.Bool
	ends <-chan struct{}
}

func (d deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.from.Load() {
		<-d.ends
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestKillBeforeTheRowsArrive kills the gateway when a question is charged and its client has seen no row: who asks again gets the answer
// that the ledger has, byte for byte, at no charge, from the next gateway.
//
// covers: F01 A68
func TestKillBeforeTheRowsArrive(t *testing.T) {
	t.Parallel()
	s := newWireStackOver(t, people(ampleBudget))
	for kills := range 3 {
		sql := fmt.Sprintf("SELECT club, count(*) AS n FROM people WHERE age <> %d GROUP BY club ORDER BY club", kills)
		var from atomic.Bool
		ends := make(chan struct{})
		config := s.clientConfig(t, "people")
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return deaf{conn, &from, ends}, err
		}
		conn := connected(t, config, nil)
		before := s.storedAnswers(t)
		from.Store(true)
		outcome := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
			outcome <- err
		}()
		s.eventually(t, func() bool { return s.count(t, "settle") == kills+1 })
		s.kill()
		close(ends)
		if err := <-outcome; err == nil {
			t.Fatal("the client was answered")
		}
		s.serve(t)
		var bought api.Result
		for id, answer := range s.storedAnswers(t) {
			if before[id] == "" {
				if err := json.Unmarshal([]byte(answer), &bought); err != nil {
					t.Fatal(err)
				}
			}
		}
		results, err := s.connect(t, "people", nil).PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var told, stored strings.Builder
		for _, row := range results[0].Rows {
			fmt.Fprintf(&told, "%s\n", row)
		}
		for _, row := range bought.Rows {
			fmt.Fprintln(&stored, row)
		}
		if len(bought.Rows) < 2 || told.String() != stored.String() {
			t.Errorf("told\n%s\nthe ledger has\n%s", &told, &stored)
		}
		if n := s.count(t, "reserve"); n != kills+1 {
			t.Errorf("%d charges of %d questions", n, kills+1)
		}
		s.expectSpent(t, "ana", fmt.Sprint(kills+1))
	}
}
