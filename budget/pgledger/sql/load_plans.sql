-- The slots of plans, and how many are drawn.
--
-- $1 plans
SELECT plan_id, epsilon, rho, next_slot FROM noisegate.plan WHERE plan_id = ANY ($1::text[])
