-- find_released.sql where rows of others will not do, and are not looked at: the analyst's own, the preferred first, then the oldest.
--
-- $1 dataset  $2 identities, the preferred first  $3 analyst
SELECT r.charge_id, r.dataset, r.identity, r.analyst, r.shared, r.vals, c.closed_at, r.series, r.as_of, r.data_version
FROM (SELECT * FROM noisegate.released WHERE identity = ANY ($2::bytea[]) AND analyst = $3 OFFSET 0) r
CROSS JOIN LATERAL (SELECT * FROM noisegate.charge c WHERE c.charge_id = r.charge_id OFFSET 0) c
WHERE r.dataset = $1 AND c.dataset = $1 AND c.analyst = r.analyst AND c.state IN ('settled', 'expired')
ORDER BY pg_catalog.array_position($2::bytea[], r.identity), r.charge_id
LIMIT 1
