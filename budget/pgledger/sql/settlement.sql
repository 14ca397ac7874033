-- The entry that settled a charge, what it cost, and whose accounts it is on, in their order.
--
-- $1 charge
SELECT e.dataset, e.seq, e.hash, e.at, e.analyst, e.epsilon, e.unbounded, e.rho, e.delta, e.tail,
	ARRAY(SELECT a.scope::text FROM unnest(e.account_ids) WITH ORDINALITY AS i (id, place) JOIN noisegate.account a ON a.account_id = i.id ORDER BY i.place),
	ARRAY(SELECT a.name FROM unnest(e.account_ids) WITH ORDINALITY AS i (id, place) JOIN noisegate.account a ON a.account_id = i.id ORDER BY i.place)
FROM noisegate.entry e WHERE e.kind = 'settle' AND e.charge_id = $1
