package pgexec

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"noisegate/internal/fault"
	"noisegate/pate"
)

// relationText counts the wanted columns of a relation that the role may read, under exactly these names.
const relationText = `SELECT count(DISTINCT a.attname)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = $1 AND c.relname = $2 AND a.attname = ANY ($3) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')`

// Votes reads a table of votes, every value as text. Names are looked for in the system catalog and printed quoted: nothing in them is
// ever read as SQL. Votes are true values; they go into the ensemble's store, which seals them.
func (d *Database) Votes(ctx context.Context, table pate.VoteTable) iter.Seq2[pate.Vote, error] {
	return func(yield func(pate.Vote, error) bool) {
		if err := d.streamVotes(ctx, table, yield); err != nil {
			yield(pate.Vote{}, err)
		}
	}
}

// streamVotes yields every vote, and returns the error that ended them; nil also when nobody wants more.
func (d *Database) streamVotes(ctx context.Context, table pate.VoteTable, yield func(pate.Vote, error) bool) error {
	ctx, cancel := context.WithTimeout(ctx, d.acquire+d.patience)
	defer cancel()
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it wrote nothing
	columns := []string{table.Teacher, table.Query, table.Label}
	var found int
	if err := tx.QueryRow(ctx, relationText, table.Schema, table.Table, columns).Scan(&found); err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	if found != len(columns) { // or a column is named twice
		return fault.PateUnknownTable()
	}
	rows, err := tx.Query(ctx, votesText(table), pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues() // NULL is an empty text, which names nobody and nothing
		if !yield(pate.Vote{Teacher: string(raw[0]), Query: string(raw[1]), Label: string(raw[2])}, nil) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	return nil
}

func votesText(t pate.VoteTable) string {
	column := func(name string) string { return pgx.Identifier{name}.Sanitize() + "::text" }
	return "SELECT " + column(t.Teacher) + ", " + column(t.Query) + ", " + column(t.Label) +
		" FROM " + pgx.Identifier{t.Schema, t.Table}.Sanitize()
}
