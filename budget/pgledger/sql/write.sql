-- Writes entries, in order.
-- Columns are read by subscripts: an array in FROM would be copied to a table of its own (docs/decisions/0063).
--
-- $1 dataset  $2 time  of each: $3 number  $4 kind  $5 who  $6 accounts  $7 charge or NULL  $8 ε  $9 unbounded  $10 ρ  $11 δ
-- $12 digest or NULL  $13 mechanisms or NULL  $14 account or NULL  $15 hash  $16 tail  $17 what shared accounts count or NULL
INSERT INTO noisegate.entry
	(seq, at, kind, dataset, analyst, account_ids, charge_id, epsilon, unbounded, rho, delta, digest, mechanisms, account, hash, tail, shared)
OVERRIDING SYSTEM VALUE
SELECT seq, $2, ($4::text[])[i], $1, ($5::text[])[i], ($6::text[])[i]::bigint[], ($7::text[])[i], ($8::bigint[])[i], ($9::bool[])[i],
	($10::bigint[])[i], ($11::bigint[])[i], ($12::bytea[])[i], ($13::text[])[i]::json, ($14::text[])[i]::json, ($15::bytea[])[i],
	($16::bigint[])[i], ($17::text[])[i]::bigint[]
FROM unnest($3::bigint[]) WITH ORDINALITY AS new (seq, i)
