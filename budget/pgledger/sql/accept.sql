-- Takes it for granted that all entries of a dataset are lost that are known to be, and lets it go on, on this server. Its
-- plans are drawn as far as is known, or out.
--
-- $1 dataset  $2 who says so  $3 whether plans are drawn out  of each that is not: $4 plan  $5 how many of its slots are drawn
WITH noted AS (
	UPDATE noisegate.lost SET accepted_at = clock_timestamp(), accepted_by = $2 WHERE dataset = $1 AND accepted_at IS NULL
), drawn AS (
	UPDATE noisegate.plan p SET next_slot = d.slots
	FROM (SELECT p.plan_id, CASE WHEN $3::bool THEN cardinality(p.epsilon) ELSE least(coalesce(t.slots, 0), cardinality(p.epsilon)) END AS slots
		FROM noisegate.plan p JOIN noisegate.charge c ON c.charge_id = p.plan_id
		LEFT JOIN unnest($4::text[], $5::int[]) AS t (plan_id, slots) ON t.plan_id = p.plan_id
		WHERE c.dataset = $1) d
	WHERE d.plan_id = p.plan_id AND d.slots > p.next_slot
)
UPDATE noisegate.chain SET lost = false, postmaster = pg_catalog.pg_postmaster_start_time() WHERE dataset = $1
