package pgexec

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/fault"
	"noisegate.example/pate"
)

// relationText finds the wanted columns of a relation that the role may read, under exactly these names, and whether a column's type is one
// whose output is its text: smallint, integer, bigint, text or varchar. A cast to text costs PostgreSQL a third of its time.
const relationText = `SELECT a.attname::text, a.atttypid IN (20, 21, 23, 25, 1043)
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
	plain := map[string]bool{}
	found, err := tx.Query(ctx, relationText, table.Schema, table.Table, columns)
	if err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	var column string
	var isText bool
	if _, err := pgx.ForEachRow(found, []any{&column, &isText}, func() error {
		plain[column] = isText
		return nil
	}); err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	if len(plain) != len(columns) { // or a column is named twice
		return fault.PateUnknownTable()
	}
	rows, err := tx.Query(ctx, votesText(table, plain), pgx.QueryResultFormats{pgx.TextFormatCode})
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

// votesText reads the columns as text; plain are those that come as text by themselves.
func votesText(t pate.VoteTable, plain map[string]bool) string {
	column := func(name string) string {
		if plain[name] {
			return pgx.Identifier{name}.Sanitize()
		}
		return pgx.Identifier{name}.Sanitize() + "::text"
	}
	return "SELECT " + column(t.Teacher) + ", " + column(t.Query) + ", " + column(t.Label) +
		" FROM " + pgx.Identifier{t.Schema, t.Table}.Sanitize()
}
