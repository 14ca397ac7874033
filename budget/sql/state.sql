-- The state of a charge, and its answer if it has one.
--
-- $1 charge
SELECT state, answer FROM noisegate.charge WHERE charge_id = $1
