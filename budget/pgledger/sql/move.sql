-- Writes what accounts have used, and how much of it is reserved.
--
-- of each: $1 account  $2 ε, $3 how many unbounded, $4 ρ, $5 δ that are used  $6 to $9 that are reserved  $10 busy until
-- $11 tail that is used  $12 that is reserved
UPDATE noisegate.account a
SET used_epsilon = moved.epsilon, used_unbounded = moved.unbounded, used_rho = moved.rho, used_delta = moved.delta,
	reserved_epsilon = moved.open_epsilon, reserved_unbounded = moved.open_unbounded, reserved_rho = moved.open_rho,
	reserved_delta = moved.open_delta, busy_until = moved.busy, used_tail = moved.tail, reserved_tail = moved.open_tail
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
	$10::timestamptz[], $11::bigint[], $12::bigint[])
	AS moved (id, epsilon, unbounded, rho, delta, open_epsilon, open_unbounded, open_rho, open_delta, busy, tail, open_tail)
WHERE a.account_id = moved.id
