-- The sealed versions with the same votes, but for one, the first of them first.
--
-- $1 digest  $2 version
SELECT name, dataset, max_teachers_per_person, sanitise
FROM noisegate.pate_ensemble
WHERE sealed_at IS NOT NULL AND digest = $1 AND ensemble_id <> $2
ORDER BY sealed_at, ensemble_id
