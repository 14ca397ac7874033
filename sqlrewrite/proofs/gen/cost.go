package gen

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// executed is the part of EXPLAIN (ANALYZE) on one node and those below.
type executed struct {
	Type       string     `json:"Node Type"`
	Rows       float64    `json:"Actual Rows"`
	Loops      float64    `json:"Actual Loops"`
	Filtered   float64    `json:"Rows Removed by Filter"`
	JoinFilter float64    `json:"Rows Removed by Join Filter"`
	Rechecked  float64    `json:"Rows Removed by Index Recheck"`
	Relation   string     `json:"Relation Name"`
	Plans      []executed `json:"Plans"`
}

// Unread are the tables that scans did not read, node by node.
func (n executed) Unread() []string {
	var all []string
	if n.Relation != "" && n.Loops == 0 {
		all = append(all, n.Relation)
	}
	for _, below := range n.Plans {
		all = append(all, below.Unread()...)
	}
	return all
}

// Work is how many rows all nodes gave or looked at, how many nodes there are, and how many never ran.
func (n executed) Work() (rows float64, nodes, idle int) {
	rows, nodes = n.Loops*(n.Rows+n.Filtered+n.JoinFilter+n.Rechecked), 1
	if n.Loops == 0 {
		idle = 1
	}
	for _, below := range n.Plans {
		r, k, i := below.Work()
		rows, nodes, idle = rows+r, nodes+k, idle+i
	}
	return rows, nodes, idle
}

// ExecutionOf runs a statement, planned as the gateway has it planned, and gives what it did, and how many milliseconds it took.
func ExecutionOf(ctx context.Context, conn *pgx.Conn, s sqlprint.Statement) (executed, float64, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return executed{}, 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	text, err := Explained(ctx, tx, s, "ANALYZE, TIMING OFF, FORMAT JSON")
	if err != nil {
		return executed{}, 0, err
	}
	var all []struct {
		Plan executed
		Time float64 `json:"Execution Time"`
	}
	err = json.Unmarshal([]byte(text), &all)
	return all[0].Plan, all[0].Time, err
}

// Explained is the text of EXPLAIN on a statement, row by row. It is prepared: EXPLAIN of a plain text sees the constants, whatever
// plan_cache_mode is. It is planned as the gateway has it, but for further settings.
func Explained(ctx context.Context, tx pgx.Tx, s sqlprint.Statement, options string, settings ...string) (string, error) {
	args := make([]string, len(s.Args))
	for i, arg := range s.Args {
		switch arg := arg.(type) {
		case nil:
			args[i] = "NULL"
		case []string:
			for _, item := range arg {
				args[i] += ", " + scalar.QuoteText(item)
			}
			args[i] = "ARRAY[" + strings.TrimPrefix(args[i], ", ") + "]::text[]"
		default:
			args[i] = scalar.QuoteText(fmt.Sprint(arg))
		}
	}
	execute := "EXECUTE explained"
	if len(args) > 0 {
		execute += "(" + strings.Join(args, ", ") + ")"
	}
	steps := []string{"SET LOCAL jit = off", "SET LOCAL enable_sort = off", "SET LOCAL enable_incremental_sort = off"}
	for _, step := range append(slices.Concat(steps, s.Planning(), settings), "PREPARE explained AS "+s.SQL) {
		if _, err := tx.Exec(ctx, step); err != nil {
			return "", err
		}
	}
	rows, err := tx.Query(ctx, "EXPLAIN ("+options+") "+execute)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if _, failed := tx.Exec(ctx, "DEALLOCATE explained"); err == nil {
		err = failed
	}
	return strings.Join(lines, "\n"), err
}
