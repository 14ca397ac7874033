package catalog

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The catalog twin is a database without a row: the exposed tables and columns of a revision with their types and keys, and comments that
// say what the policy says. What follows makes its SQL; it reads nothing but the revision.

// twinTag is the comment on a twin's database: its revision. The digest changes when the policy or what it was checked against does.
func twinTag(s *Snapshot) string {
	return fmt.Sprintf("noisegate %d %s.%d", s.Version, hex.EncodeToString(s.Digest[:]), twinLayout)
}

// twinVersion reads the version of a twin's comment; false where there is none.
func twinVersion(tag string) (int64, bool) {
	var version int64
	var digest string
	_, err := fmt.Sscanf(tag, "noisegate %d %s", &version, &digest)
	return version, err == nil
}

// twinSchema are the statements that fill an empty twin.
func twinSchema(r *Revision) []string {
	t := &twin{revision: r, unique: map[TableName][][]string{}}
	t.operations()
	for _, table := range r.Snapshot.Shown() {
		t.schema(table.Schema)
	}
	t.enums()
	for _, table := range r.Snapshot.Shown() {
		t.table(table)
	}
	for _, table := range r.Snapshot.Tables { // when all keys are there
		t.foreignKeys(table)
	}
	return t.statements
}

type twin struct {
	revision   *Revision
	schemas    []string
	unique     map[TableName][][]string // keys that were made
	statements []string
}

func (t *twin) add(format string, args ...any) {
	t.statements = append(t.statements, fmt.Sprintf(format, args...))
}

func (t *twin) schema(name string) {
	if slices.Contains(t.schemas, name) {
		return
	}
	t.schemas = append(t.schemas, name)
	t.add("CREATE SCHEMA %s", identifier(name))
	t.add("GRANT USAGE ON SCHEMA %s TO %s", identifier(name), TwinRole)
}

// table makes a table of its exposed columns, with its keys and its comments. A table without exposed columns exists too: its rows can be
// counted.
func (t *twin) table(table *Table) {
	name := TableName{Schema: table.Schema, Name: table.Name}
	pinned, _ := t.revision.Pinned.Table(name)
	var lines []string
	for _, c := range table.Columns {
		if !c.Exposed {
			continue
		}
		line := identifier(c.Name) + " " + t.typeOf(pinned, c)
		if c.NotNull {
			line += " NOT NULL"
		}
		lines = append(lines, line)
	}
	primary := false
	for _, key := range table.Unique {
		if !exposed(table, key) || slices.ContainsFunc(t.unique[name], func(k []string) bool { return slices.Equal(k, key) }) {
			continue
		}
		kind := "UNIQUE"
		if !primary && notNull(table, key) {
			kind, primary = "PRIMARY KEY", true
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", kind, identifiers(key)))
		t.unique[name] = append(t.unique[name], key)
	}
	t.add("CREATE TABLE %s (%s)", qualified(name), strings.Join(lines, ", "))
	t.add("GRANT REFERENCES ON %s TO %s", qualified(name), TwinRole)
	t.add("COMMENT ON TABLE %s IS %s", qualified(name), literal(describeTable(table)))
	for _, c := range table.Columns {
		if text := describeColumn(table, c); c.Exposed && text != "" {
			t.add("COMMENT ON COLUMN %s.%s IS %s", qualified(name), identifier(c.Name), literal(text))
		}
	}
}

// typeOf is a column's type.
func (t *twin) typeOf(pinned *TableInfo, c *Column) string {
	if c.Type == Enum {
		return c.Enum
	}
	if info, ok := pinned.Column(c.Name); ok {
		return info.TypeName
	}
	return string(c.Type)
}

// enums makes the types of the exposed columns that are enums. They have the labels that are public keys of some column: others are not
// for analysts.
func (t *twin) enums() {
	labels, public := map[string][]string{}, map[string][]string{}
	for _, table := range t.revision.Snapshot.Shown() {
		pinned, ok := t.revision.Pinned.Table(TableName{Schema: table.Schema, Name: table.Name})
		if !ok {
			continue
		}
		for _, c := range table.Columns {
			info, ok := pinned.Column(c.Name)
			if !c.Exposed || c.Type != Enum || !ok {
				continue
			}
			labels[c.Enum] = info.EnumValues
			for _, key := range c.Domain {
				public[c.Enum] = append(public[c.Enum], key.Text)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		var shown []string
		for _, label := range labels[name] {
			if slices.Contains(public[name], label) {
				shown = append(shown, literal(label))
			}
		}
		t.schema(schemaOf(name))
		t.add("CREATE TYPE %s AS ENUM (%s)", name, strings.Join(shown, ", "))
	}
}

// schemaOf is the schema of a name that quote_ident wrote, part by part.
func schemaOf(name string) string {
	if !strings.HasPrefix(name, `"`) {
		schema, _, _ := strings.Cut(name, ".")
		return schema
	}
	end := 1
	for end < len(name) && (name[end] != '"' || strings.HasPrefix(name[end:], `""`)) {
		if name[end] == '"' {
			end++
		}
		end++
	}
	return strings.ReplaceAll(name[1:end], `""`, `"`)
}

// foreignKeys are those of a table whose columns are exposed on both sides.
func (t *twin) foreignKeys(table *Table) {
	name := TableName{Schema: table.Schema, Name: table.Name}
	pinned, ok := t.revision.Pinned.Table(name)
	if !ok {
		return
	}
	for _, key := range pinned.ForeignKeys {
		to, ok := t.revision.Snapshot.Table(key.To.Schema, key.To.Name)
		if !ok || !exposed(table, []string{key.Column}) ||
			!slices.ContainsFunc(t.unique[key.To], func(k []string) bool { return slices.Equal(k, []string{key.ToColumn}) }) {
			continue
		}
		from, _ := table.Column(key.Column)
		if target, _ := to.Column(key.ToColumn); from.Type != target.Type && !(from.Type.IsInteger() && target.Type.IsInteger()) {
			continue
		}
		t.add("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s (%s)", qualified(name), identifier(key.Column), qualified(key.To),
			identifier(key.ToColumn))
	}
}

// exposed reports whether all columns of a key are exposed.
func exposed(t *Table, key []string) bool {
	return all(t, key, func(c *Column) bool { return c.Exposed })
}

func notNull(t *Table, key []string) bool {
	return all(t, key, func(c *Column) bool { return c.NotNull })
}

func all(t *Table, key []string, holds func(*Column) bool) bool {
	for _, name := range key {
		if c, ok := t.Column(name); !ok || !holds(c) {
			return false
		}
	}
	return len(key) > 0
}

// describeTable says whose the rows of a table are, and how many of them count.
func describeTable(t *Table) string {
	switch t.Unit.Kind {
	case NoUnit:
		return "Public: answers are exact and free."
	case RowUnit:
		return "Private: each row is one privacy unit."
	case ColumnUnit, PathUnit:
	}
	parts := []string{"Private: rows belong to privacy units by " + t.Unit.Column + "."}
	if t.MaxRows > 0 {
		parts = append(parts, fmt.Sprintf("At most %d rows of a unit count in one group.", t.MaxRows))
	}
	if t.MaxGroups > 0 {
		parts = append(parts, fmt.Sprintf("At most %d groups of a unit count.", t.MaxGroups))
	}
	if t.MaxTotal > 0 {
		parts = append(parts, fmt.Sprintf("At most %d rows of a unit count in all groups together.", t.MaxTotal))
	}
	return strings.Join(parts, " ")
}

// describeColumn says how a column may be used; "" where the policy says nothing.
func describeColumn(t *Table, c *Column) string {
	if t.Public {
		return ""
	}
	var parts []string
	if c.Identifies != "" {
		parts = append(parts, "Tells one unit: may be counted.")
	}
	if b := c.Bounds; b != nil {
		text := fmt.Sprintf("Bounds %s to %s", boundText(c.Type, b.Lo), boundText(c.Type, b.Hi))
		if b.Step != nil && !c.Type.IsTime() {
			text += ", step " + decimal(b.Step)
		}
		parts = append(parts, text+".")
	}
	switch {
	case c.PrivateKeys:
		parts = append(parts, "Group keys are private: a key is shown where enough units have it.")
	case c.Domain != nil:
		parts = append(parts, fmt.Sprintf("Public group keys: %d.", len(c.Domain)))
	}
	return strings.Join(parts, " ")
}

// boundText writes a bound in its column's own notation.
func boundText(t Type, bound *big.Rat) string {
	switch t {
	case Date:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(bound.Num().Int64())).Format(time.DateOnly)
	case Timestamp, Timestamptz:
		return time.UnixMicro(bound.Num().Int64()).UTC().Format("2006-01-02 15:04:05.999999")
	default:
		return decimal(bound)
	}
}

// decimal writes a number without trailing zeros.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func qualified(name TableName) string { return identifier(name.Schema) + "." + identifier(name.Name) }

func identifiers(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = identifier(name)
	}
	return strings.Join(quoted, ", ")
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal quotes a text, whatever standard_conforming_strings says.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}
