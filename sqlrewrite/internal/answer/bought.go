package answer

import (
	"fmt"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/plan"
)

// Buying says which values are released before the rest of a question, and what that costs.
func Buying(p *plan.Plan) []algebra.Note {
	return boughtNotes(p, func(_, _ int) string {
		return " is released first, at an equal share of the price; the query compares with its noisy value"
	})
}

// boughtNotes has a note for each value that a block takes.
func boughtNotes(p *plan.Plan, text func(block, place int) string) (notes []algebra.Note) {
	if p.Several == nil {
		return nil
	}
	for i, block := range p.Several.Plans {
		if p.Several.Same(i) != i {
			continue
		}
		for place, of := range block.Query.Bought {
			notes = append(notes, algebra.Note{Code: "bought-first", Text: of.Name + text(i, place)})
		}
	}
	return notes
}

// boughtFirst says which values were released before the rest of an answer: the rest is about these.
func boughtFirst(r *plan.Released) []algebra.Note {
	return boughtNotes(r.Plan, func(block, place int) string {
		value := "NULL"
		if text := r.Blocks[block].Bought[place]; text != nil {
			value = *text
		}
		return fmt.Sprintf(" was released first: %s; the query compares with this value, and intervals are of numbers with it", value)
	})
}
