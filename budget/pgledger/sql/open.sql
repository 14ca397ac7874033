-- Opens charges.
--
-- $1 dataset  $2 time  of each: $3 id  $4 analyst  $5 accounts  $6 ε  $7 unbounded  $8 ρ  $9 δ  $10 fingerprint  $11 attempt  $12 request  $13 tail
INSERT INTO noisegate.charge (charge_id, dataset, analyst, account_ids, epsilon, unbounded, rho, delta, fingerprint, attempt, request, opened_at, tail)
SELECT id, $1, analyst, accounts::bigint[], epsilon, unbounded, rho, delta, fingerprint, attempt, request::json, $2, tail
FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::bool[], $8::bigint[], $9::bigint[], $10::bytea[], $11::int[], $12::text[], $13::bigint[])
	AS new (id, analyst, accounts, epsilon, unbounded, rho, delta, fingerprint, attempt, request, tail)
