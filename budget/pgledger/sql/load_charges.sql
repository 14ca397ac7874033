-- Charges that operations name; the answer only of those that ended.
--
-- $1 charges
SELECT charge_id, dataset, analyst, fingerprint, account_ids, state, epsilon, unbounded, rho, delta, tail, opened_at, closed_at,
	CASE WHEN state <> 'open' THEN answer END
FROM noisegate.charge
WHERE charge_id = ANY ($1::text[])
