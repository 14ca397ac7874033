-- The accounts that exist among those named, in the order in which they are named.
--
-- $1 datasets  $2 scopes  $3 names
SELECT a.dataset, a.scope::text, a.name, a.origin, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta,
	a.query_epsilon_cap, a.query_rho_cap, a.replay_only,
	a.spent_epsilon, a.spent_unbounded > 0, a.spent_rho, a.spent_delta,
	a.reserved_epsilon, a.reserved_unbounded > 0, a.reserved_rho, a.reserved_delta
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS named (dataset, scope, name, place)
JOIN noisegate.account a ON a.dataset = named.dataset AND a.scope = named.scope::noisegate.scope AND a.name = named.name
ORDER BY named.place
