-- What was asked with charges, whoever asked.
--
-- $1 charges
SELECT c.charge_id, c.request
FROM noisegate.charge c
WHERE c.charge_id = ANY ($1)
