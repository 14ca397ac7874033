-- What was released by a charge that cannot be taken back any more: the analyst's own first, then the preferred, then the oldest.
--
-- $1 dataset  $2 identities, the preferred first  $3 analyst  $4 whether what another analyst paid for will do
SELECT r.charge_id, r.identity, r.vals, c.closed_at
FROM noisegate.released r JOIN noisegate.charge c ON c.charge_id = r.charge_id
WHERE r.identity = ANY ($2::bytea[]) AND r.dataset = $1 AND c.dataset = $1 AND c.state IN ('settled', 'expired') AND (c.analyst = $3 OR $4)
ORDER BY c.analyst <> $3, pg_catalog.array_position($2::bytea[], r.identity), r.charge_id
LIMIT 1
