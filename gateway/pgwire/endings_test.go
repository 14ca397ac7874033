package pgwire

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/gateway/gatewaytest"
)

// TestNoTextEndsTheSession explains texts that a planner could stumble over: each is answered, or refused for what it is.
//
// covers: A44
func TestNoTextEndsTheSession(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil)
	for name, sql := range gatewaytest.Endings() {
		_, err := conn.Exec(t.Context(), "EXPLAIN "+sql, pgx.QueryExecModeSimpleProtocol)
		var refused *pgconn.PgError
		if err != nil && (!errors.As(err, &refused) || refused.Code[:2] == "XX" || refused.Severity == "FATAL") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "EXPLAIN SELECT count(*) FROM people"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
