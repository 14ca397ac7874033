package pgexec_test

import (
	"testing"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// A foreign table that becomes a partition between the pins and the plan of a statement, which its locks do not hold
// up, is noticed before an answer leaves: the question is charged, as it may have read rows, and fails as nobody's
// fault. A plain one is a partition like others.
//
// needs: postgres
// covers: R1
func TestPartitionAttachedBehindThePins(t *testing.T) {
	for name, c := range map[string]struct {
		attach string
		stale  bool
	}{
		"foreign":         {"ALTER TABLE calls ATTACH PARTITION far DEFAULT", true},
		"foreign, deeper": {"ALTER TABLE calls ATTACH PARTITION further DEFAULT", true},
		"plain":           {"ALTER TABLE calls ATTACH PARTITION near DEFAULT", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, provenDDL, `CREATE FOREIGN TABLE far (who int, day int) SERVER away; CREATE TABLE near (who int, day int);
				CREATE TABLE further (who int, day int) PARTITION BY RANGE (who);
				CREATE FOREIGN TABLE furthest PARTITION OF further DEFAULT SERVER away; GRANT SELECT ON ALL TABLES IN SCHEMA public TO noisegate_reader`)
			d := open(t, p, nil)
			pin := provenPin(t, provenSnapshot(t, d, provenPolicy), "calls")
			admin := p.Conn(t, p.DSN)
			statement := sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM public.shops", Values: 1,
				Preconditions: []sqlrewrite.Precondition{pin}}
			if _, err := collect(t, d, statement); err != nil { // else it would be parsed before its transaction, and wait there
				t.Fatal(err)
			}
			// The statement waits, after its transaction looked at the pins, for a lock that another session holds while it attaches.
			if _, err := admin.Exec(t.Context(), "BEGIN; LOCK TABLE shops IN ACCESS EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			outcome := make(chan error, 1)
			go func() {
				_, err := collect(t, d, statement)
				outcome <- err
			}()
			second := p.Conn(t, p.DSN)
			waiting := false
			for deadline := time.Now().Add(blameDeadline); !waiting; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the statement does not begin")
				}
				if err := second.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE relation = 'shops'::regclass AND "+
					"NOT granted)").Scan(&waiting); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := second.Exec(t.Context(), c.attach); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.Exec(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			err := <-outcome
			if !c.stale && err != nil {
				t.Error(err)
			}
			if c.stale && (fault.CodeOf(err) != fault.CodePolicyStale || fault.IsUntouched(err) || !fault.IsExcused(err)) {
				t.Errorf("%v, untouched %v, excused %v; want policy/stale, charged and excused", err, fault.IsUntouched(err), fault.IsExcused(err))
			}
			if _, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1,
				Preconditions: []sqlrewrite.Precondition{pin}}); c.stale != (fault.CodeOf(err) == fault.CodePolicyStale) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
