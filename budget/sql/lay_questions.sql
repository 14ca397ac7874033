-- The charges that answer questions, or are about to.
--
-- $1 dataset  $2 analysts, $3 fingerprints
SELECT c.charge_id, c.dataset, c.analyst, c.fingerprint, c.request, c.state, c.epsilon, c.unbounded, c.rho, c.delta, c.closed_at, c.answer
FROM unnest($2::text[], $3::bytea[]) AS asked (analyst, fingerprint)
CROSS JOIN LATERAL (SELECT * FROM noisegate.charge c
	WHERE c.dataset = $1 AND c.analyst = asked.analyst AND c.fingerprint = asked.fingerprint AND c.state IN ('open', 'settled') LIMIT 1) c
