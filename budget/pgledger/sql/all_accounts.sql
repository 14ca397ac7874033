-- All accounts of a dataset, as load_accounts.sql gives some.
--
-- $1 dataset
SELECT a.account_id, a.dataset, a.scope::text, a.name, a.origin, a.policy_version, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap,
	a.total_delta, a.query_epsilon_cap, a.query_rho_cap, a.replay_only, a.tranche_every, a.tranche_epsilon, a.tranche_rho,
	a.rate_per, a.rate_epsilon, a.rate_rho, a.frozen, a.opened_at, a.busy_until, a.refills, a.raised_by,
	a.used_epsilon, a.used_unbounded, a.used_rho, a.used_delta, a.used_tail,
	a.reserved_epsilon, a.reserved_unbounded, a.reserved_rho, a.reserved_delta, a.reserved_tail
FROM noisegate.account a
WHERE a.dataset = $1
