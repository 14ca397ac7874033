package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
)

// relationsSQL lists the relations that a policy could name, or those of them that are called $1.$2. Sizes and
// statistics of tables are data and stay out.
const relationsSQL = `
SELECT n.nspname, c.relname, c.oid,
	CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
		WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' END,
	c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid),
	c.relrowsecurity,
	c.relkind = 'p' AND EXISTS (SELECT FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class p ON p.oid = t.relid WHERE p.relkind NOT IN ('r', 'p')),
	coalesce(pg_catalog.pg_partition_root(c.oid)::oid, c.oid),
	ARRAY(SELECT a.relid::oid FROM pg_catalog.pg_partition_ancestors(c.oid) a WHERE a.relid <> c.oid ORDER BY 1),
	pg_catalog.has_table_privilege(c.oid, 'SELECT') AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
	AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'noisegate', 'noisegate_prepared')
	AND ($1::text[] IS NULL OR (n.nspname, c.relname) IN (
		SELECT * FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]))))
ORDER BY n.nspname, c.relname`

// columnsSQL lists the attributes of relations ($1). A domain counts as the type that it is over. Not supported
// are: a text column whose collation takes different texts for equal, as group keys are compared as bytes; a column
// that is computed when it is read (PostgreSQL 18), as that can fail on a row; a type with user-defined casts, which run somebody's
// function; and what only is called like a type of PostgreSQL's. A domain that NULL may not pass is not supported either: one with NOT
// NULL, or with a check of more than PostgreSQL's own strict operators and its strict, immutable functions, which give NULL for NULL. (An
// array of the value is more: with a NULL in it, it is not NULL.) Where a statement makes a NULL (CASE without ELSE), PostgreSQL runs the
// domain's check, on these rows.
//
// NOT NULL counts once it holds for all rows: since 18, attnotnull is set as well while that was not looked at.
const columnsSQL = `
SELECT a.attrelid, a.attname, a.attnum, a.atttypid, a.atttypmod,
	pg_catalog.format_type(a.atttypid, a.atttypmod) || CASE
		WHEN a.attgenerated = 'v' THEN ' (computed when it is read)'
		WHEN casts.own THEN ' (with casts of its own)'
		WHEN base.picky THEN ' (a domain that NULL may not pass)'
		WHEN NOT coalesce(l.collisdeterministic, true) THEN ' (with a collation that takes different texts for equal)'
		ELSE '' END,
	CASE WHEN a.attgenerated = 'v' OR casts.own OR base.picky OR NOT coalesce(l.collisdeterministic, true) THEN ''
		WHEN t.typtype = 'e' THEN 'enum'
		WHEN tn.nspname = 'pg_catalog' THEN pg_catalog.format_type(base.oid, NULL)
		ELSE '' END,
	greatest(a.atttypmod, base.typmod),
	CASE WHEN t.typtype = 'e' THEN pg_catalog.format('%I.%I', tn.nspname, t.typname) ELSE '' END,
	coalesce((SELECT pg_catalog.array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid), '{}'),
	a.attnotnull AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k
		WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND a.attnum = ANY (k.conkey) AND NOT k.convalidated),
	CASE WHEN a.attcollation = 'pg_catalog."default"'::pg_catalog.regcollation THEN 0::oid ELSE a.attcollation END
FROM pg_catalog.pg_attribute a
CROSS JOIN LATERAL (
	WITH RECURSIVE chain (oid, kind, next, typmod) AS (
		SELECT d.oid, d.typtype, d.typbasetype, d.typtypmod FROM pg_catalog.pg_type d WHERE d.oid = a.atttypid
		UNION ALL
		SELECT d.oid, d.typtype, d.typbasetype, greatest(chain.typmod, d.typtypmod)
		FROM chain JOIN pg_catalog.pg_type d ON chain.kind = 'd' AND d.oid = chain.next
	)
	SELECT oid, typmod, (SELECT pg_catalog.bool_or(d.typnotnull OR EXISTS (SELECT FROM pg_catalog.pg_constraint k
		WHERE k.contypid = d.oid AND k.contype = 'c' AND (
			k.conbin::text ~ ':elements \(([^:]|:(?!multidims))*(COERCETODOMAINVALUE|\{ARRAY(EXPR)? )'
			OR EXISTS (
				SELECT FROM pg_catalog.regexp_matches(k.conbin::text, '\{([A-Z_]+)|:opno ([0-9]+)|:funcid ([0-9]+)', 'g') m
				WHERE m[1] <> ALL ('{OPEXPR,BOOLEXPR,CONST,COERCETODOMAINVALUE,RELABELTYPE,SCALARARRAYOPEXPR,ARRAYEXPR,ARRAY}')
					AND m[1] <> ALL ('{ARRAYCOERCEEXPR,CASETESTEXPR,FUNCEXPR}')
					OR m[2]::int8 >= 16384 OR m[3]::int8 >= 16384
					OR NOT (SELECT f.proisstrict FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc f ON f.oid = o.oprcode
						WHERE o.oid::int8 = m[2]::int8)
					OR NOT (SELECT f.proisstrict AND f.provolatile = 'i' FROM pg_catalog.pg_proc f WHERE f.oid::int8 = m[3]::int8)))))
		FROM chain links JOIN pg_catalog.pg_type d ON d.oid = links.oid WHERE links.kind = 'd') AS picky
	FROM chain WHERE kind <> 'd'
) base
JOIN pg_catalog.pg_type t ON t.oid = base.oid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
CROSS JOIN LATERAL (SELECT t.typtype = 'e' AND EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE k.castsource = t.oid) AS own) casts
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum`

// uniqueSQL lists columns that are the whole key of a unique index without condition.
const uniqueSQL = `
SELECT DISTINCT i.indrelid, a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = ANY($1::oid[]) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1
	AND i.indpred IS NULL AND i.indkey[0] > 0
ORDER BY i.indrelid, a.attname`

// keysSQL lists sets of columns that are the whole key of a unique index without condition.
const keysSQL = `
SELECT i.indrelid, pg_catalog.array_agg(a.attname::text ORDER BY a.attname)
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL pg_catalog.unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k (number)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND a.attnum > 0
WHERE i.indrelid = ANY($1::oid[]) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts > 1
GROUP BY i.indrelid, i.indexrelid, i.indnkeyatts
HAVING pg_catalog.count(*) = i.indnkeyatts
ORDER BY 1, 2`

// indexesSQL lists the columns of B-trees without condition whose first key is a column.
const indexesSQL = `
SELECT i.indrelid, pg_catalog.array_agg(a.attname::text ORDER BY k.place) AS columns
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_am m ON m.oid = c.relam AND m.amname = 'btree'
CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND a.attnum > 0
WHERE i.indrelid = ANY($1::oid[]) AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] > 0
GROUP BY i.indrelid, i.indexrelid
ORDER BY 1, 2`

// foreignKeysSQL lists foreign keys of one column that PostgreSQL has checked on all rows and enforces. One of a
// partition counts for the whole table, because a path's rows that lead nowhere are dropped: the key shows which column
// is referred to, not that every row refers to something.
const foreignKeysSQL = `
SELECT DISTINCT r.relation, a.attname, tn.nspname, tc.relname, ta.attname
FROM pg_catalog.pg_constraint k
CROSS JOIN LATERAL (
	SELECT k.conrelid AS relation UNION SELECT p.relid FROM pg_catalog.pg_partition_ancestors(k.conrelid) p
) r
JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_catalog.pg_class tc ON tc.oid = k.confrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = tc.relnamespace
JOIN pg_catalog.pg_attribute ta ON ta.attrelid = k.confrelid AND ta.attnum = k.confkey[1]
WHERE k.contype = 'f' AND k.convalidated AND coalesce((pg_catalog.to_jsonb(k) ->> 'conenforced')::bool, true) -- a column since 18
	AND pg_catalog.cardinality(k.conkey) = 1 AND r.relation = ANY($1::oid[])
ORDER BY 1, 2, 3, 4, 5`

// referencesSQL lists which relations refer to which by a foreign key, of any columns, valid or not. Partitions stand
// for their whole tables.
const referencesSQL = `
SELECT DISTINCT coalesce(pg_catalog.pg_partition_root(k.conrelid)::oid, k.conrelid), coalesce(pg_catalog.pg_partition_root(k.confrelid)::oid, k.confrelid)
FROM pg_catalog.pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0
ORDER BY 1, 2`

// viewsSQL lists the queries of views ($1), and what their rules depend on: relations, and what has another kind of name. Types and
// collations compute nothing by themselves. PostgreSQL's own functions are not listed.
const viewsSQL = `
SELECT c.oid, pg_catalog.pg_get_viewdef(c.oid), d.schema, d.name, d.other
FROM pg_catalog.pg_class c
LEFT JOIN LATERAL (
	SELECT DISTINCT CASE WHEN r.relkind <> 'S' THEN n.nspname::text END AS schema, CASE WHEN r.relkind <> 'S' THEN r.relname::text END AS name,
		CASE WHEN r.relkind = 'S' OR r.oid IS NULL THEN pg_catalog.pg_describe_object(p.refclassid, p.refobjid, 0) END AS other
	FROM pg_catalog.pg_rewrite w
	JOIN pg_catalog.pg_depend p ON p.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND p.objid = w.oid
		AND p.refclassid <> ALL ('{pg_catalog.pg_type,pg_catalog.pg_collation}'::pg_catalog.regclass[])
	LEFT JOIN pg_catalog.pg_class r ON p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND r.oid = p.refobjid
	LEFT JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
	WHERE w.ev_class = c.oid AND (p.refobjid <> c.oid OR p.refclassid <> 'pg_catalog.pg_class'::pg_catalog.regclass)
) d ON true
WHERE c.oid = ANY($1::oid[])
ORDER BY 1, 3, 4, 5`

// partsSQL lists partitions and heirs with their parents.
const partsSQL = `SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits ORDER BY 1, 2`

// Inspect reads the schema of a protected database as the gateway's role sees it, in one snapshot. For a policy, it also
// reads the values of the public tables that are domains; p may be nil. Its errors are data/unavailable.
func Inspect(ctx context.Context, pool *pgxpool.Pool, p *Policy) (*Schema, error) {
	return inspect(ctx, pool, func(tx pgx.Tx, schema *Schema) error {
		if err := schema.readRelations(ctx, tx, nil); err != nil {
			return err
		}
		if p != nil {
			if err := schema.readViews(ctx, tx, func(name TableName) bool {
				return slices.ContainsFunc(p.Tables, func(t *TablePolicy) bool { return t.Public && t.TableName == name })
			}); err != nil {
				return err
			}
		}
		if err := schema.readParts(ctx, tx); err != nil {
			return err
		}
		if err := schema.readFacts(ctx, tx); err != nil || p == nil {
			return err
		}
		refs, declared := schema.domainColumns(p)
		for i, ref := range refs {
			if err := schema.readDomain(ctx, tx, ref, i < declared); err != nil {
				return err
			}
		}
		return schema.count(ctx, tx, p)
	})
}

// inspect fills a schema within one snapshot of the database.
func inspect(ctx context.Context, pool *pgxpool.Pool, read func(pgx.Tx, *Schema) error) (*Schema, error) {
	schema := &Schema{}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if err := pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		// Sessions of questions have it off, and then PostgreSQL takes all that is in order for dear, and starts workers.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_sort = on"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT current_user").Scan(&schema.role); err != nil {
			return err
		}
		return read(tx, schema)
	}); err != nil {
		return nil, fault.DataUnavailable(fmt.Errorf("catalog: cannot read the schema: %w", fault.Coded(err)))
	}
	return schema, nil
}

// readRelations reads the relations of the given names, or all of them when only is nil.
func (s *Schema) readRelations(ctx context.Context, tx pgx.Tx, only []*TableInfo) error {
	var schemas, names []string // nil: NULL
	for _, t := range only {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	byOID := map[uint32]*TableInfo{}
	var oids []uint32
	t := TableInfo{}
	err := each(ctx, tx, relationsSQL, []any{schemas, names}, []any{&t.Schema, &t.Name, &t.OID, &t.Kind, &t.Inherited, &t.RowSecurity,
		&t.Foreign, &t.root, &t.PartOf, &t.Readable}, func() {
		table := t
		s.Tables = append(s.Tables, &table)
		byOID[t.OID] = &table
		oids = append(oids, t.OID)
	})
	if err != nil {
		return err
	}
	var oid uint32
	var typeName string
	var modifier int32
	c := ColumnInfo{}
	columns := []any{&oid, &c.Name, &c.AttNum, &c.TypeOID, &c.TypMod, &c.TypeName, &typeName, &modifier, &c.Enum, &c.EnumValues,
		&c.NotNull, &c.Collation}
	if err := each(ctx, tx, columnsSQL, []any{oids}, columns, func() {
		column := c
		column.Type, column.MaxLength, column.Scale = supported(typeName, modifier)
		byOID[oid].Columns = append(byOID[oid].Columns, &column)
	}); err != nil {
		return err
	}
	var name string
	if err := each(ctx, tx, uniqueSQL, []any{oids}, []any{&oid, &name}, func() {
		byOID[oid].Unique = append(byOID[oid].Unique, name)
	}); err != nil {
		return err
	}
	var key []string
	if err := each(ctx, tx, keysSQL, []any{oids}, []any{&oid, &key}, func() {
		if keys := byOID[oid].Keys; len(keys) == 0 || !slices.Equal(keys[len(keys)-1], key) {
			byOID[oid].Keys = append(keys, slices.Clone(key))
		}
	}); err != nil {
		return err
	}
	if err := each(ctx, tx, indexesSQL, []any{oids}, []any{&oid, &key}, func() {
		byOID[oid].Indexes = append(byOID[oid].Indexes, slices.Clone(key))
	}); err != nil {
		return err
	}
	edge := reference{}
	s.references = []reference{}
	if err := each(ctx, tx, referencesSQL, nil, []any{&edge.from, &edge.to},
		func() { s.references = append(s.references, edge) }); err != nil {
		return err
	}
	k := ForeignKey{}
	return each(ctx, tx, foreignKeysSQL, []any{oids}, []any{&oid, &k.Column, &k.To.Schema, &k.To.Name, &k.ToColumn}, func() {
		byOID[oid].ForeignKeys = append(byOID[oid].ForeignKeys, k)
	})
}

// readViews reads the queries of some views. Without a search path each table in them has its schema.
func (s *Schema) readViews(ctx context.Context, tx pgx.Tx, wanted func(TableName) bool) error {
	byOID, oids := map[uint32]*TableInfo{}, []uint32{}
	for _, t := range s.Tables {
		if t.Kind == view && wanted(t.TableName) {
			byOID[t.OID], oids = t, append(oids, t.OID)
		}
	}
	if len(oids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return err
	}
	var oid uint32
	var definition string
	var schema, name, other *string
	if err := each(ctx, tx, viewsSQL, []any{oids}, []any{&oid, &definition, &schema, &name, &other}, func() {
		t := byOID[oid]
		if t.View == nil {
			t.View = &ViewInfo{Definition: strings.TrimSuffix(strings.TrimSpace(definition), ";")}
		}
		if other != nil {
			t.View.Uses = append(t.View.Uses, *other)
		} else if name != nil {
			t.View.Reads = append(t.View.Reads, TableName{*schema, *name})
		}
	}); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "SET LOCAL search_path TO DEFAULT")
	return err
}

// readParts reads, for each relation, the relations that show its rows.
func (s *Schema) readParts(ctx context.Context, tx pgx.Tx) error {
	var part, whole uint32
	s.parents = map[uint32][]uint32{}
	return each(ctx, tx, partsSQL, nil, []any{&part, &whole}, func() { s.parents[part] = append(s.parents[part], whole) })
}

// each runs a query and calls f after each row is scanned into the targets.
func each(ctx context.Context, tx pgx.Tx, sql string, args, targets []any, f func()) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, targets, func() error { f(); return nil })
	return err
}

// supported finds our type for PostgreSQL's, and what its modifier says: the largest length of a text, the scale of a
// numeric (-1: none).
func supported(name string, modifier int32) (t Type, maxLength, scale int) {
	const header = 4 // of a length in bytes; PostgreSQL adds it to the modifiers of text and numeric
	scale = -1
	switch name {
	case "character varying", "text":
		t, maxLength = Text, max(0, int(modifier)-header)
	case "character":
		t, maxLength = Char, max(0, int(modifier)-header)
	case "numeric":
		t = Numeric
		// The lower 11 bits are the scale; from version 15 on it may be negative, or larger than the precision.
		if s := int(modifier-header) & 0x7ff; modifier >= header && s < 1024 {
			scale = s
		}
	case string(Int2), string(Int4), string(Int8), string(Float4), string(Float8), string(Bool), string(Date), string(Timestamp),
		string(Timestamptz), string(UUID), string(Enum):
		t = Type(name)
	}
	return t, maxLength, scale
}

// domainColumns are the columns whose values are read: those that the policy uses as domains, and all of its public tables that
// queries may group by. The former, the first of them, as many as declared, are read up to the largest domain; of the latter, those with
// many values are forgotten. What cannot be read is left out: Check says what is wrong.
func (s *Schema) domainColumns(p *Policy) (refs []ColumnRef, declared int) {
	infos, policies, sources := byName(s.Tables), byName(p.Tables), map[ColumnRef]bool{}
	for _, ref := range p.domainSources() {
		policy, ok := policies[ref.Table]
		info, exists := infos[ref.Table]
		if !ok || !policy.Public || !exists || !info.Readable || info.Kind == view {
			continue
		}
		if _, ok := info.Column(ref.Column); ok {
			refs, sources[ref] = append(refs, ref), true
		}
	}
	declared = len(refs)
	for _, t := range p.Tables {
		info, ok := infos[t.TableName]
		if !ok || !t.Public || !info.Readable || info.Kind == view {
			continue
		}
		for _, c := range info.Columns {
			if ref := (ColumnRef{Table: t.TableName, Column: c.Name}); loadable(c) && !sources[ref] {
				refs = append(refs, ref)
			}
		}
	}
	return refs, declared
}

// readDomain reads the values of a column of a public table, which the policy declares to be a domain or not.
func (s *Schema) readDomain(ctx context.Context, tx pgx.Tx, ref ColumnRef, declared bool) error {
	column := pgx.Identifier{ref.Column}.Sanitize()
	limit := maxLoaded
	if declared {
		limit = maxDomain
	}
	sql := fmt.Sprintf("SELECT DISTINCT %s::pg_catalog.text FROM %s ORDER BY 1 LIMIT %d",
		column, pgx.Identifier{ref.Table.Schema, ref.Table.Name}.Sanitize(), limit+2)
	domain := DomainValues{From: ref}
	var text *string
	if err := each(ctx, tx, sql, nil, []any{&text}, func() {
		key := Key{Null: text == nil}
		if text != nil {
			key.Text = *text
		}
		domain.Keys = append(domain.Keys, key)
	}); err != nil {
		return err
	}
	if declared || len(domain.Keys) <= maxLoaded {
		s.Domains = append(s.Domains, domain)
	}
	return nil
}
