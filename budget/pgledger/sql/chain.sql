-- A dataset's entries after a number, in their order.
--
-- $1 dataset  $2 after this number
SELECT seq, at, kind, dataset, analyst, coalesce(charge_id, ''), account_ids, epsilon, unbounded, rho, delta, tail, shared, digest, mechanisms, account, hash
FROM noisegate.entry
WHERE dataset = $1 AND seq > $2
ORDER BY seq
