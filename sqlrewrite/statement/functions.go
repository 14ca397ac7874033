package statement

import "strings"

// The lists of what a query about catalogs may use besides relations. They were chosen by what a function can reach: nothing that reads
// files, settings, locks, statistics of the server, large objects, sequences or the text of another query; nothing that names roles;
// nothing that makes one word of a gigabyte.

var passes = set(strings.Fields(allowedFunctions))

const allowedFunctions = `
	abs acos age array_agg array_append array_cat array_dims array_length array_lower array_ndims array_position array_positions
	array_prepend array_remove array_replace array_to_json array_to_string array_upper ascii asin atan atan2 avg bit_and bit_length bit_or
	bool_and bool_or btrim cardinality cbrt ceil ceiling char_length character_length chr clock_timestamp col_description concat concat_ws
	convert_from cos count cume_dist current_schema current_schemas date_part date_trunc decode degrees dense_rank div encode every exp
	extract first_value floor format format_type generate_series generate_subscripts getdatabaseencoding greatest
	has_any_column_privilege has_column_privilege has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
	has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege has_type_privilege initcap isfinite
	json_agg json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each json_each_text
	json_extract_path json_extract_path_text json_object json_object_agg json_object_keys json_strip_nulls json_typeof jsonb_agg
	jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
	jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys jsonb_pretty jsonb_strip_nulls jsonb_typeof
	justify_days justify_hours justify_interval lag last_value lead least left length like like_escape ln localtimestamp log log10 lower
	ltrim make_date make_interval make_time make_timestamp max md5 min mod mode notlike now nth_value ntile nullif num_nonnulls num_nulls
	obj_description octet_length overlaps overlay parse_ident percent_rank percentile_cont percentile_disc pg_char_to_encoding
	pg_client_encoding pg_collation_for pg_collation_is_visible pg_column_is_updatable pg_column_size pg_conversion_is_visible
	pg_encoding_max_length pg_encoding_to_char pg_function_is_visible pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr
	pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result
	pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_partition_constraintdef pg_get_partkeydef
	pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions
	pg_get_triggerdef pg_get_viewdef pg_index_column_has_property pg_index_has_property pg_indexam_has_property pg_indexes_size
	pg_is_other_temp_schema pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible pg_options_to_table
	pg_partition_ancestors pg_partition_root pg_partition_tree pg_relation_is_publishable pg_relation_is_updatable pg_relation_size
	pg_size_bytes pg_size_pretty pg_statistics_obj_is_visible pg_table_is_visible
	pg_table_size pg_timezone_abbrevs pg_timezone_names pg_total_relation_size pg_ts_config_is_visible pg_ts_dict_is_visible
	pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof pi position power quote_ident quote_literal
	quote_nullable radians rank regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
	regexp_split_to_table regexp_substr replace reverse right round row_number row_security_active row_to_json rtrim scale sha256 sign
	similar_escape similar_to_escape sin split_part sqrt starts_with statement_timestamp stddev stddev_pop stddev_samp string_agg
	string_to_array string_to_table strpos substr substring sum tan text timezone to_char to_date to_hex to_json to_jsonb to_number
	to_regclass to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regtype to_timestamp
	transaction_timestamp translate trim_array trim_scale trunc unnest upper var_pop var_samp variance width_bucket aclexplode bool timestamptz timestamp date int4 int8 float8 varchar name oid numeric`

var informationFunctions = set(strings.Fields(`_pg_char_max_length _pg_char_octet_length _pg_datetime_precision _pg_expandarray
	_pg_index_position _pg_interval_type _pg_numeric_precision _pg_numeric_precision_radix _pg_numeric_scale _pg_truetypid _pg_truetypmod`))

// knownRefused are functions whose refusal says so, instead of that there is no such function.
var knownRefused = set(strings.Fields(`acldefault current_query currval database_to_xml lastval lo_export lo_get lo_import
	lpad makeaclitem nextval pg_advisory_lock pg_cancel_backend pg_config pg_control_system pg_current_logfile pg_current_wal_lsn
	pg_export_snapshot pg_get_object_address pg_hba_file_rules pg_ls_dir pg_ls_logdir pg_ls_waldir pg_notify pg_read_binary_file pg_read_file
	pg_relation_filepath pg_reload_conf pg_rotate_logfile pg_sequence_last_value pg_show_all_file_settings pg_show_all_settings pg_sleep
	pg_sleep_for pg_stat_file pg_stat_get_activity pg_tablespace_databases pg_terminate_backend pg_try_advisory_lock query_to_xml
	query_to_xml_and_xmlschema query_to_xmlschema repeat rpad schema_to_xml set_config setseed setval table_to_xml to_regrole ts_stat
	txid_current random gen_random_uuid`))

var types = set(strings.Fields(`bool int2 int4 int8 float4 float8 numeric text varchar bpchar char name oid date time timetz timestamp
	timestamptz interval uuid json jsonb bytea bit varbit inet cidr xid cid tid int2vector oidvector regclass regtype regproc regprocedure
	regoper regoperator regnamespace regcollation regconfig regdictionary unknown integer smallint bigint boolean decimal real`))

var informationTypes = set(strings.Fields("cardinal_number character_data sql_identifier time_stamp yes_or_no"))

var operators = set(strings.Fields(`= <> != < > <= >= + - * / % ^ | & # ~ << >> || ~* !~ !~* ~~ !~~ ~~* !~~* @> <@ && -> ->> #> #>> ? ?| ?& ^@`))

// describes are functions that describe an object of any catalog.
var describes = set(strings.Fields("pg_describe_object pg_identify_object pg_identify_object_as_address"))

// describedClasses are the catalogs of which they do, by the OIDs that PostgreSQL has fixed: pg_type, pg_attribute, pg_proc, pg_class,
// pg_foreign_server, pg_foreign_data_wrapper, pg_am, pg_amop, pg_amproc, pg_attrdef, pg_cast, pg_constraint, pg_conversion, pg_language,
// pg_namespace, pg_opclass, pg_operator, pg_rewrite, pg_trigger, pg_opfamily, pg_extension, pg_policy, pg_statistic_ext, pg_collation,
// pg_event_trigger, pg_transform, pg_ts_dict, pg_ts_parser, pg_ts_config, pg_ts_template, pg_publication.
const describedClasses = `1247 1249 1255 1259 1417 2328 2601 2602 2603 2604 2605 2606 2607 2612 2615 2616 2617 2618 2620 2753 3079 3256 3381
	3456 3466 3576 3600 3601 3602 3764 6104`
