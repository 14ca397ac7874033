-- Makes keys whose charge was voided stand for others.
--
-- of each: $1 analyst  $2 key  $3 digest of the request  $4 charge
UPDATE noisegate.request_key k SET digest = new.digest, charge_id = new.charge
FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS new (analyst, key, digest, charge)
WHERE k.analyst = new.analyst AND k.key = new.key
