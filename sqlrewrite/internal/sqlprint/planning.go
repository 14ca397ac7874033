package sqlprint

// How a statement that adds up per unit is best planned (docs/performance.md).
const (
	// planPartitions adds up in each partition of a table whose partitions keep units apart.
	planPartitions = "SET LOCAL enable_partitionwise_aggregate = on"
	// With these no table is large enough to be read by several processes: they take a side of the UNION ALL each.
	planWholeTables  = "SET LOCAL min_parallel_table_scan_size = 715827882"
	planWholeIndexes = "SET LOCAL min_parallel_index_scan_size = 715827882"
	// planHashed has a row of one side of a join looked up among those of the other: a nested loop goes along all of them for each row,
	// however few of them it may meet, where PostgreSQL expects that there are few.
	planHashed = "SET LOCAL enable_nestloop = off"
	// planInOrder joins in the order of the text, which says what is read whatever a condition leaves (lower/readboth.go).
	planInOrder = "SET LOCAL join_collapse_limit = 1"
	// planUnmerged joins no sorted rows: a merge reads one side no further than the other one's largest value, and nothing for values that are
	// NULL.
	planUnmerged = "SET LOCAL enable_mergejoin = off"
	// planBlind chooses the plan before it sees the constants: how many rows fulfil a condition, by statistics that one unit's rows move, does
	// not say which side of a join is hashed.
	planBlind = "SET LOCAL plan_cache_mode = force_generic_plan"
	// planAlone has one process read all rows: each reads the files of time zones for itself, at the first row that needs one.
	planAlone = "SET LOCAL max_parallel_workers_per_gather = 0"
)

// Planning are the settings that a statement is planned with, as SQL for its transaction.
func (s Statement) Planning() []string {
	var all []string
	if s.AddsUp {
		all = append(all, planPartitions)
	}
	if s.Partitioned {
		all = append(all, planWholeTables, planWholeIndexes)
	}
	if s.Hashes {
		all = append(all, planHashed)
	}
	if s.InOrder {
		all = append(all, planInOrder, planUnmerged)
	}
	if s.Blind {
		all = append(all, planBlind)
	}
	if len(s.Zones) > 0 {
		all = append(all, planAlone)
	}
	return all
}
