-- The entry that settled a charge.
--
-- $1 charge
SELECT dataset, seq, hash, at FROM noisegate.entry WHERE kind = 'settle' AND charge_id = $1
