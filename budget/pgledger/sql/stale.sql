-- Open charges that were opened after a time and have been open for longer than an age, oldest first. One that is later than its dataset's
-- time was opened before that was set back.
--
-- $1 after  $2 age
SELECT charge_id, dataset FROM noisegate.charge
WHERE state = 'open' AND opened_at >= $1 AND opened_at < clock_timestamp() - $2::interval
UNION ALL
SELECT c.charge_id, c.dataset FROM noisegate.charge c JOIN noisegate.chain n ON n.dataset = c.dataset
CROSS JOIN LATERAL (SELECT k.at FROM noisegate.entry k WHERE k.kind = 'clock' AND k.dataset = c.dataset ORDER BY k.seq DESC LIMIT 1) k
WHERE c.state = 'open' AND c.opened_at > clock_timestamp() AND c.opened_at > n.at AND k.at < clock_timestamp() - $2::interval
