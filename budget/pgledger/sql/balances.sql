-- The accounts that exist among those named, in the order in which they are named; and, of each, whether a charge of an analyst ever failed:
-- one look-up, which for most says that there is nothing to count (failures.sql).
--
-- $1 datasets  $2 scopes  $3 names  $4 dataset, $5 analyst of the charges, or NULL
SELECT a.dataset, a.scope::text, a.name, a.origin, a.policy_version, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta,
	a.query_epsilon_cap, a.query_rho_cap, a.replay_only, a.tranche_every, a.tranche_epsilon, a.tranche_rho, a.rate_per, a.rate_epsilon,
	a.rate_rho, a.frozen, a.opened_at, a.busy_until, a.refills,
	a.used_epsilon - a.reserved_epsilon, a.used_unbounded > a.reserved_unbounded, a.used_rho - a.reserved_rho,
	a.used_delta - a.reserved_delta, a.used_tail - a.reserved_tail,
	a.reserved_epsilon, a.reserved_unbounded > 0, a.reserved_rho, a.reserved_delta, a.reserved_tail,
	EXISTS (SELECT FROM noisegate.entry e WHERE e.kind = 'fail' AND e.dataset = $4 AND e.analyst = $5)
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS named (dataset, scope, name, place)
JOIN noisegate.account a ON a.dataset = named.dataset AND a.scope = named.scope::noisegate.scope AND a.name = named.name
ORDER BY named.place
