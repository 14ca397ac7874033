-- Settled charges of one analyst that are not plans', newest first, without their answers.
--
-- $1 analyst  $2 before this number, or 0  $3 how many
SELECT e.seq, c.charge_id, c.dataset, c.request, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM noisegate.entry e JOIN noisegate.charge c USING (charge_id)
WHERE e.kind = 'settle' AND e.analyst = $1 AND ($2::bigint = 0 OR e.seq < $2)
	AND NOT EXISTS (SELECT FROM noisegate.plan p WHERE p.plan_id = c.charge_id)
ORDER BY e.seq DESC
LIMIT $3
