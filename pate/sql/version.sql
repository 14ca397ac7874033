-- One version of an ensemble: the newest, or the newest that is sealed.
--
-- $1 name  $2 sealed only
SELECT ensemble_id, name, version, dataset, classes, teachers, max_teachers_per_person, partition_sha256, sanitise, defined_by, defined_at,
	coalesce(queries, 0), digest, loaded_by, loaded_at, sealed_by, sealed_at
FROM noisegate.pate_ensemble
WHERE name = $1 AND (sealed_at IS NOT NULL OR NOT $2)
ORDER BY version DESC
LIMIT 1
