package migrations_test

import (
	"testing"

	"noisegate.example/migrations"
)

// A ledger from before the chain keeps what it says: its open charges are what is reserved, and each question's charges
// are numbered, the one that is open or answered last.
func TestChainTakesOverALedger(t *testing.T) {
	d, conn := migratedUpTo(t, 3)
	d.Exec(t, `
		INSERT INTO noisegate.account (dataset, scope, name, origin, policy_version, form, epsilon_cap, rho_cap, delta_cap, total_delta,
			query_epsilon_cap, query_rho_cap, replay_only, epsilon_ceiling, rho_ceiling, delta_ceiling, used_epsilon, used_rho, used_unbounded)
		VALUES ('d', 'dataset', '', 'policy', 1, 'approx', 100, 100, 0, 0, 0, 0, false, 100, 100, 0, 30, 7, 1);
		INSERT INTO noisegate.charge (charge_id, dataset, analyst, account_ids, state, epsilon, unbounded, rho, delta, fingerprint, request, answer, closed_at)
		VALUES ('lost', 'd', 'ana', '{1}', 'expired', 10, false, 0, 0, sha256('q'), '{}', NULL, now()),
			('answered', 'd', 'ana', '{1}', 'settled', 10, false, 0, 0, sha256('q'), '{}', 'a', now()),
			('void', 'd', 'ana', '{1}', 'voided', 0, false, 0, 0, sha256('q'), '{}', NULL, now()),
			('open', 'd', 'ana', '{1}', 'open', 10, false, 0, 0, sha256('r'), '{}', NULL, NULL),
			('gaussian', 'd', 'ana', '{1}', 'open', 0, true, 7, 0, sha256('s'), '{}', NULL, NULL);
		INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, account) VALUES ('limit', 'd', 'policy', '{1}', '{}')`)
	if _, err := migrations.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	var epsilon, unbounded, rho, answered, others, seq int64
	err := conn.QueryRow(t.Context(), `SELECT reserved_epsilon, reserved_unbounded, reserved_rho,
			(SELECT attempt FROM noisegate.charge WHERE charge_id = 'answered'),
			(SELECT sum(attempt) FROM noisegate.charge WHERE charge_id <> 'answered'),
			(SELECT seq FROM noisegate.chain WHERE dataset = 'd')
		FROM noisegate.account`).Scan(&epsilon, &unbounded, &rho, &answered, &others, &seq)
	if err != nil || epsilon != 10 || unbounded != 1 || rho != 7 || answered != 3 || others != 1+2+1+1 || seq != 0 {
		t.Error(epsilon, unbounded, rho, answered, others, seq, err)
	}
}
