-- Settled charges of one analyst that are not plans', newest first, without their answers.
--
-- $1 analyst  $2 before this charge of theirs, or ''  $3 how many
SELECT c.charge_id, c.dataset, c.request, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM noisegate.entry e JOIN noisegate.charge c USING (charge_id)
WHERE e.kind = 'settle' AND e.analyst = $1 AND ($2 = '' OR e.seq < (SELECT s.seq FROM noisegate.entry s WHERE s.kind = 'settle' AND s.charge_id = $2 AND s.analyst = $1))
	AND NOT EXISTS (SELECT FROM noisegate.plan p WHERE p.plan_id = c.charge_id)
ORDER BY e.seq DESC
LIMIT $3
