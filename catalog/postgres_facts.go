package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// checksSQL lists the CHECK constraints of one column that hold for all rows, and those of the domains that its type is.
const checksSQL = `
SELECT k.conrelid, a.attname, pg_catalog.pg_get_expr(k.conbin, k.conrelid)
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
WHERE k.contype = 'c' AND k.convalidated AND pg_catalog.cardinality(k.conkey) = 1 AND k.conrelid = ANY($1::oid[])
	AND coalesce((pg_catalog.to_jsonb(k) ->> 'conenforced')::bool, true) -- a column since 18
UNION ALL
SELECT a.attrelid, a.attname, pg_catalog.pg_get_expr(k.conbin, 0)
FROM pg_catalog.pg_attribute a
CROSS JOIN LATERAL (
	WITH RECURSIVE chain (oid, next) AS (
		SELECT d.oid, d.typbasetype FROM pg_catalog.pg_type d WHERE d.oid = a.atttypid AND d.typtype = 'd'
		UNION ALL
		SELECT d.oid, d.typbasetype FROM chain JOIN pg_catalog.pg_type d ON d.oid = chain.next AND d.typtype = 'd'
	) SELECT oid FROM chain
) d
JOIN pg_catalog.pg_constraint k ON k.contypid = d.oid AND k.contype = 'c' AND k.convalidated
WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1, 2, 3`

// commentsSQL lists what people wrote of tables (a column of "") and columns.
const commentsSQL = `
SELECT d.objoid, coalesce(a.attname, ''), d.description
FROM pg_catalog.pg_description d
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid AND d.objsubid > 0
WHERE d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objoid = ANY($1::oid[])
ORDER BY 1, 2`

// readFacts reads what helps people to write a policy: it is public, and no row is read.
func (s *Schema) readFacts(ctx context.Context, tx pgx.Tx) error {
	byOID := map[uint32]*TableInfo{}
	var oids []uint32
	for _, t := range s.Tables {
		byOID[t.OID] = t
		oids = append(oids, t.OID)
	}
	var oid uint32
	var column, text string
	into := []any{&oid, &column, &text}
	if err := each(ctx, tx, checksSQL, []any{oids}, into, func() { byOID[oid].factsOf(column).constrain(text) }); err != nil {
		return err
	}
	return each(ctx, tx, commentsSQL, []any{oids}, into, func() {
		if facts := byOID[oid].factsOf(column); column != "" {
			facts.Comment = text
		} else {
			byOID[oid].facts.Comment = text
		}
	})
}
