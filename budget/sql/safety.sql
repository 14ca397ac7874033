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
		OR has_table_privilege('noisegate.chain', 'DELETE') OR has_table_privilege('noisegate.chain', 'TRUNCATE') AS deletes,
	current_setting('session_replication_role') <> 'origin' OR EXISTS (SELECT FROM pg_catalog.pg_trigger
		WHERE NOT tgisinternal AND tgenabled <> 'O' AND tgrelid IN ('noisegate.entry'::regclass, 'noisegate.charge'::regclass,
			'noisegate.plan'::regclass, 'noisegate.chain'::regclass)) AS unguarded
