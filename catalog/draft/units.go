package draft

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/catalog"
)

// Unit names the column that identifies one privacy unit.
type Unit struct {
	Table  catalog.TableName
	Column string
}

// ParseUnit reads table.column or schema.table.column.
func ParseUnit(text string) (u Unit, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) == 2 {
		parts = append([]string{catalog.DefaultSchema}, parts...)
	}
	if len(parts) != 3 {
		return Unit{}, false
	}
	return Unit{Table: catalog.TableName{Schema: parts[0], Name: parts[1]}, Column: parts[2]}, true
}

// String is the unit as [ParseUnit] reads it.
func (u Unit) String() string { return u.Table.String() + "." + u.Column }

// way is how a table's rows reach their unit: over a foreign key to the next table, or by a column of the unit's id.
type way struct {
	column string
	to     catalog.TableName // of a path; the zero value where column is the unit's id
	steps  int
	named  bool // no key says so: the column is only called like the unit's id
}

// maxSteps is how many foreign keys a policy's path may follow.
const maxSteps = 4

// ways finds how each table reaches the unit: the fewest foreign keys first, then a column of the same name and type.
func ways(tables []*catalog.TableInfo, u Unit) map[catalog.TableName]way {
	found := map[catalog.TableName]way{u.Table: {column: u.Column}}
	for step := 1; step <= maxSteps; step++ {
		reached := map[catalog.TableName]way{}
		for _, t := range tables {
			if _, ok := found[t.TableName]; ok {
				continue
			}
			for _, key := range t.ForeignKeys {
				to, ok := found[key.To]
				switch {
				case !ok:
				case key.ToColumn == to.column && to.to == (catalog.TableName{}) && key.To == u.Table:
					reached[t.TableName] = way{column: key.Column, steps: step}
				default:
					reached[t.TableName] = way{column: key.Column, to: key.To, steps: step}
				}
				if ok {
					break
				}
			}
		}
		for name, w := range reached {
			found[name] = w
		}
	}
	byName(tables, u, found)
	return found
}

// byName takes tables without a foreign key to the unit that have a column of its name and type. A column called id matches none: each
// table may call its own id so.
func byName(tables []*catalog.TableInfo, u Unit, found map[catalog.TableName]way) {
	i := slices.IndexFunc(tables, func(t *catalog.TableInfo) bool { return t.TableName == u.Table })
	id, ok := tables[i].Column(u.Column)
	if !ok || strings.EqualFold(u.Column, "id") {
		return
	}
	for _, t := range tables {
		c, has := t.Column(u.Column)
		if _, ok := found[t.TableName]; !ok && has && (c.Type == id.Type || c.Type.IsInteger() && id.Type.IsInteger()) {
			found[t.TableName] = way{column: c.Name, steps: 1, named: true}
		}
	}
}

// Candidates are the columns that could tell a unit, those to whose tables most others lead first: unique columns that
// are never NULL.
func Candidates(schema *catalog.Schema) (all []Unit) {
	leads := map[Unit]int{}
	for _, t := range whole(schema) {
		for _, name := range t.Unique {
			u := Unit{t.TableName, name}
			if c, ok := t.Column(name); ok && c.NotNull {
				all = append(all, u)
				leads[u] = len(ways(whole(schema), u)) - 1
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Unit) int { return leads[b] - leads[a] })
	return all
}

// whole are the tables that a policy can be for: no views, and no partitions, which their tables show.
func whole(schema *catalog.Schema) (all []*catalog.TableInfo) {
	for _, t := range schema.Tables {
		if (t.Kind == catalog.PlainTable || t.Kind == catalog.PartitionedTable) && len(t.PartOf) == 0 && !t.Inherited && !t.Foreign {
			all = append(all, t)
		}
	}
	return all
}

// graph draws how tables reach the unit.
func graph(tables []*catalog.TableInfo, u Unit, found map[catalog.TableName]way) []string {
	lines := []string{u.Table.String() + "." + u.Column + " tells one privacy unit:"}
	var draw func(catalog.TableName, int)
	draw = func(at catalog.TableName, depth int) {
		for _, t := range tables {
			w, ok := found[t.TableName]
			if !ok || t.TableName == u.Table {
				continue
			}
			parent := w.to
			if parent == (catalog.TableName{}) {
				parent = u.Table
			}
			if parent != at {
				continue
			}
			by := "foreign key " + w.column
			if w.named {
				by = "no foreign key, but a column " + w.column + ": are they the same?"
			}
			lines = append(lines, fmt.Sprintf("  %s└ %s (%s)", strings.Repeat("  ", depth), t.TableName, by))
			draw(t.TableName, depth+1)
		}
	}
	lines = append(lines, "  "+u.Table.String())
	draw(u.Table, 0)
	return lines
}
