package gen

import (
	"regexp"
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/plan"
)

// How often totals were made, by how: as sums of released cells, and set by set, each a release of its own.
const (
	summedLevels = "levels/sums of cells"
	levelByLevel = "levels/one by one"
)

// levels are the ways to group by several sets of keys.
func levels() []levelProduction {
	list := func(keys []string) string { return "(" + strings.Join(keys, ", ") + ")" }
	return []levelProduction{
		{"levels/rollup", func(w *Writer, keys []string) string {
			if len(keys) > 2 && w.Rand.IntN(2) == 0 {
				return "ROLLUP (" + list(keys[:2]) + ", " + strings.Join(keys[2:], ", ") + ")"
			}
			return "ROLLUP " + list(keys)
		}},
		{"levels/cube", func(_ *Writer, keys []string) string { return "CUBE " + list(keys) }},
		{"levels/grouping sets", func(w *Writer, keys []string) string {
			sets := make([][]string, 2+w.Rand.IntN(2))
			for _, key := range keys {
				at := w.Rand.IntN(len(sets)) // each key is in one set at least, or PostgreSQL does not know it as a key
				for i := range sets {
					if i == at || w.Rand.IntN(3) == 0 {
						sets[i] = append(sets[i], key)
					}
				}
			}
			var texts []string
			for _, set := range sets {
				texts = append(texts, list(set))
			}
			return "GROUPING SETS " + list(texts)
		}},
		{"levels/beside keys", func(_ *Writer, keys []string) string {
			return strings.Join(append(slices.Clone(keys[1:]), "ROLLUP "+list(keys[:1])), ", ")
		}},
	}
}

// levelProduction writes what follows GROUP BY.
type levelProduction struct {
	name  string
	write func(w *Writer, keys []string) string
}

// Grouping finds GROUP BY with several sets of keys.
var Grouping = regexp.MustCompile(`GROUP BY /\*post\*/`)

// totals writes GROUP BY with several sets of keys. /*post*/ tells the oracle that cells meet one another.
func (w *Writer) totals(keys []string) string {
	ways := levels()
	chosen := ways[w.Rand.IntN(len(ways))]
	w.Counts[chosen.name]++
	return " GROUP BY /*post*/ " + chosen.write(w, keys)
}

// grouping writes GROUPING over some of the keys.
func (w *Writer) grouping(keys []string) string {
	return "grouping(" + strings.Join(keys[:1+w.Rand.IntN(len(keys))], ", ") + ")"
}

// totaled counts how the totals of a plan are made.
func (w *Writer) totaled(p *plan.Plan) {
	for _, block := range p.Different() {
		for _, n := range block.Query.Source.Notes {
			switch n.Code {
			case "summed-groups":
				w.Counts[summedLevels]++
			case "levels":
				w.Counts[levelByLevel]++
			}
		}
	}
}
