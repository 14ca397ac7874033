-- What was sealed under a name or over a partition of people.
--
-- $1 name  $2 partition or NULL
SELECT DISTINCT name, max_teachers_per_person
FROM noisegate.pate_ensemble
WHERE sealed_at IS NOT NULL AND (name = $1 OR partition_sha256 = $2)
