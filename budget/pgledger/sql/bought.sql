-- An analyst's newest settled charge for a request, byte for byte, among their newest 10,000 charges that are not plans'.
--
-- $1 analyst  $2 dataset  $3 request  $4 settled then or later
SELECT charge_id FROM (
	SELECT c.charge_id, c.dataset, c.request, c.closed_at, e.seq FROM noisegate.entry e JOIN noisegate.charge c USING (charge_id)
	WHERE e.kind = 'settle' AND e.analyst = $1 AND NOT EXISTS (SELECT FROM noisegate.plan p WHERE p.plan_id = c.charge_id)
	ORDER BY e.seq DESC LIMIT 10000
) newest
WHERE dataset = $2 AND closed_at >= $4 AND request::text = $3
ORDER BY seq DESC LIMIT 1
