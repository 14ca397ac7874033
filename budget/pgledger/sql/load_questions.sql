-- The newest charges of questions. LIMIT 1 makes each a look-up, whatever statistics say.
--
-- $1 dataset  $2 analysts, $3 fingerprints
SELECT c.charge_id, c.dataset, c.analyst, c.fingerprint, c.attempt, c.request, c.state, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at, c.answer
FROM unnest($2::text[], $3::bytea[]) AS asked (analyst, fingerprint)
CROSS JOIN LATERAL (SELECT * FROM noisegate.charge c
	WHERE c.fingerprint = asked.fingerprint AND c.analyst = asked.analyst AND c.dataset = $1 ORDER BY c.attempt DESC LIMIT 1) c
