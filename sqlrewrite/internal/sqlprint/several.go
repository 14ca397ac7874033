package sqlprint

import (
	"fmt"
	"maps"
	"slices"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
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

// carries are the items of FROM with the numbers of released rows. Questions were the same before rows of UNION ALL had any.
func (p *postPrinter) carries(l *algebra.Query) []algebra.Carry {
	plain, all := l.Carries(false), l.Carries(true)
	if len(plain) == len(all) || !p.adds() {
		return plain
	}
	return all
}

// united are the columns with the numbers of the released rows of both sides of UNION ALL.
func (p *postPrinter) united(l *algebra.Query) map[int]string {
	known := make(map[int]string)
	if blocks := l.Carried(true); p.several() && l.Set != nil && len(blocks) > 0 && p.adds() {
		for _, block := range blocks {
			known[block] = "d." + NumberColumn(block)
		}
	}
	return known
}

// sideNumbers prints them in one side, NULL for those of the other one.
func (p *postPrinter) sideNumbers(side *algebra.Query, known map[int]string) {
	for _, block := range slices.Sorted(maps.Keys(known)) {
		number := "NULL::bigint"
		if slices.Contains(side.Carried(true), block) {
			number = "s." + NumberColumn(block)
		}
		p.write(", ", number, " AS ", NumberColumn(block))
	}
}

// carried are the columns with the numbers of the released rows that a query's rows stem from, each block once.
func (p *postPrinter) carried(l *algebra.Query) map[int]string {
	known := make(map[int]string)
	for _, c := range p.carries(l) {
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
