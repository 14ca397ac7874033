-- Whether a charge of an analyst ever failed: one look-up, which for most says that there is nothing to count (failures.sql).
--
-- $1 dataset  $2 analyst
SELECT EXISTS (SELECT FROM noisegate.entry e WHERE e.kind = 'fail' AND e.dataset = $1 AND e.analyst = $2)
