-- Keeps what charges released.
--
-- of each: $1 charge  $2 dataset  $3 analyst  $4 whether others may be given it  $5 identity  $6 values
-- $7 series  $8 as of which time  $9 name of the state of the data; NULL for what has no versions
INSERT INTO noisegate.released (charge_id, dataset, analyst, shared, identity, vals, series, as_of, data_version)
SELECT charge, ($2::text[])[i], ($3::text[])[i], ($4::bool[])[i], ($5::bytea[])[i], ($6::text[])[i], ($7::bytea[])[i], ($8::timestamptz[])[i],
	($9::text[])[i]
FROM unnest($1::text[]) WITH ORDINALITY AS kept (charge, i)
