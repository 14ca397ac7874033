-- Numbers for entries, and the time; asked once the dataset is locked, so that both rise along its chain.
--
-- $1 how many
SELECT ARRAY(SELECT nextval('noisegate.entry_seq_seq') FROM generate_series(1, $1::int)), clock_timestamp()
