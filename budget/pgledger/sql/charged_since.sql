-- Charges of a dataset that were opened after a time: on which accounts, and what they count as.
--
-- $1 dataset  $2 time
SELECT charge_id, account_ids, epsilon, unbounded, rho, delta, tail, shared, opened_at FROM noisegate.charge WHERE dataset = $1 AND opened_at > $2
