-- The journal, newest first, as far as it is not archived.
--
-- $1 before this number, or 0  $2 dataset, or '' for all  $3 how many
SELECT seq, at, kind, dataset, analyst, coalesce(charge_id, ''), account_ids, epsilon, unbounded, rho, delta, tail, shared, digest, mechanisms, account, hash
FROM noisegate.entry e
WHERE ($1::bigint = 0 OR seq < $1) AND ($2 = '' OR dataset = $2)
	AND NOT EXISTS (SELECT FROM noisegate.archive a WHERE a.dataset = e.dataset AND a.seq >= e.seq)
ORDER BY seq DESC
LIMIT $3
