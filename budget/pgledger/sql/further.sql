-- Plans that are drawn further than the ledger has it, and whether it has the charge that paid for each.
--
-- of each: $1 plan  $2 how many slots are drawn
SELECT t.plan_id, t.slots, c.charge_id IS NOT NULL
FROM unnest($1::text[], $2::int[]) AS t (plan_id, slots) LEFT JOIN noisegate.plan p USING (plan_id) LEFT JOIN noisegate.charge c ON c.charge_id = t.plan_id
WHERE c.charge_id IS NULL OR p.next_slot < least(t.slots, cardinality(p.epsilon))
ORDER BY t.plan_id
