package catalog

import (
	"encoding/json"
	"slices"
	"strings"

	"noisegate.example/internal/fault"
)

// Policy is a policy file: what the steward wrote, before it is held against a schema. Numbers and keys are still text,
// because what they mean depends on a column's type.
type Policy struct {
	Document string `json:"-"` // the file's text

	Dataset string
	Tables  []*TablePolicy // sorted by schema, name
	Budgets []Budget       // in the file's order

	ShareReleases bool  `json:",omitempty"` // see [Snapshot.ShareReleases]
	MaxFailures   int64 `json:",omitempty"` // see [Snapshot.MaxFailures]
	// DataVersion is the steward's name for the state of the data. Another one is another policy: questions are asked anew.
	DataVersion string `json:",omitempty"`
	// RefreshCharges: see [Snapshot.RefreshCharges].
	RefreshCharges bool `json:",omitempty"`

	Pate *PatePolicy `json:",omitempty"`

	Timing *Timing `json:",omitempty"` // nil: the guarantee does not cover time

	Stewards *StewardsPolicy `json:",omitempty"` // nil: one steward is enough for everything

	About *AboutPolicy `json:",omitempty"` // nil: nothing is said of the people
}

// AboutPolicy has public facts about the people in the tables.
type AboutPolicy struct {
	People int64 // about so many; round

	pos fault.Position
}

// TableName names a relation of the protected database.
type TableName struct {
	Schema, Name string
}

// String renders the name as policy files write it: without the schema where that is the default one.
func (n TableName) String() string {
	if n.Schema == DefaultSchema {
		return n.Name
	}
	return n.Schema + "." + n.Name
}

func (n TableName) table() TableName { return n }

// byName finds tables where many are looked for; of two of a name, the first counts.
func byName[T interface{ table() TableName }](all []T) map[TableName]T {
	found := make(map[TableName]T, len(all))
	for _, t := range slices.Backward(all) {
		found[t.table()] = t
	}
	return found
}

// TablePolicy is the policy of one table.
type TablePolicy struct {
	TableName
	Public bool
	Unit   *UnitPolicy // nil: public
	// Declassified: of a public table, that its rows are nobody's secret although a foreign key leads from them to people.
	Declassified bool `json:",omitempty"`
	// RowSecurity: whether each row is visible depends on that row alone.
	RowSecurity bool `json:",omitempty"`
	// NotCovered are kinds of units to which foreign keys lead, and which the table's answers do not protect.
	NotCovered []string       `json:",omitempty"`
	MaxRows    int64          // 0: not given
	MaxGroups  int64          // 0: not given
	MaxValues  int64          // 0: not given
	MaxTotal   int64          `json:",omitempty"` // max_rows_total; 0: not given
	Prepare    *PreparePolicy // nil: no copy; the digest of every policy in force covers the name
	// RequirePrepared: questions are answered from its prepared copy, or not at all.
	RequirePrepared bool             `json:",omitempty"`
	Domains         []TogetherPolicy `json:",omitempty"` // each column of one has its own domain among Columns, too
	Columns         []*ColumnPolicy  // sorted by name

	pos   fault.Position
	lines Lines
}

// UnitPolicy says how rows reach their privacy unit.
type UnitPolicy struct {
	Kind   UnitKind
	Column string
	To     TableName // PathUnit only
	Of     string    `json:",omitempty"` // the kind of unit that it is; "": derived

	pos fault.Position
}

// same reports whether two tables reach their units in the same way; nil is a public table's.
func (u *UnitPolicy) same(other *UnitPolicy) bool {
	if u == nil || other == nil {
		return u == other
	}
	return u.Kind == other.Kind && u.Column == other.Column && u.To == other.To && u.Of == other.Of
}

// ColumnPolicy is the policy of one column.
type ColumnPolicy struct {
	Name        string
	Hidden      bool
	Bounds      *BoundsPolicy
	Domain      *DomainPolicy
	PrivateKeys bool
	MaxLength   int64 `json:",omitempty"` // bytes of a text that counts; 0: not given

	pos fault.Position
}

// BoundsPolicy is a column's bounds as text.
type BoundsPolicy struct {
	Lo, Hi, Step scalar // Step.Text is "" when none is given
}

// DomainPolicy is a column's public keys: a list, or the values of a public table's column at the time of applying.
type DomainPolicy struct {
	Keys []scalar  `json:",omitempty"`
	From ColumnRef `json:",omitzero"`

	pos fault.Position
}

// TogetherPolicy are columns whose public keys are the values that columns of a public table have together.
type TogetherPolicy struct {
	Columns []string
	Table   TableName
	Values  []string // columns of the table, by place

	pos fault.Position
}

// ColumnRef names a column of a table.
type ColumnRef struct {
	Table  TableName
	Column string
}

// scalar is one value of the file as it was written.
type scalar struct {
	Text string
	Null bool `json:",omitempty"`

	pos fault.Position
}

// domainSources are the columns whose values are domains, each once, sorted.
func (p *Policy) domainSources() []ColumnRef {
	var refs []ColumnRef
	for _, t := range p.Tables {
		for _, c := range t.Columns {
			if c.Domain != nil && c.Domain.From != (ColumnRef{}) {
				refs = append(refs, c.Domain.From)
			}
		}
	}
	slices.SortFunc(refs, func(a, b ColumnRef) int {
		if d := compareNames(a.Table, b.Table); d != 0 {
			return d
		}
		return strings.Compare(a.Column, b.Column)
	})
	return slices.Compact(refs)
}

// canonical is the policy without what does not matter: comments, order of tables and columns, aliases, positions.
func (p *Policy) canonical() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings, integers and rationals always encode
	}
	return text
}

func compareNames(a, b TableName) int {
	if d := strings.Compare(a.Schema, b.Schema); d != 0 {
		return d
	}
	return strings.Compare(a.Name, b.Name)
}
