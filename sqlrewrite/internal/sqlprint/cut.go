package sqlrewrite

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// This file cuts a statement that adds up per unit into pieces, each of which has all the rows of some of the units. PostgreSQL gives each
// piece to a process of its own, and no unit's rows have to meet those that another process read. Every unit is in exactly one piece, so
// that where a cut lies changes neither a sum nor what it claims.

// cutKind is how the units are divided.
type cutKind int

const (
	uncut   cutKind = iota
	byHash          // two halves by a hash of the unit's id; each reads the whole table
	byRange         // ranges of the unit's id; each reads its part of an index, in order
)

// rangePieces is how many ranges a table is cut into: more than there are processes, because the ranges are not equally dear.
const rangePieces = 4

// Ranges say which arguments of a [Statement] are the ends of the ranges in which it reads a table. Whoever runs it puts integers there that
// divide the values of a column into parts of about as many rows; any integers of its type give the same result, and these are zeros.
type Ranges struct {
	Schema, Table, Column string
	Args                  []int // their numbers, from 1
}

// cut chooses how the units are divided, by facts of the catalog and the query alone: sums over all rows of one table take ranges
// where an index holds all that they read in the order of the unit's id, halves where none has that order. Otherwise PostgreSQL decides
// how rows are found, and in one piece it can do so best; so can it for a table in partitions.
func (q *boundQuery) cut(s shape) cutKind {
	scan, one := q.source.node.(*scan)
	if s.kind != perUnit && s.kind != perUnitAndKey || !one || q.where != nil || scan.table.Partitioned {
		return uncut
	}
	if slices.ContainsFunc(q.measures, func(m measure) bool { return m.chooses() || m.kind == countDistinct }) {
		return uncut
	}
	var named []string
	for _, pin := range pins(q) {
		for _, c := range pin.Columns {
			if pin.OID == scan.table.OID {
				named = append(named, c.Name)
			}
		}
	}
	kind, unit := byHash, q.source.owner()
	for _, index := range scan.table.Indexes {
		switch {
		case index[0] != unit.Name:
		case unit.Type.IsInteger() && !slices.ContainsFunc(named, func(name string) bool { return !slices.Contains(index, name) }):
			return byRange
		default:
			kind = uncut
		}
	}
	return kind
}

// text says it in the plan.
func (c cutKind) text(unit string) string {
	switch c {
	case uncut:
		return ""
	case byHash:
		return "; in 2 halves by the hash of " + unit + ", each in one process"
	case byRange:
		return fmt.Sprintf("; in %d ranges of %s, each in one process", rangePieces, unit)
	default:
		panic("sqlrewrite: cut without a text")
	}
}

// pieces prints what every unit adds as a query u, and gives the sums of its pieces as a relation h with the columns k0, k1, ... and
// v0, v1, ...
func (p *statementPrinter) pieces(units string, keys, values []string) string {
	p.write("WITH u AS NOT MATERIALIZED (", units, ")\n")
	list := slices.Clone(keys)
	for i, v := range values {
		list = append(list, fmt.Sprintf("%s AS v%d", v, i))
	}
	var all []string
	for _, condition := range p.divided() {
		piece := "SELECT " + strings.Join(list, ", ") + "\n      FROM u WHERE " + condition
		if len(keys) > 0 {
			piece += " GROUP BY " + strings.Join(keys, ", ")
		}
		all = append(all, piece)
	}
	return "(" + strings.Join(all, "\n      UNION ALL ") + ") AS h"
}

// divided are conditions of which every unit fulfils exactly one: the ends of the ranges may have any values.
func (p *statementPrinter) divided() []string {
	if p.shape.cut == byHash {
		zero := p.number(new(big.Int), "bigint")
		half := "(" + p.hashOf("u.unit", p.q.source.owner().Type, zero) + " & " + p.number(one().Num(), "bigint") + ")"
		return []string{half + " = " + zero, half + " <> " + zero}
	}
	t := p.q.source.node.(*scan).table
	p.ranges = &Ranges{Schema: t.Schema, Table: t.Name, Column: p.q.source.owner().Name}
	var all []string
	from := ""
	for range rangePieces - 1 {
		arg := p.rawArg(int64(0))
		p.ranges.Args = append(p.ranges.Args, arg)
		end := fmt.Sprintf("$%d::%s", arg, p.q.source.owner().Type)
		all = append(all, from+"u.unit < "+end)
		from += "u.unit >= " + end + " AND "
	}
	return append(all, strings.TrimSuffix(from, " AND "))
}
