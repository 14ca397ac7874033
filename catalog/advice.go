package catalog

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// What a policy's author should know and what is no mistake by itself: domains and bounds against the constraints of the
// schema, bounds of contributions that are missing, budgets that promise little.

// adviseTable warns of what a table's policy leaves out, of columns that no question can name, and of columns whose constraints say
// something else.
func (c *checker) adviseTable(t *TablePolicy, info *TableInfo) {
	if t.Unit != nil && t.Unit.Kind != RowUnit && t.MaxTotal == 0 {
		for _, bound := range []struct {
			name  string
			value int64
		}{{"max_rows", t.MaxRows}, {"max_groups", t.MaxGroups}} {
			if bound.value == 0 {
				c.warn(t.pos, "table %s has no %s: questions that add up its rows are refused", t.TableName, bound.name)
			}
		}
	}
	c.adviseTypes(t, info)
	for _, p := range t.Columns {
		live, ok := info.Column(p.Name)
		if !ok || p.Hidden {
			continue
		}
		facts := info.Facts().Of(p.Name)
		if live.Type == Enum {
			facts.Values = live.EnumValues
		}
		if p.Domain != nil && p.Domain.From == (ColumnRef{}) {
			c.adviseDomain(p, live, facts.Values)
		}
		if p.Bounds != nil {
			c.adviseBounds(p, facts)
		}
	}
}

// adviseTypes warns of columns that analysts do not see because of their types, where the policy does not say so.
func (c *checker) adviseTypes(t *TablePolicy, info *TableInfo) {
	var unseen []string
	for _, live := range info.Columns {
		said := slices.ContainsFunc(t.Columns, func(p *ColumnPolicy) bool { return p.Name == live.Name })
		if live.Type == "" && !said {
			unseen = append(unseen, fmt.Sprintf("%s (%s)", fault.Quote(live.Name), live.TypeName))
		}
	}
	if len(unseen) > 0 {
		c.warn(t.pos, "no question can name these columns of %s, as their types are not supported: %s; write {expose: false} for each, or "+
			"give the table a stored generated column of a type that is, such as text", t.TableName, few(unseen))
	}
}

// advisePrepare warns of a copy that keeps rows which no question counts, or too few.
func (c *checker) advisePrepare(t *TablePolicy, table *Table) {
	keeps, grouped := table.Prepare, table.MaxRows*min(table.MaxGroups, maxPrepared) // at most 10^15
	switch {
	case table.MaxTotal > 0 && keeps > table.MaxTotal:
		c.warn(t.pos, "the copy of %s keeps %d rows of a unit, of which no question counts more than max_rows_total, %d", t.TableName, keeps,
			table.MaxTotal)
	case table.MaxTotal == 0 && grouped > 0 && keeps > grouped:
		c.warn(t.pos, "the copy of %s keeps %d rows of a unit, of which no question about the table counts more than max_rows x max_groups, %d: "+
			"answers with a GROUP BY have less noise from the table", t.TableName, keeps, grouped)
	case keeps < table.MaxRows:
		c.warn(t.pos, "the copy of %s keeps %d rows of a unit, fewer than max_rows, %d: answers from it leave out what those from the table "+
			"count", t.TableName, keeps, table.MaxRows)
	}
}

// adviseDomain compares public keys with the only values that the schema lets through; nil: any.
func (c *checker) adviseDomain(p *ColumnPolicy, live *ColumnInfo, allowed []string) {
	var missing, impossible []string
	declared := map[string]bool{}
	for _, key := range p.Domain.Keys {
		if !key.Null && allowed != nil && !slices.Contains(allowed, key.Text) {
			impossible = append(impossible, fault.Quote(key.Text))
		}
		declared[key.Text] = true
	}
	for _, value := range allowed {
		if !declared[value] {
			missing = append(missing, fault.Quote(value))
		}
	}
	source := "a CHECK constraint"
	if live.Type == Enum {
		source = "its enum"
	}
	if len(missing) > 0 {
		c.warn(p.Domain.pos, "the domain of %s lacks %s, which %s has: such rows are in no group", p.Name, few(missing), source)
	}
	if len(impossible) > 0 {
		c.warn(p.Domain.pos, "the domain of %s has %s, which %s lets no row have", p.Name, few(impossible), source)
	}
}

// few lists some names.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// adviseBounds compares bounds with the range of a CHECK constraint.
func (c *checker) adviseBounds(p *ColumnPolicy, facts ColumnFacts) {
	lo, hi := p.Bounds.Lo.Text, p.Bounds.Hi.Text
	written := fmt.Sprintf("bounds of %s, [%s, %s]", p.Name, lo, hi)
	switch {
	case beyond(hi, facts.Lo, 1):
		c.warn(p.pos, "the %s, lie below %s, the least that a CHECK constraint allows: every value is moved", written, facts.Lo)
	case beyond(lo, facts.Hi, -1):
		c.warn(p.pos, "the %s, lie above %s, the most that a CHECK constraint allows: every value is moved", written, facts.Hi)
	case beyond(lo, facts.Lo, 1):
		c.warn(p.pos, "the %s, begin below %s, the least that a CHECK constraint allows: more noise than is needed", written, facts.Lo)
	case beyond(hi, facts.Hi, -1):
		c.warn(p.pos, "the %s, end above %s, the most that a CHECK constraint allows: more noise than is needed", written, facts.Hi)
	}
}

// weakEpsilon is from where on a promise is hard to defend: any outcome may be 22,026 times as likely with a person's
// data as without.
const weakEpsilon = 10

// adviseBudgets warns of promises that are weak, and of allotments that the dataset's promise does not cover.
func (c *checker) adviseBudgets(budgets []Budget) {
	var whole Budget
	for _, b := range budgets {
		if b.Scope == DatasetScope {
			whole = b
		}
	}
	above := func(a, b *big.Rat) bool { return a != nil && b != nil && a.Cmp(b) > 0 }
	for _, b := range budgets {
		if strange(b) {
			c.warn(b.pos, "%s cannot be told from another name by looking: %s; a policy that is applied may keep this line, and not add it",
				fault.Quote(b.Name), strangeHint)
		}
		switch {
		case above(b.Epsilon, big.NewRat(weakEpsilon, 1)):
			c.warn(b.pos, "epsilon is more than %d: an answer may be more than 22,026 times as likely with a person's data as without",
				weakEpsilon)
		case above(b.Epsilon, whole.Epsilon), above(b.Rho, whole.Rho):
			c.warn(b.pos, "this budget is larger than the dataset's, which ends first")
		}
	}
}
