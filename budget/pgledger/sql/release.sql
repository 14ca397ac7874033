-- One settled charge of one analyst that is not a plan's.
--
-- $1 analyst  $2 charge
SELECT c.charge_id, c.dataset, c.analyst, c.request, c.answer, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM noisegate.charge c
WHERE c.charge_id = $2 AND c.analyst = $1 AND c.state = 'settled'
	AND NOT EXISTS (SELECT FROM noisegate.plan p WHERE p.plan_id = c.charge_id)
