package catalog

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
)

// This file counts public tables: how many rows each has, and how many of them share one value of a column. The work that one person's row
// can cause in a join is bounded by these facts, which are nobody's secret.

// approved is what a table may grow to before its policy is stale: the smallest power of two that is at least half as much again as what
// was counted, and at least 2; rows are at least 16. A power of two, so that ordinary growth does not make the same policy another version.
func approved(counted, least int64) int64 {
	wanted := max(counted+(counted+1)/2, least)
	return 1 << bits.Len64(uint64(wanted-1))
}

// The least that is approved, however little a table holds.
const (
	leastRows  = 16
	leastEqual = 2
)

// ApprovedRows is how many rows a public table may have whose policy was applied while it had so many.
func ApprovedRows(counted int64) int64 { return approved(counted, leastRows) }

// ApprovedEqual gives the number of rows of a public table that may share one value of a column, where counted rows did.
func ApprovedEqual(counted int64) int64 { return approved(counted, leastEqual) }

// Counts is what is counted of one public table.
type Counts struct {
	Rows  int64
	Equal map[string]int64 // by column
}

// Querier is a connection or a transaction on one.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Count counts the rows of a public table, and the most rows that share one value of each of some columns.
func Count(ctx context.Context, tx Querier, table TableName, columns []string) (Counts, error) {
	from := pgx.Identifier{table.Schema, table.Name}.Sanitize()
	selects := []string{"(SELECT pg_catalog.count(*) FROM " + from + ")"}
	for _, name := range columns {
		column := pgx.Identifier{name}.Sanitize()
		selects = append(selects, fmt.Sprintf("(SELECT COALESCE(pg_catalog.max(n), 0) FROM (SELECT pg_catalog.count(*) AS n FROM %s WHERE "+
			"%s IS NOT NULL GROUP BY %[2]s) g)", from, column))
	}
	counted := make([]int64, len(selects))
	targets := make([]any, len(selects))
	for i := range counted {
		targets[i] = &counted[i]
	}
	if err := tx.QueryRow(ctx, "SELECT "+strings.Join(selects, ", ")).Scan(targets...); err != nil {
		return Counts{}, err
	}
	c := Counts{Rows: counted[0], Equal: map[string]int64{}}
	for i, name := range columns {
		c.Equal[name] = counted[i+1]
	}
	return c, nil
}

// count counts the public tables of a policy that were not counted yet.
func (s *Schema) count(ctx context.Context, tx pgx.Tx, p *Policy) error {
	infos := byName(s.Tables)
	for _, t := range p.Tables {
		info, ok := infos[t.TableName]
		if !ok || !t.Public || info.MostRows > 0 || !info.Readable || info.Kind != PlainTable && info.Kind != PartitionedTable {
			continue // what is wrong with it, Check says
		}
		var columns []string
		for _, c := range info.Columns {
			if c.joins() && !slices.Contains(info.Unique, c.Name) {
				columns = append(columns, c.Name)
			}
		}
		counts, err := Count(ctx, tx, t.TableName, columns)
		if err != nil {
			return err
		}
		info.MostRows = ApprovedRows(counts.Rows)
		for _, c := range info.Columns {
			if n, ok := counts.Equal[c.Name]; ok {
				c.MostEqual = ApprovedEqual(n)
			}
		}
	}
	return nil
}

// outgrows reports whether a public table has more than an earlier schema approved. One from before there were counts approved everything.
func (s *Schema) outgrows(earlier *Schema) bool {
	before := byName(earlier.Tables)
	for _, t := range s.Tables {
		was, ok := before[t.TableName]
		if !ok || was.MostRows == 0 {
			continue
		}
		if t.MostRows > was.MostRows {
			return true
		}
		for _, c := range t.Columns {
			if before, ok := was.Column(c.Name); ok && c.MostEqual > before.MostEqual {
				return true
			}
		}
	}
	return false
}

// uncounted is the schema as it was before there were counts.
func (s *Schema) uncounted() *Schema {
	bare := &Schema{Domains: s.Domains}
	for _, t := range s.Tables {
		if t.MostRows > 0 {
			t = t.copied()
			t.MostRows = 0
			for _, c := range t.Columns {
				c.MostEqual = 0
			}
		}
		bare.Tables = append(bare.Tables, t)
	}
	return bare
}

// copied is a table whose counts may be changed.
func (t *TableInfo) copied() *TableInfo {
	table := *t
	table.Columns = nil
	for _, c := range t.Columns {
		column := *c
		table.Columns = append(table.Columns, &column)
	}
	return &table
}

// joins reports whether equality of the column with another distinguishes its values. Then the number of rows that share one bounds a join.
// Floats may equal numbers that differ.
func (c *ColumnInfo) joins() bool { return c.Type != "" && c.Type != Float4 && c.Type != Float8 }

// Counted is a revision whose public tables are counted: policies that were applied before there were counts hold none.
// Its identity, and so that of every question, stays what it is.
func Counted(ctx context.Context, pool *pgxpool.Pool, r *Revision) (*Revision, error) {
	missing := func(t *TablePolicy) bool {
		info, ok := r.Pinned.Table(t.TableName)
		return ok && t.Public && info.MostRows == 0 && info.View == nil
	}
	if !slices.ContainsFunc(r.Policy.Tables, missing) {
		return r, nil
	}
	counted := &Schema{Domains: r.Pinned.Domains}
	for _, t := range r.Pinned.Tables {
		counted.Tables = append(counted.Tables, t.copied())
	}
	if _, err := inspect(ctx, pool, func(tx pgx.Tx, _ *Schema) error { return counted.count(ctx, tx, r.Policy) }); err != nil {
		return nil, err
	}
	snapshot, problems := Check(r.Policy, counted)
	if len(problems) > 0 {
		return nil, fault.Internal(fmt.Errorf("catalog: the policy of %s does not fit its counted tables: %w", r.Snapshot.Dataset, problems[0]))
	}
	was := r.Snapshot
	snapshot.Version, snapshot.Digest = was.Version, was.Digest
	snapshot.EarlierReleases, snapshot.EarlierQuestions = was.EarlierReleases, was.EarlierQuestions
	snapshot.WideReleases, snapshot.WideQuestions = was.WideReleases, was.WideQuestions
	all := *r
	all.Snapshot = snapshot
	return &all, nil
}
