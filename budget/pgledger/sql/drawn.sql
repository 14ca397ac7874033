-- Takes slots out of a plan.
--
-- $1 plan  $2 its next slot from now on
UPDATE noisegate.plan SET next_slot = $2 WHERE plan_id = $1
