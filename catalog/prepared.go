package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// A prepared table is a copy of a table in which each unit has at most so many rows, which PostgreSQL's constraints hold; see
// docs/prepared.md. To analysts it is the table: the unit's column has numbers in place of ids, which a query can count and nothing
// else.

// PreparePolicy asks for a prepared copy of a table.
type PreparePolicy struct {
	MaxRows int64      // rows of one unit that it keeps
	Ranks   [][]string `json:",omitempty"` // sets of columns by which it numbers each unit's groups, and the rows in them
	Append  *Append    `json:",omitempty"` // nil: each run makes the copy anew
}

// Append says how a prepared copy takes up rows that its table got since: without reading the others again.
type Append struct {
	Column string        // when a row was inserted, a time with its zone, NULL on no row
	Settle time.Duration // rows are taken up that long after this time: no transaction that inserts any is open for longer
}

// PreparedSchema is the schema of a protected database that prepared tables are in, and what is kept of them.
const PreparedSchema = "noisegate_prepared"

// RankColumn is the column of a prepared table that numbers the rows of each unit, from 1.
const RankColumn = "noisegate_rn"

// HashColumn is the last column of a prepared table that rows are appended to: the hash by which a unit's rows are ranked. It is exposed to
// nobody.
const HashColumn = "noisegate_hash"

// Copy names the table that a prepared one copies, and what bounds the copy.
type Copy struct {
	Of      TableName // the table that it is a copy of
	MaxRows int64     // no unit has more rows: the rank is from 1 to MaxRows, and unique among the rows of a unit
	Version int64     // of a copy that rows are appended to, the number of the version that is meant; 0: it has no other than its own
	Ranks   []RankSet
}

// RankSet is a set of columns of a prepared table by which each unit's rows are grouped, and the columns that number these groups, from 1,
// and the rows of one unit in one of them, from 1.
type RankSet struct {
	Keys       []string // sorted
	Group, Row string
}

// Own are how many columns a copy has that its table has not, which come first: the unit's number, the rank, and those of sets.
func (c *Copy) Own() int { return 2 + 2*len(c.Ranks) }

// maxRankSets bounds the sets of one copy: each takes a sort of it, and two columns.
const maxRankSets = 4

// rankable says why the copy of a table cannot have a set of ranks; "" where it can. Equal values of a key are identical.
func (t *Table) rankable(set []string) string {
	for i, name := range set {
		c, known := t.Column(name)
		switch {
		case !known || !c.Exposed:
			return "the policy exposes no column " + name
		case c.Identifies != "" || name == t.Unit.Column:
			return "column " + name + " tells units, each of which has one group by it"
		case !c.Type.IsInteger() && c.Type != Bool && c.Type != Date && c.Type != UUID && c.Type != Text:
			return "column " + name + " is no whole number, truth value, date, uuid or text"
		case slices.Contains(set[:i], name):
			return "column " + name + " is there twice"
		}
	}
	return ""
}

// Version is one complete copy of a table, as the database that holds it says.
type Version struct {
	Table  TableName // that it is a copy of
	Number int64     // from 1, one more with each
	Built  int64     // the version that it was made of by appending, in whose relation it is; 0: it was made anew
	OID    uint32
	Digest [32]byte  // of the text that made it
	Narrow bool      // numbers of units are integers in it; else bigints
	AsOf   time.Time // of the snapshot that it was made from; where rows are appended, of the time up to which it has them
}

// Base is the number of the version in whose relation the version is.
func (v Version) Base() int64 {
	if v.Built > 0 {
		return v.Built
	}
	return v.Number
}

// Label names the state of the data that a version holds; of is the steward's name for it, "" for none.
func (v Version) Label(of string) string {
	label := fmt.Sprintf("%s prepared %d as of %s", v.Table, v.Number, v.AsOf.UTC().Format(time.RFC3339))
	if of != "" {
		label = of + ", " + label
	}
	return label
}

// ownName is a name of a column that copies have and their tables have not.
var ownName = regexp.MustCompile(`^noisegate_(rn|hash|(group|row)_[0-9]+)$`)

// plainName is a name that needs no more than a few letters to be told apart.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// copyName gives the name of a table's copy: the table's name, where that is short, and a hash of dataset and table, so that copies of
// other datasets have other names.
func copyName(dataset string, of TableName, version int64) string {
	sum := sha256.Sum256([]byte(dataset + "\x00" + of.Schema + "\x00" + of.Name))
	name := "table"
	if plainName.MatchString(of.Name) {
		name = of.Name
	}
	return fmt.Sprintf("%s_%s_%d", name, hex.EncodeToString(sum[:4]), version)
}

// UnitsOf is the table that holds a number for each unit of the kind that a table has, and the type that their ids have in it; "" for a
// table that is not [Table.Preparable].
func (s *Snapshot) UnitsOf(t *Table) (name string, id Type) {
	if t.Preparable() != "" {
		return "", ""
	}
	unit, _ := t.Column(t.Unit.Column)
	if id = unit.Type; id.IsInteger() {
		id = Int8
	}
	sum := sha256.Sum256([]byte(s.Dataset + "\x00" + t.Unit.Of + "\x00" + string(id)))
	return "units_" + hex.EncodeToString(sum[:8]), id
}

// longestID bounds the bytes of an id that is a text. It is in an index, whose entries must fit into a third of a page.
const longestID = 2600

// Preparable says why a table cannot be prepared; "" where it can.
func (t *Table) Preparable() string {
	unit, _ := t.Column(t.Unit.Column)
	taken := slices.ContainsFunc(t.Columns, func(c *Column) bool { return ownName.MatchString(c.Name) })
	appended, _ := t.Column(t.Append.Column)
	switch {
	case t.Unit.Kind != ColumnUnit || unit == nil:
		return "only a table that holds the unit's id in a column, unit: {column: ...}, can be prepared"
	case !unit.Type.IsInteger() && unit.Type != UUID && unit.Type != Text:
		return "only a table whose unit is a whole number, a uuid or a text can be prepared"
	case unit.Type == Text && unit.LongestText() > longestID:
		return fmt.Sprintf("ids of units have at most %d bytes in a prepared table: give the column that holds them a max_length", longestID)
	case t.RowSecurity:
		return "a table with row_security cannot be prepared"
	case taken:
		return "a table with a column of a name that copies have for themselves, such as " + RankColumn + ", cannot be prepared"
	case t.Append.Column != "" && (appended == nil || appended.Type != Timestamptz || !appended.NotNull):
		return "rows are appended by a column of the table that is a timestamp with time zone and NOT NULL"
	case t.RowKey() == nil:
		return "a table can be prepared only with a primary key of whole numbers, uuids or texts, " +
			"by which some of a unit's rows are chosen"
	default:
		return ""
	}
}

// RowKey are the columns of a key that every row has, of types in which equal values are identical: by them a unit's rows are chosen; nil:
// there is none. Of several it is the shortest, then the first.
func (t *Table) RowKey() []string {
	var best []string
	for _, key := range t.Unique {
		fits := !slices.ContainsFunc(key, func(name string) bool {
			c, ok := t.Column(name)
			return !ok || !c.NotNull || !c.Type.IsInteger() && c.Type != UUID && c.Type != Text
		})
		if fits && (best == nil || len(key) < len(best)) {
			best = key
		}
	}
	return best
}

// CopyOf is a version of a table as a table that queries can read in its place. Its columns are the unit's, which holds a number, the rank,
// those that are exposed and tell no unit, in the order of the table (see [Table.Copied]), and of one that rows are appended to the hash.
func (s *Snapshot) CopyOf(t *Table, v Version) *Table {
	const int8OID, int4OID = 20, 23
	c := *t
	c.Schema, c.Name, c.OID = PreparedSchema, copyName(s.Dataset, TableName{t.Schema, t.Name}, v.Base()), v.OID
	c.Copy, c.Ranks = &Copy{Of: TableName{t.Schema, t.Name}, MaxRows: t.Prepare}, nil
	c.Partitioned, c.RowSecurity, c.Indexes, c.checked, c.mayLead, c.Prepare = false, false, nil, nil, nil, 0
	c.Append = Append{}
	c.Columns = []*Column{
		{Name: t.Unit.Column, AttNum: 1, TypeOID: int8OID, TypMod: -1, Type: Int8, NotNull: true, Identifies: t.Unit.Of},
		{Name: RankColumn, AttNum: 2, TypeOID: int4OID, TypMod: -1, Type: Int4, NotNull: true},
	}
	if v.Narrow {
		c.Columns[0].TypeOID, c.Columns[0].Type = int4OID, Int4
	}
	for i, keys := range t.Ranks {
		set := RankSet{Keys: keys, Group: fmt.Sprintf("noisegate_group_%d", i+1), Row: fmt.Sprintf("noisegate_row_%d", i+1)}
		c.Copy.Ranks = append(c.Copy.Ranks, set)
		for _, name := range []string{set.Group, set.Row} {
			c.Columns = append(c.Columns, &Column{Name: name, AttNum: int16(len(c.Columns) + 1), TypeOID: int4OID, TypMod: -1, Type: Int4,
				NotNull: true})
		}
	}
	for _, of := range t.Columns {
		if !of.Exposed || of.Identifies != "" || of.Name == t.Unit.Column {
			continue
		}
		column := *of
		column.AttNum = int16(len(c.Columns) + 1)
		column.NotNull = of.NotNull && !of.cutInCopy()
		c.Columns = append(c.Columns, &column)
	}
	if t.Append.Column != "" {
		c.Copy.Version = v.Number
		c.Columns = append(c.Columns, &Column{Name: HashColumn, AttNum: int16(len(c.Columns) + 1), TypeOID: int8OID, TypMod: -1, Type: Int8,
			NotNull: true})
	}
	key := []string{RankColumn, t.Unit.Column}
	slices.Sort(key)
	c.Unique = [][]string{key}
	return &c
}

// Copied are the columns of a prepared copy that are those of its table.
func (t *Table) Copied() []*Column {
	return slices.DeleteFunc(slices.Clone(t.Columns[t.Copy.Own():]), func(c *Column) bool { return c.Name == HashColumn })
}

// cutInCopy reports whether a copy has NULL in place of values that are too long to count.
func (c *Column) cutInCopy() bool { return c.Type == Text }

// WithCopy is the snapshot with a copy in place of its table, and with no other table that has units: numbers of units and their ids
// tell the same people by different names.
func (s *Snapshot) WithCopy(c *Table, v Version) *Snapshot {
	with := *s
	with.Tables = []*Table{c}
	for _, t := range s.Tables {
		if t.Public {
			with.Tables = append(with.Tables, t)
		}
	}
	with.DataVersion = v.Label(s.DataVersion)
	return &with
}

// Named finds a table by the name that analysts have for it. An empty schema means the dataset's default schema ("public").
func (s *Snapshot) Named(schema, name string) (*Table, bool) {
	if schema == "" {
		schema = DefaultSchema
	}
	for _, t := range s.Tables {
		if of := t.Copy; of != nil {
			if of.Of == (TableName{schema, name}) {
				return t, true
			}
		} else if t.Schema == schema && t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// Prepared are the tables that the policy asks copies of: the one of a name, as table or schema.table, or all where the name is "".
func (s *Snapshot) Prepared(name string) (all []*Table) {
	for _, t := range s.Tables {
		of := TableName{t.Schema, t.Name}
		if t.Prepare > 0 && (name == "" || of.Is(name)) {
			all = append(all, t)
		}
	}
	return all
}

// Is reports whether a text names the table, as table, in the default schema, or as schema.table.
func (n TableName) Is(text string) bool { return text == n.String() || text == n.Schema+"."+n.Name }

// Prepares reports whether the policy asks for a copy of any table.
func (s *Snapshot) Prepares() bool {
	return slices.ContainsFunc(s.Tables, func(t *Table) bool { return t.Prepare > 0 })
}
