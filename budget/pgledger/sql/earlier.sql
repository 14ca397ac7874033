-- The earlier charges that decide about a request: the one under its key first, another analyst's last.
--
-- $1 dataset  $2 analyst  $3 fingerprint  $4 key or NULL  $5 whether an answer that another analyst was given will do
SELECT 0 AS place, k.digest, c.state, c.charge_id, c.dataset, c.analyst, c.request, c.answer,
	c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM noisegate.request_key k JOIN noisegate.charge c USING (charge_id)
WHERE k.analyst = $2 AND k.key = $4
UNION ALL
SELECT 1, NULL, c.state, c.charge_id, c.dataset, c.analyst, c.request, c.answer,
	c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM (SELECT * FROM noisegate.charge WHERE fingerprint = $3 AND analyst = $2 AND dataset = $1 ORDER BY attempt DESC LIMIT 1) c
UNION ALL
SELECT 2, NULL, c.state, c.charge_id, c.dataset, c.analyst, c.request, c.answer,
	c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM (SELECT * FROM noisegate.charge WHERE $5 AND fingerprint = $3 AND analyst <> $2 AND dataset = $1 AND state = 'settled'
	ORDER BY closed_at, charge_id LIMIT 1) c
ORDER BY place
