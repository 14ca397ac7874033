-- One plan of one analyst, once it is paid for.
--
-- $1 analyst  $2 plan
SELECT c.dataset, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, p.epsilon, p.rho, p.next_slot, c.closed_at
FROM noisegate.plan p JOIN noisegate.charge c ON c.charge_id = p.plan_id
WHERE p.plan_id = $2 AND c.analyst = $1 AND c.state = 'settled'
