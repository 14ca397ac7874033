package sqlrewrite

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
		{"levels/rollup", func(w *writer, keys []string) string {
			if len(keys) > 2 && w.r.IntN(2) == 0 {
				return "ROLLUP (" + list(keys[:2]) + ", " + strings.Join(keys[2:], ", ") + ")"
			}
			return "ROLLUP " + list(keys)
		}},
		{"levels/cube", func(_ *writer, keys []string) string { return "CUBE " + list(keys) }},
		{"levels/grouping sets", func(w *writer, keys []string) string {
			sets := make([][]string, 2+w.r.IntN(2))
			for _, key := range keys {
				at := w.r.IntN(len(sets)) // each key is in one set at least, or PostgreSQL does not know it as a key
				for i := range sets {
					if i == at || w.r.IntN(3) == 0 {
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
		{"levels/beside keys", func(_ *writer, keys []string) string {
			return strings.Join(append(slices.Clone(keys[1:]), "ROLLUP "+list(keys[:1])), ", ")
		}},
	}
}

// levelProduction writes what follows GROUP BY.
type levelProduction struct {
	name  string
	write func(w *writer, keys []string) string
}

// grouping finds GROUP BY with several sets of keys.
var grouping = regexp.MustCompile(`GROUP BY /\*post\*/`)

// totals writes GROUP BY with several sets of keys. /*post*/ tells the oracle that cells meet one another.
func (w *writer) totals(keys []string) string {
	ways := levels()
	chosen := ways[w.r.IntN(len(ways))]
	w.counts[chosen.name]++
	return " GROUP BY /*post*/ " + chosen.write(w, keys)
}

// grouping writes GROUPING over some of the keys.
func (w *writer) grouping(keys []string) string {
	return "grouping(" + strings.Join(keys[:1+w.r.IntN(len(keys))], ", ") + ")"
}

// totaled counts how the totals of a plan are made.
func (w *writer) totaled(p *plan.Plan) {
	for _, block := range p.Different() {
		for _, n := range block.Query.Source.Notes {
			switch n.Code {
			case "summed-groups":
				w.counts[summedLevels]++
			case "levels":
				w.counts[levelByLevel]++
			}
		}
	}
}
