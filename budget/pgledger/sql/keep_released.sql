-- Keeps what a charge released.
--
-- $1 charge  $2 dataset  $3 analyst  $4 whether others may be given it  $5 identity  $6 values
INSERT INTO noisegate.released (charge_id, dataset, analyst, shared, identity, vals) VALUES ($1, $2, $3, $4, $5, $6)
