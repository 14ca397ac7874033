package pgexec

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// counts remembers what was counted of public tables, for as long as they stay the same. Its zero value is ready.
type counts struct {
	mu    sync.Mutex
	known map[uint32]counted // by OID
}

// counted is what is known of a table in one state.
type counted struct {
	state string
	catalog.Counts
}

// stateText is different when a table was written to: its files, their sizes, and how many rows were ever inserted,
// updated and deleted. The latter PostgreSQL may say a minute late; what grows in that minute within its pages is found
// after it.
const stateText = `SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', c.oid, c.relfilenode, pg_catalog.pg_relation_size(c.oid),
	pg_catalog.pg_stat_get_tuples_inserted(c.oid), pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_deleted(c.oid)), ',' ORDER BY c.oid)
FROM pg_catalog.pg_class c WHERE c.oid = $1::oid OR c.oid IN (SELECT p.relid FROM pg_catalog.pg_partition_tree($1::oid) p)`

// hold is policy/stale when a public table has outgrown what the statement's bound on work rests on. It counts, in the transaction of the
// statement, only tables that were written to since they were counted last.
func (k *counts) hold(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition) error {
	for _, pin := range pins {
		limits, counted := limitsOf(pin)
		if !counted {
			continue
		}
		now, err := k.of(ctx, conn, pin, slices.Sorted(maps.Keys(limits)))
		if err != nil {
			return fault.DataUnavailable(quiet(err))
		}
		if pin.MostRows > 0 && now.Rows > pin.MostRows {
			return fault.PolicyStale()
		}
		for name, limit := range limits {
			if now.Equal[name] > limit {
				return fault.PolicyStale()
			}
		}
	}
	return nil
}

// limitsOf are the limits of a pin for rows with one value, by column, and whether there is any limit to what is counted.
func limitsOf(pin sqlrewrite.Precondition) (limits map[string]int64, counted bool) {
	limits = map[string]int64{}
	for _, c := range pin.Columns {
		if c.MostEqual > 0 {
			limits[c.Name] = c.MostEqual
		}
	}
	return limits, pin.MostRows > 0 || len(limits) > 0
}

// of gives the counts of a table as it is, which hold at least the columns that are asked for.
func (k *counts) of(ctx context.Context, conn *pgx.Conn, pin sqlrewrite.Precondition, columns []string) (catalog.Counts, error) {
	var state string
	if err := conn.QueryRow(ctx, stateText, pin.OID).Scan(&state); err != nil {
		return catalog.Counts{}, err
	}
	k.mu.Lock()
	known, ok := k.known[pin.OID]
	k.mu.Unlock()
	missing := func(name string) bool { _, has := known.Equal[name]; return !has }
	if ok && known.state == state && !slices.ContainsFunc(columns, missing) {
		return known.Counts, nil
	}
	if ok && known.state == state {
		columns = slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(columns, maps.Keys(known.Equal)))))
	}
	now, err := catalog.Count(ctx, conn, catalog.TableName{Schema: pin.Schema, Name: pin.Table}, columns)
	if err != nil {
		return catalog.Counts{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[uint32]counted{}
	}
	k.known[pin.OID] = counted{state, now}
	return now, nil
}
