-- Ends open charges.
--
-- $1 time  of each: $2 id  $3 state  $4 ε  $5 unbounded  $6 ρ  $7 δ  $8 answer or NULL  $9 tail  $10 what shared accounts count (ε, unbounded, ρ, δ, tail) or NULL
UPDATE noisegate.charge c
SET state = ($3::text[])[i], closed_at = $1, epsilon = ($4::bigint[])[i], unbounded = ($5::bool[])[i], rho = ($6::bigint[])[i],
	delta = ($7::bigint[])[i], answer = ($8::bytea[])[i], tail = ($9::bigint[])[i], shared = ($10::text[])[i]::bigint[]
FROM unnest($2::text[]) WITH ORDINALITY AS ended (id, i)
WHERE c.charge_id = ended.id
