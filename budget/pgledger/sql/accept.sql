-- Takes it for granted that all entries of a dataset are lost that are known to be, and lets it go on, on this server. Its
-- plans are drawn out: draws may be lost.
--
-- $1 dataset  $2 who says so
WITH noted AS (
	UPDATE noisegate.lost SET accepted_at = clock_timestamp(), accepted_by = $2 WHERE dataset = $1 AND accepted_at IS NULL
), retired AS (
	UPDATE noisegate.plan p SET next_slot = cardinality(p.epsilon) FROM noisegate.charge c
	WHERE c.charge_id = p.plan_id AND c.dataset = $1 AND p.next_slot < cardinality(p.epsilon)
)
UPDATE noisegate.chain SET lost = false, postmaster = pg_catalog.pg_postmaster_start_time() WHERE dataset = $1
