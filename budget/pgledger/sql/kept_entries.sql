-- A dataset's entries before a number that stay in the journal when the others are archived, in their order.
--
-- $1 dataset  $2 before this number
SELECT seq, at, kind, dataset, analyst, coalesce(charge_id, ''), account_ids, epsilon, unbounded, rho, delta, tail, shared, digest, mechanisms, account, hash
FROM noisegate.entry
WHERE dataset = $1 AND seq < $2 AND noisegate.stays(kind)
ORDER BY seq
