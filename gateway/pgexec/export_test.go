package pgexec

import (
	"context"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// ComputeText is Compute for a text that no plan prints.
func (c *Calculator) ComputeText(ctx context.Context, sql string, args ...any) ([]sqlrewrite.PostRow, []string, error) {
	rows, types, err := compute(ctx, c.pool, sql, args, maxResult)
	if err != nil {
		return nil, nil, fault.DataUnavailable(quiet(err))
	}
	return rows, types, nil
}

// Unproven lets a database run statements that nobody could prove: tests of what a server does with them.
func (d *Database) Unproven() *Database {
	d.prove = func(sqlrewrite.Statement) error { return nil }
	return d
}

// MostKept and MostKeptBytes bound the texts of questions that a connection keeps prepared.
const (
	MostKept      = mostKept
	MostKeptBytes = mostKeptBytes
)
