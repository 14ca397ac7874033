package pgexec

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Where a database has Citus, rows of a table are in shards: tables of other servers, each with a definition of its own. Citus sends them
// what the coordinator is told; whoever owns them can change one by itself. So what is pinned of a table is looked up in the catalogs of
// all servers that have a shard of it.

// shardsSeen is for how long what was seen of shards is taken for granted. Citus locks no shard for who reads the table, so that what is
// seen in a statement's own transaction may be another thing by the time that it reads as well.
const shardsSeen = 3 * time.Second

// errNode is of a server that does not say what its shards are.
var errNode = errors.New("pgexec: a server of the cluster does not answer")

// shards remember which pins were seen to hold on all shards, and when. The zero value is ready.
type shards struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]time.Time
}

// hold is policy/stale where a pin does not hold on a shard of its table, and data/unavailable where a server does not say.
func (s *shards) hold(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition) error {
	begun := time.Now()
	var ids [][sha256.Size]byte
	var asked []sqlrewrite.Precondition
	s.mu.Lock()
	for _, pin := range pins {
		id := sha256.Sum256(fmt.Appendf(nil, "%+v", pin))
		if begun.Sub(s.seen[id]) > shardsSeen {
			ids, asked = append(ids, id), append(asked, pin)
		}
	}
	s.mu.Unlock()
	if len(asked) == 0 {
		return nil
	}
	if err := holdOnShards(ctx, conn, shardPins(asked)...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxKnown {
		s.seen = map[[sha256.Size]byte]time.Time{}
	}
	for _, id := range ids {
		s.seen[id] = begun
	}
	return nil
}

// rowOf is what asks for one row.
type rowOf interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// onCitus asks whether tables of a database may lie on other servers.
func onCitus(ctx context.Context, on rowOf) (citus bool, err error) {
	err = on.QueryRow(ctx, citusText).Scan(&citus)
	return citus, err
}

// shardPin is what is relied on of a table, and so of each of its shards.
type shardPin struct {
	Relation uint32        `json:"relation"`
	Secured  bool          `json:"secured"`
	Columns  []shardColumn `json:"columns"`
	Keys     [][]string    `json:"keys"`
	Checks   []shardCheck  `json:"checks"`
}

type shardColumn struct {
	Attribute string `json:"attribute"`
	Type      uint32 `json:"type"`
	Modifier  int32  `json:"modifier"`
	Required  bool   `json:"required"`
}

type shardCheck struct {
	Attribute  string `json:"attribute"`
	Definition string `json:"definition"`
}

// shardPins are preconditions of shards.
func shardPins(pins []sqlrewrite.Precondition) []shardPin {
	all := make([]shardPin, len(pins))
	for i, pin := range pins {
		all[i] = shardPin{Relation: pin.OID, Secured: pin.RowSecurity, Keys: pin.Keys}
		for _, c := range pin.Columns {
			all[i].Columns = append(all[i].Columns, shardColumn{c.Name, c.TypeOID, c.TypMod, c.NotNull})
		}
		for _, c := range pin.Checks {
			all[i].Checks = append(all[i].Checks, shardCheck{c.Column, checkText(c.Column, c.Lo, c.Hi)})
		}
	}
	return all
}

// shardPinOf is all that may be relied on of a copy.
func shardPinOf(c *catalog.Table) shardPin {
	ranks := shardCheck{catalog.RankColumn, checkText(catalog.RankColumn, 1, c.Copy.MaxRows)}
	pin := shardPin{Relation: c.OID, Keys: c.Unique, Checks: []shardCheck{ranks}}
	for _, column := range c.Columns {
		pin.Columns = append(pin.Columns, shardColumn{column.Name, column.TypeOID, column.TypMod, column.NotNull})
	}
	return pin
}

// holdOnShards is [shards.hold] without a memory.
func holdOnShards(ctx context.Context, on rowOf, all ...shardPin) error {
	asked, err := json.Marshal(all)
	if err != nil {
		return fault.Internal(err)
	}
	var answered, hold bool
	if err := on.QueryRow(ctx, shardsText, string(asked), shardText).Scan(&answered, &hold); err != nil {
		return fault.DataUnavailable(quiet(err))
	}
	switch {
	case !answered:
		return fault.DataUnavailable(errNode)
	case !hold:
		return fault.PolicyStale()
	}
	return nil
}

// shardsText asks all servers that have a shard of a pinned table ($1, as JSON) by [shardText] ($2), on connections of its own, at how
// many of their shards the pins hold, and compares: whether all answered, and whether the pins hold at all. A key holds for the table where
// it holds for each shard and equal values of it are in one: where a shard has the rows of some hashes of a column that the key has, or
// there is one shard. Tables that Citus does not know are the coordinator's own.
const shardsText = `WITH pins AS MATERIALIZED (
	SELECT p.value AS pin, d.logicalrelid AS relation, d.partmethod = 'n' AS whole, d.partmethod = 'h' AS hashed,
		pg_catalog.column_to_column_name(d.logicalrelid, d.partkey) AS placed_by,
		CASE WHEN c.relnamespace = pg_catalog.to_regnamespace('public') THEN 'public.' ELSE '' END AS schema -- shard_name says all others
	FROM pg_catalog.jsonb_array_elements($1::jsonb) p JOIN pg_catalog.pg_dist_partition d ON d.logicalrelid = (p.value ->> 'relation')::oid
	JOIN pg_catalog.pg_class c ON c.oid = d.logicalrelid
), placed AS MATERIALIZED (
	SELECT n.nodename, n.nodeport, pg_catalog.count(*) AS shards,
		pg_catalog.jsonb_agg(pins.pin || pg_catalog.jsonb_build_object('shard', pins.schema || pg_catalog.shard_name(s.logicalrelid, s.shardid)))
			AS list
	FROM pins JOIN pg_catalog.pg_dist_shard s ON s.logicalrelid = pins.relation
	LEFT JOIN pg_catalog.pg_dist_placement p ON p.shardid = s.shardid
	LEFT JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
	GROUP BY 1, 2
), said AS MATERIALIZED (
	SELECT r.node_name, r.node_port, r.success, r.result
	FROM (SELECT pg_catalog.array_agg(nodename) AS names, pg_catalog.array_agg(nodeport) AS ports,
			pg_catalog.array_agg(pg_catalog.format($2, list::text)) AS texts FROM placed HAVING pg_catalog.count(*) > 0) a
	CROSS JOIN LATERAL pg_catalog.master_run_on_worker(a.names, a.ports, a.texts, true) AS r
)
SELECT NOT EXISTS (SELECT FROM said WHERE NOT success),
	NOT EXISTS (SELECT FROM placed p WHERE NOT EXISTS (SELECT FROM said s WHERE s.node_name = p.nodename AND s.node_port = p.nodeport
		AND s.success AND s.result = p.shards::text))
	AND NOT EXISTS (SELECT FROM pins CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(nullif(pins.pin -> 'keys', 'null')) k
		WHERE NOT whole AND NOT (hashed AND coalesce(k.value ? placed_by, false)))`

// shardText counts, on one server, shards of a list at which pins hold, as [pinText] has it, by names: a shard has its own OIDs.
const shardText = `SELECT pg_catalog.count(*)
	FROM pg_catalog.jsonb_to_recordset(%L::jsonb) AS t (shard text, secured bool, columns jsonb, keys jsonb, checks jsonb)
	JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t.shard)
	WHERE (c.relkind = 'p' OR c.relkind = 'r' AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid))
		AND (t.secured OR NOT c.relrowsecurity)
		AND NOT EXISTS (SELECT FROM pg_catalog.jsonb_to_recordset(nullif(t.columns, 'null')) AS pin (attribute text, type oid, modifier int4, required bool)
			WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attname = pin.attribute
				AND (pin.type >= 16384 OR a.atttypid = pin.type) AND a.atttypmod = pin.modifier AND ` + solidColumn + `))
		AND NOT EXISTS (SELECT FROM (SELECT c.oid AS relation, k.value::text AS columns
				FROM pg_catalog.jsonb_array_elements(nullif(t.keys, 'null')) k) AS pin
			WHERE NOT ` + pinnedKey + `)
		AND NOT EXISTS (SELECT FROM (SELECT c.oid AS relation, k.attribute, k.definition
				FROM pg_catalog.jsonb_to_recordset(nullif(t.checks, 'null')) AS k (attribute text, definition text)) AS pin
			WHERE NOT ` + pinnedCheck + `)`

// Shards looks whether what a policy was checked against is so on all shards; its error is that of a question. It names the tables that lie
// in another way than questions need them: those of people by something else than the unit's id, and public ones not on all servers.
func (d *Database) Shards(ctx context.Context, on *catalog.Snapshot) (apart []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.acquire+d.patience)
	defer cancel()
	var pins []shardPin
	var relations []uint32
	var names, by []string
	for _, t := range on.Tables {
		pin := shardPin{Relation: t.OID, Secured: t.RowSecurity, Keys: t.Unique}
		for _, c := range t.Columns {
			pin.Columns = append(pin.Columns, shardColumn{c.Name, c.TypeOID, c.TypMod, c.NotNull})
		}
		pins = append(pins, pin)
		if t.Unit.Kind != catalog.PathUnit {
			relations, names = append(relations, t.OID), append(names, catalog.TableName{Schema: t.Schema, Name: t.Name}.String())
			by = append(by, t.Unit.Column)
		}
	}
	if err := holdOnShards(ctx, d.pool, pins...); err != nil {
		return nil, err
	}
	rows, err := d.pool.Query(ctx, apartText, relations, names, by)
	if err == nil {
		apart, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return nil, fault.DataUnavailable(quiet(err))
	}
	return apart, nil
}

// apartText names tables that are not distributed by a column, or, where there is none, are not on all servers.
const apartText = `SELECT pin.name FROM unnest($1::oid[], $2::text[], $3::text[]) AS pin (relation, name, unit)
	LEFT JOIN pg_catalog.pg_dist_partition d ON d.logicalrelid = pin.relation
	WHERE CASE WHEN pin.unit = '' THEN d.partmethod IS DISTINCT FROM 'n'
		ELSE pg_catalog.column_to_column_name(d.logicalrelid, d.partkey) IS DISTINCT FROM pin.unit END
	ORDER BY 1`

// oneConnection has a run ask each server on one connection, in one transaction: so what it sees of a server is one snapshot. Ids and
// numbers of all units go to all servers, and rows of a source that lies by something else than the unit to the coordinator: as files of
// any size.
var oneConnection = []string{"SET citus.max_adaptive_executor_pool_size = 1", "SET citus.multi_shard_modify_mode = 'sequential'",
	"SET citus.max_intermediate_result_size = -1"}

// distribute makes shards of a copy that is empty yet, each of the units whose numbers have some hashes: a unit has all its rows in one,
// and copies that have as many shards have them on one server.
func distribute(ctx context.Context, tx pgx.Tx, c *catalog.Table) error {
	_, err := tx.Exec(ctx, "SELECT pg_catalog.create_distributed_table($1::pg_catalog.text::pg_catalog.regclass, $2)",
		pgx.Identifier{c.Schema, c.Name}.Sanitize(), c.Unit.Column)
	return err
}
