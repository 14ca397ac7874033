-- Writes when accounts were opened, and until when they are busy, once their dataset's time is set back.
--
-- of each: $1 account  $2 when it was opened  $3 busy until
UPDATE noisegate.account a SET opened_at = back.opened, busy_until = back.busy
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS back (id, opened, busy)
WHERE a.account_id = back.id
