package stability

import "fmt"

// This file cuts a statement that adds up per unit into pieces, each of which has all the rows of some of the units. PostgreSQL gives each
// piece to a process of its own, and no unit's rows have to meet those that another process read. Every unit is in exactly one piece, so
// that where a cut lies changes neither a sum nor what it claims.

// CutKind is how the units are divided.
type Partitioning int

const (
	Unpartitioned Partitioning = iota
	ByHash                     // two halves by a hash of the unit's id; each reads the whole table
	ByRange                    // ranges of the unit's id; each reads its part of an index, in order
)

// RangePieces is how many ranges a table is cut into: more than there are processes, because the ranges are not equally dear.
const RangePartitions = 4

// Text says it in the plan.
func (c Partitioning) Text(unit string) string {
	switch c {
	case Unpartitioned:
		return ""
	case ByHash:
		return "; in 2 halves by the hash of " + unit + ", each in one process"
	case ByRange:
		return fmt.Sprintf("; in %d ranges of %s, each in one process", RangePartitions, unit)
	default:
		panic("sqlrewrite: cut without a text")
	}
}
