-- Opens an account or changes its limit or freeze, writes what it has used, and gives its number.
--
-- $1 dataset  $2 scope  $3 name  $4 origin  $5 version of the policy  $6 form  $7 cap of ε, $8 of ρ, $9 of δ  $10 declared δ
-- $11 cap of ε and $12 of ρ of one query  $13 replay only  $14 every, $15 ε, $16 ρ of tranches  $17 per, $18 ε, $19 ρ of the rate
-- $20 frozen  $21 when it was opened  $22 ceiling of ε, $23 of ρ, $24 of δ
-- $25 ε, $26 how many unbounded, $27 ρ, $28 δ that are used  $29 to $32 that are reserved  $33 busy until  $34 refills
-- $35 tail that is used  $36 that is reserved  $37 who raised it last
INSERT INTO noisegate.account (dataset, scope, name, origin, policy_version, form, epsilon_cap, rho_cap, delta_cap, total_delta,
	query_epsilon_cap, query_rho_cap, replay_only, tranche_every, tranche_epsilon, tranche_rho, rate_per, rate_epsilon, rate_rho,
	frozen, opened_at, epsilon_ceiling, rho_ceiling, delta_ceiling, used_epsilon, used_unbounded, used_rho, used_delta,
	reserved_epsilon, reserved_unbounded, reserved_rho, reserved_delta, busy_until, refills, used_tail, reserved_tail, raised_by)
VALUES ($1, $2::text::noisegate.scope, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
	$25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37)
ON CONFLICT (dataset, scope, name) DO UPDATE SET
	origin = excluded.origin, policy_version = excluded.policy_version, form = excluded.form, epsilon_cap = excluded.epsilon_cap,
	rho_cap = excluded.rho_cap, delta_cap = excluded.delta_cap, total_delta = excluded.total_delta,
	query_epsilon_cap = excluded.query_epsilon_cap, query_rho_cap = excluded.query_rho_cap, replay_only = excluded.replay_only,
	tranche_every = excluded.tranche_every, tranche_epsilon = excluded.tranche_epsilon, tranche_rho = excluded.tranche_rho,
	rate_per = excluded.rate_per, rate_epsilon = excluded.rate_epsilon, rate_rho = excluded.rate_rho, frozen = excluded.frozen,
	epsilon_ceiling = excluded.epsilon_ceiling, rho_ceiling = excluded.rho_ceiling, delta_ceiling = excluded.delta_ceiling,
	used_epsilon = excluded.used_epsilon, used_unbounded = excluded.used_unbounded, used_rho = excluded.used_rho,
	used_delta = excluded.used_delta, reserved_epsilon = excluded.reserved_epsilon, reserved_unbounded = excluded.reserved_unbounded,
	reserved_rho = excluded.reserved_rho, reserved_delta = excluded.reserved_delta, busy_until = excluded.busy_until,
	refills = excluded.refills, used_tail = excluded.used_tail, reserved_tail = excluded.reserved_tail, raised_by = excluded.raised_by
RETURNING account_id
