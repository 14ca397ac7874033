package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"noisegate.example/catalog"
)

// FromSchema drafts a policy for a dataset whose privacy unit is told by u, from keys, foreign keys, enums, CHECK
// constraints, NOT NULL and comments: public facts. Tables that no key ties to the unit are written as comments, since
// only a person knows whether they are nobody's secret. It fails where there is no such column.
func FromSchema(schema *catalog.Schema, dataset string, u Unit) (string, error) {
	tables := whole(schema)
	i := slices.IndexFunc(tables, func(t *catalog.TableInfo) bool { return t.TableName == u.Table })
	if i < 0 {
		return "", fmt.Errorf("there is no table %s", u.Table)
	}
	if _, ok := tables[i].Column(u.Column); !ok {
		return "", fmt.Errorf("table %s has no column %s", u.Table, u.Column)
	}
	found := ways(tables, u)
	p := policy{dataset: dataset, budgets: newBudgets(), head: []string{
		"Drafted by noisegate policy init from keys, constraints and comments; no row was read. Fill each " + Blank + " in, from",
		"what everybody knows and never by looking at the table, and take out the # of what you want. Then: noisegate policy check.",
		"",
	}}
	p.head = append(p.head, graph(tables, u, found)...)
	for _, t := range tables {
		if strings.Contains(t.Name, ".") || strings.Contains(t.Schema, ".") {
			p.left = append(p.left, fmt.Sprintf("%s is left out: a policy cannot name it", oneLine(t.String())))
		} else if w, ok := found[t.TableName]; ok {
			p.tables = append(p.tables, unitTable(t, tables, u, w, found))
		} else {
			p.tables = append(p.tables, publicTable(t, tables, found))
		}
	}
	slices.SortStableFunc(p.tables, func(a, b table) int { return rank(a) - rank(b) })
	for _, t := range schema.Tables {
		if t.Kind != catalog.PlainTable && t.Kind != catalog.PartitionedTable {
			p.left = append(p.left, fmt.Sprintf("%s is a %s: policies are for tables", oneLine(t.String()), t.Kind))
		}
	}
	return p.text(), nil
}

// rank puts tables with a unit first.
func rank(t table) int {
	if t.off {
		return 1
	}
	return 0
}

func unitTable(t *catalog.TableInfo, tables []*catalog.TableInfo, u Unit, w way, found map[catalog.TableName]way) table {
	out := table{name: t.String()}
	if comment := oneLine(t.Facts().Table()); comment != "" {
		out.notes = append(out.notes, comment)
	}
	id, _ := t.Column(w.column)
	unique := slices.Contains(t.Unique, w.column)
	switch {
	case w.to != (catalog.TableName{}):
		path := fmt.Sprintf("{via: %s, to: %s}", scalar(w.column), scalar(w.to.String()))
		out.settings = append(out.settings, setting{name: "unit", value: path})
	case t.TableName == u.Table && unique && id.NotNull:
		out.settings = append(out.settings, setting{name: "unit", value: fmt.Sprintf("{row: %s}", scalar(w.column)),
			note: "one row is one unit: a unique key that is never NULL"})
	default:
		s := setting{name: "unit", value: fmt.Sprintf("{column: %s}", scalar(w.column))}
		if w.named {
			s.note = "no foreign key says that these are units of " + u.Table.String()
		}
		out.settings = append(out.settings, s)
	}
	out.settings = append(out.settings, otherPaths(t, w, found)...)
	if !strings.HasPrefix(out.settings[0].value, "{row:") {
		out.settings = append(out.settings,
			setting{name: "max_rows", value: Blank, note: "rows of one unit that count in each group; fewer: less noise, more left out"},
			setting{name: "max_groups", value: Blank, note: "groups of one GROUP BY in which one unit counts"})
	}
	for _, c := range t.Columns {
		if c.Name == w.column {
			continue
		}
		if s, ok := columnSetting(t, c, tables, found); ok {
			out.columns = append(out.columns, s)
		}
	}
	return out
}

// otherPaths proposes, for a table that names the unit itself, the paths over its other foreign keys: whose a row is may
// be said in two places, and tables are joined where they say the same.
func otherPaths(t *catalog.TableInfo, w way, found map[catalog.TableName]way) (all []setting) {
	if w.steps == 0 || w.to != (catalog.TableName{}) {
		return nil
	}
	for _, key := range t.ForeignKeys {
		if to, ok := found[key.To]; ok && key.Column != w.column && to.steps > 0 && to.steps < maxSteps && key.To != t.TableName {
			all = append(all, setting{name: "unit", off: true, value: fmt.Sprintf("{via: %s, to: %s}", scalar(key.Column), scalar(key.To.String())),
				note: fmt.Sprintf("instead, if rows are joined with %s: a row is then that one's unit's", key.To)})
		}
	}
	return all
}

// publicTable is a table that no key ties to the unit.
func publicTable(t *catalog.TableInfo, tables []*catalog.TableInfo, found map[catalog.TableName]way) table {
	out := table{name: t.String(), public: true, off: true}
	if comment := oneLine(t.Facts().Table()); comment != "" {
		out.notes = append(out.notes, comment)
	}
	note := "No key leads from it to a unit. If its rows are nobody's secret, take out the #:"
	for _, from := range tables {
		_, ok := found[from.TableName]
		if ok && slices.ContainsFunc(from.ForeignKeys, func(k catalog.ForeignKey) bool { return k.To == t.TableName }) {
			note = fmt.Sprintf("%s refers to it: are its rows about people? If they are nobody's secret, take out the #:", from.TableName)
			break
		}
	}
	out.notes = append(out.notes, note)
	return out
}

// identifying are names of columns that tell people, as far as names go.
var identifying = regexp.MustCompile(`(?i)(^|_)(name|surname|e?mail|phone|mobile|fax|address2?|street|ssn|passport|iban|password|username|login|` +
	`token|secret|picture|photo|comment|notes?|ip)($|_)`)

var ownID = regexp.MustCompile(`(?i)(^|_)id$`)

// columnSetting is what facts say of a column, or what a person could say as a comment.
func columnSetting(t *catalog.TableInfo, c *catalog.ColumnInfo, tables []*catalog.TableInfo,
	found map[catalog.TableName]way) (setting, bool) {
	facts := t.Facts().Of(c.Name)
	s := setting{name: c.Name, note: oneLine(facts.Comment)}
	because := func(why string) {
		if s.note != "" {
			why += "; " + s.note
		}
		s.note = why
	}
	nullable := !c.NotNull
	reference := slices.IndexFunc(t.ForeignKeys, func(k catalog.ForeignKey) bool { return k.Column == c.Name })
	switch {
	case c.Type == "":
		s.value = "{expose: false}"
		because("the type " + oneLine(c.TypeName) + " is not supported")
	case slices.Contains(t.Unique, c.Name) && referred(tables, t, c):
		return s, false // for joins; it is never compared with what a query makes up
	case slices.Contains(t.Unique, c.Name):
		s.value = "{expose: false}"
		because("unique: it tells one row")
	case c.Type == catalog.Enum:
		s.value = "{domain: " + list(c.EnumValues, nullable, true) + "}"
		because("enum")
	case facts.Values != nil && groups(c):
		s.value = "{domain: " + list(facts.Values, nullable, c.Type.IsText()) + "}"
		because("CHECK")
	case c.Type == catalog.Bool:
		s.value = "{domain: " + list([]string{"false", "true"}, nullable, false) + "}"
	case reference >= 0:
		key := t.ForeignKeys[reference]
		if _, ok := found[key.To]; ok {
			return s, false // another way to a unit
		}
		s.off, s.value = true, fmt.Sprintf("{domain: {table: %s, column: %s}}", scalar(key.To.String()), scalar(key.ToColumn))
		because("once " + key.To.String() + " is public")
	case c.Type.IsText() && identifying.MatchString(c.Name):
		s.value = "{expose: false}"
		because("its name says that it tells people")
	case c.Type.IsText():
		s.value = "{keys: private}"
		because("or domain: [...] where all values are public")
	case c.Type.IsInteger() && ownID.MatchString(c.Name):
		return s, false // a number without a meaning
	case c.Type.IsNumber() || c.Type.IsTime():
		s.value, s.off = bounds(c, facts)
		if !s.off {
			because("CHECK")
		} else {
			because("for sum and avg")
		}
	default:
		return s, false
	}
	return s, true
}

// referred reports whether a foreign key of some table refers to a column.
func referred(tables []*catalog.TableInfo, t *catalog.TableInfo, c *catalog.ColumnInfo) bool {
	return slices.ContainsFunc(tables, func(from *catalog.TableInfo) bool {
		return slices.ContainsFunc(from.ForeignKeys, func(k catalog.ForeignKey) bool { return k.To == t.TableName && k.ToColumn == c.Name })
	})
}

// groups reports whether values of a column can be listed as public keys.
func groups(c *catalog.ColumnInfo) bool {
	return c.Type.IsInteger() || c.Type.IsText() || c.Type == catalog.Date || c.Type == catalog.Numeric && c.Scale >= 0
}

// bounds are those of a CHECK, complete, or with blanks and off.
func bounds(c *catalog.ColumnInfo, facts catalog.ColumnFacts) (value string, off bool) {
	lo, hi := facts.Lo, facts.Hi
	if c.Type == catalog.Timestamp || c.Type == catalog.Timestamptz {
		lo, hi = "", ""
	}
	if off = lo == "" || hi == ""; lo == "" {
		lo = Blank
	}
	if hi == "" {
		hi = Blank
	}
	value = "{bounds: [" + lo + ", " + hi + "]"
	if c.Type == catalog.Numeric && c.Scale > 0 && c.Scale <= 6 {
		value += ", step: 0." + strings.Repeat("0", c.Scale-1) + "1"
	}
	return value + "}", off
}
