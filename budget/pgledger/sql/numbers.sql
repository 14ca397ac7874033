-- Numbers for entries, and the time; asked once the dataset is locked, so that both rise along its chain. And the newest entry that set the
-- dataset's time back, or 0.
--
-- $1 how many  $2 dataset
SELECT ARRAY(SELECT nextval('noisegate.entry_seq_seq') FROM generate_series(1, $1::int)), clock_timestamp(),
	coalesce((SELECT k.seq FROM noisegate.entry k WHERE k.kind = 'clock' AND k.dataset = $2 ORDER BY k.seq DESC LIMIT 1), 0)
