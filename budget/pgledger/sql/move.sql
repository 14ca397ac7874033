-- Writes what accounts have used, and how much of it is reserved.
--
-- of each: $1 account  $2 ε, $3 how many unbounded, $4 ρ, $5 δ that are used  $6 to $9 that are reserved  $10 busy until
-- $11 tail that is used  $12 that is reserved
UPDATE noisegate.account a
SET used_epsilon = ($2::bigint[])[i], used_unbounded = ($3::bigint[])[i], used_rho = ($4::bigint[])[i], used_delta = ($5::bigint[])[i],
	reserved_epsilon = ($6::bigint[])[i], reserved_unbounded = ($7::bigint[])[i], reserved_rho = ($8::bigint[])[i],
	reserved_delta = ($9::bigint[])[i], busy_until = ($10::timestamptz[])[i], used_tail = ($11::bigint[])[i], reserved_tail = ($12::bigint[])[i]
FROM unnest($1::bigint[]) WITH ORDINALITY AS moved (id, i)
WHERE a.account_id = moved.id
