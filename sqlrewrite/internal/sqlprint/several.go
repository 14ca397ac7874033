package sqlprint

import (
	"fmt"

	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
)

// several reports whether there is more than one release block.
func (p *postPrinter) several() bool { return p.q != nil && p.q.Blocks != nil }

// NumberColumn is the name of the column with the number of a block's released row, in a statement of several.
func NumberColumn(block int) string { return fmt.Sprintf("o%d", block) }

// numbers prints the numbers of the released rows that a row stems from: of a top query those of all blocks, NULL where there is none.
func (p *postPrinter) numbers(top bool, known map[int]string) {
	first := true
	for block := range p.q.Blocks {
		number, is := known[block]
		if !is {
			number = "NULL::bigint"
		}
		if is || top {
			if !first {
				p.write(", ")
			}
			p.write(number, " AS ", NumberColumn(block))
			first = false
		}
	}
	if top {
		p.write(", NULL::bigint AS ordinal")
	}
}

// carried are the columns with the numbers of the released rows that a query's rows stem from, each block once.
func carried(l *algebra.Query) map[int]string {
	known := make(map[int]string)
	for _, c := range l.Carries() {
		if _, is := known[c.Block]; !is {
			known[c.Block] = numberOf(c)
		}
	}
	return known
}

func numberOf(c algebra.Carry) string {
	return scalar.QuoteIdent(c.Leaf.Alias) + "." + NumberColumn(c.Block)
}

// blockLines name the block whose rows a query has, and what is done with them in its own SELECT where there are several.
func blockLines(l *algebra.Query, q *algebra.BoundQuery) (lines []string) {
	if q.Blocks == nil {
		return []string{"released"}
	}
	b := q.Blocks[l.BlockAt]
	if b.Limit != nil || b.Offset > 0 || len(b.OrderBy) > 0 || b.Having != nil {
		own := *l
		own.Block, own.Limit, own.Offset, own.OrderBy, own.Having = false, b.Limit, b.Offset, b.OrderBy, b.Having
		lines = PostLines(&own, b)
	}
	return append(lines, fmt.Sprintf("release %d", l.BlockAt+1))
}
