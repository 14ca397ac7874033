-- The open charges of a dataset.
--
-- $1 dataset
SELECT charge_id, account_ids, epsilon, unbounded, rho, delta, tail FROM noisegate.charge WHERE dataset = $1 AND state = 'open'
