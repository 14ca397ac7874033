// Package stability bounds what one unit does to a statement: whose a row is, how many rows a unit has in a group, how much a sum moves,
// and what work its rows can cause.
//
// It knows relations, keys, and public facts about tables. It does not know SQL text, prices or noise.
//
// # Map
//
//	owner.go        the path from a row to its unit
//	bounding.go     contribution bounds, and the sensitivities that follow
//	part.go         the same of counts over all groups
//	prepared.go     the same over prepared copies
//	partitioning.go how a statement may be divided into partitions that have whole units
//	rowcap.go       rows of a unit that are left out below a join
//	public.go       how many rows public tables have, and what reading them takes
//	work.go         what the rows of one unit can cost, by public facts
//	cost.go         what an expression costs
//	size.go         how large its operands are
//	account.go      what all statements of a question cost together
package stability
