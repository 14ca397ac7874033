-- The earlier charges that decide about a request; the one under its key first.
--
-- $1 dataset  $2 analyst  $3 fingerprint  $4 key or NULL
SELECT true AS by_key, k.digest, c.state, c.charge_id, c.dataset, c.analyst, c.request, c.answer,
	c.epsilon, c.unbounded, c.rho, c.delta, c.closed_at
FROM noisegate.request_key k JOIN noisegate.charge c USING (charge_id)
WHERE k.analyst = $2 AND k.key = $4
UNION ALL
SELECT false, NULL, c.state, c.charge_id, c.dataset, c.analyst, c.request, c.answer,
	c.epsilon, c.unbounded, c.rho, c.delta, c.closed_at
FROM (SELECT * FROM noisegate.charge WHERE fingerprint = $3 AND analyst = $2 AND dataset = $1 ORDER BY attempt DESC LIMIT 1) c
ORDER BY by_key DESC
