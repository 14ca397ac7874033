package sqlprint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Ranges say which arguments of a [Statement] are the ends of the ranges in which it reads a table. The caller puts integers there
// that divide the values of a column into parts of about as many rows; any integers of its type give the same result, and these are zeros.
type Ranges struct {
	Schema, Table, Column string
	Args                  []int // their numbers, from 1
}

// ChoosePartitioning chooses how the units are divided, by facts of the catalog and the query alone: sums over all rows of one table take
// ranges where an index holds all that they read in the order of the unit's id, halves where none has that order. Otherwise PostgreSQL
// decides how rows are found, and unpartitioned it can do so best; so can it for a table in partitions.
func ChoosePartitioning(q *algebra.BoundQuery, s stability.Bounding) stability.Partitioning {
	scan, one := q.Source.Node.(*algebra.Scan)
	if s.Kind != stability.PerUnit && s.Kind != stability.PerUnitAndKey || s.MaxTotal > 0 || !one || q.Where != nil || scan.Table.Partitioned {
		return stability.Unpartitioned
	}
	if slices.ContainsFunc(q.Statistics, func(m algebra.Statistic) bool { return m.Chooses() || m.Kind == algebra.CountDistinct }) {
		return stability.Unpartitioned
	}
	var named []string
	for _, precondition := range preconditions(q) {
		for _, c := range precondition.Columns {
			if precondition.OID == scan.Table.OID {
				named = append(named, c.Name)
			}
		}
	}
	kind, unit := stability.ByHash, q.Source.Owner()
	for _, index := range scan.Table.Indexes {
		switch {
		case index[0] != unit.Name:
		case unit.Type.IsInteger() && !slices.ContainsFunc(named, func(name string) bool { return !slices.Contains(index, name) }):
			return stability.ByRange
		default:
			kind = stability.Unpartitioned
		}
	}
	return kind
}

// partitions prints what every unit adds as a query u, and gives the sums of its partitions as a relation h with the columns k0, k1, ...
// and v0, v1, ...
func (p *StatementPrinter) partitions(units string, keys, values []string) string {
	p.SemiJoins.Fire(lower.ByPartition)
	p.write("WITH u AS NOT MATERIALIZED (", units, ")\n")
	list := slices.Clone(keys)
	for i, v := range values {
		list = append(list, fmt.Sprintf("%s AS v%d", v, i))
	}
	var all []string
	for _, condition := range p.partitionConditions() {
		partition := "SELECT " + strings.Join(list, ", ") + "\n      FROM u WHERE " + condition
		if len(keys) > 0 {
			partition += " GROUP BY " + strings.Join(keys, ", ")
		}
		all = append(all, partition)
	}
	return "(" + strings.Join(all, "\n      UNION ALL ") + ") AS h"
}

// partitionConditions are conditions; every unit fulfils exactly one: the ends of the ranges may have any values.
func (p *StatementPrinter) partitionConditions() []string {
	if p.bounding.Partitioning == stability.ByHash {
		zero := p.number(new(big.Int), "bigint")
		half := "(" + p.hashOf("u.unit", p.Q.Source.Owner().Type, zero) + " & " + p.number(scalar.One().Num(), "bigint") + ")"
		return []string{half + " = " + zero, half + " <> " + zero}
	}
	t := p.Q.Source.Node.(*algebra.Scan).Table
	p.ranges = &Ranges{Schema: t.Schema, Table: t.Name, Column: p.Q.Source.Owner().Name}
	var all []string
	from := ""
	for range stability.RangePartitions - 1 {
		arg := p.rawArg(int64(0))
		p.ranges.Args = append(p.ranges.Args, arg)
		end := fmt.Sprintf("$%d::%s", arg, p.Q.Source.Owner().Type)
		all = append(all, from+"u.unit < "+end)
		from += "u.unit >= " + end + " AND "
	}
	return append(all, strings.TrimSuffix(from, " AND "))
}
