-- The entry that settled a charge, what it cost, and whose accounts it is on, in their order; which slots of a plan it drew, if
-- it did, and the same of the charge that paid for the plan; and what shared accounts count, where that is less. BETWEEN with ORDER BY
-- makes it a look-up by charge, whatever statistics say: another index of settlements has no such order.
--
-- $1 charge
SELECT e.dataset, e.seq, e.hash, e.at, e.analyst, e.epsilon, e.unbounded, e.rho, e.delta, e.tail,
	ARRAY(SELECT a.scope::text FROM unnest(e.account_ids) WITH ORDINALITY AS i (id, place) JOIN noisegate.account a ON a.account_id = i.id ORDER BY i.place),
	ARRAY(SELECT a.name FROM unnest(e.account_ids) WITH ORDINALITY AS i (id, place) JOIN noisegate.account a ON a.account_id = i.id ORDER BY i.place),
	CASE WHEN p.charge_id IS NOT NULL THEN e.mechanisms->'draws' END, coalesce(p.epsilon, 0), coalesce(p.unbounded, false), coalesce(p.rho, 0),
	coalesce(p.delta, 0), coalesce(p.tail, 0),
	ARRAY(SELECT a.scope::text FROM unnest(p.account_ids) WITH ORDINALITY AS i (id, place) JOIN noisegate.account a ON a.account_id = i.id ORDER BY i.place),
	ARRAY(SELECT a.name FROM unnest(p.account_ids) WITH ORDINALITY AS i (id, place) JOIN noisegate.account a ON a.account_id = i.id ORDER BY i.place),
	e.shared
FROM (SELECT * FROM noisegate.entry WHERE kind = 'settle' AND charge_id BETWEEN $1 AND $1 ORDER BY charge_id LIMIT 1) e
LEFT JOIN noisegate.charge p ON p.charge_id = e.mechanisms->'draws'->>'plan'
