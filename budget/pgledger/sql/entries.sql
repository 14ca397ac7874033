-- The journal, newest first.
--
-- $1 before this number, or 0  $2 dataset, or '' for all  $3 how many
SELECT seq, at, kind, dataset, analyst, coalesce(charge_id, ''), account_ids, epsilon, unbounded, rho, delta, tail, shared, digest, mechanisms, account, hash
FROM noisegate.entry
WHERE ($1::bigint = 0 OR seq < $1) AND ($2 = '' OR dataset = $2)
ORDER BY seq DESC
LIMIT $3
