-- Charges that have been open for longer than an age, oldest first.
--
-- $1 age
SELECT charge_id, dataset FROM noisegate.charge
WHERE state = 'open' AND opened_at < clock_timestamp() - $1::interval
ORDER BY opened_at
