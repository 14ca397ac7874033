package pgwire

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/gateway/gatewaytest"
)

// TestReplaysSayTheirAge: a replayed answer says when it was released, prepared or not; latest is read anew.
func TestReplaysSayTheirAge(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	var notices []*pgconn.Notice
	conn := d.connect(t, priced, &notices)
	const sql = "SELECT count(*) FROM people"
	table(t, conn, sql)
	for way, ask := range map[string]func(){
		"simple":   func() { table(t, conn, sql, pgx.QueryExecModeSimpleProtocol) },
		"prepared": func() { table(t, conn, sql) },
		"parameters": func() {
			table(t, conn, sql+" WHERE age > $1", 0)
			notices = nil
			table(t, conn, sql+" WHERE age > $1", 0)
		},
		"PREPARE": func() {
			for _, text := range []string{"PREPARE q AS " + sql, "EXECUTE q"} {
				if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatal(err)
				}
			}
		},
		"COPY": func() {
			if _, err := conn.PgConn().CopyTo(t.Context(), new(strings.Builder), "COPY ("+sql+") TO STDOUT"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		notices = nil
		ask()
		if len(notices) != 1 || !strings.Contains(notices[0].Detail, "later rows are not in it; latest costs ε 0.1") ||
			!strings.Contains(notices[0].Detail, " UTC;") || !strings.Contains(notices[0].Message, "a replay of ") {
			t.Errorf("%s: %+v", way, notices)
		}
	}
	if _, err := conn.Exec(t.Context(), "SET noisegate.version = latest"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before := d.Entries(t)
		notices = nil
		table(t, conn, sql)
		if d.Entries(t) == before || len(notices) != 1 ||
			!strings.Contains(notices[0].Message, "; spent ε 0.1; ") {
			t.Errorf("latest: %+v", notices)
		}
	}
}

// TestTextsAreUTF8: bytes that are no UTF-8 are refused with 22021, in each kind of message.
func TestTextsAreUTF8(t *testing.T) {
	conn := opened(t, gatewaytest.Options{}, nil).connect(t, priced, nil)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec} {
		_, err := conn.Exec(t.Context(), "SELECT count(*) FROM people WHERE region = 'no\xffrth'", mode)
		_ = refusedWith(t, err, stateText)
	}
	_, err := conn.PgConn().Exec(t.Context(), "SELECT count(*) FROM people WHERE region = '\xc3'").ReadAll()
	_ = refusedWith(t, err, stateText)
	table(t, conn, "SELECT count(*) FROM people WHERE region = 'Süd'")
}
