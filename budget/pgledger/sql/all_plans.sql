-- The plans of a dataset, as load_plans.sql gives some.
--
-- $1 dataset
SELECT p.plan_id, p.epsilon, p.rho, p.next_slot FROM noisegate.plan p JOIN noisegate.charge c ON c.charge_id = p.plan_id WHERE c.dataset = $1
