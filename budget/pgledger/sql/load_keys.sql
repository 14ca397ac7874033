-- What Idempotency-Keys stand for. They are locked: a key may be used on several datasets.
--
-- $1 analysts, $2 keys
SELECT k.analyst, k.key, k.digest,
	c.charge_id, c.dataset, c.analyst, c.fingerprint, c.attempt, c.request, c.state, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at, c.answer
FROM unnest($1::text[], $2::text[]) AS asked (analyst, key)
JOIN noisegate.request_key k ON k.analyst = asked.analyst AND k.key = asked.key
JOIN noisegate.charge c ON c.charge_id = k.charge_id
ORDER BY k.analyst, k.key
FOR NO KEY UPDATE OF k
