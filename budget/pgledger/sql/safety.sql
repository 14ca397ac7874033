-- What a server must be like to keep a ledger, and what the role must not be able to do.
SELECT current_setting('fsync') = 'on' AS fsync,
	current_setting('full_page_writes') = 'on' AS full_page_writes,
	current_setting('synchronous_commit') AS synchronous_commit,
	pg_catalog.pg_is_in_recovery() AS recovering,
	has_table_privilege('noisegate.entry', 'UPDATE') OR has_any_column_privilege('noisegate.entry', 'UPDATE')
		OR has_table_privilege('noisegate.entry', 'DELETE') OR has_table_privilege('noisegate.entry', 'TRUNCATE') AS rewrites,
	has_table_privilege('noisegate.charge', 'DELETE') OR has_table_privilege('noisegate.charge', 'TRUNCATE')
		OR has_table_privilege('noisegate.account', 'DELETE') OR has_table_privilege('noisegate.account', 'TRUNCATE')
		OR has_table_privilege('noisegate.plan', 'DELETE') OR has_table_privilege('noisegate.plan', 'TRUNCATE')
		OR has_table_privilege('noisegate.archive', 'INSERT') OR has_table_privilege('noisegate.archive', 'DELETE')
		OR has_table_privilege('noisegate.chain', 'DELETE') OR has_table_privilege('noisegate.chain', 'TRUNCATE') AS deletes,
	current_setting('session_replication_role') <> 'origin' OR EXISTS (
		SELECT FROM (VALUES ('entry', 'append_only'), ('entry', 'append_only_truncate'), ('archive', 'kept'), ('archive', 'kept_truncate'),
			('charge', 'transition'), ('charge', 'kept'), ('charge', 'kept_truncate'),
			('plan', 'forward'), ('plan', 'kept'), ('plan', 'kept_truncate'),
			('chain', 'forward'), ('chain', 'set_back'), ('chain', 'kept'), ('chain', 'kept_truncate')) AS needed (relation, name)
		WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
			WHERE t.tgrelid = ('noisegate.' || needed.relation)::regclass AND t.tgname = needed.name AND t.tgenabled IN ('O', 'A'))
	) OR NOT EXISTS (SELECT FROM pg_catalog.pg_constraint
		WHERE conrelid = 'noisegate.account'::regclass AND conname = 'within_the_ceiling' AND convalidated) AS unguarded
