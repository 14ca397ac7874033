-- Begins a version; $2 is the number after the last one.
--
-- $1 name  $2 version  $3 dataset  $4 classes  $5 teachers  $6 teachers per person  $7 partition or NULL  $8 sanitise or NULL  $9 who
INSERT INTO noisegate.pate_ensemble (name, version, dataset, classes, teachers, max_teachers_per_person, partition_sha256, sanitise, defined_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
