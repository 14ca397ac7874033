-- Writes entries, in order.
--
-- $1 dataset  $2 time  of each: $3 number  $4 kind  $5 who  $6 accounts  $7 charge or NULL  $8 ε  $9 unbounded  $10 ρ  $11 δ
-- $12 digest or NULL  $13 mechanisms or NULL  $14 account or NULL  $15 hash  $16 tail  $17 what shared accounts count or NULL
INSERT INTO noisegate.entry
	(seq, at, kind, dataset, analyst, account_ids, charge_id, epsilon, unbounded, rho, delta, digest, mechanisms, account, hash, tail, shared)
OVERRIDING SYSTEM VALUE
SELECT seq, $2, kind, $1, analyst, accounts::bigint[], charge, epsilon, unbounded, rho, delta, digest, mechanisms::json, account::json, hash, tail, shared::bigint[]
FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bool[], $10::bigint[], $11::bigint[],
	$12::bytea[], $13::text[], $14::text[], $15::bytea[], $16::bigint[], $17::text[])
	AS new (seq, kind, analyst, accounts, charge, epsilon, unbounded, rho, delta, digest, mechanisms, account, hash, tail, shared)
