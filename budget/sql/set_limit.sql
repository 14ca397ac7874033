-- Opens an account or changes its limit; returns one row when something changed. Its ceilings rise to what is used already.
--
-- $1 who  $2 dataset  $3 scope  $4 name  $5 origin  $6 form  $7 cap of ε  $8 cap of ρ  $9 cap of δ  $10 declared δ
-- $11 cap of ε and $12 of ρ of one query  $13 replay only  $14 the account and its limit, for the journal
-- $15 only open it: an account that exists keeps its limit  $16 version of the policy: an older one than that which set the limit
-- changes nothing
WITH changed AS (
	INSERT INTO noisegate.account AS a (dataset, scope, name, origin, policy_version, form, epsilon_cap, rho_cap, delta_cap, total_delta,
		query_epsilon_cap, query_rho_cap, replay_only, epsilon_ceiling, rho_ceiling, delta_ceiling)
	VALUES ($2, $3::text::noisegate.scope, $4, $5, $16, $6, $7, $8, $9, $10, $11, $12, $13, $7, $8, $9)
	ON CONFLICT (dataset, scope, name) DO UPDATE SET
		origin = excluded.origin, policy_version = excluded.policy_version, form = excluded.form, epsilon_cap = excluded.epsilon_cap, rho_cap = excluded.rho_cap,
		delta_cap = excluded.delta_cap, total_delta = excluded.total_delta, query_epsilon_cap = excluded.query_epsilon_cap,
		query_rho_cap = excluded.query_rho_cap, replay_only = excluded.replay_only,
		epsilon_ceiling = greatest(excluded.epsilon_cap, a.used_epsilon),
		rho_ceiling = greatest(excluded.rho_cap, a.used_rho),
		delta_ceiling = greatest(excluded.delta_cap, a.used_delta)
	WHERE NOT $15
		AND (excluded.origin = 'steward' OR a.origin = 'policy' AND excluded.policy_version >= a.policy_version)
		AND (a.origin, a.policy_version, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta, a.query_epsilon_cap, a.query_rho_cap, a.replay_only)
			IS DISTINCT FROM (excluded.origin, excluded.policy_version, excluded.form, excluded.epsilon_cap, excluded.rho_cap, excluded.delta_cap,
				excluded.total_delta, excluded.query_epsilon_cap, excluded.query_rho_cap, excluded.replay_only)
	RETURNING account_id
)
INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, account)
SELECT 'limit', $2, $1, ARRAY[account_id], $14 FROM changed
RETURNING seq
