package pgwire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/pgwire"
)

// TestAtMost: what a session may be charged at most for a question is a setting, and what is no price is refused when it is set.
func TestAtMost(t *testing.T) {
	d := pgwire.OpenedWith(t, func(*gatewaytest.Gateway) pgwire.Catalog { return nil })
	conn := d.Connect(t, "")
	for _, wrong := range []string{"1", "epsilon", "epsilon:", "epsilon:1, epsilon:2", "delta:1e-9", "epsilon:-1", "epsilom:1", "epsilon:x"} {
		if _, err := conn.Exec(t.Context(), "SET noisegate.at_most = '"+wrong+"'"); err == nil {
			t.Errorf("%s is a price", wrong)
		}
	}
	before := d.Entries(t)
	for _, text := range []string{"SET noisegate.epsilon = 1", "SET noisegate.at_most = 'epsilon:0.999999999999, delta:1e-9'"} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var refused *pgconn.PgError
	if _, err := conn.Exec(t.Context(), "SELECT count(*) FROM people"); !errors.As(err, &refused) ||
		!strings.Contains(refused.Message+refused.Detail, "at_most") || d.Entries(t) != before {
		t.Errorf("%v", err)
	}
	if _, err := conn.Exec(t.Context(), "SET noisegate.at_most = 'epsilon: 1'"); err != nil {
		t.Fatal(err)
	}
	pgwire.Table(t, conn, "SELECT count(*) FROM people")
}

// TestRequireUseful: the part of the rows that a session wants to be useful is a setting, and EXPLAIN says what a useful row has.
func TestRequireUseful(t *testing.T) {
	d := pgwire.OpenedWith(t, func(*gatewaytest.Gateway) pgwire.Catalog { return nil })
	conn := d.Connect(t, "")
	for _, wrong := range []string{"0", "1.01", "-1", "half", "NaN"} {
		if _, err := conn.Exec(t.Context(), "SET noisegate.require_useful = '"+wrong+"'"); err == nil {
			t.Errorf("%s is a part", wrong)
		}
	}
	for _, text := range []string{"SET noisegate.epsilon = 1", "SET noisegate.require_useful = 1"} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	lines := fmt.Sprint(pgwire.Table(t, conn, "EXPLAIN SELECT count(*) AS n FROM people"))
	if !strings.Contains(lines, "a row is useful from n = 12 on") {
		t.Errorf("%s", lines)
	}
	pgwire.Table(t, conn, "SELECT count(*) AS n FROM people") // the policy says of nobody how many there are
}
