-- The accounts that operations look at: those named, and those of open charges. LIMIT 1 keeps each a look-up, whatever statistics say.
--
-- $1 dataset  $2 scopes, $3 names  $4 charges
WITH wanted AS (
	SELECT a.account_id
	FROM unnest($2::text[], $3::text[]) AS named (scope, name)
	CROSS JOIN LATERAL (SELECT a.account_id FROM noisegate.account a
		WHERE a.dataset = $1 AND a.scope = named.scope::noisegate.scope AND a.name = named.name LIMIT 1) a
	UNION
	SELECT unnest(c.account_ids)
	FROM unnest($4::text[]) AS named (id)
	CROSS JOIN LATERAL (SELECT c.account_ids, c.state FROM noisegate.charge c WHERE c.charge_id = named.id LIMIT 1) c
	WHERE c.state = 'open'
)
SELECT a.account_id, a.dataset, a.scope::text, a.name, a.origin, a.policy_version, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap,
	a.total_delta, a.query_epsilon_cap, a.query_rho_cap, a.replay_only, a.tranche_every, a.tranche_epsilon, a.tranche_rho,
	a.rate_per, a.rate_epsilon, a.rate_rho, a.frozen, a.opened_at, a.busy_until, a.refills, a.raised_by,
	a.used_epsilon, a.used_unbounded, a.used_rho, a.used_delta, a.used_tail,
	a.reserved_epsilon, a.reserved_unbounded, a.reserved_rho, a.reserved_delta, a.reserved_tail
FROM wanted JOIN noisegate.account a USING (account_id)
