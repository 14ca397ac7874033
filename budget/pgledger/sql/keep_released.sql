-- Keeps what a charge released.
--
-- $1 charge  $2 dataset  $3 analyst  $4 whether others may be given it  $5 identity  $6 values
-- $7 series  $8 as of which time  $9 name of the state of the data; NULL for what has no versions
INSERT INTO noisegate.released (charge_id, dataset, analyst, shared, identity, vals, series, as_of, data_version)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
