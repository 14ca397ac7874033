-- What must hold in the ledger. Each query gives one text for each violation of the invariant that its heading names, and no row when
-- the invariant holds.

-- I1: an account is overspent
SELECT format('%s %s %s: %s', a.dataset, a.scope, a.name, c)
FROM noisegate.account a CROSS JOIN LATERAL (
	SELECT coalesce(sum(s.epsilon), 0) AS epsilon, coalesce(sum(s.rho), 0) AS rho, coalesce(sum(s.delta), 0) AS delta,
		coalesce(sum(s.tail), 0) AS tail, count(*) FILTER (WHERE s.unbounded) AS unbounded
	FROM noisegate.charge c
	CROSS JOIN LATERAL (SELECT c.shared IS NOT NULL AND a.scope::text IN ('dataset', 'ensemble') AS apart) p
	CROSS JOIN LATERAL (SELECT CASE WHEN apart THEN c.shared[1] ELSE c.epsilon END AS epsilon, CASE WHEN apart THEN c.shared[2] = 1 ELSE c.unbounded END AS unbounded,
		CASE WHEN apart THEN c.shared[3] ELSE c.rho END AS rho, CASE WHEN apart THEN c.shared[4] ELSE c.delta END AS delta,
		CASE WHEN apart THEN c.shared[5] ELSE c.tail END AS tail) s
	WHERE a.account_id = ANY (c.account_ids)
) c
CROSS JOIN LATERAL (SELECT CASE WHEN a.form = 'approx' THEN a.total_delta / 32 ELSE 0 END AS room) t
WHERE NOT (c.delta + least(c.tail, t.room) <= a.delta_ceiling
	AND (c.unbounded = 0 AND c.epsilon <= a.epsilon_ceiling AND c.tail <= t.room OR c.rho <= a.rho_ceiling))

-- I1: the database does not hold the rule itself
SELECT 'within_the_ceiling is missing, or was never validated'
WHERE NOT EXISTS (SELECT FROM pg_constraint
	WHERE conname = 'within_the_ceiling' AND conrelid = 'noisegate.account'::regclass AND contype = 'c' AND convalidated)

-- I3: a charge does not have the life that the journal tells
SELECT format('charge %s is %s and has %s', charge_id, c.state, e.kinds)
FROM noisegate.charge c LEFT JOIN (
	SELECT charge_id, string_agg(kind, ' ' ORDER BY seq) AS kinds FROM noisegate.entry GROUP BY charge_id
) e USING (charge_id)
WHERE e.kinds IS DISTINCT FROM CASE c.state
	WHEN 'open' THEN 'reserve' WHEN 'settled' THEN 'reserve settle' WHEN 'voided' THEN 'reserve void' WHEN 'expired' THEN CASE WHEN e.kinds IN ('reserve fail', 'recharge') THEN e.kinds ELSE 'reserve expire' END END

-- I3: the journal tells of a charge that is not there
SELECT format('entry %s: %s of %s', e.seq, e.kind, e.charge_id)
FROM noisegate.entry e WHERE e.charge_id IS NOT NULL AND NOT EXISTS (SELECT FROM noisegate.charge c WHERE c.charge_id = e.charge_id)

-- I4: a balance is not the sum of its charges
SELECT format('%s %s %s: %s %s %s %s %s, and its charges %s', a.dataset, a.scope, a.name, a.used_epsilon, a.used_rho, a.used_delta, a.used_tail, a.used_unbounded, c)
FROM noisegate.account a, LATERAL (
	SELECT coalesce(sum(s.epsilon), 0) AS epsilon, coalesce(sum(s.rho), 0) AS rho, coalesce(sum(s.delta), 0) AS delta,
		coalesce(sum(s.tail), 0) AS tail, count(*) FILTER (WHERE s.unbounded) AS unbounded
	FROM noisegate.charge c
	CROSS JOIN LATERAL (SELECT c.shared IS NOT NULL AND a.scope::text IN ('dataset', 'ensemble') AS apart) p
	CROSS JOIN LATERAL (SELECT CASE WHEN apart THEN c.shared[1] ELSE c.epsilon END AS epsilon, CASE WHEN apart THEN c.shared[2] = 1 ELSE c.unbounded END AS unbounded,
		CASE WHEN apart THEN c.shared[3] ELSE c.rho END AS rho, CASE WHEN apart THEN c.shared[4] ELSE c.delta END AS delta,
		CASE WHEN apart THEN c.shared[5] ELSE c.tail END AS tail) s
	WHERE a.account_id = ANY (c.account_ids)
) c
WHERE (a.used_epsilon, a.used_rho, a.used_delta, a.used_tail, a.used_unbounded) IS DISTINCT FROM (c.epsilon, c.rho, c.delta, c.tail, c.unbounded)

-- I4: a charge counts as something else than its newest entry
SELECT format('charge %s counts as %s, entry %s as %s', charge_id, c.epsilon, e.seq, e.epsilon)
FROM noisegate.charge c JOIN (
	SELECT DISTINCT ON (charge_id) * FROM noisegate.entry ORDER BY charge_id, seq DESC
) e USING (charge_id)
WHERE (c.epsilon, c.rho, c.delta, c.tail, c.unbounded, c.shared, c.account_ids) IS DISTINCT FROM (e.epsilon, e.rho, e.delta, e.tail, e.unbounded, e.shared, e.account_ids)

-- I4: the gateway's role may rewrite history
SELECT format('%s on noisegate.%s', p, t)
FROM unnest(ARRAY['entry', 'charge', 'account']) t, unnest(ARRAY['DELETE', 'TRUNCATE']) p
WHERE has_table_privilege('noisegate', 'noisegate.' || t, p)
UNION ALL SELECT 'UPDATE on noisegate.entry' WHERE has_any_column_privilege('noisegate', 'noisegate.entry', 'UPDATE')

-- I4: history is not locked against whoever has the right
SELECT format('%s: trigger %s', t.tgrelid::regclass, t.tgname) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'noisegate'::regnamespace AND NOT t.tgisinternal AND t.tgenabled <> 'O'
UNION ALL SELECT 'noisegate.entry: no trigger'
WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'noisegate.entry'::regclass AND tgname = 'append_only')

-- I5: a chain does not end at the newest entry of its dataset
SELECT format('%s ends at %s, and its newest entry is %s', coalesce(c.dataset, e.dataset), c.seq, e.seq)
FROM noisegate.chain c FULL JOIN (
	SELECT DISTINCT ON (dataset) dataset, seq, hash FROM noisegate.entry ORDER BY dataset, seq DESC
) e ON e.dataset = c.dataset
WHERE (c.seq, c.head) IS DISTINCT FROM (e.seq, e.hash) AND NOT (c.seq = 0 AND e.seq IS NULL)

-- I6: one question has two charges that stand
SELECT format('%s, %s: %s', dataset, analyst, string_agg(charge_id, ' '))
FROM noisegate.charge WHERE state IN ('open', 'settled') GROUP BY dataset, analyst, fingerprint HAVING count(*) > 1

-- I7: a charge ended without an answer and counts as less than was reserved
SELECT format('charge %s is %s', c.charge_id, c.state)
FROM noisegate.charge c JOIN noisegate.entry e ON e.charge_id = c.charge_id AND e.kind = 'reserve'
WHERE c.state IN ('open', 'expired') AND (c.epsilon, c.rho, c.delta, c.unbounded) IS DISTINCT FROM (e.epsilon, e.rho, e.delta, e.unbounded)
	OR c.state = 'settled' AND (c.epsilon > e.epsilon OR c.rho > e.rho OR c.delta > e.delta OR c.unbounded AND NOT e.unbounded)

-- I7: a charge was taken back although it has an answer
SELECT format('charge %s', charge_id) FROM noisegate.charge WHERE state = 'voided' AND answer IS NOT NULL
