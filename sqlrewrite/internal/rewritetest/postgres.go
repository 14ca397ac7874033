package rewritetest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// MustExec runs SQL, which must not fail.
func MustExec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
