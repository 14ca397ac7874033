-- The latest version of what was released by charges that cannot be taken back any more: of one version the analyst's own first, then the
-- preferred, then the oldest. Rows of others are not looked at unless they will do. MATERIALIZED and OFFSET 0 make all of it look-ups,
-- whatever statistics say.
--
-- $1 dataset  $2 series, the preferred first  $3 analyst  $4 whether what another analyst bought while it was shared will do
-- $5 as of which time at most; NULL for any
WITH r AS MATERIALIZED (
	SELECT * FROM noisegate.released WHERE series = ANY ($2::bytea[]) AND analyst = $3
	UNION ALL
	SELECT * FROM noisegate.released WHERE $4 AND series = ANY ($2::bytea[]) AND shared AND analyst <> $3
)
SELECT r.charge_id, r.dataset, r.identity, r.analyst, r.shared, r.vals, c.closed_at, r.series, r.as_of, r.data_version
FROM r CROSS JOIN LATERAL (SELECT * FROM noisegate.charge c WHERE c.charge_id = r.charge_id OFFSET 0) c
WHERE r.dataset = $1 AND c.dataset = $1 AND c.analyst = r.analyst AND c.state IN ('settled', 'expired')
	AND ($5::timestamptz IS NULL OR r.as_of <= $5::timestamptz)
ORDER BY r.as_of DESC, r.analyst <> $3, pg_catalog.array_position($2::bytea[], r.series), r.charge_id
LIMIT 1
