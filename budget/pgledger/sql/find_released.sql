-- What was released by a charge that cannot be taken back any more, where what another analyst bought while it was shared will do: the
-- analyst's own first, then the preferred, then the oldest. MATERIALIZED and OFFSET 0 make all of it look-ups, whatever statistics say.
--
-- $1 dataset  $2 identities, the preferred first  $3 analyst
WITH r AS MATERIALIZED (
	SELECT * FROM noisegate.released WHERE identity = ANY ($2::bytea[]) AND analyst = $3
	UNION ALL
	SELECT * FROM noisegate.released WHERE identity = ANY ($2::bytea[]) AND shared AND analyst <> $3
)
SELECT r.charge_id, r.dataset, r.identity, r.analyst, r.shared, r.vals, c.closed_at, r.series, r.as_of, r.data_version
FROM r CROSS JOIN LATERAL (SELECT * FROM noisegate.charge c WHERE c.charge_id = r.charge_id OFFSET 0) c
WHERE r.dataset = $1 AND c.dataset = $1 AND c.analyst = r.analyst AND c.state IN ('settled', 'expired')
ORDER BY r.analyst <> $3, pg_catalog.array_position($2::bytea[], r.identity), r.charge_id
LIMIT 1
