-- The journal, oldest first, as far as it is not archived.
--
-- $1 after this number  $2 dataset, or '' for all  $3 how many
SELECT seq, at, kind, dataset, analyst, coalesce(charge_id, ''), account_ids, epsilon, unbounded, rho, delta, tail, shared, digest, mechanisms, account, hash
FROM noisegate.entry e
WHERE seq > $1::bigint AND ($2 = '' OR dataset = $2)
	AND NOT EXISTS (SELECT FROM noisegate.archive a WHERE a.dataset = e.dataset AND a.seq >= e.seq)
ORDER BY seq
LIMIT $3
