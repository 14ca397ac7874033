package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// Schema is what was read of a protected database's tables: metadata, and the values of public tables that are domains.
// It holds nothing of a protected row.
type Schema struct {
	Tables  []*TableInfo
	Domains []DomainValues `json:",omitempty"`

	role       string              // that looks; "" for who is not known
	parents    map[uint32][]uint32 // for each relation, those that it is a partition or an heir of, by OID
	references []reference         // all that foreign keys of the database say; nil: what was kept of them is in each table's Leads
}

// reference is a foreign key, of any columns, valid or not: rows of one relation are about rows of another. Partitions stand for the whole
// tables that they are parts of.
type reference struct{ from, to uint32 }

// TableInfo is a relation of the live schema.
type TableInfo struct {
	TableName
	OID         uint32
	Kind        RelationKind
	Inherited   bool     `json:",omitempty"` // other tables, not partitions, inherit from it: their rows show in it
	RowSecurity bool     `json:",omitempty"` // policies of the database decide which of its rows are seen
	Foreign     bool     `json:",omitempty"` // partitions of it are foreign tables
	PartOf      []uint32 `json:",omitempty"` // the partitioned tables that show its rows too, by OID
	Readable    bool     // by the role that looked
	MostRows    int64    `json:",omitempty"` // rows of a public table, approved: see [approved]; 0: not counted
	facts       *Facts   // for people; not encoded
	root        uint32   // the topmost partitioned table that it is a part of; itself where there is none
	Columns     []*ColumnInfo
	Unique      []string     `json:",omitempty"` // columns whose values are unique by themselves
	Keys        [][]string   `json:",omitempty"` // sets of two columns and more that are unique together, sorted
	ForeignKeys []ForeignKey `json:",omitempty"` // of one column, which hold for all rows
	// Leads are tables with a privacy unit to which foreign keys lead in other ways: of several columns, not validated, or through tables
	// without a unit.
	Leads []TableName `json:",omitempty"`
	// Indexes are the columns of B-trees over all rows: those that order it, in their order, then those that it also holds (INCLUDE). They
	// decide how fast a statement is, never what it gives.
	Indexes [][]string `json:",omitempty"`
	View    *ViewInfo  `json:",omitempty"` // of a view that the policy names
}

// ViewInfo is a view's query: what it was when the policy was applied is what is asked.
type ViewInfo struct {
	Definition string      // as PostgreSQL prints it, with the schema of each table
	Reads      []TableName `json:",omitempty"` // relations that it depends on
	Uses       []string    `json:",omitempty"` // all else that it depends on and that is not PostgreSQL's own
}

// RelationKind is PostgreSQL's relkind, in words.
type RelationKind string

// The kinds of relation that a policy can be for; all others are refused by their name.
const (
	PlainTable       RelationKind = "table"
	PartitionedTable RelationKind = "partitioned table"
	view             RelationKind = "view" // a public one
)

// ColumnInfo is an attribute of the live schema.
type ColumnInfo struct {
	Name       string
	AttNum     int16
	TypeOID    uint32
	TypMod     int32
	TypeName   string   // PostgreSQL's own rendering
	Type       Type     // "": not a supported type
	MaxLength  int      `json:",omitempty"` // characters of varchar(n) and character(n); 0: no limit
	Scale      int      // digits after the point of numeric(p, s); -1: not fixed, or not numeric
	Enum       string   `json:",omitempty"` // quoted, with schema
	EnumValues []string `json:",omitempty"`
	NotNull    bool
	MostEqual  int64 `json:",omitempty"` // rows of a public table with one value, approved; 0: not counted
	// Collation is the OID of the collation that compares the texts; 0: the default of the database, or none.
	Collation uint32 `json:",omitempty"`
}

// ForeignKey leads from a column to a unique column.
type ForeignKey struct {
	Column   string
	To       TableName
	ToColumn string
}

// DomainValues are the distinct values of a public table's column, NULL included.
type DomainValues struct {
	From ColumnRef
	Keys []Key
}

// Table finds a relation.
func (s *Schema) Table(name TableName) (*TableInfo, bool) {
	i := slices.IndexFunc(s.Tables, func(t *TableInfo) bool { return t.TableName == name })
	if i < 0 {
		return nil, false
	}
	return s.Tables[i], true
}

// Column finds an attribute.
func (t *TableInfo) Column(name string) (*ColumnInfo, bool) {
	i := slices.IndexFunc(t.Columns, func(c *ColumnInfo) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return t.Columns[i], true
}

// For leaves out what the policy does not name: the rest is kept with the policy, as what it was checked against.
func (s *Schema) For(p *Policy) *Schema {
	pinned := &Schema{}
	infos, policies := byName(s.Tables), byName(p.Tables)
	leads := s.leading(p.Tables, infos, policies)
	for _, t := range p.Tables {
		if info, ok := infos[t.TableName]; ok {
			kept := *info
			if s.references != nil {
				kept.Leads = leads(info)
			}
			pinned.Tables = append(pinned.Tables, &kept)
		}
	}
	sources := map[ColumnRef]bool{}
	for _, ref := range p.domainSources() {
		sources[ref] = true
	}
	for _, d := range s.Domains {
		if t, ok := policies[d.From.Table]; sources[d.From] || ok && t.Public && len(d.Keys) <= maxLoaded {
			pinned.Domains = append(pinned.Domains, d)
		}
	}
	return pinned
}

// unread are tables of a live schema, those that no statement reads taken for readable: questions are answered from their prepared copies.
func (p *Policy) unread(live []*TableInfo) []*TableInfo {
	all, policies := slices.Clone(live), byName(p.Tables)
	for i, t := range all {
		if of, ok := policies[t.TableName]; ok && of.RequirePrepared {
			readable := *t
			readable.Readable = true
			all[i] = &readable
		}
	}
	return all
}

// Drift says what a policy relied on in this schema and no longer finds in the live one; nil when nothing. Columns, keys and
// tables that came new are no drift: no policy speaks of them.
func (s *Schema) Drift(live *Schema) error {
	var changes []error
	now, wholes := byName(live.Tables), map[uint32]*TableInfo{}
	for _, t := range s.Tables {
		wholes[t.OID] = t
	}
	for _, was := range s.Tables {
		is, ok := now[was.TableName]
		switch {
		case !ok:
			changes = append(changes, fmt.Errorf("table %s is gone", was.TableName))
		case is.OID != was.OID || is.Kind != was.Kind:
			changes = append(changes, fmt.Errorf("table %s was replaced by another relation", was.TableName))
		case is.Inherited && !was.Inherited:
			changes = append(changes, fmt.Errorf("table %s has got inheriting tables", was.TableName))
		case !reflect.DeepEqual(is.View, was.View):
			changes = append(changes, fmt.Errorf("view %s has another query now", was.TableName))
		case !is.Readable && was.View == nil: // nobody reads a view itself
			changes = append(changes, fmt.Errorf("table %s can no longer be read", was.TableName))
		default:
			changes = append(changes, was.drift(is)...)
			for _, oid := range is.PartOf {
				if whole, ok := wholes[oid]; ok && !slices.Contains(was.PartOf, oid) {
					changes = append(changes, fmt.Errorf("table %s has become a partition of table %s", was.TableName, whole.TableName))
				}
			}
		}
	}
	return errors.Join(changes...)
}

func (t *TableInfo) drift(live *TableInfo) (changes []error) {
	for _, was := range t.Columns {
		is, ok := live.Column(was.Name)
		switch {
		case !ok || is.AttNum != was.AttNum:
			changes = append(changes, fmt.Errorf("column %s.%s is gone or was replaced", t.TableName, was.Name))
		case is.TypeOID != was.TypeOID || is.TypMod != was.TypMod || !slices.Equal(is.EnumValues, was.EnumValues) ||
			is.Type != was.Type && was.Type != "": // a type that a later version supports is no change
			changes = append(changes, fmt.Errorf("column %s.%s has another type", t.TableName, was.Name))
		case was.NotNull && !is.NotNull:
			changes = append(changes, fmt.Errorf("column %s.%s may be null now", t.TableName, was.Name))
		}
	}
	for _, key := range t.Unique {
		if !slices.Contains(live.Unique, key) {
			changes = append(changes, fmt.Errorf("column %s.%s is no longer unique", t.TableName, key))
		}
	}
	for _, key := range t.Keys {
		if !slices.ContainsFunc(live.Keys, func(k []string) bool { return slices.Equal(k, key) }) {
			changes = append(changes, fmt.Errorf("columns %s of table %s are no longer unique", strings.Join(key, ", "), t.TableName))
		}
	}
	for _, key := range t.ForeignKeys {
		if !slices.Contains(live.ForeignKeys, key) {
			changes = append(changes, fmt.Errorf("the foreign key of %s.%s is gone", t.TableName, key.Column))
		}
	}
	return changes
}

// encode gives the same bytes for the same schema: they are part of a snapshot's digest.
func (s *Schema) encode() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return text
}

// decodeSchema reads what encode wrote.
func decodeSchema(text []byte) (*Schema, error) {
	s := &Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fault.Internal(fmt.Errorf("catalog: the stored metadata of a policy is damaged: %w", err))
	}
	return s, nil
}

// digest identifies a policy together with what it was checked against, but for how many rows public tables had: what was answered stays an
// answer when they grow.
func digest(p *Policy, pinned *Schema) [32]byte {
	h := sha256.New()
	document := sha256.Sum256(p.canonical())
	metadata := sha256.Sum256(pinned.uncounted().encode())
	h.Write(document[:])
	h.Write(metadata[:])
	return [32]byte(h.Sum(nil))
}
