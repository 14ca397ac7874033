-- Writes what accounts have used.
--
-- of each: $1 account  $2 ε  $3 how many unbounded  $4 ρ  $5 δ  $6 busy until
UPDATE noisegate.account a
SET used_epsilon = moved.epsilon, used_unbounded = moved.unbounded, used_rho = moved.rho, used_delta = moved.delta, busy_until = moved.busy
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[])
	AS moved (id, epsilon, unbounded, rho, delta, busy)
WHERE a.account_id = moved.id
