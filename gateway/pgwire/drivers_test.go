package pgwire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/pgtest"
)

// TestErrorsAreNotHeldBack: an error of the extended protocol is sent at once, though the Flush behind it is skipped: asyncpg sends its
// Sync when it has read the error.
func TestErrorsAreNotHeldBack(t *testing.T) {
	r := opened(t, gatewaytest.Options{}, nil).hello(t, nil)
	r.send(&pgproto3.Parse{Query: "SELEKT"}, &pgproto3.Describe{ObjectType: 'S'}, new(pgproto3.Flush))
	r.expect(new(pgproto3.ErrorResponse))
	r.send(new(pgproto3.Sync))
	r.expect(new(pgproto3.ReadyForQuery))
}

// TestBinaryCopyMessages: the head of a binary COPY stands in one message with what follows it, as PostgreSQL sends it.
func TestBinaryCopyMessages(t *testing.T) {
	r := openedOver(t, pgtest.Protected(t, typesDDL), typesPolicy).hello(t, nil)
	for where, want := range map[string][]int{"true": {19 + 10, 10, 2}, "false": {19 + 2}} {
		r.send(&pgproto3.Query{String: "COPY (SELECT id FROM things WHERE " + where + " ORDER BY id) TO STDOUT (FORMAT binary)"})
		r.expect(new(pgproto3.CopyOutResponse))
		for i, length := range want {
			data, ok := r.receive().(*pgproto3.CopyData)
			if !ok || len(data.Data) != length || bytes.HasPrefix(data.Data, []byte("PGCOPY\n\xff\r\n\x00")) != (i == 0) {
				t.Fatalf("WHERE %s: message %d is %+v, want one of %d bytes", where, i, data, length)
			}
		}
		r.expect(new(pgproto3.CopyDone))
		r.until("ReadyForQuery")
	}
}

// TestDatesWithAZone: the zone behind a date is left out, as PostgreSQL does. pgjdbc sends one; what else follows a date is no date.
func TestDatesWithAZone(t *testing.T) {
	conn := openedOver(t, pgtest.Protected(t, typesDDL), typesPolicy).connect(t, priced, nil)
	for _, zone := range []string{"", " +00", " -08", " +05:30", " +05:30:15"} {
		if got := table(t, conn, "SELECT id FROM things WHERE j = $1", "2020-02-29"+zone); len(got) != 1 || got[0][0] != "1" {
			t.Errorf("%q: %v", zone, got)
		}
	}
	for _, other := range []string{"2020-02-29 x", "2020-02-30 +00", "2020-02-29 +00 +00"} {
		_, err := conn.Exec(t.Context(), "SELECT id FROM things WHERE j = $1", other)
		if err == nil || !strings.Contains(err.Error(), "is not a value of type date") {
			t.Errorf("%q: %v", other, err)
		}
	}
}

// TestTransactionsBeginWithTheDefaults: the modes of a transaction are those of the session until it says others.
func TestTransactionsBeginWithTheDefaults(t *testing.T) {
	conn := opened(t, gatewaytest.Options{}, nil).connect(t, "", nil)
	for _, c := range []struct{ sql, want string }{
		{"SET default_transaction_deferrable = off", "read committed"},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "serializable"},
		{"BEGIN", "serializable"},
		{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "repeatable read"},
		{"COMMIT", "serializable"},
		{"BEGIN ISOLATION LEVEL READ COMMITTED", "read committed"},
		{"ROLLBACK", "serializable"},
		{"RESET ALL", "read committed"},
	} {
		if _, err := conn.Exec(t.Context(), c.sql); err != nil {
			t.Fatal(c.sql, err)
		}
		if got := table(t, conn, "SHOW transaction_isolation")[0][0]; got != c.want {
			t.Errorf("after %s: %s, want %s", c.sql, got, c.want)
		}
	}
}
