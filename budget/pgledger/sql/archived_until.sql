-- When the last entry of a dataset was written that is in an archive.
--
-- $1 dataset
SELECT coalesce(max((record->>'at')::timestamptz), 'epoch') FROM noisegate.archive WHERE dataset = $1
