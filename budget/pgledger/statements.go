package pgledger

import _ "embed"

// The statements of the PostgreSQL ledger; each file says what its parameters are. Those that change something run in a transaction that
// begins with sqlLock or sqlAdvance, in [transaction].
var (
	//go:embed sql/lock.sql
	sqlLock string
	//go:embed sql/begin_chain.sql
	sqlBeginChain string
	//go:embed sql/numbers.sql
	sqlNumbers string
	//go:embed sql/load_accounts.sql
	sqlLoadAccounts string
	//go:embed sql/all_accounts.sql
	sqlAllAccounts string
	//go:embed sql/load_charges.sql
	sqlLoadCharges string
	//go:embed sql/load_questions.sql
	sqlLoadQuestions string
	//go:embed sql/load_keys.sql
	sqlLoadKeys string
	//go:embed sql/load_plans.sql
	sqlLoadPlans string

	//go:embed sql/define.sql
	sqlDefine string
	//go:embed sql/open.sql
	sqlOpen string
	//go:embed sql/end.sql
	sqlEnd string
	//go:embed sql/bind.sql
	sqlBind string
	//go:embed sql/rebind.sql
	sqlRebind string
	//go:embed sql/register.sql
	sqlRegister string
	//go:embed sql/drawn.sql
	sqlDrawn string
	//go:embed sql/write.sql
	sqlWrite string
	//go:embed sql/move.sql
	sqlMove string
	//go:embed sql/advance.sql
	sqlAdvance string
	//go:embed sql/committed.sql
	sqlCommitted string

	//go:embed sql/earlier.sql
	sqlEarlier string
	//go:embed sql/bind_key.sql
	sqlBindKey string
	//go:embed sql/plan.sql
	sqlPlan string
	//go:embed sql/dataset_of.sql
	sqlDatasetOf string
	//go:embed sql/stale.sql
	sqlStale string
	//go:embed sql/balances.sql
	sqlBalances string
	//go:embed sql/dataset_balances.sql
	sqlDatasetBalances string
	//go:embed sql/releases.sql
	sqlReleases string
	//go:embed sql/release.sql
	sqlRelease string
	//go:embed sql/requests.sql
	sqlRequests string
	//go:embed sql/entries.sql
	sqlEntries string
	//go:embed sql/head.sql
	sqlHead string
	//go:embed sql/datasets.sql
	sqlDatasets string
	//go:embed sql/chain.sql
	sqlChain string
	//go:embed sql/hash_of.sql
	sqlHashOf string
	//go:embed sql/compare_sums.sql
	sqlCompareSums string
	//go:embed sql/safety.sql
	sqlSafety string
)
