package budget

import _ "embed"

// The statements of the PostgreSQL ledger; each file says what its parameters are.
var (
	//go:embed sql/reserve.sql
	sqlReserve string
	//go:embed sql/close.sql
	sqlClose string
	//go:embed sql/earlier.sql
	sqlEarlier string
	//go:embed sql/bind_key.sql
	sqlBindKey string
	//go:embed sql/state.sql
	sqlState string
	//go:embed sql/stale.sql
	sqlStale string
	//go:embed sql/balances.sql
	sqlBalances string
	//go:embed sql/dataset_balances.sql
	sqlDatasetBalances string
	//go:embed sql/set_limit.sql
	sqlSetLimit string
	//go:embed sql/releases.sql
	sqlReleases string
	//go:embed sql/release.sql
	sqlRelease string
	//go:embed sql/entries.sql
	sqlEntries string
	//go:embed sql/plan.sql
	sqlPlan string
	//go:embed sql/safety.sql
	sqlSafety string
)
