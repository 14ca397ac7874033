-- Makes a key stand for a charge that exists; returns one row unless the key stands for another request already.
--
-- $1 analyst  $2 key  $3 digest of the request  $4 charge
INSERT INTO noisegate.request_key AS k (analyst, key, digest, charge_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT (analyst, key) DO UPDATE SET digest = excluded.digest, charge_id = excluded.charge_id
	WHERE (SELECT c.state FROM noisegate.charge c WHERE c.charge_id = k.charge_id) = 'voided'
RETURNING charge_id
