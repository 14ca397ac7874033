package catalog

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// Units have a kind: customers are not members of staff, though both have numbers. Only rows of units of one kind are
// joined, and a table whose rows are about units of two kinds protects one of them only, which its policy must say.

// kindOf is the kind of a table's units: what the policy says, else the table where the unit's key ends, or its foreign
// key; without one the kind of which a column of that name is the unit's id, or refers to it, in other tables; else the
// name.
func (c *checker) kindOf(t *TablePolicy) string {
	kind, end := c.keyedKind(t, nil)
	if kind != "" || end == nil {
		return kind
	}
	var named []string
	for _, other := range c.policy.Tables {
		of, _ := c.pinned.Table(other.TableName)
		if other.Unit == nil || of == nil {
			continue
		}
		if other.Unit.Kind != PathUnit && other.Unit.Column == end.Unit.Column {
			kind, _ := c.keyedKind(other, nil)
			named = append(named, kind)
		}
		for _, key := range of.ForeignKeys {
			if to, ok := c.policy.Table(key.To); ok && key.Column == end.Unit.Column && to.isUnit(key.ToColumn) {
				kind, _ := c.keyedKind(to, nil)
				named = append(named, kind)
			}
		}
	}
	named = slices.DeleteFunc(named, func(kind string) bool { return kind == "" })
	slices.Sort(named)
	if named = slices.Compact(named); len(named) == 1 {
		return named[0]
	}
	return "column " + end.Unit.Column
}

// isUnit reports whether a column holds the unit's id.
func (t *TablePolicy) isUnit(column string) bool {
	return t.Unit != nil && t.Unit.Kind != PathUnit && t.Unit.Column == column
}

// keyedKind is the kind as far as keys say it; "" where there is only the name of a column, of the table end.
func (c *checker) keyedKind(t *TablePolicy, met []*TablePolicy) (kind string, end *TablePolicy) {
	info, ok := c.pinned.Table(t.TableName)
	switch {
	case t.Unit == nil || !ok: // reported elsewhere
		return "", nil
	case t.Unit.Of != "":
		return t.Unit.Of, t
	case slices.Contains(met, t): // foreign keys that lead around in a circle
		return t.String(), t
	}
	met = append(met, t)
	if t.Unit.Kind == PathUnit {
		to, ok := c.policy.Table(t.Unit.To)
		if !ok {
			return "", nil
		}
		return c.keyedKind(to, met)
	}
	for _, key := range info.ForeignKeys {
		if key.Column != t.Unit.Column || key.To == t.TableName {
			continue
		}
		if to, ok := c.policy.Table(key.To); ok && to.isUnit(key.ToColumn) {
			return c.keyedKind(to, met)
		}
		return key.To.String(), t
	}
	if t.Unit.Kind == RowUnit {
		return t.String(), t
	}
	return "", t
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
			to, ok := c.policy.Table(key.To)
			switch {
			case !ok:
			case to.Unit != nil:
				add(key.To, first && u != nil && u.Column == key.Column)
			case !seen[key.To]:
				seen[key.To] = true
				if next, ok := c.pinned.Table(key.To); ok {
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
		to, _ := c.policy.Table(l.to)
		kind := c.kindOf(to)
		switch target, known := c.pinned.Table(l.to); {
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

// identifies reports whether a value of a column tells one unit of a kind: as its id, as a reference to a row of one, or as it is unique.
func (c *checker) identifies(t *TablePolicy, info *TableInfo, column *ColumnInfo, kind string) bool {
	return column.Name == t.Unit.Column || slices.Contains(info.Unique, column.Name) ||
		slices.ContainsFunc(info.ForeignKeys, func(k ForeignKey) bool {
			if k.Column != column.Name {
				return false
			}
			if to, ok := c.policy.Table(k.To); ok {
				return to.Unit != nil && c.kindOf(to) == kind
			}
			return k.To.String() == kind
		})
}

// apart are the tables to which no foreign key may lead, for each table of a snapshot.
func apart(tables []*Table) {
	for _, t := range tables {
		for _, to := range tables {
			if !to.Public && to != t && (t.Public || t.Unit.Of != to.Unit.Of) && !slices.Contains(t.mayLead, to.OID) {
				t.Apart = append(t.Apart, to.OID)
			}
		}
	}
}

// leadsFrom is where foreign keys of the whole database lead from a table of a policy, in ways that the ForeignKeys of
// the policy's tables do not show. Tables with a privacy unit end a way: what leads on from there is said of them.
func (s *Schema) leadsFrom(info *TableInfo, p *Policy) []TableName {
	owned := map[uint32][]TableName{}
	for _, t := range p.Tables {
		if to, ok := s.Table(t.TableName); ok && t.Unit != nil {
			owned[to.root] = append(owned[to.root], t.TableName)
		}
	}
	var all []TableName
	reached := map[uint32]bool{}
	for next := []uint32{info.root}; len(next) > 0; next = next[1:] {
		for _, r := range s.references {
			if r.from != next[0] || reached[r.to] {
				continue
			}
			reached[r.to] = true
			if all = append(all, owned[r.to]...); len(owned[r.to]) == 0 {
				next = append(next, r.to)
			}
		}
	}
	bare := *info
	bare.Leads = nil
	shown := (&checker{policy: p, pinned: s}).leads(&bare, nil)
	all = slices.DeleteFunc(all, func(n TableName) bool {
		return slices.ContainsFunc(shown, func(l lead) bool { return l.to == n })
	})
	slices.SortFunc(all, compareNames)
	return slices.Compact(all)
}

// Warning is what a policy's author should know, and what is no mistake by itself.
type Warning struct {
	Pos  fault.Position
	Text string
}

func (c *checker) warn(pos fault.Position, format string, args ...any) {
	w := Warning{pos, fmt.Sprintf(format, args...)}
	if !slices.Contains(c.warnings, w) {
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
