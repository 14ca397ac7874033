package draft

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
)

// System is another system whose metadata can be imported.
type System string

const (
	SmartNoise System = "smartnoise" // SmartNoise SQL: collection, schema, table, column
	Lomas      System = "lomas"      // one table, without its name
)

// ImportParameters say what metadata are and what becomes of them.
type ImportParameters struct {
	System  System
	Dataset string // of the policy
	Schema  string // of PostgreSQL, in place of the metadata's; empty: theirs, and public for Lomas
	Table   string // Lomas only: its metadata name none
}

// Import drafts a policy from another system's metadata. Bounds, categories, the column of the unit and its bound of rows
// are taken over; blanks stay where the metadata do not say what a policy must. All that is wrong with the metadata is
// reported together, as policy/invalid faults with their places in the text.
func Import(text string, p ImportParameters) (string, []error) {
	root, err := catalog.ReadYAML(text)
	if err != nil {
		return "", []error{err}
	}
	r := reader{ImportParameters: p, unused: map[string]bool{}}
	for _, given := range []string{p.Schema, p.Table} {
		if !canName(given) {
			r.problem(&catalog.Value{}, "%s cannot be named by a policy: %s", fault.Quote(given), namesAre)
		}
	}
	if p.System == Lomas {
		r.lomas(root)
	} else {
		r.smartNoise(root)
	}
	if len(r.problems) == 0 && len(r.tables) == 0 {
		r.problem(root, "the metadata have no table")
	}
	if len(r.problems) > 0 {
		return "", r.problems
	}
	return policy{dataset: p.Dataset, head: r.head(), tables: r.tables, budgets: newBudgets()}.text(), nil
}

// reader walks metadata and collects tables and what is wrong.
type reader struct {
	ImportParameters
	tables   []table
	problems []error
	unused   map[string]bool // settings that a policy has no use for
}

func (r *reader) problem(v *catalog.Value, format string, args ...any) {
	r.problems = append(r.problems, fault.PolicyInvalid(v.Pos, fmt.Sprintf(format, args...), ""))
}

func (r *reader) head() []string {
	lines := []string{
		fmt.Sprintf("Imported by noisegate policy import %s; no row was read. Fill each %s in, from what everybody knows and", r.System, Blank),
		"never by looking at the table. Columns that are not listed may be used in conditions: hide what tells people with",
		"{expose: false}. Then: noisegate policy check.",
	}
	if len(r.unused) > 0 {
		var names []string
		for name := range r.unused {
			names = append(names, oneLine(name))
		}
		slices.Sort(names)
		const most = 12
		if len(names) > most {
			names = append(names[:most], "...")
		}
		lines = append(lines, "Not taken over: "+strings.Join(names, ", ")+".")
	}
	return lines
}

// smartNoise reads collection, schema, table, column; a key engine may be next to the collection.
func (r *reader) smartNoise(root *catalog.Value) {
	collections := 0
	for _, collection := range r.mapping(root, "metadata") {
		if collection.Key.Text == "engine" && collection.Value.Scalar {
			continue
		}
		if collections++; collections > 1 {
			r.problem(collection.Key, "a file holds one collection")
			return
		}
		for _, schema := range r.mapping(collection.Value, "a collection") {
			for _, t := range r.mapping(schema.Value, "a schema") {
				fields := importedFields{}
				for _, f := range r.mapping(t.Value, "a table") {
					if tableSettings[f.Key.Text] {
						fields.settings = append(fields.settings, f)
					} else {
						fields.columns = append(fields.columns, f)
					}
				}
				r.table(cmp.Or(r.Schema, r.name(schema.Key), catalog.DefaultSchema), r.name(t.Key), t.Value, fields)
			}
		}
	}
}

// lomas reads settings of one table, and its columns under the key columns.
func (r *reader) lomas(root *catalog.Value) {
	settings := r.mapping(root, "metadata")
	columns := root.Field("columns")
	if columns == nil {
		r.problem(root, "the metadata of Lomas have the key columns")
		return
	}
	settings = slices.DeleteFunc(slices.Clone(settings), func(f catalog.Field) bool {
		stray := f.Value != columns && !tableSettings[f.Key.Text]
		if stray {
			r.unused[f.Key.Text] = true
		}
		return stray || f.Value == columns
	})
	r.table(cmp.Or(r.Schema, catalog.DefaultSchema), r.Table, root, importedFields{settings, r.mapping(columns, "columns")})
}

// mapping gives the entries of a mapping.
func (r *reader) mapping(v *catalog.Value, what string) []catalog.Field {
	if v.Kind != "a mapping" {
		r.problem(v, "%s must be a mapping, not %s", what, v.Kind)
	}
	return v.Fields
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// name is a name as PostgreSQL has it: SmartNoise writes plain ones without quotes, so that they are folded.
func (r *reader) name(v *catalog.Value) string {
	name := v.Text
	if plainName.MatchString(name) {
		name = strings.ToLower(name)
	}
	if !canName(name) {
		r.problem(v, "%s cannot be named by a policy: %s", fault.Quote(name), namesAre)
	}
	return name
}

const namesAre = "names have at most 63 bytes, and no dot"

func canName(name string) bool { return len(name) <= 63 && !strings.ContainsAny(name, ".\x00") }

// tableSettings are the keys of a table that are no columns.
var tableSettings = map[string]bool{"rows": true, "rows_exact": true, "row_privacy": true, "max_ids": true, "sample_max_ids": true,
	"clamp_counts": true, "clamp_columns": true, "use_dpsu": true, "censor_dims": true}

// importedFields are what metadata say of a table: names of columns may be those of settings.
type importedFields struct{ settings, columns []catalog.Field }

func (r *reader) table(schema, name string, at *catalog.Value, fields importedFields) {
	t := table{name: catalog.TableName{Schema: schema, Name: name}.String()}
	if name == "" || slices.ContainsFunc(r.tables, func(o table) bool { return o.name == t.name }) {
		r.problem(at, "table %s has no name, or that of another", fault.Quote(name))
	}
	u := importedUnit{maxIDs: 1}
	for _, f := range fields.settings {
		switch f.Key.Text {
		case "row_privacy":
			u.rows = r.truth(f.Value)
		case "max_ids":
			u.maxIDs = r.count(f.Value)
		default:
			r.unused[f.Key.Text] = true
		}
	}
	named := map[string]bool{}
	for _, f := range fields.columns {
		column := r.name(f.Key)
		if column == "" || named[column] {
			r.problem(f.Key, "column %s has no name, or that of another", fault.Quote(column))
		}
		named[column] = true
		s, private := r.column(column, f.Value)
		switch {
		case private && !u.rows && u.column != "":
			r.problem(f.Key, "columns %s and %s have both private_id", fault.Quote(u.column), fault.Quote(column))
		case private && !u.rows:
			u.column = column
		case s.value != "":
			t.columns = append(t.columns, s)
		}
	}
	t.settings = u.settings()
	r.tables = append(r.tables, t)
}

// importedUnit is what metadata say of a table's unit.
type importedUnit struct {
	rows   bool // each row is one
	column string
	maxIDs int64 // rows of one unit in the whole table
}

// settings are those of a policy. The bound of rows is one over all groups, so that no group needs a separate one.
func (u importedUnit) settings() []setting {
	if u.rows {
		return []setting{{name: "unit", value: "{row: " + Blank + "}", note: "row_privacy: a unique key that is never NULL"}}
	}
	unit := setting{name: "unit", value: "{column: " + scalar(u.column) + "}", note: "private_id"}
	if u.column == "" {
		unit.value, unit.note = "{column: "+Blank+"}", "the column that tells one person: the metadata have no private_id"
	}
	n := strconv.FormatInt(u.maxIDs, 10)
	all := []setting{unit, {name: "max_rows", value: n, note: "max_ids: as many rows of one unit count in each group"},
		{name: "max_groups", value: n}}
	if u.maxIDs > 1 {
		all = append(all, setting{name: "max_rows_total", value: n, note: "max_ids bounds the rows of one unit in all groups together"})
	}
	return all
}

// column reads the settings of a column from another system's metadata, and reports whether the column identifies the unit.
func (r *reader) column(name string, v *catalog.Value) (s setting, private bool) {
	s.name = name
	nullable := r.System == SmartNoise
	var kind, lower, upper, categories *catalog.Value
	for _, f := range r.mapping(v, "a column") {
		switch f.Key.Text {
		case "type":
			kind = f.Value
		case "private_id":
			private = r.truth(f.Value)
		case "nullable":
			nullable = r.truth(f.Value)
		case "lower":
			lower = f.Value
		case "upper":
			upper = f.Value
		case "categories":
			categories = f.Value
		case "missing_value":
			nullable = false
			r.unused[f.Key.Text] = true
		default:
			r.unused[f.Key.Text] = true
		}
	}
	if kind == nil {
		r.problem(v, "column %s has no type", fault.Quote(name))
		return s, private
	}
	switch {
	case categories != nil && (kind.Text == "string" || kind.Text == "int"):
		s.value = r.domain(categories, kind.Text == "string", nullable)
	case kind.Text == "boolean":
		s.value = "{domain: " + list([]string{"false", "true"}, nullable, false) + "}"
	case kind.Text == "string":
		s.value, s.note = "{keys: private}", "or domain: [...] where all values are public"
	case kind.Text == "int", kind.Text == "float", kind.Text == "datetime":
		s.value, s.off = r.bounds(kind.Text, lower, upper)
		if s.off {
			s.note = "for sum and avg"
		}
	default:
		s.value, s.note = "{expose: false}", "the type "+oneLine(kind.Text)+" is not known"
	}
	return s, private
}

// domain writes categories as public keys.
func (r *reader) domain(v *catalog.Value, texts, nullable bool) string {
	var keys []string
	for _, item := range v.List {
		key := item.Text
		if number, ok := decimal(key); !texts && ok && number.IsInt() {
			key = number.Num().String()
		} else if !item.Scalar || !texts {
			r.problem(item, "a category must be a text, or a whole number in a column of the type int")
		}
		if slices.Contains(keys, key) {
			r.problem(item, "category %s is given twice", fault.Quote(key))
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		r.problem(v, "categories must be a list")
	}
	return "{domain: " + list(keys, nullable, texts) + "}"
}

// bounds writes those of a number or a time, with blanks and off where there are not both.
func (r *reader) bounds(kind string, lower, upper *catalog.Value) (value string, off bool) {
	number := kind != "datetime"
	lo, hi := r.end(lower, number), r.end(upper, number)
	if lo.text == "" || hi.text == "" {
		return fmt.Sprintf("{bounds: [%s, %s]}", cmp.Or(lo.text, Blank), cmp.Or(hi.text, Blank)), true
	}
	if lo.at.Cmp(hi.at) >= 0 {
		r.problem(lower, "lower must be below upper")
	}
	if kind == "float" {
		return fmt.Sprintf("{bounds: [%s, %s], step: %s}", lo.text, hi.text, stepOf(lo.at, hi.at)), false
	}
	return fmt.Sprintf("{bounds: [%s, %s]}", lo.text, hi.text), false
}

// end is one end of bounds, as a policy writes it and as a number.
type end struct {
	text string // empty: there is none
	at   *big.Rat
}

// end reads one end. Absent and null are none.
func (r *reader) end(v *catalog.Value, number bool) (e end) {
	switch {
	case v == nil || v.Kind == "nothing":
		return e
	case number:
		if at, ok := decimal(v.Text); ok {
			return end{plain(at), at}
		}
		r.problem(v, "%s is not a number", fault.Quote(v.Text))
		return e
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05", time.DateTime} {
		at, err := time.Parse(layout, v.Text)
		if err != nil {
			continue
		}
		text := at.Format(`"2006-01-02T15:04:05"`)
		if at.Equal(at.Truncate(24 * time.Hour)) {
			text = at.Format(time.DateOnly)
		}
		return end{text, new(big.Rat).SetInt64(at.Unix())}
	}
	r.problem(v, "%s is not a time such as 2024-02-29 or 2024-02-29T12:30:00", fault.Quote(v.Text))
	return e
}

var decimalNumber = regexp.MustCompile(`^[+-]?[0-9]{1,18}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?$`)

// decimal reads a number as YAML has it.
func decimal(text string) (*big.Rat, bool) {
	if !decimalNumber.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// plain writes a decimal number without an exponent.
func plain(x *big.Rat) string {
	const most = 120 // places: more than [decimalNumber] has
	text := x.FloatString(most)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// stepOf is a power of ten that divides a range into ten thousand steps or somewhat more: what rounding to it changes is
// far below any noise.
func stepOf(lo, hi *big.Rat) string {
	ten, step := big.NewRat(10, 1), big.NewRat(1, 1)
	most := new(big.Rat).Sub(hi, lo)
	most.Quo(most, big.NewRat(10_000, 1))
	for step.Cmp(most) > 0 && most.Sign() > 0 {
		step.Quo(step, ten)
	}
	for next := new(big.Rat).Mul(step, ten); next.Cmp(most) <= 0; next = new(big.Rat).Mul(step, ten) {
		step = next
	}
	return plain(step)
}

func (r *reader) truth(v *catalog.Value) bool {
	switch strings.ToLower(v.Text) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
	default:
		r.problem(v, "%s is neither true nor false", fault.Quote(v.Text))
	}
	return false
}

func (r *reader) count(v *catalog.Value) int64 {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil || n < 1 || n > 1_000_000_000 {
		r.problem(v, "max_ids must be a whole number from 1 to 1000000000")
	}
	return n
}
