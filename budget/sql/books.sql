-- What a dataset's charges and accounts say that its entries do not explain: the first entry that is to blame, or 0 where none is, and what is wrong.
--
-- $1 dataset
WITH newest AS ( -- what each charge counts as
	SELECT DISTINCT ON (charge_id) seq, kind, charge_id, account_ids, epsilon, unbounded, rho, delta, digest
	FROM noisegate.entry
	WHERE dataset = $1 AND charge_id IS NOT NULL
	ORDER BY charge_id, seq DESC
), opened AS (
	SELECT charge_id, seq, digest FROM noisegate.entry WHERE dataset = $1 AND kind = 'reserve'
), used AS (
	SELECT id, sum(epsilon) AS epsilon, count(*) FILTER (WHERE unbounded) AS unbounded, sum(rho) AS rho, sum(delta) AS delta,
		sum(epsilon) FILTER (WHERE kind = 'reserve') AS open_epsilon, count(*) FILTER (WHERE unbounded AND kind = 'reserve') AS open_unbounded,
		sum(rho) FILTER (WHERE kind = 'reserve') AS open_rho, sum(delta) FILTER (WHERE kind = 'reserve') AS open_delta
	FROM newest, unnest(account_ids) AS id
	GROUP BY id
), defined AS (
	SELECT DISTINCT ON (account_ids[1]) seq, account_ids[1] AS id, account::jsonb AS account,
		min(at) OVER (PARTITION BY account_ids[1]) AS first
	FROM noisegate.entry
	WHERE dataset = $1 AND account IS NOT NULL
	ORDER BY account_ids[1], seq DESC
), found AS (
SELECT coalesce(n.seq, 0) AS seq, 'its charge is not as it says' AS what
FROM newest n FULL JOIN (SELECT * FROM noisegate.charge WHERE dataset = $1) c USING (charge_id)
WHERE n.charge_id IS NULL OR c.charge_id IS NULL
	OR (c.state, c.epsilon, c.unbounded, c.rho, c.delta, c.account_ids) IS DISTINCT FROM
		(CASE n.kind WHEN 'reserve' THEN 'open' WHEN 'settle' THEN 'settled' WHEN 'void' THEN 'voided' ELSE 'expired' END,
		n.epsilon, n.unbounded, n.rho, n.delta, n.account_ids)
	OR n.kind = 'settle' AND n.digest <> sha256(c.answer)
UNION ALL
SELECT o.seq, 'its question is not the one that was asked'
FROM opened o JOIN noisegate.charge c USING (charge_id)
WHERE o.digest <> sha256(c.fingerprint || convert_to(c.request::text, 'UTF8'))
UNION ALL
SELECT 0, 'an account''s sums are not those of its charges'
FROM noisegate.account a LEFT JOIN used u ON u.id = a.account_id
WHERE a.dataset = $1 AND (a.used_epsilon, a.used_unbounded, a.used_rho, a.used_delta,
		a.reserved_epsilon, a.reserved_unbounded, a.reserved_rho, a.reserved_delta) IS DISTINCT FROM
	(coalesce(u.epsilon, 0), coalesce(u.unbounded, 0), coalesce(u.rho, 0), coalesce(u.delta, 0),
		coalesce(u.open_epsilon, 0), coalesce(u.open_unbounded, 0), coalesce(u.open_rho, 0), coalesce(u.open_delta, 0))
UNION ALL
SELECT coalesce(d.seq, 0), 'its account is not as it says'
FROM defined d FULL JOIN (SELECT * FROM noisegate.account WHERE dataset = $1) a ON a.account_id = d.id
WHERE a.account_id IS NULL OR d.id IS NULL OR a.opened_at < d.first -- tranches would open earlier
	OR (a.scope::text, a.name, a.origin, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta,
		a.query_epsilon_cap, a.query_rho_cap, a.replay_only, a.tranche_every, a.tranche_epsilon, a.tranche_rho,
		a.rate_per, a.rate_epsilon, a.rate_rho, a.frozen) IS DISTINCT FROM
		(account->>'scope', coalesce(account->>'name', ''), account->>'origin', account->>'form', (account->>'epsilon_pico')::bigint,
		(account->>'rho_pico')::bigint, (account->>'delta_atto')::bigint, (account->>'total_delta_atto')::bigint,
		(account->>'per_query_epsilon_pico')::bigint, (account->>'per_query_rho_pico')::bigint, (account->>'replay_only')::boolean,
		coalesce((account->>'tranche_every_us')::bigint, 0), coalesce((account->>'tranche_epsilon_pico')::bigint, 0),
		coalesce((account->>'tranche_rho_pico')::bigint, 0), coalesce((account->>'rate_per_us')::bigint, 0),
		coalesce((account->>'rate_epsilon_pico')::bigint, 0), coalesce((account->>'rate_rho_pico')::bigint, 0),
		coalesce((account->>'frozen')::boolean, false))
)
SELECT seq, what FROM found ORDER BY nullif(seq, 0) LIMIT 1
