-- Keeps what a charge released.
--
-- $1 charge  $2 dataset  $3 question  $4 rho  $5 vector
INSERT INTO noisegate.shared (charge_id, dataset, question, rho, vector) VALUES ($1, $2, $3, $4, $5)
