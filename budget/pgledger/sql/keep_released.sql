-- Keeps what a charge released.
--
-- $1 charge  $2 dataset  $3 identity  $4 values
INSERT INTO noisegate.released (charge_id, dataset, identity, vals) VALUES ($1, $2, $3, $4)
