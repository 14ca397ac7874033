-- The names of all ensembles.
SELECT DISTINCT name FROM noisegate.pate_ensemble ORDER BY name
