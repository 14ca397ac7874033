-- Digests of the charges that were opened until a time, in a certain order. Texts of an array are quoted where that is needed, so that no
-- two charges have the same.
--
-- $1 dataset  $2 time
SELECT sha256(convert_to(ARRAY[charge_id, analyst, state, account_ids::text, epsilon::text, unbounded::text, rho::text, delta::text,
	tail::text, shared::text, attempt::text, (extract(epoch FROM opened_at) * 1000000)::bigint::text,
	(extract(epoch FROM closed_at) * 1000000)::bigint::text, encode(fingerprint, 'hex'),
	encode(sha256(convert_to(request::text, 'UTF8')), 'hex'), encode(sha256(answer), 'hex')]::text, 'UTF8'))
FROM noisegate.charge
WHERE dataset = $1 AND opened_at <= $2
ORDER BY charge_id COLLATE "C"
