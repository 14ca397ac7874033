-- The dataset of a charge.
--
-- $1 charge
SELECT dataset FROM noisegate.charge WHERE charge_id = $1
