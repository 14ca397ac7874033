-- Whether an entry is there. Its number alone would not do: after a crash numbers are given again that no commit had kept.
--
-- $1 number  $2 hash
SELECT EXISTS (SELECT FROM noisegate.entry WHERE seq = $1 AND hash = $2)
