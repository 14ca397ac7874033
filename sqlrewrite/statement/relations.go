package statement

import (
	"cmp"
	"slices"
	"strings"
)

// ownSchema holds relations that the gateway makes of what it knows itself.
const ownSchema = "noisegate"

// treatment is what becomes of a relation of the catalogs.
type treatment int

const (
	refusedRelation treatment = iota // named by no list
	readRelation                     // the twin's own, which is a function of the policy
	shownRelation                    // shared by all databases of a server: rows of the session's own instead
	emptyRelation                    // shared, or about others: no rows instead
)

// isCatalog reports whether a schema of catalogs has a relation, by the lists for PostgreSQL 14 to 18.
func isCatalog(schema, name string) bool {
	_, ok := relations[TableName{schema, name}]
	return ok
}

var relations = indexRelations()

// sortedRelations are those that a function takes.
func sortedRelations(takes func(schema string, t treatment) bool) (all []TableName) {
	for name, t := range relations {
		if takes(name.Schema, t) {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, compareNames)
	return all
}

func compareNames(a, b TableName) int {
	return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
}

func indexRelations() map[TableName]treatment {
	index := map[TableName]treatment{}
	for _, l := range relationLists() {
		for _, name := range strings.Fields(l.names) {
			index[TableName{l.schema, name}] = l.becomes
		}
	}
	return index
}

type relationList struct {
	becomes       treatment
	schema, names string
}

func relationLists() []relationList {
	return []relationList{
		{readRelation, "pg_catalog", `pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_cast pg_class pg_collation pg_constraint pg_conversion
			pg_default_acl pg_depend pg_description pg_enum pg_event_trigger pg_extension pg_foreign_data_wrapper
			pg_foreign_server pg_foreign_table pg_index pg_indexes pg_inherits pg_init_privs pg_language pg_matviews pg_namespace
			pg_opclass pg_operator pg_opfamily pg_partitioned_table pg_policies pg_policy pg_proc pg_publication
			pg_publication_namespace pg_publication_rel pg_publication_tables pg_range pg_rewrite pg_rules pg_sequence
			pg_sequences pg_stat_user_indexes pg_stat_user_tables pg_statio_user_tables pg_statistic_ext pg_tables
			pg_timezone_abbrevs pg_timezone_names pg_transform pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser
			pg_ts_template pg_type pg_views`},
		{shownRelation, "pg_catalog", `pg_database pg_roles pg_settings pg_stat_activity pg_tablespace pg_user`},
		{emptyRelation, "pg_catalog", `pg_auth_members pg_authid pg_available_extension_versions pg_available_extensions pg_cursors pg_db_role_setting
			pg_group pg_largeobject pg_largeobject_metadata pg_locks pg_parameter_acl pg_prepared_statements pg_prepared_xacts
			pg_replication_origin pg_replication_origin_status pg_replication_slots pg_seclabel pg_seclabels pg_shadow pg_shdepend
			pg_shdescription pg_shseclabel pg_stat_all_indexes pg_stat_all_tables pg_stat_database pg_stat_database_conflicts
			pg_stat_gssapi pg_stat_progress_analyze pg_stat_progress_basebackup pg_stat_progress_cluster pg_stat_progress_copy
			pg_stat_progress_create_index pg_stat_progress_vacuum pg_stat_replication pg_stat_ssl pg_stat_subscription
			pg_stat_wal_receiver pg_statio_all_tables pg_stats pg_stats_ext pg_subscription pg_subscription_rel pg_user_mapping
			pg_user_mappings`},
		{refusedRelation, "pg_catalog", `pg_aios pg_backend_memory_contexts pg_config pg_file_settings pg_hba_file_rules pg_ident_file_mappings
			pg_shmem_allocations pg_shmem_allocations_numa pg_stat_archiver pg_stat_bgwriter pg_stat_checkpointer pg_stat_io
			pg_stat_recovery_prefetch pg_stat_replication_slots pg_stat_slru pg_stat_subscription_stats pg_stat_sys_indexes
			pg_stat_sys_tables pg_stat_user_functions pg_stat_wal pg_stat_xact_all_tables pg_stat_xact_sys_tables
			pg_stat_xact_user_functions pg_stat_xact_user_tables pg_statio_all_indexes pg_statio_all_sequences
			pg_statio_sys_indexes pg_statio_sys_sequences pg_statio_sys_tables pg_statio_user_indexes pg_statio_user_sequences
			pg_statistic pg_statistic_ext_data pg_stats_ext_exprs pg_wait_events`},
		{readRelation, "information_schema", `attributes character_sets check_constraint_routine_usage check_constraints collation_character_set_applicability
			collations column_column_usage column_domain_usage column_options column_privileges column_udt_usage columns
			constraint_column_usage constraint_table_usage data_type_privileges domain_constraints domain_udt_usage domains
			element_types foreign_data_wrapper_options foreign_data_wrappers foreign_server_options foreign_servers
			foreign_table_options foreign_tables information_schema_catalog_name key_column_usage parameters
			referential_constraints role_column_grants role_routine_grants role_table_grants role_udt_grants role_usage_grants
			routine_column_usage routine_privileges routine_routine_usage routine_sequence_usage routine_table_usage routines
			schemata sequences sql_features sql_implementation_info sql_parts sql_sizing table_constraints table_privileges tables
			transforms triggered_update_columns triggers udt_privileges usage_privileges user_defined_types view_column_usage
			view_routine_usage view_table_usage views`},
		{emptyRelation, "information_schema", `administrable_role_authorizations applicable_roles enabled_roles user_mapping_options user_mappings`},
		{refusedRelation, "information_schema", `_pg_foreign_data_wrappers _pg_foreign_servers _pg_foreign_table_columns _pg_foreign_tables _pg_user_mappings`},
		{shownRelation, ownSchema, `budget columns releases`},
	}
}
