-- One version of an ensemble: the newest, or the newest that is sealed; and whether an earlier one contradicts it that
-- was sealed over the same people or the same votes, under another name, for another dataset, or with more teachers a
-- person; and whether one has the same votes and other parameters of a sanitised ε.
--
-- $1 name  $2 sealed only
SELECT e.ensemble_id, e.name, e.version, e.dataset, e.classes, e.teachers, e.max_teachers_per_person, e.partition_sha256, e.sanitise, e.defined_by, e.defined_at,
	coalesce(e.queries, 0), e.digest, e.loaded_by, e.loaded_at, e.sealed_by, e.sealed_at,
	e.sealed_at IS NOT NULL AND EXISTS (
		SELECT FROM noisegate.pate_ensemble o
		WHERE (o.sealed_at, o.ensemble_id) < (e.sealed_at, e.ensemble_id)
			AND (o.partition_sha256 = e.partition_sha256 OR o.digest = e.digest OR o.name = e.name)
			AND (o.name <> e.name OR o.dataset <> e.dataset OR o.max_teachers_per_person > e.max_teachers_per_person)),
	e.sealed_at IS NOT NULL AND EXISTS (
		SELECT FROM noisegate.pate_ensemble o
		WHERE (o.sealed_at, o.ensemble_id) < (e.sealed_at, e.ensemble_id) AND o.digest = e.digest AND o.sanitise::text IS DISTINCT FROM e.sanitise::text)
FROM noisegate.pate_ensemble e
WHERE e.name = $1 AND (e.sealed_at IS NOT NULL OR NOT $2)
ORDER BY e.version DESC
LIMIT 1
