-- Open charges that were opened after a time and have been open for longer than an age, oldest first.
--
-- $1 after  $2 age
SELECT charge_id, dataset FROM noisegate.charge
WHERE state = 'open' AND opened_at >= $1 AND opened_at < clock_timestamp() - $2::interval
ORDER BY opened_at
