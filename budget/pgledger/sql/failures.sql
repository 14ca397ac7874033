-- How many charges of an analyst failed within a period, since the last reset. Indexes of failures, resets and clocks make it a look-up, however long the journal is.
--
-- $1 dataset  $2 analyst  $3 period
SELECT count(*) FROM noisegate.entry e
WHERE e.kind = 'fail' AND e.dataset = $1 AND e.analyst = $2 AND e.at > clock_timestamp() - $3::interval
	AND e.seq > coalesce((SELECT max(r.seq) FROM noisegate.entry r
		WHERE r.kind = 'reset' AND r.dataset = $1 AND r.account->>'resets_failures_of' = $2), 0)
	AND e.seq > coalesce((SELECT max(k.seq) FROM noisegate.entry k
		WHERE k.kind = 'clock' AND k.dataset = $1 AND k.at <= clock_timestamp() - $3::interval), 0)
