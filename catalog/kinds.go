package catalog

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// Units have a kind: customers are not members of staff, though both have numbers. Only rows of units of one kind are
// joined, and a table whose rows are about units of two kinds protects one of them only, which its policy must say.

// kindOf is the kind of a table's units. It is what the policy says, else the table where the unit's key ends, or its foreign key; without
// one the kind whose unit's id a column of that name is, or refers to, in other tables; else the name.
func (c *checker) kindOf(t *TablePolicy) string {
	k := c.keyedKind(t)
	if k.kind != "" || k.end == nil {
		return k.kind
	}
	if c.named == nil {
		c.gatherKinds()
	}
	if kinds := c.named[k.end.Unit.Column]; len(kinds) == 1 {
		return kinds[0]
	}
	return "column " + k.end.Unit.Column
}

// gatherKinds notes the kinds that keys say of columns which are the unit's id, or refer to it, by the columns' names.
func (c *checker) gatherKinds() {
	c.named = map[string][]string{}
	add := func(column string, of *TablePolicy) {
		if kind := c.keyedKind(of).kind; kind != "" && !slices.Contains(c.named[column], kind) && len(c.named[column]) < 2 {
			c.named[column] = append(c.named[column], kind)
		}
	}
	for _, t := range c.policy.Tables {
		of, ok := c.pinned[t.TableName]
		if t.Unit == nil || !ok {
			continue
		}
		if t.Unit.Kind != PathUnit {
			add(t.Unit.Column, t)
		}
		for _, key := range of.ForeignKeys {
			if to, ok := c.policies[key.To]; ok && to.isUnit(key.ToColumn) {
				add(key.Column, to)
			}
		}
	}
}

// isUnit reports whether a column holds the unit's id.
func (t *TablePolicy) isUnit(column string) bool {
	return t.Unit != nil && t.Unit.Kind != PathUnit && t.Unit.Column == column
}

// keyedKind is a kind as far as keys say it; "" where there is only the name of a column, of the table end.
type keyedKind struct {
	kind string
	end  *TablePolicy
}

// keyedKind follows the keys of a table's unit. What it finds is that of all tables on the way.
func (c *checker) keyedKind(t *TablePolicy) keyedKind {
	var way []*TablePolicy
	place := map[*TablePolicy]int{}
	for {
		found, known := c.keyed[t]
		first, circle := place[t]
		switch {
		case known:
		case circle: // foreign keys that lead around
			for _, in := range way[first:] {
				c.keyed[in] = keyedKind{in.String(), in}
			}
			found, way = c.keyed[t], way[:first]
		default:
			place[t] = len(way)
			way = append(way, t)
			var next *TablePolicy
			if found, next = c.onward(t); next != nil {
				t = next
				continue
			}
		}
		for _, on := range way {
			c.keyed[on] = found
		}
		return found
	}
}

// onward is the table to which the key of a table's unit leads, or else the kind.
func (c *checker) onward(t *TablePolicy) (kind keyedKind, next *TablePolicy) {
	info, ok := c.pinned[t.TableName]
	switch {
	case t.Unit == nil || !ok: // reported elsewhere
		return keyedKind{}, nil
	case t.Unit.Of != "":
		return keyedKind{t.Unit.Of, t}, nil
	case t.Unit.Kind == PathUnit:
		return keyedKind{}, c.policies[t.Unit.To]
	}
	for _, key := range info.ForeignKeys {
		if key.Column != t.Unit.Column || key.To == t.TableName {
			continue
		}
		if to, ok := c.policies[key.To]; ok && to.isUnit(key.ToColumn) {
			return keyedKind{}, to
		}
		return keyedKind{key.To.String(), t}, nil
	}
	if t.Unit.Kind == RowUnit {
		return keyedKind{t.String(), t}, nil
	}
	return keyedKind{"", t}, nil
}

// leads are the tables with a privacy unit to which foreign keys lead from a table's rows, each with whether it is the
// unit's own way there.
func (c *checker) leads(info *TableInfo, u *UnitPolicy) (all []lead) {
	add := func(to TableName, own bool) {
		i := slices.IndexFunc(all, func(l lead) bool { return l.to == to })
		if i < 0 {
			all = append(all, lead{to, own})
		} else if !own {
			all[i].own = false
		}
	}
	seen := map[TableName]bool{}
	var walk func(*TableInfo, bool)
	walk = func(from *TableInfo, first bool) {
		for _, key := range from.ForeignKeys {
			to, ok := c.policies[key.To]
			switch {
			case !ok:
			case to.Unit != nil:
				add(key.To, first && u != nil && u.Column == key.Column)
			case !seen[key.To]:
				seen[key.To] = true
				if next, ok := c.pinned[key.To]; ok {
					walk(next, false)
				}
			}
		}
		for _, to := range from.Leads {
			add(to, false)
		}
	}
	walk(info, true)
	return all
}

type lead struct {
	to  TableName
	own bool
}

// references holds a table against the tables to which its foreign keys lead.
func (c *checker) references(t *TablePolicy, info *TableInfo, table *Table) {
	for _, l := range c.leads(info, t.Unit) {
		to := c.policies[l.to]
		kind := c.kindOf(to)
		switch target, known := c.pinned[l.to]; {
		case !known: // reported for that table
		case t.Declassified || slices.Contains(t.NotCovered, kind):
			table.mayLead = append(table.mayLead, target.OID)
			if kind == table.Unit.Of {
				c.problem(t.pos, "leave it out", "units of %s are of the kind %s themselves, so they are covered", t.TableName, fault.Quote(kind))
			} else if !t.Declassified && !slices.Contains(table.NotCovered, kind) {
				table.NotCovered = append(table.NotCovered, kind)
			}
		case t.Public:
			c.problem(t.pos, fmt.Sprintf("give it a unit, such as {via: the column that refers, to: %s}; or write public: declassified if "+
				"its rows are nobody's secret all the same", l.to),
				"table %s is public, and a foreign key leads from it to %s, so its rows are about units of the kind %s", t.TableName, l.to,
				fault.Quote(kind))
		case kind != table.Unit.Of:
			c.problem(t.pos, fmt.Sprintf("write not_covered: [%s] if those need no protection in these rows; or the same of: beside both "+
				"units if they are the same people", kind),
				"a foreign key leads from %s, whose units are of the kind %s, to %s, whose units are of the kind %s and would not be protected",
				t.TableName, fault.Quote(table.Unit.Of), l.to, fault.Quote(kind))
		case !l.own:
			c.warn(t.Unit.pos, "a foreign key leads from %s to %s beside the way to its unit: of the units that it leads to, only the row's "+
				"own is protected", t.TableName, l.to)
		}
	}
	for _, kind := range t.NotCovered {
		if !slices.Contains(table.NotCovered, kind) {
			c.problem(t.pos, "leave it out", "not_covered names the kind %s, and no foreign key leads from %s to units of it",
				fault.Quote(kind), t.TableName)
		}
	}
	slices.Sort(table.NotCovered)
}

// identifies reports whether a value of a column identifies one unit of a kind. It does as its id, as a reference to one of its rows, or by
// being unique.
func (c *checker) identifies(t *TablePolicy, info *TableInfo, column *ColumnInfo, kind string) bool {
	return column.Name == t.Unit.Column || slices.Contains(info.Unique, column.Name) ||
		slices.ContainsFunc(info.ForeignKeys, func(k ForeignKey) bool {
			if k.Column != column.Name {
				return false
			}
			if to, ok := c.policies[k.To]; ok {
				return to.Unit != nil && c.kindOf(to) == kind
			}
			return k.To.String() == kind
		})
}

// Apart are tables with a privacy unit, by OID, to which no foreign key of the table may lead: its rows would be about units that the
// policy does not name.
func (t *Table) Apart() (all []uint32) {
	if t = t.checked; t == nil {
		return nil
	}
	for _, to := range t.among {
		if !to.Public && to != t && (t.Public || t.Unit.Of != to.Unit.Of) && !slices.Contains(t.mayLead, to.OID) {
			all = append(all, to.OID)
		}
	}
	return all
}

// leading gives where foreign keys of the whole database lead from a table of a policy, in ways that the ForeignKeys of
// the policy's tables do not show. Tables with a privacy unit end a way: what leads on from there is said of them.
func (s *Schema) leading(tables []*TablePolicy, infos map[TableName]*TableInfo,
	policies map[TableName]*TablePolicy) func(*TableInfo) []TableName {
	owned := map[uint32][]TableName{}
	for _, t := range tables {
		if to, ok := infos[t.TableName]; ok && t.Unit != nil {
			owned[to.root] = append(owned[to.root], t.TableName)
		}
	}
	leadsTo := map[uint32][]uint32{}
	for _, r := range s.references {
		leadsTo[r.from] = append(leadsTo[r.from], r.to)
	}
	c := &checker{policies: policies, pinned: infos}
	return func(info *TableInfo) []TableName {
		var all []TableName
		reached := map[uint32]bool{}
		for next := []uint32{info.root}; len(next) > 0; next = next[1:] {
			for _, to := range leadsTo[next[0]] {
				if reached[to] {
					continue
				}
				reached[to] = true
				if all = append(all, owned[to]...); len(owned[to]) == 0 {
					next = append(next, to)
				}
			}
		}
		bare := *info
		bare.Leads = nil
		shown := c.leads(&bare, nil)
		all = slices.DeleteFunc(all, func(n TableName) bool {
			return slices.ContainsFunc(shown, func(l lead) bool { return l.to == n })
		})
		slices.SortFunc(all, compareNames)
		return slices.Compact(all)
	}
}

// Warning is what a policy's author should know, and what is no mistake by itself.
type Warning struct {
	Pos  fault.Position
	Text string
}

func (c *checker) warn(pos fault.Position, format string, args ...any) {
	w := Warning{pos, fmt.Sprintf(format, args...)}
	if !c.warned[w] {
		c.warned[w] = true
		c.warnings = append(c.warnings, w)
	}
}

// Kinds are the kinds of units of a snapshot, sorted, with the tables of each.
func (s *Snapshot) Kinds() []string {
	of := map[string][]string{}
	for _, t := range s.Tables {
		if !t.Public {
			of[t.Unit.Of] = append(of[t.Unit.Of], TableName{t.Schema, t.Name}.String())
		}
	}
	var lines []string
	for kind, tables := range of {
		lines = append(lines, kind+": "+strings.Join(tables, ", "))
	}
	slices.Sort(lines)
	return lines
}
