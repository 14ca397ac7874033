package faults

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/integration/invariants"
)

// TestJudgeFindsWhatIsWrong makes each kind of damage that no fault may make, as a superuser who switches triggers off, and wants the
// judge to name it. Without this, a campaign in which nothing is found would mean nothing.
func TestJudgeFindsWhatIsWrong(t *testing.T) {
	s := newSite(t)
	url := s.inProcess(t, newTrap(beforeStore, 3, func() { panic("a charge that stays open") }), nil)
	s.refill(t, url, 100)
	n := &numbers{}
	ana := api.NewClient(url, "ana0")
	for range 5 {
		i := n.next()
		if answer, err := ana.Query(t.Context(), question(i), ""); err == nil {
			s.judge.Told.Told("", answer)
		}
	}
	s.check(t, "nothing")
	conn, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for damage, want := range map[string]string{
		"UPDATE noisegate.charge SET epsilon = epsilon + 1000000000000000 WHERE state = 'settled'":                            "I1",
		"ALTER TABLE noisegate.account DROP CONSTRAINT within_the_ceiling":                                                    "I1",
		"DELETE FROM noisegate.charge WHERE state = 'settled'":                                                                "I2",
		"UPDATE noisegate.charge SET state = 'expired', answer = NULL WHERE state = 'settled'":                                "I3",
		"DELETE FROM noisegate.entry WHERE kind = 'settle'":                                                                   "I3",
		"UPDATE noisegate.entry SET charge_id = 'x' WHERE kind = 'settle'":                                                    "I3",
		"UPDATE noisegate.account SET used_epsilon = used_epsilon - 1 WHERE used_epsilon > 0":                                 "I4",
		"UPDATE noisegate.entry SET epsilon = epsilon - 1 WHERE kind = 'settle'":                                              "I4",
		"GRANT DELETE ON noisegate.charge TO noisegate":                                                                       "I4",
		"GRANT UPDATE (epsilon) ON noisegate.entry TO noisegate":                                                              "I4",
		"ALTER TABLE noisegate.entry DISABLE TRIGGER append_only":                                                             "I4",
		"DROP TRIGGER append_only ON noisegate.entry":                                                                         "I4",
		"UPDATE noisegate.charge SET answer = replace(convert_from(answer, 'UTF8'), '1', '2')::bytea WHERE state = 'settled'": "I6",
		"DROP INDEX noisegate.charge_question; UPDATE noisegate.charge SET fingerprint = decode(repeat('00', 32), 'hex')":     "I6",
		"UPDATE noisegate.charge SET epsilon = epsilon - 1 WHERE state = 'open'":                                              "I7",
		"UPDATE noisegate.entry SET hash = sha256(hash)":                                                                      "I5",
		"DELETE FROM noisegate.entry WHERE seq = (SELECT max(seq) FROM noisegate.entry)":                                      "I5",
		"DELETE FROM noisegate.chain":                                                                                         "I5",
		"UPDATE noisegate.charge SET epsilon = 0, rho = 0 WHERE state = 'settled'":                                            "I8",
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Conn().PgConn().Exec(t.Context(), "SET LOCAL session_replication_role = replica; "+damage).ReadAll(); err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		judge := s.judge // with what it saw before
		if got := judge.CheckIn(t.Context(), tx); got == nil || !strings.Contains("\n"+got.Error(), "\n"+want+": ") {
			t.Errorf("%s: the judge says %v, want %s", damage, got, want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.check(t, "taking all of it back")
}

// TestAnswersUnderOneKeyAreEqual gives the judge answers that contradict each other.
//
// covers: I6
func TestAnswersUnderOneKeyAreEqual(t *testing.T) {
	for name, second := range map[string]*api.QueryResponse{
		"two releases": {ReleaseID: "b"},
		"two results":  {ReleaseID: "a", Result: api.Result{Columns: []api.Column{{Name: "n"}}}},
	} {
		told := &invariants.Answered{}
		told.Told("key", &api.QueryResponse{ReleaseID: "a"})
		told.Told("key", second)
		if got := told.Contradictions(); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
