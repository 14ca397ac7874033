package pate

import _ "embed"

// The statements of the store, each explained where it stands.
var (
	//go:embed sql/version.sql
	sqlVersion string
	//go:embed sql/define.sql
	sqlDefine string
	//go:embed sql/find.sql
	sqlFind string
	//go:embed sql/votes.sql
	sqlVotes string
	//go:embed sql/record.sql
	sqlRecord string
	//go:embed sql/tally.sql
	sqlTally string
	//go:embed sql/released.sql
	sqlReleased string
)
