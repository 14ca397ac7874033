package pate

import _ "embed"

// The statements of the store, each explained where it stands.
var (
	//go:embed sql/version.sql
	sqlVersion string
	//go:embed sql/names.sql
	sqlNames string
	//go:embed sql/define.sql
	sqlDefine string
	//go:embed sql/binding.sql
	sqlBinding string
	//go:embed sql/same_votes.sql
	sqlSameVotes string
	//go:embed sql/places.sql
	sqlPlaces string
	//go:embed sql/outcomes.sql
	sqlOutcomes string
	//go:embed sql/purchases.sql
	sqlPurchases string
	//go:embed sql/purchase.sql
	sqlPurchase string
	//go:embed sql/votes.sql
	sqlVotes string
	//go:embed sql/record.sql
	sqlRecord string
	//go:embed sql/tally.sql
	sqlTally string
	//go:embed sql/tally_own.sql
	sqlTallyOwn string
	//go:embed sql/released.sql
	sqlReleased string
)
