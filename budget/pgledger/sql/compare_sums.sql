-- What a dataset's charges and accounts say that its entries do not explain: the first entry that is to blame, or 0 where none is, and what is wrong.
--
-- $1 dataset  $2 the last archived entry, or 0  $3 its time, or -infinity: charges that were opened later have all their entries
WITH newest AS ( -- what each charge counts as
	SELECT DISTINCT ON (charge_id) seq, at, kind, charge_id, analyst, account_ids, epsilon, unbounded, rho, delta, tail, shared, digest, hash IS NOT NULL AS chained
	FROM noisegate.entry
	WHERE dataset = $1 AND seq > $2 AND charge_id IS NOT NULL
	ORDER BY charge_id, seq DESC
), opened AS NOT MATERIALIZED (
	SELECT charge_id, seq, at, digest, hash IS NOT NULL AS chained, mechanisms FROM noisegate.entry WHERE dataset = $1 AND seq > $2 AND kind = 'reserve'
), planned AS ( -- budget.releaseRecord
	SELECT charge_id, seq, mechanisms->'registers' AS slots, mechanisms->'draws' AS draws FROM opened WHERE json_typeof(mechanisms) = 'object'
), retired AS ( -- plans from before it are drawn out
	SELECT max(seq) AS seq FROM noisegate.entry WHERE dataset = $1 AND kind = 'resume' AND account->>'retires_plans' = 'true'
), drawn AS ( -- how far plans are drawn: slots are drawn in order, and those that a failover lost are told by receipts and gateways
	SELECT draw->>'plan' AS plan_id, max((draw->>'from')::bigint + (draw->>'count')::bigint) AS slots FROM (
		SELECT draws AS draw FROM planned
		UNION ALL
		SELECT mechanisms->'draws' FROM noisegate.entry WHERE dataset = $1 AND seq > $2 AND kind = 'recharge'
		UNION ALL
		SELECT json_array_elements(account->'draws') FROM noisegate.entry WHERE dataset = $1 AND seq > $2 AND kind = 'resume'
	) d WHERE draw IS NOT NULL GROUP BY 1
), used AS ( -- budget.Scope.counts
	SELECT id, sum(epsilon) AS epsilon, count(*) FILTER (WHERE unbounded) AS unbounded, sum(rho) AS rho, sum(delta) AS delta, sum(tail) AS tail,
		sum(tail) FILTER (WHERE kind = 'reserve') AS open_tail, sum(epsilon) FILTER (WHERE kind = 'reserve') AS open_epsilon, count(*) FILTER (WHERE unbounded AND kind = 'reserve') AS open_unbounded,
		sum(rho) FILTER (WHERE kind = 'reserve') AS open_rho, sum(delta) FILTER (WHERE kind = 'reserve') AS open_delta
	FROM (SELECT n.kind, a.account_id AS id, c.*
		FROM newest n CROSS JOIN unnest(n.account_ids) AS id JOIN noisegate.account a ON a.account_id = id
		CROSS JOIN LATERAL (SELECT n.shared IS NOT NULL AND a.scope::text IN ('dataset', 'ensemble') AS apart) p
		CROSS JOIN LATERAL (SELECT CASE WHEN apart THEN n.shared[1] ELSE n.epsilon END AS epsilon, CASE WHEN apart THEN n.shared[2] = 1 ELSE n.unbounded END AS unbounded,
			CASE WHEN apart THEN n.shared[3] ELSE n.rho END AS rho, CASE WHEN apart THEN n.shared[4] ELSE n.delta END AS delta,
			CASE WHEN apart THEN n.shared[5] ELSE n.tail END AS tail) c) c
	GROUP BY id
), defined AS (
	SELECT DISTINCT ON (account_ids[1]) seq, account_ids[1] AS id, account::jsonb AS account,
		min(least(at, (SELECT min(k.at) FROM noisegate.entry k WHERE k.kind = 'clock' AND k.dataset = $1 AND k.seq > e.seq)))
			OVER (PARTITION BY account_ids[1]) AS first, bool_and(hash IS NOT NULL) OVER (PARTITION BY account_ids[1]) AS chained
	FROM noisegate.entry e
	WHERE dataset = $1 AND account IS NOT NULL AND kind NOT IN ('reset', 'import', 'policy', 'free', 'keys', 'recharge', 'resume', 'archive', 'clock')
	ORDER BY account_ids[1], seq DESC
), found AS (
SELECT coalesce(n.seq, 0) AS seq, 'its charge is not as it says' AS what
FROM newest n FULL JOIN (SELECT * FROM noisegate.charge WHERE dataset = $1 AND opened_at > $3::timestamptz) c USING (charge_id)
WHERE n.charge_id IS NULL OR c.charge_id IS NULL
	OR (c.state, c.analyst, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.shared, c.account_ids) IS DISTINCT FROM
		(CASE n.kind WHEN 'reserve' THEN 'open' WHEN 'settle' THEN 'settled' WHEN 'void' THEN 'voided' ELSE 'expired' END,
		n.analyst, n.epsilon, n.unbounded, n.rho, n.delta, n.tail, n.shared, n.account_ids)
	OR n.kind = 'settle' AND n.digest <> sha256(c.answer) OR (n.kind = 'settle') <> (c.answer IS NOT NULL)
	OR n.chained AND c.closed_at IS DISTINCT FROM CASE WHEN n.kind <> 'reserve' THEN n.at END
UNION ALL
SELECT o.seq, 'its question is not the one that was asked, or not when it was asked'
FROM opened o JOIN noisegate.charge c USING (charge_id)
WHERE o.chained AND (o.digest <> sha256(c.fingerprint || convert_to(c.request::text, 'UTF8')) OR c.opened_at <> o.at)
UNION ALL
SELECT seq, 'its question was not asked so often before'
FROM (SELECT o.seq, o.chained, c.attempt, row_number() OVER (PARTITION BY c.fingerprint, c.analyst ORDER BY o.seq)
		+ CASE WHEN $2 > 0 THEN (SELECT count(*) FROM noisegate.charge a
			WHERE a.fingerprint = c.fingerprint AND a.analyst = c.analyst AND a.dataset = $1 AND a.opened_at <= $3::timestamptz) ELSE 0 END AS nth
	FROM opened o JOIN noisegate.charge c USING (charge_id)) n
WHERE chained AND attempt <> nth
UNION ALL
SELECT coalesce(r.seq, 0), 'its plan is not the one that was paid for and drawn from'
FROM (SELECT * FROM planned WHERE slots IS NOT NULL) r
FULL JOIN (SELECT p.* FROM noisegate.plan p JOIN noisegate.charge c ON c.charge_id = p.plan_id LEFT JOIN opened o USING (charge_id)
	WHERE c.dataset = $1 AND o.chained IS NOT FALSE) p ON p.plan_id = r.charge_id -- of those from before the chain nothing is known
LEFT JOIN drawn d ON d.plan_id = p.plan_id
CROSS JOIN retired
WHERE $2 = 0 AND (to_json(p.epsilon)::text, to_json(p.rho)::text, p.next_slot) IS DISTINCT FROM
	(r.slots->>'epsilon_pico', r.slots->>'rho_pico', CASE WHEN r.seq < retired.seq THEN json_array_length(r.slots->'epsilon_pico') ELSE least(coalesce(d.slots, 0), json_array_length(r.slots->'epsilon_pico')) END)
UNION ALL
SELECT e.seq, 'its time is not the dataset''s'
FROM noisegate.chain c JOIN noisegate.entry e USING (dataset, seq)
WHERE c.dataset = $1 AND c.at <> e.at
UNION ALL
SELECT 0, 'an account''s sums are not those of its charges'
FROM noisegate.account a LEFT JOIN used u ON u.id = a.account_id
WHERE $2 = 0 AND a.dataset = $1 AND (a.used_epsilon, a.used_unbounded, a.used_rho, a.used_delta, a.used_tail,
		a.reserved_epsilon, a.reserved_unbounded, a.reserved_rho, a.reserved_delta, a.reserved_tail) IS DISTINCT FROM
	(coalesce(u.epsilon, 0), coalesce(u.unbounded, 0), coalesce(u.rho, 0), coalesce(u.delta, 0), coalesce(u.tail, 0),
		coalesce(u.open_epsilon, 0), coalesce(u.open_unbounded, 0), coalesce(u.open_rho, 0), coalesce(u.open_delta, 0), coalesce(u.open_tail, 0))
UNION ALL
SELECT coalesce(d.seq, 0), 'its account is not as it says'
FROM defined d FULL JOIN (SELECT * FROM noisegate.account WHERE dataset = $1) a ON a.account_id = d.id
WHERE $2 = 0 AND (a.account_id IS NULL OR d.id IS NULL OR a.opened_at < d.first OR d.chained AND a.opened_at <> d.first -- when tranches open
	OR a.policy_version <> (account->>'policy_version')::bigint
	OR (a.scope::text, a.name, a.origin, a.form, a.epsilon_cap, a.rho_cap, a.delta_cap, a.total_delta,
		a.query_epsilon_cap, a.query_rho_cap, a.replay_only, a.tranche_every, a.tranche_epsilon, a.tranche_rho,
		a.rate_per, a.rate_epsilon, a.rate_rho, a.frozen, a.refills) IS DISTINCT FROM
		(account->>'scope', coalesce(account->>'name', ''), account->>'origin', account->>'form', (account->>'epsilon_pico')::bigint,
		(account->>'rho_pico')::bigint, (account->>'delta_atto')::bigint, (account->>'total_delta_atto')::bigint,
		(account->>'per_query_epsilon_pico')::bigint, (account->>'per_query_rho_pico')::bigint, (account->>'replay_only')::boolean,
		coalesce((account->>'tranche_every_us')::bigint, 0), coalesce((account->>'tranche_epsilon_pico')::bigint, 0),
		coalesce((account->>'tranche_rho_pico')::bigint, 0), coalesce((account->>'rate_per_us')::bigint, 0),
		coalesce((account->>'rate_epsilon_pico')::bigint, 0), coalesce((account->>'rate_rho_pico')::bigint, 0),
		coalesce((account->>'frozen')::boolean, false), coalesce((account->>'refills')::bigint, 0)))
UNION ALL
SELECT d.seq, 'its account''s ceiling is neither its cap nor what was used then'
FROM defined d JOIN noisegate.account a ON a.account_id = d.id
CROSS JOIN LATERAL (
	SELECT coalesce(sum(epsilon), 0) AS epsilon, count(*) FILTER (WHERE unbounded) AS unbounded, coalesce(sum(rho), 0) AS rho,
		coalesce(sum(delta), 0) AS delta, coalesce(sum(tail), 0) AS tail, CASE WHEN a.form = 'approx' THEN a.total_delta / 32 ELSE 0 END AS tails
	FROM (SELECT DISTINCT ON (charge_id) c.* FROM noisegate.entry e
		CROSS JOIN LATERAL (SELECT e.shared IS NOT NULL AND a.scope::text IN ('dataset', 'ensemble') AS apart) p
		CROSS JOIN LATERAL (SELECT CASE WHEN apart THEN e.shared[1] ELSE e.epsilon END AS epsilon, CASE WHEN apart THEN e.shared[2] = 1 ELSE e.unbounded END AS unbounded,
			CASE WHEN apart THEN e.shared[3] ELSE e.rho END AS rho, CASE WHEN apart THEN e.shared[4] ELSE e.delta END AS delta,
			CASE WHEN apart THEN e.shared[5] ELSE e.tail END AS tail) c
		WHERE e.dataset = $1 AND e.charge_id IS NOT NULL AND d.id = ANY (e.account_ids) AND e.seq < d.seq
		ORDER BY charge_id, seq DESC) c
) u
WHERE $2 = 0 AND (a.epsilon_ceiling, a.rho_ceiling, a.delta_ceiling) <> (a.epsilon_cap, a.rho_cap, a.delta_cap)
	AND (u.delta + least(u.tail, u.tails) <= a.delta_cap AND (u.unbounded = 0 AND u.epsilon <= a.epsilon_cap AND u.tail <= u.tails OR u.rho <= a.rho_cap)
		OR (a.epsilon_ceiling, a.rho_ceiling, a.delta_ceiling) <>
			(greatest(a.epsilon_cap, u.epsilon), greatest(a.rho_cap, u.rho), greatest(a.delta_cap, u.delta + least(u.tail, u.tails))))
)
SELECT seq, what FROM found ORDER BY nullif(seq, 0) LIMIT 1
