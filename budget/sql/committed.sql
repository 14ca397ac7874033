-- Whether an entry is there.
--
-- $1 number
SELECT EXISTS (SELECT FROM noisegate.entry WHERE seq = $1)
