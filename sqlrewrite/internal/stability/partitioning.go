package stability

import "fmt"

// This file partitions a statement that adds up per unit: each partition has all the rows of some of the units. PostgreSQL gives each
// partition to a process of its own, and no unit's rows have to meet those that another process read. Every unit is in exactly one
// partition, so that their borders change neither a sum nor what it claims.

// Partitioning is how the units are divided.
type Partitioning int

const (
	Unpartitioned Partitioning = iota
	ByHash                     // two halves by a hash of the unit's id; each reads the whole table
	ByRange                    // ranges of the unit's id; each reads its part of an index, in order
)

// RangePartitions is how many ranges a table is divided into: more than there are processes, because the ranges are not equally dear.
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
		panic("sqlrewrite: partitioning without a text")
	}
}
