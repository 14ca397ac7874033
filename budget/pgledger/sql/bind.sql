-- Makes new keys stand for charges.
--
-- of each: $1 analyst  $2 key  $3 digest of the request  $4 charge
INSERT INTO noisegate.request_key (analyst, key, digest, charge_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS new (analyst, key, digest, charge)
ORDER BY analyst, key
