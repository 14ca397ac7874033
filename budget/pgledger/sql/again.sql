-- Charges that are settled, with their answers.
--
-- $1 charges
SELECT c.charge_id, c.dataset, c.analyst, c.request, c.answer, c.epsilon, c.unbounded, c.rho, c.delta, c.tail, c.closed_at
FROM unnest($1::text[]) AS asked (charge_id) JOIN noisegate.charge c ON c.charge_id = asked.charge_id
WHERE c.state = 'settled'
