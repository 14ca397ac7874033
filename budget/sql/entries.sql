-- The journal, newest first.
--
-- $1 before this number, or 0  $2 how many
SELECT seq, at, kind, dataset, analyst, coalesce(charge_id, ''), epsilon, unbounded, rho, delta, mechanisms, account
FROM noisegate.entry
WHERE $1::bigint = 0 OR seq < $1
ORDER BY seq DESC
LIMIT $2
