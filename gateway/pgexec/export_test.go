package pgexec

import (
	"context"

	"noisegate/internal/fault"
	"noisegate/sqlrewrite"
)

// ComputeText is Compute for a text that no plan prints.
func (c *Calculator) ComputeText(ctx context.Context, sql string, args ...any) ([]sqlrewrite.PostRow, []string, error) {
	rows, types, err := compute(ctx, c.pool, sql, args)
	if err != nil {
		return nil, nil, fault.DataUnavailable(quiet(err))
	}
	return rows, types, nil
}
