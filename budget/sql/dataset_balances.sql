-- All accounts of a dataset, in lock order.
--
-- $1 dataset
SELECT a.dataset, a.scope::text, a.name, a.origin, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta,
	a.query_epsilon_cap, a.query_rho_cap, a.replay_only,
	a.spent_epsilon, a.spent_unbounded > 0, a.spent_rho, a.spent_delta,
	a.reserved_epsilon, a.reserved_unbounded > 0, a.reserved_rho, a.reserved_delta
FROM noisegate.account a
WHERE a.dataset = $1
ORDER BY a.scope, a.name
