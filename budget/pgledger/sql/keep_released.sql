-- Keeps what charges released.
--
-- of each: $1 charge  $2 dataset  $3 analyst  $4 whether others may be given it  $5 identity  $6 values
-- $7 series  $8 as of which time  $9 name of the state of the data; NULL for what has no versions
INSERT INTO noisegate.released (charge_id, dataset, analyst, shared, identity, vals, series, as_of, data_version)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::bytea[], $6::text[], $7::bytea[], $8::timestamptz[], $9::text[])
