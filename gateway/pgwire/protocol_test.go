package pgwire

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

const (
	grouped = "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY region" // three rows
	counted = "SELECT count(*) AS n FROM people"
)

// TestStatesHaveACode: every code of docs/errors.md, which lists all of them, has an SQLSTATE, and what is no code has none.
func TestStatesHaveACode(t *testing.T) {
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile("(?m)^\\| `([a-z-]+(?:/[a-z-]+)?)` ").FindAllStringSubmatch(string(page), -1)
	if len(codes) < 50 {
		t.Fatalf("%d codes", len(codes))
	}
	for _, m := range codes {
		if state := stateOf(fault.Code(m[1])); !regexp.MustCompile(`^[0-9A-Z]{5}$`).MatchString(state) {
			t.Errorf("%s has the SQLSTATE %q", m[1], state)
		}
	}
	for code, want := range map[fault.Code]string{"": "", "other/thing": "", "sql/syntax": "42601", "sql/unknown-table": "42P01",
		"policy/unit-column": "42501", "plan/step": "42501", "budget/exhausted": "53400", "budget/cancelled": "57014",
		"request/no-price": "22023", "request/in-flight": "55006", "request/too-many": "53300", "auth/expired": "28000",
		"data/unavailable": "57P03", "internal": "XX000", "internal/unverified": "XX000", "internal/unprintable": "XX000"} {
		if got := stateOf(code); got != want {
			t.Errorf("%s has the SQLSTATE %q, want %q", code, got, want)
		}
	}
	unknown := *fault.AuthForbidden("secret")
	unknown.Code = "other/thing"
	if r := refusalOf(&unknown, nil); r.state != stateInternal || strings.Contains(r.text, "secret") {
		t.Errorf("a code without a state: %+v", r)
	}
}

func TestPositions(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		at     fault.Position
		want   int
	}{
		{"SELECT x", 0, fault.Position{}, 0},
		{"SELECT x", 0, fault.Position{Line: 1, Column: 8}, 8},
		{"SELECT x", 10, fault.Position{Line: 1, Column: 8}, 18},
		{"SELECT\n 'é',\n x", 3, fault.Position{Line: 3, Column: 2}, 3 + 7 + 6 + 2},
		{"SELECT x", 0, fault.Position{Line: 2, Column: 1}, 0},
	} {
		if got := (&place{c.text, c.offset}).position(c.at); got != c.want {
			t.Errorf("%q %v: %d, want %d", c.text, c.at, got, c.want)
		}
	}
	if got := (*place)(nil).position(fault.Position{Line: 1, Column: 1}); got != 0 {
		t.Errorf("without a place: %d", got)
	}
}

// TestSimple: what a Query is answered with, message by message.
func TestSimple(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	for _, c := range []struct {
		name, sql string
		want      []string
	}{
		{"nothing", " -- nothing", []string{"EmptyQueryResponse", "ReadyForQuery I"}},
		{"rows", grouped, []string{"NoticeResponse NOTICE 00000", "RowDescription", "DataRow", "DataRow", "DataRow",
			"CommandComplete SELECT 3",
			"ReadyForQuery I"}},
		{"a replay", grouped + ";", []string{"NoticeResponse NOTICE 00000", "RowDescription", "DataRow", "DataRow", "DataRow",
			"CommandComplete SELECT 3", "ReadyForQuery I"}},
		{"a replay without notices", "SET noisegate.notices = off; " + grouped + "; RESET ALL", []string{"CommandComplete SET",
			"RowDescription", "DataRow", "DataRow", "DataRow", "CommandComplete SELECT 3", "CommandComplete RESET", "ReadyForQuery I"}},
		{"several", "SET noisegate.notices = off; " + counted + "; SHOW noisegate.epsilon; RESET ALL",
			[]string{"CommandComplete SET", "RowDescription",
				"DataRow", "CommandComplete SELECT 1", "RowDescription", "DataRow", "CommandComplete SHOW", "CommandComplete RESET",
				"ReadyForQuery I"}},
		{"an error in the middle", "SHOW work_mem; SELECT nothing FROM people; SHOW work_mem", []string{"RowDescription", "DataRow",
			"CommandComplete SHOW", "ErrorResponse ERROR 42703", "ReadyForQuery I"}},
		{"syntax", "SHOW work_mem; SELEKT 1", []string{"ErrorResponse ERROR 42601", "ReadyForQuery I"}},
		{"a write", "DELETE FROM people", []string{"ErrorResponse ERROR 25006", "ReadyForQuery I"}},
		{"rows of people", "SELECT * FROM people", []string{"ErrorResponse ERROR 42501", "ReadyForQuery I"}},
		{"a table that is not there", "SELECT count(*) FROM nobody", []string{"ErrorResponse ERROR 42P01", "ReadyForQuery I"}},
		{"a hidden column", "SELECT count(secret) FROM people", []string{"ErrorResponse ERROR 42703", "ReadyForQuery I"}},
		{"a parameter", "SELECT count(*) FROM people WHERE age > $1", []string{"ErrorResponse ERROR 42P02", "ReadyForQuery I"}},
		{"the catalog", "SELECT relname FROM pg_class", []string{"ErrorResponse ERROR 57P03", "ReadyForQuery I"}},
		{"a constant", "SELECT 1", []string{"RowDescription", "DataRow", "CommandComplete SELECT 1", "ReadyForQuery I"}},
		{"EXPLAIN", "EXPLAIN (FORMAT JSON) " + counted, []string{"RowDescription", "DataRow", "CommandComplete EXPLAIN",
			"ReadyForQuery I"}},
		{"EXPLAIN ANALYZE", "EXPLAIN ANALYZE " + counted, []string{"ErrorResponse ERROR 0A000", "ReadyForQuery I"}},
		{"COPY", "COPY (" + grouped + ") TO STDOUT", []string{"NoticeResponse NOTICE 00000", "CopyOutResponse", "CopyData",
			"CopyData", "CopyData", "CopyDone", "CommandComplete COPY 3", "ReadyForQuery I"}},
		{"COPY of a refused question", "COPY (SELECT * FROM people) TO STDOUT", []string{"ErrorResponse ERROR 42501", "ReadyForQuery I"}},
		{"LISTEN", "LISTEN x", []string{"ErrorResponse ERROR 0A000", "ReadyForQuery I"}},
		{"a price that is none", "SET noisegate.epsilon = -1", []string{"ErrorResponse ERROR 22023", "ReadyForQuery I"}},
		{"an unknown setting", "SET noisegate.epsilom = 1", []string{"ErrorResponse ERROR 42704", "ReadyForQuery I"}},
		{"SHOW of what does not exist", "SHOW data_directory", []string{"ErrorResponse ERROR 42704", "ReadyForQuery I"}},
		{"a setting that is fixed", "SET noisegate.budget = 1", []string{"ErrorResponse ERROR 55P02", "ReadyForQuery I"}},
		{"a reported setting", "SET application_name = 'x'; RESET application_name; SET TIME ZONE 'Europe/Berlin'",
			[]string{"CommandComplete SET",
				"CommandComplete RESET", "CommandComplete SET", "ParameterStatus", "ParameterStatus", "ReadyForQuery I"}},
		{"COMMIT of nothing", "COMMIT", []string{"NoticeResponse WARNING 25P01", "CommandComplete COMMIT", "ReadyForQuery I"}},
		{"a savepoint of nothing", "SAVEPOINT a", []string{"ErrorResponse ERROR 25P01", "ReadyForQuery I"}},
		{"PREPARE", "PREPARE q (int) AS SELECT count(*) AS n FROM people WHERE age > $1; EXECUTE q(1000); EXECUTE q; DEALLOCATE q",
			[]string{"CommandComplete PREPARE", "NoticeResponse NOTICE 00000", "RowDescription", "DataRow", "CommandComplete SELECT 1",
				"ErrorResponse ERROR 42601", "ReadyForQuery I"}},
		{"DEALLOCATE", "DEALLOCATE q; DEALLOCATE q", []string{"CommandComplete DEALLOCATE", "ErrorResponse ERROR 26000",
			"ReadyForQuery I"}},
		{"as Tableau does", `BEGIN;declare "x" cursor with hold for ` + grouped + `;fetch 2 in "x"`, []string{"CommandComplete BEGIN",
			"CommandComplete DECLARE CURSOR", "NoticeResponse NOTICE 00000", "RowDescription", "DataRow", "DataRow",
			"CommandComplete FETCH 2", "ReadyForQuery T"}},
		{"and goes on", `COMMIT;fetch 2 in "x";fetch 2 in "x";MOVE ALL IN "x";close "x"`, []string{"CommandComplete COMMIT",
			"RowDescription", "DataRow",
			"CommandComplete FETCH 1", "RowDescription", "CommandComplete FETCH 0", "CommandComplete MOVE 0",
			"CommandComplete CLOSE CURSOR",
			"ReadyForQuery I"}},
		{"a cursor outside", "DECLARE c CURSOR FOR " + grouped, []string{"ErrorResponse ERROR 25P01", "ReadyForQuery I"}},
		{"a failed transaction", "BEGIN; SELECT nothing FROM people", []string{"CommandComplete BEGIN", "ErrorResponse ERROR 42703",
			"ReadyForQuery E"}},
		{"goes on failing", counted, []string{"ErrorResponse ERROR 25P02", "ReadyForQuery E"}},
		{"and is rolled back", "COMMIT", []string{"CommandComplete ROLLBACK", "ReadyForQuery I"}},
		{"savepoints", "BEGIN; SAVEPOINT a; SELECT nothing FROM people", []string{"CommandComplete BEGIN", "CommandComplete SAVEPOINT",
			"ErrorResponse ERROR 42703", "ReadyForQuery E"}},
		{"lead back", "ROLLBACK TO a; SHOW work_mem; RELEASE a; ROLLBACK TO a", []string{"CommandComplete ROLLBACK",
			"RowDescription", "DataRow",
			"CommandComplete SHOW", "CommandComplete RELEASE", "ErrorResponse ERROR 3B001", "ReadyForQuery E"}},
		{"the end", "ROLLBACK", []string{"CommandComplete ROLLBACK", "ReadyForQuery I"}},
		{"DISCARD", "DISCARD ALL", []string{"CommandComplete DISCARD ALL", "ParameterStatus", "ReadyForQuery I"}},
		{"a session that is not there", "SELECT pg_cancel_backend(1)", []string{"NoticeResponse WARNING 01000", "RowDescription",
			"DataRow",
			"CommandComplete SELECT 1", "ReadyForQuery I"}},
	} {
		r := d.session(t)
		r.send(&pgproto3.Query{String: c.sql})
		if diff := cmp.Diff(c.want, r.until("ReadyForQuery")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// session is the one session of a test, with a price.
func (d *door) session(t *testing.T) *raw {
	t.Helper()
	if d.one == nil {
		d.one = d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.1"})
	}
	return d.one
}

// TestExtended: messages of the extended protocol, in good order and in others.
func TestExtended(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	parse := func(name, sql string) *pgproto3.Parse { return &pgproto3.Parse{Name: name, Query: sql} }
	bind := func(portal, statement string) *pgproto3.Bind {
		return &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: statement}
	}
	describe := func(kind byte, name string) *pgproto3.Describe {
		return &pgproto3.Describe{ObjectType: kind, Name: name}
	}
	execute := func(portal string, rows uint32) *pgproto3.Execute {
		return &pgproto3.Execute{Portal: portal, MaxRows: rows}
	}
	sync := new(pgproto3.Sync)
	bad := "ErrorResponse ERROR "
	for _, c := range []struct {
		name string
		says []pgproto3.FrontendMessage
		want []string
	}{
		{"as drivers do", []pgproto3.FrontendMessage{parse("", grouped), describe('S', ""), bind("", ""), describe('P', ""),
			execute("", 0), sync},
			[]string{"ParseComplete", "ParameterDescription", "RowDescription", "BindComplete", "RowDescription",
				"NoticeResponse NOTICE 00000",
				"DataRow", "DataRow", "DataRow", "CommandComplete SELECT 3", "ReadyForQuery I"}},
		{"a limit below", []pgproto3.FrontendMessage{bind("", ""), execute("", 2), execute("", 2), execute("", 2), sync},
			[]string{"BindComplete", "NoticeResponse NOTICE 00000", "DataRow", "DataRow", "PortalSuspended", "DataRow",
				"CommandComplete SELECT 1", "CommandComplete SELECT 0", "ReadyForQuery I"}},
		{"a limit of just the rows", []pgproto3.FrontendMessage{bind("", ""), execute("", 3), execute("", 3), sync},
			[]string{"BindComplete", "NoticeResponse NOTICE 00000", "DataRow", "DataRow", "DataRow", "PortalSuspended",
				"CommandComplete SELECT 0", "ReadyForQuery I"}},
		{"a limit above", []pgproto3.FrontendMessage{bind("", ""), execute("", 4), sync},
			[]string{"BindComplete", "NoticeResponse NOTICE 00000", "DataRow", "DataRow", "DataRow", "CommandComplete SELECT 3",
				"ReadyForQuery I"}},
		{"a portal ends at Sync", []pgproto3.FrontendMessage{execute("", 0), sync}, []string{bad + stateNoCursor, "ReadyForQuery I"}},
		{"nothing", []pgproto3.FrontendMessage{parse("", ""), bind("", ""), describe('P', ""), execute("", 0), sync},
			[]string{"ParseComplete", "BindComplete", "NoData", "EmptyQueryResponse", "ReadyForQuery I"}},
		{"errors skip to Sync", []pgproto3.FrontendMessage{parse("", "SELEKT"), bind("", ""), &pgproto3.Query{String: counted},
			new(pgproto3.Flush),
			describe('S', "none"), sync}, []string{bad + stateSyntax, "ReadyForQuery I"}},
		{"the second of a pipeline fails", []pgproto3.FrontendMessage{parse("", "SHOW work_mem"), bind("", ""), execute("", 0),
			parse("", "SELECT x FROM people"),
			bind("", ""), execute("", 0), parse("", "SHOW work_mem"), bind("", ""), execute("", 0), sync},
			[]string{"ParseComplete", "BindComplete", "DataRow", "CommandComplete SHOW", "ParseComplete", "BindComplete",
				bad + stateNoColumn,
				"ReadyForQuery I"}},
		{"two statements", []pgproto3.FrontendMessage{parse("", "SHOW work_mem; SHOW work_mem"), sync}, []string{bad + stateSyntax,
			"ReadyForQuery I"}},
		{"a write", []pgproto3.FrontendMessage{parse("", "DELETE FROM people"), sync}, []string{bad + "25006", "ReadyForQuery I"}},
		{"no such statement", []pgproto3.FrontendMessage{bind("", "none"), sync, describe('S', "none"), sync},
			[]string{bad + stateNoStatement, "ReadyForQuery I"}},
		{"the rest of it", []pgproto3.FrontendMessage{}, []string{bad + stateNoStatement, "ReadyForQuery I"}},
		{"a name twice", []pgproto3.FrontendMessage{parse("a", counted), parse("a", counted), sync},
			[]string{"ParseComplete", bad + stateStatementTaken, "ReadyForQuery I"}},
		{"a portal twice", []pgproto3.FrontendMessage{bind("p", "a"), bind("p", "a"), sync},
			[]string{"BindComplete", bad + stateCursorTaken, "ReadyForQuery I"}},
		{"closed", []pgproto3.FrontendMessage{&pgproto3.Close{ObjectType: 'S', Name: "a"}, &pgproto3.Close{ObjectType: 'P',
			Name: "none"}, bind("", "a"), sync},
			[]string{"CloseComplete", "CloseComplete", bad + stateNoStatement, "ReadyForQuery I"}},
		{"too few values", []pgproto3.FrontendMessage{parse("", "SELECT count(*) FROM people WHERE age > $1"), bind("", ""), sync},
			[]string{"ParseComplete", bad + stateProtocol, "ReadyForQuery I"}},
		{"a value that is none", []pgproto3.FrontendMessage{parse("", "SELECT count(*) FROM people WHERE age > $1"),
			&pgproto3.Bind{Parameters: [][]byte{[]byte("x")}}, sync}, []string{"ParseComplete", bad + stateBadText, "ReadyForQuery I"}},
		{"binary that is none", []pgproto3.FrontendMessage{parse("", "SELECT count(*) FROM people WHERE age > $1"),
			&pgproto3.Bind{Parameters: [][]byte{{1}}, ParameterFormatCodes: []int16{1}}, sync}, []string{"ParseComplete",
			bad + stateBinary, "ReadyForQuery I"}},
		{"a format that is none", []pgproto3.FrontendMessage{parse("", "SELECT count(*) FROM people WHERE age > $1"),
			&pgproto3.Bind{Parameters: [][]byte{{1}}, ParameterFormatCodes: []int16{2}}, sync}, []string{"ParseComplete",
			bad + stateValue, "ReadyForQuery I"}},
		{"a type that is none", []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT count(*) FROM people WHERE age > $1",
			ParameterOIDs: []uint32{17}},
			sync}, []string{bad + stateUnsupported, "ReadyForQuery I"}},
		{"a command twice", []pgproto3.FrontendMessage{parse("", "SET work_mem = 1"), bind("", ""), execute("", 0), execute("", 0), sync},
			[]string{"ParseComplete", "BindComplete", "CommandComplete SET", bad + stateNotReady, "ReadyForQuery I"}},
		{"COPY", []pgproto3.FrontendMessage{parse("", "COPY ("+counted+") TO STDOUT"), bind("", ""), describe('P', ""), execute("",
			0), sync},
			[]string{"ParseComplete", "BindComplete", "NoData", "NoticeResponse NOTICE 00000", "CopyOutResponse", "CopyData", "CopyDone",
				"CommandComplete COPY 1", "ReadyForQuery I"}},
		{"EXPLAIN", []pgproto3.FrontendMessage{parse("", "EXPLAIN (FORMAT JSON) "+counted), bind("", ""), describe('P', ""),
			execute("", 0), sync},
			[]string{"ParseComplete", "BindComplete", "RowDescription", "DataRow", "CommandComplete EXPLAIN", "ReadyForQuery I"}},
		{"the catalog", []pgproto3.FrontendMessage{parse("", "SELECT relname FROM pg_class"), describe('S', ""), sync},
			[]string{"ParseComplete", bad + stateUnavailable, "ReadyForQuery I"}},
		{"a cursor as a portal", []pgproto3.FrontendMessage{parse("", "BEGIN"), bind("", ""), execute("", 0), parse("",
			"DECLARE c CURSOR FOR "+grouped),
			bind("", ""), execute("", 0), describe('P', "c"), parse("", "FETCH FORWARD 2 FROM c"), describe('S', ""), bind("", ""),
			execute("", 0), sync},
			[]string{"ParseComplete", "BindComplete", "CommandComplete BEGIN", "ParseComplete", "BindComplete",
				"CommandComplete DECLARE CURSOR",
				"RowDescription", "ParseComplete", "ParameterDescription", "RowDescription", "BindComplete",
				"NoticeResponse NOTICE 00000", "DataRow", "DataRow", "CommandComplete FETCH 2", "ReadyForQuery T"}},
		{"an error fails the transaction", []pgproto3.FrontendMessage{bind("", "none"), sync}, []string{bad + stateNoStatement,
			"ReadyForQuery E"}},
		{"in which nothing is parsed", []pgproto3.FrontendMessage{parse("", counted), sync}, []string{bad + stateFailedTransaction,
			"ReadyForQuery E"}},
		{"but its end", []pgproto3.FrontendMessage{parse("", "ROLLBACK"), bind("", ""), execute("", 0), sync},
			[]string{"ParseComplete", "BindComplete", "CommandComplete ROLLBACK", "ReadyForQuery I"}},
		{"the function call", []pgproto3.FrontendMessage{&pgproto3.FunctionCall{Function: 1}}, []string{bad + stateUnsupported,
			"ReadyForQuery I"}},
	} {
		r := d.session(t)
		r.send(c.says...)
		if diff := cmp.Diff(c.want, r.until("ReadyForQuery")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestMessagesAreLimited: one that is too long or no message at all ends the session, statements and portals have a number.
func TestMessagesAreLimited(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	for name, c := range map[string]struct {
		says  []byte
		state string
	}{
		"too long":          {binary.BigEndian.AppendUint32([]byte{'Q'}, maxMessage+5), stateTooLarge},
		"a length below 4":  {binary.BigEndian.AppendUint32([]byte{'Q'}, 3), stateProtocol},
		"no message":        {binary.BigEndian.AppendUint32([]byte{'!'}, 4), stateProtocol},
		"a password":        {append(binary.BigEndian.AppendUint32([]byte{'p'}, 6), 'x', 0), stateProtocol},
		"a Bind of nothing": {binary.BigEndian.AppendUint32([]byte{'B'}, 4), stateProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.hello(t, nil)
			_, _ = r.Write(c.says)
			if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+c.state {
				t.Error(words)
			}
		})
	}
	r := d.hello(t, nil)
	for i := range maxStatements + 1 {
		r.front.Send(&pgproto3.Parse{Name: fmt.Sprint("s", i), Query: "SHOW work_mem"})
	}
	r.send(new(pgproto3.Sync))
	if words := r.until("ReadyForQuery"); len(words) != maxStatements+2 || words[maxStatements] != "ErrorResponse ERROR "+stateTooLarge {
		t.Error(len(words), words[len(words)-2:])
	}
	for i := range maxPortals + 1 {
		r.front.Send(&pgproto3.Bind{DestinationPortal: fmt.Sprint("p", i), PreparedStatement: "s0"})
	}
	r.send(new(pgproto3.Sync))
	if words := r.until("ReadyForQuery"); len(words) != maxPortals+2 || words[maxPortals] != "ErrorResponse ERROR "+stateTooLarge {
		t.Error(len(words), words[len(words)-2:])
	}
}

// TestCancel: the right key stops what runs, at a boundary, and its charge stands; a wrong key does nothing.
//
// needs: postgres
func TestCancel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	d := opened(t, gatewaytest.Options{Quantum: 8 * time.Second}, nil) // a question takes so long: the keys come before its end
	conn := d.connect(t, priced, nil)
	others := map[string]*raw{}
	for _, who := range []string{"eve", "ana"} {
		others[who] = d.hello(t, map[string]string{"user": who})
	}
	done := make(chan error, 1)
	charges := d.Charges(t)
	ask := func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), counted)
		done <- err
	}
	go ask()
	d.waitForCharge(t, &charges)
	pid, key := conn.PgConn().PID(), conn.PgConn().SecretKey()
	wrong := append([]byte{}, key...)
	wrong[0] ^= 1
	for _, secret := range [][]byte{wrong, key[:3], append(key[:4:4], 0), key} {
		r := d.dial(t)
		text, err := (&pgproto3.CancelRequest{ProcessID: pid, SecretKey: secret}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = r.Write(text)
		_, _ = r.Read(make([]byte, 1)) // until the server closes
		if string(secret) == string(key) {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("a wrong key ended the question: %v", err)
		default:
		}
	}
	refused := refusedWith(t, <-done, stateCancelled)
	if !strings.Contains(refused.Hint, "new charge") {
		t.Errorf("hint %q", refused.Hint)
	}
	// Another session of the same analyst may do it by number; another analyst's does not exist.
	go ask()
	d.waitForCharge(t, &charges)
	for _, who := range []string{"eve", "ana"} {
		others[who].send(&pgproto3.Query{String: fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid)})
		words := others[who].until("ReadyForQuery")
		if warned := words[0] == "NoticeResponse WARNING 01000"; warned != (who == "eve") {
			t.Error(who, words)
		}
	}
	_ = refusedWith(t, <-done, stateCancelled)
}

// waitForCharge returns once a question that runs was charged: the ledger has one more charge than before.
func (d *door) waitForCharge(t *testing.T, before *int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); d.Charges(t) <= *before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no question is charged within 10 s")
		}
	}
	*before++
}

// FuzzMessages: whatever a client says once it is known, there is no panic, and what is left of the session fits its limits.
func FuzzMessages(f *testing.F) {
	for _, m := range []pgproto3.FrontendMessage{&pgproto3.Query{String: "SHOW work_mem; BEGIN"},
		&pgproto3.Parse{Query: "SELECT $1::int"},
		&pgproto3.Bind{Parameters: [][]byte{{0, 0, 0, 1}}, ParameterFormatCodes: []int16{1}}, &pgproto3.Describe{ObjectType: 'S'},
		&pgproto3.Execute{},
		new(pgproto3.Sync), &pgproto3.Query{String: "DECLARE c CURSOR WITH HOLD FOR SELECT 1; FETCH ALL FROM c"}} {
		text, err := m.Encode(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	d := opened(f, gatewaytest.Options{}, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		conn := &script{says: text}
		client := &ahead{Conn: conn}
		c := &session{server: d.server, conn: client, backend: pgproto3.NewBackend(client, conn), token: "ana:analyst",
			dataset: gatewaytest.Dataset}
		conn.waits = c.isAsking
		c.who, _ = d.tokens.Verify(t.Context(), c.token)
		if refused := c.settle(t.Context(), nil); refused != nil {
			t.Fatal(refused)
		}
		c.serve(t.Context())
		if strings.Contains(d.log.String(), "panic") {
			t.Fatalf("a panic: %s", d.log.String())
		}
		if refused := c.roomFor(0); refused != nil || len(c.portals) > maxPortals || len(c.statements) > maxStatements {
			t.Fatalf("%v, %d portals, %d statements", refused, len(c.portals), len(c.statements))
		}
	})
}

// FuzzArguments: binary values of parameters are read or refused, in bounded memory.
func FuzzArguments(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1}, uint32(23))
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 5}, uint32(1700))
	f.Add([]byte{0x7f, 0xff, 0x7f, 0xff, 0, 0, 0x7f, 0xff, 0, 5}, uint32(1700))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 255, 255, 255, 255}, uint32(1007))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 127, 255, 255, 255, 0, 0, 0, 1, 0, 0, 0, 1, '"'}, uint32(1009))
	f.Fuzz(func(t *testing.T, text []byte, oid uint32) {
		codec := newCodec()
		if !codec.takes(oid) {
			return
		}
		most := 10*len(text) + 1000
		if codec.elementOf(oid) != 0 {
			most *= 6 // 12 bytes can be a number of 512 digits
		}
		v, refused := codec.argument(text, oid, binaryFormat, 1)
		if refused == nil && len(v) > most {
			t.Fatalf("%d bytes of %d", len(v), len(text))
		}
	})
}

// TestPoolReset: what asyncpg says when a connection comes back to its pool is answered in both protocols, also where there is no catalog.
func TestPoolReset(t *testing.T) {
	conn := opened(t, gatewaytest.Options{}, nil).connect(t, "", nil).PgConn()
	results, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, r := range results {
		tags = append(tags, r.CommandTag.String())
	}
	if want := []string{"SELECT 1", "CLOSE CURSOR ALL", "UNLISTEN", "RESET"}; !slices.Equal(tags, want) {
		t.Errorf("got %q, want %q", tags, want)
	}
	for _, format := range []int16{textFormat, binaryFormat} {
		got := conn.ExecParams(t.Context(), "SELECT pg_catalog.pg_advisory_unlock_all()", nil, nil, nil, []int16{format}).Read()
		if got.Err != nil || len(got.Rows) != 1 || got.Rows[0][0] == nil || len(got.Rows[0][0]) != 0 {
			t.Errorf("format %d: %v, %v", format, got.Rows, got.Err)
			continue
		}
		if f := got.FieldDescriptions[0]; f.Name != "pg_advisory_unlock_all" || f.DataTypeOID != voidOID || f.DataTypeSize != 4 {
			t.Errorf("the column is %+v", f)
		}
	}
}
