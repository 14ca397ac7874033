-- Opens charges.
--
-- $1 dataset  $2 time  of each: $3 id  $4 analyst  $5 accounts  $6 ε  $7 unbounded  $8 ρ  $9 δ  $10 fingerprint  $11 attempt  $12 request  $13 tail
INSERT INTO noisegate.charge (charge_id, dataset, analyst, account_ids, epsilon, unbounded, rho, delta, fingerprint, attempt, request, opened_at, tail)
SELECT id, $1, ($4::text[])[i], ($5::text[])[i]::bigint[], ($6::bigint[])[i], ($7::bool[])[i], ($8::bigint[])[i], ($9::bigint[])[i],
	($10::bytea[])[i], ($11::int[])[i], ($12::text[])[i]::json, $2, ($13::bigint[])[i]
FROM unnest($3::text[]) WITH ORDINALITY AS new (id, i)
