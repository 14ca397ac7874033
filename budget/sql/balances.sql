-- The accounts that exist among those named, in the order in which they are named.
--
-- $1 datasets  $2 scopes  $3 names
SELECT a.dataset, a.scope::text, a.name, a.origin, a.policy_version, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta,
	a.query_epsilon_cap, a.query_rho_cap, a.replay_only, a.tranche_every, a.tranche_epsilon, a.tranche_rho, a.rate_per, a.rate_epsilon,
	a.rate_rho, a.frozen, a.opened_at, a.busy_until,
	a.used_epsilon - reserved.epsilon, a.used_unbounded > reserved.unbounded, a.used_rho - reserved.rho,
	a.used_delta - reserved.delta, reserved.epsilon, reserved.unbounded > 0, reserved.rho, reserved.delta
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS named (dataset, scope, name, place)
JOIN noisegate.account a ON a.dataset = named.dataset AND a.scope = named.scope::noisegate.scope AND a.name = named.name
CROSS JOIN LATERAL ( -- what is open; all of it is among what is used
	SELECT coalesce(sum(c.epsilon), 0)::bigint AS epsilon, count(*) FILTER (WHERE c.unbounded) AS unbounded,
		coalesce(sum(c.rho), 0)::bigint AS rho, coalesce(sum(c.delta), 0)::bigint AS delta
	FROM noisegate.charge c
	WHERE c.state = 'open' AND a.account_id = ANY (c.account_ids)
) AS reserved
ORDER BY named.place
