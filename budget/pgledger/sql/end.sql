-- Ends open charges.
--
-- $1 time  of each: $2 id  $3 state  $4 ε  $5 unbounded  $6 ρ  $7 δ  $8 answer or NULL  $9 tail  $10 what shared accounts count (ε, unbounded, ρ, δ, tail) or NULL
UPDATE noisegate.charge c
SET state = ended.state, closed_at = $1, epsilon = ended.epsilon, unbounded = ended.unbounded, rho = ended.rho, delta = ended.delta,
	answer = ended.answer, tail = ended.tail, shared = ended.shared::bigint[]
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bool[], $6::bigint[], $7::bigint[], $8::bytea[], $9::bigint[], $10::text[])
	AS ended (id, state, epsilon, unbounded, rho, delta, answer, tail, shared)
WHERE c.charge_id = ended.id
