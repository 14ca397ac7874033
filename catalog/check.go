package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// Check holds a policy against a schema. It is pure: the schema brings everything that it needs, the values of domains that
// come from public tables included. The snapshot has no version yet; there is one only if there are no errors, which are
// policy/invalid faults with their place in the policy's text.
func Check(p *Policy, s *Schema) (*Snapshot, []error) {
	pinned := s.For(p)
	c := newChecker(p, s, pinned)
	snapshot := &Snapshot{Dataset: p.Dataset, Digest: digest(p, pinned), Budgets: p.Budgets, ShareReleases: p.ShareReleases,
		MaxFailures: p.MaxFailures, Pate: p.Pate, DataVersion: p.DataVersion, RefreshCharges: p.RefreshCharges}
	var err error
	if snapshot.Delay, err = p.Timing.Delay(); err != nil { // the file was checked when it was read
		c.problem(fault.Position{}, "", "timing asks for no delay that there is")
	}
	c.adviseBudgets(p.Budgets)
	for _, t := range p.Tables {
		if info := c.infos[t.TableName]; info != nil && info.Kind == view && t.Public {
			snapshot.Views = append(snapshot.Views, c.view(t, info))
		} else if table := c.table(t); table != nil {
			snapshot.Tables = append(snapshot.Tables, table)
		}
	}
	if len(c.problems) > 0 {
		return nil, inOrder(c.problems)
	}
	if p.About != nil {
		if snapshot.People = p.About.People; len(snapshot.Kinds()) > 1 {
			return nil, []error{fault.PolicyInvalid(p.About.pos, "about says how many people there are, and units are of several kinds: "+
				strings.Join(snapshot.Kinds(), "; "), "leave it out")}
		}
	}
	for _, t := range snapshot.Tables {
		t.checked, t.among = t, snapshot.Tables
	}
	snapshot.Warnings = c.warnings
	return snapshot, nil
}

type checker struct {
	policy   *Policy
	schema   *Schema
	policies map[TableName]*TablePolicy
	infos    map[TableName]*TableInfo
	pinned   map[TableName]*TableInfo // what is kept of the schema
	domains  map[ColumnRef][]Key      // of the schema
	byOID    map[uint32][]*TablePolicy
	problems []error
	warnings []Warning
	warned   map[Warning]bool
	keyed    map[*TablePolicy]keyedKind
	unknown  int                 // names of tables that are not there
	named    map[string][]string // kinds by the columns that are called like ids of theirs; nil: not gathered
}

func newChecker(p *Policy, s, pinned *Schema) *checker {
	c := &checker{policy: p, schema: s, policies: byName(p.Tables), infos: byName(s.Tables), pinned: byName(pinned.Tables),
		domains: map[ColumnRef][]Key{}, byOID: map[uint32][]*TablePolicy{}, warned: map[Warning]bool{}, keyed: map[*TablePolicy]keyedKind{}}
	for _, d := range slices.Backward(s.Domains) {
		c.domains[d.From] = d.Keys
	}
	for _, t := range p.Tables {
		if info, ok := c.infos[t.TableName]; ok {
			c.byOID[info.OID] = append(c.byOID[info.OID], t)
		}
	}
	return c
}

func (c *checker) problem(pos fault.Position, hint, format string, args ...any) {
	c.problems = append(c.problems, fault.PolicyInvalid(pos, fmt.Sprintf(format, args...), hint))
}

// table checks one table's policy; nil when that found something wrong with the table as a whole.
func (c *checker) table(t *TablePolicy) *Table {
	info, ok := c.infos[t.TableName]
	if !ok {
		c.problems = append(c.problems, unknownTable(c, t.pos, t.TableName, c.schema.Tables))
		return nil
	}
	switch {
	case info.Kind != PlainTable && info.Kind != PartitionedTable:
		hint := "write the policy for the tables it reads"
		if info.Kind == view {
			hint += "; a view of public tables alone may be public: true"
		}
		c.problem(t.pos, hint, "%s is a %s; policies are for tables", t.TableName, info.Kind)
		return nil
	case info.Inherited:
		c.problem(t.pos, "use partitions, whose keys hold for all of them", "other tables inherit from %s, so its keys prove nothing",
			t.TableName)
		return nil
	case info.Foreign:
		c.problem(t.pos, "detach them, or leave the table out", "partitions of %s are foreign tables: nothing proves what other servers "+
			"answer", t.TableName)
		return nil
	case info.RowSecurity && !t.RowSecurity:
		c.problem(t.pos, "write row_security: per-row if whether a row is visible depends on that row alone, or ALTER TABLE ... DISABLE "+
			"ROW LEVEL SECURITY",
			"%s has row level security: which rows of one unit are seen could depend on rows of others", t.TableName)
		return nil
	case !info.Readable && !t.RequirePrepared: // then no statement reads it
		role := identifier(cmp.Or(c.schema.role, "noisegate_reader"))
		c.problem(t.pos, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT ON %s.%s TO %s", identifier(t.Schema), role,
			identifier(t.Schema), identifier(t.Name), role), "the gateway's role may not read table %s", t.TableName)
		return nil
	}
	c.partition(t, info)
	table := &Table{Schema: t.Schema, Name: t.Name, OID: info.OID, Public: t.Public, MaxRows: t.MaxRows, MaxGroups: t.MaxGroups,
		MaxValues: t.MaxValues, MaxTotal: t.MaxTotal, Lines: t.lines,
		Partitioned: info.Kind == PartitionedTable, Indexes: info.Indexes, RowSecurity: t.RowSecurity}
	if t.Public {
		table.MostRows = info.MostRows
	}
	if t.Unit != nil {
		table.Unit = c.unit(t, info)
		table.Unit.Of = c.kindOf(t)
	}
	if pinned, ok := c.pinned[t.TableName]; ok && (t.Public || table.Unit.Kind != NoUnit) {
		c.references(t, pinned, table)
	}
	if table.Unit.Kind == RowUnit {
		table.MaxRows, table.MaxGroups, table.MaxValues, table.MaxTotal = 1, 1, 0, 0
	} else if table.MaxTotal > 0 { // no group has more of a unit's rows than all together, and each of its groups has one
		table.MaxRows, table.MaxGroups = atMost(table.MaxRows, table.MaxTotal), atMost(table.MaxGroups, table.MaxTotal)
	}
	c.columns(t, info, table)
	c.adviseTable(t, info)
	defer c.prepare(t, table)
	for _, name := range info.Unique {
		table.Unique = append(table.Unique, []string{name})
	}
	table.Unique = append(table.Unique, info.Keys...)
	return table
}

// view checks that a public view depends on public tables and views of the policy alone. That its query is one that can be asked is not
// known here.
func (c *checker) view(t *TablePolicy, info *TableInfo) *View {
	table := &Table{Schema: t.Schema, Name: t.Name, OID: info.OID, Public: true}
	v := &View{Table: table, Pos: t.pos}
	if len(t.Columns)+len(t.Domains) > 0 || t.RowSecurity {
		c.problem(t.pos, "write them of the tables that it reads", "a view has no columns or row_security in a policy: %s", t.TableName)
	}
	if info.View == nil {
		c.problem(t.pos, "inspect the database anew", "the query of view %s is not known", t.TableName)
		return v
	}
	for _, name := range info.View.Reads {
		if of, ok := c.policies[name]; !ok || !of.Public {
			c.problem(t.pos, fmt.Sprintf("leave %s out, or ask with the tables that it reads", t.TableName),
				"view %s reads %s, which is no public table of this policy", t.TableName, name)
		}
	}
	for _, what := range info.View.Uses {
		c.problem(t.pos, "write what it computes in its own query", "view %s uses the %s, which may read anything", t.TableName, what)
	}
	for _, live := range info.Columns {
		table.Columns = append(table.Columns, &Column{Name: live.Name, AttNum: live.AttNum, TypeOID: live.TypeOID, TypMod: live.TypMod,
			Type: live.Type, Enum: live.Enum, Collation: live.Collation, Exposed: live.Type != ""})
	}
	v.Definition = info.View.Definition
	return v
}

// prepare checks that a table can be prepared, once all of it is known.
func (c *checker) prepare(t *TablePolicy, table *Table) {
	if t.Prepare == nil || table.Unit.Kind == NoUnit {
		return
	}
	table.Prepare, table.PreparedOnly = t.Prepare.MaxRows, t.RequirePrepared
	if t.Prepare.Append != nil {
		table.Append = *t.Prepare.Append
	}
	if why := table.Preparable(); why != "" {
		c.problem(t.pos, "leave out prepare", "table %s is not prepared: %s", t.TableName, why)
	}
	table.Ranks = t.Prepare.Ranks
	for _, set := range table.Ranks {
		if why := table.rankable(set); why != "" {
			c.problem(t.pos, "leave the set out of ranks", "the copy of %s has no ranks by (%s): %s", t.TableName, strings.Join(set, ", "), why)
		}
	}
	if len(table.Ranks) > 0 && t.Prepare.Append != nil {
		c.problem(t.pos, "leave out ranks, or write refresh: full", "a copy of %s that rows are appended to has no ranks", t.TableName)
	}
	if len(table.Ranks) > 0 && table.MaxGroups == 0 && table.MaxTotal == 0 {
		c.problem(t.pos, "write max_groups beside max_rows", "the copy of %s has ranks, and no max_groups says how many groups of a unit count",
			t.TableName)
	}
	c.advisePrepare(t, table)
}

// atMost is a bound that another one bounds too; 0: there was none.
func atMost(bound, other int64) int64 {
	if bound == 0 {
		return other
	}
	return min(bound, other)
}

// partition refuses two accounts of whose the same rows are: they are public in both tables or in neither, and one person's in both by the
// same column.
func (c *checker) partition(t *TablePolicy, info *TableInfo) {
	var wholes []*TablePolicy
	for _, oid := range info.PartOf {
		wholes = append(wholes, c.byOID[oid]...)
	}
	for _, whole := range wholes {
		hint := fmt.Sprintf("leave out %s, or give it what %s has", t.TableName, whole.TableName)
		if whole.Public != t.Public || !whole.Unit.same(t.Unit) {
			c.problem(t.pos, hint, "%s is a partition of %s, so both are public, or both have the same unit", t.TableName, whole.TableName)
		}
		if whole.RequirePrepared != t.RequirePrepared { // else rows that are read in a copy only would be read under the other's name
			c.problem(t.pos, hint, "%s is a partition of %s, so both have require_prepared, or neither", t.TableName, whole.TableName)
		}
	}
}

// mostSuggested bounds the unknown tables for which a check suggests a name, since each suggestion reads all names.
const mostSuggested = 20

// unknownTable refuses a name that none of some tables has.
func unknownTable[T interface{ table() TableName }](c *checker, pos fault.Position, name TableName, known []T) *fault.Error {
	if c.unknown++; c.unknown > mostSuggested {
		return fault.PolicyUnknown(pos, "table", name.String(), nil).WithHint(
			fmt.Sprintf("more than %d tables are not there: is this the database that the policy is for?", mostSuggested))
	}
	var names []string
	for _, t := range known {
		names = append(names, t.table().String())
	}
	return fault.PolicyUnknown(pos, "table", name.String(), names)
}

func (t *TableInfo) columnNames() []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// unit checks that rows reach their privacy unit in the way that the policy says.
func (c *checker) unit(t *TablePolicy, info *TableInfo) Unit {
	u := t.Unit
	column, ok := info.Column(u.Column)
	if !ok {
		c.problems = append(c.problems, fault.PolicyUnknown(u.pos, "column", u.Column, info.columnNames()))
		return Unit{}
	}
	if column.Type == "" || column.Type == Float4 || column.Type == Float8 {
		c.problem(u.pos, "", "column %s.%s has the type %s, which cannot identify a privacy unit", t.TableName, column.Name, column.TypeName)
		return Unit{}
	}
	switch u.Kind {
	case RowUnit:
		return c.rowUnit(t, info, column)
	case ColumnUnit:
		return Unit{Kind: ColumnUnit, Column: column.Name}
	case PathUnit:
		return c.pathUnit(t, info, column)
	case NoUnit:
		fallthrough
	default:
		c.problem(u.pos, "", "table %s has no privacy unit", t.TableName)
		return Unit{}
	}
}

// rowUnit wants the proof that one row is one unit: a unique key that no row lacks.
func (c *checker) rowUnit(t *TablePolicy, info *TableInfo, column *ColumnInfo) Unit {
	switch {
	case !slices.Contains(info.Unique, column.Name):
		c.problem(t.Unit.pos, fmt.Sprintf("add a unique key, or write unit: {column: %s} and max_rows", column.Name),
			"the row is no privacy unit of table %s: column %s has no unique key of its own", t.TableName, column.Name)
	case !column.NotNull:
		c.problem(t.Unit.pos, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", t.TableName, column.Name),
			"the row is no privacy unit of table %s: column %s may be null", t.TableName, column.Name)
	}
	return Unit{Kind: RowUnit, Column: column.Name}
}

// maxPath is how many foreign keys a path may follow.
const maxPath = 4

// pathUnit wants a foreign key to the next table of the path, and follows the path to a table that holds the unit. Each
// row then has at most one unit, because what a foreign key refers to is unique; rows that lead nowhere are dropped.
func (c *checker) pathUnit(t *TablePolicy, info *TableInfo, column *ColumnInfo) Unit {
	next := t
	for range maxPath {
		to, ok := c.policies[next.Unit.To]
		if !ok {
			c.problems = append(c.problems, unknownTable(c, next.Unit.pos, next.Unit.To, c.policy.Tables).
				WithHint("a path leads through tables of this policy"))
			return Unit{}
		}
		if to.Unit == nil {
			c.problem(t.Unit.pos, "", "the path of table %s leads to %s, which has no privacy unit", t.TableName, to.TableName)
			return Unit{}
		}
		if to.Unit.Kind != PathUnit {
			return c.foreignKey(t, info, column)
		}
		next = to
	}
	c.problem(t.Unit.pos, "", "the path of table %s does not reach a privacy unit within %d steps", t.TableName, maxPath)
	return Unit{}
}

func (c *checker) foreignKey(t *TablePolicy, info *TableInfo, column *ColumnInfo) Unit {
	for _, key := range info.ForeignKeys {
		target, ok := c.infos[key.To]
		if key.Column != column.Name || key.To != t.Unit.To || !ok || !slices.Contains(target.Unique, key.ToColumn) {
			continue
		}
		if to, ok := target.Column(key.ToColumn); ok && (to.Type == column.Type || to.Type.IsInteger() && column.Type.IsInteger()) {
			return Unit{Kind: PathUnit, Column: column.Name, ToSchema: key.To.Schema, ToTable: key.To.Name, ToColumn: key.ToColumn}
		}
	}
	c.problem(t.Unit.pos, fmt.Sprintf("add FOREIGN KEY (%s) REFERENCES %s", column.Name, t.Unit.To),
		"column %s of table %s has no foreign key to %s", column.Name, t.TableName, t.Unit.To)
	return Unit{}
}

// columns pins every column of the table. Those that the policy does not name are exposed without bounds and keys.
func (c *checker) columns(t *TablePolicy, info *TableInfo, table *Table) {
	policies := map[string]*ColumnPolicy{}
	for _, p := range t.Columns {
		if _, ok := info.Column(p.Name); !ok {
			c.problems = append(c.problems, fault.PolicyUnknown(p.pos, "column", p.Name, info.columnNames()))
		}
		policies[p.Name] = p
	}
	for _, live := range info.Columns {
		column := &Column{Name: live.Name, AttNum: live.AttNum, TypeOID: live.TypeOID, TypMod: live.TypMod, Type: live.Type,
			Enum: live.Enum, NotNull: live.NotNull, Collation: live.Collation, Exposed: live.Type != ""}
		if t.Public {
			column.MostEqual = live.MostEqual
		} else if c.identifies(t, info, live, table.Unit.Of) {
			column.Identifies = table.Unit.Of
		}
		if p := policies[live.Name]; p != nil {
			if table.Unit.Kind != PathUnit && table.Unit.Column == p.Name && (p.PrivateKeys || p.Domain != nil) {
				c.problem(p.pos, "leave out domain and keys", "column %s identifies the privacy unit, so its values cannot be group keys",
					fault.Quote(p.Name))
			}
			c.column(t, p, live, column)
		}
		if t.Public && column.Exposed && column.Domain == nil && loadable(live) {
			column.Domain = c.loadedDomain(t, live, column)
		}
		table.Columns = append(table.Columns, column)
	}
	for _, p := range t.Domains {
		c.together(p, info)
		table.Together = append(table.Together, Together{p.Columns, p.Table, p.Values})
	}
}

// together checks that columns that have their keys together have the types of those that hold these: conditions on the ones are asked of
// the others.
func (c *checker) together(p TogetherPolicy, info *TableInfo) {
	source, ok := c.infos[p.Table]
	if !ok {
		return // reported for the domain of each column
	}
	for i, name := range p.Columns {
		own, ok1 := info.Column(name)
		other, ok2 := source.Column(p.Values[i])
		if ok1 && ok2 && (own.Type != other.Type || own.Enum != other.Enum || own.Scale != other.Scale || own.Collation != other.Collation) {
			c.problem(p.pos, "give each column a separate domain",
				"%s has the type %s, and %s.%s the type %s: their values are not compared in the same way",
				name, own.TypeName, p.Table, p.Values[i], other.TypeName)
		}
	}
}

func (c *checker) column(t *TablePolicy, p *ColumnPolicy, live *ColumnInfo, column *Column) {
	if p.MaxLength > 0 && live.Type != Text && live.Type != Char {
		c.problem(p.pos, "leave out max_length", "column %s.%s has the type %s, whose values have no length that could be limited",
			t.TableName, p.Name, live.TypeName)
	}
	column.MaxLength = p.MaxLength
	if p.Hidden {
		column.Exposed = false
		return
	}
	if live.Type == "" {
		c.problem(p.pos, "write {expose: false}, or leave the column out", "column %s.%s has the type %s, which is not supported",
			t.TableName, p.Name, live.TypeName)
		return
	}
	if p.Bounds != nil {
		column.Bounds = c.bounds(p.Bounds, p, live)
	}
	if (p.PrivateKeys || p.Domain != nil) && !groupable(live) {
		c.problem(p.pos, "group by a column of whole numbers, text, dates, truth values or numeric(p, s)",
			"values of type %s cannot be group keys: equal ones may be written differently", live.TypeName)
		return
	}
	column.PrivateKeys = p.PrivateKeys
	if p.Domain != nil {
		column.Domain, column.DomainLine = c.domain(p, live), p.Domain.pos.Line
		c.shortKeys(p, column)
	}
}

// loadedDomain are the values of a public table's column, as they were read when the schema was: keys that are public anyway.
func (c *checker) loadedDomain(t *TablePolicy, live *ColumnInfo, column *Column) []Key {
	keys, ok := c.domains[ColumnRef{Table: t.TableName, Column: live.Name}]
	if !ok || len(keys) > maxLoaded {
		return nil
	}
	keys = slices.Clone(keys)
	if limit := int(column.LongestText()); live.Type == Text || live.Type == Char { // longer ones are NULL
		for i, k := range keys {
			if len(k.Text) > limit {
				keys[i] = Key{Null: true}
			}
		}
	}
	sortKeys(keys, live)
	return slices.Compact(keys)
}

// shortKeys refuses public keys that no row can have because they are too long to count.
func (c *checker) shortKeys(p *ColumnPolicy, column *Column) {
	if column.Type != Text && column.Type != Char {
		return
	}
	limit := int(column.LongestText())
	if slices.ContainsFunc(column.Domain, func(k Key) bool { return len(k.Text) > limit }) {
		c.problem(p.Domain.pos, fmt.Sprintf("add max_length to column %s, up to %d bytes", p.Name, maxMaxLength),
			"the domain of column %s holds a key of more than %d bytes, which counts as NULL", p.Name, limit)
	}
}

// groupable reports whether equal values of a column always have one text.
func groupable(c *ColumnInfo) bool {
	switch c.Type {
	case Int2, Int4, Int8, Text, Char, Bool, Date, Timestamp, Timestamptz, UUID, Enum:
		return true
	case Numeric:
		return c.Scale >= 0
	case Float4, Float8:
		return false
	default:
		return false
	}
}
