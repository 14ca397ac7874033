// Package catalog holds what Noisegate knows of the protected datasets: which tables exist for analysts, what the
// privacy unit of each is, how columns are bounded, which group keys are public.
//
// It knows the policy file (policy.go), the live schema of the protected database, where policies are kept
// (postgres_store.go), and databases without rows that show a policy's names (twin.go). It does not know queries,
// budgets' balances, noise or HTTP. Nothing in it depends on a protected row.
//
// A [Snapshot] is immutable: a query is rewritten against one snapshot from start to end.
package catalog

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Snapshot is one version of one dataset's policy, checked against the live schema. It is immutable and safe for
// concurrent use.
type Snapshot struct {
	Dataset string
	Version int64    // rises by one with each applied policy
	Digest  [32]byte // SHA-256 of the policy document in canonical form together with the pinned metadata

	// DataVersion is the steward's name for the state of the data, part of every release's identity; "" for none.
	DataVersion string

	Tables  []*Table // sorted by schema, name
	Views   []*View  // public ones, sorted likewise
	Budgets []Budget // as the policy file gives them, in its order

	// ShareReleases lets an analyst have, free, the answer that another one was given to the same question. It then shows that
	// somebody asked it before.
	ShareReleases bool

	// RefreshCharges asks, and charges, a question anew once a prepared copy that answers it has a new version, as if every request said
	// "version": "latest". Without it the answer of the last version that was bought is given again.
	RefreshCharges bool

	// MaxFailures is how many failures of an analyst's questions within a day stop further ones; 0: [DefaultMaxFailures].
	MaxFailures int64

	// People is about how many units the tables are about, as the policy says for everybody to know; 0: it does not.
	People int64

	Pate *PatePolicy // what the policy fixes for ensembles of teachers

	Warnings []Warning // what the policy's author should know

	// EarlierReleases and EarlierQuestions mean that releases of the dataset, and answers under this policy, may be stored under names that
	// versions of Noisegate before migration 026 gave them.
	EarlierReleases, EarlierQuestions bool

	// WideReleases and WideQuestions mean the same of versions before migration 027, in which conditions narrowed no bounds.
	WideReleases, WideQuestions bool

	Delay *mechanisms.Delay // of each answer, in microseconds, which is charged; nil: the guarantee does not cover time
}

// Table finds a table that exists for analysts. An empty schema means the dataset's default schema ("public").
func (s *Snapshot) Table(schema, name string) (*Table, bool) {
	if schema == "" {
		schema = DefaultSchema
	}
	for _, t := range s.Tables {
		if t.Schema == schema && t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// View finds a public view. An empty schema means the dataset's default schema ("public").
func (s *Snapshot) View(schema, name string) (*View, bool) {
	i := slices.IndexFunc(s.Views, func(v *View) bool { return v.Schema == cmp.Or(schema, DefaultSchema) && v.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.Views[i], true
}

// Shown are the tables and views that exist for analysts.
func (s *Snapshot) Shown() []*Table {
	all := slices.Clone(s.Tables)
	for _, v := range s.Views {
		all = append(all, v.Table)
	}
	return all
}

// View is a public view: questions read its query as if they had it in WITH, so that a view that is replaced is not read.
type View struct {
	*Table                    // what is shown of it; no statement reads it
	Definition string         // its query
	Pos        fault.Position // in the policy's document
}

// DefaultMaxFailures is how many failures stop an analyst's further questions where the policy does not say.
const DefaultMaxFailures = 5

// DefaultSchema is where a table without a schema is looked for.
const DefaultSchema = "public"

// Table is one relation of the protected database with its policy, pinned to the relation that was checked.
type Table struct {
	Schema, Name string
	OID          uint32     // pinned: a table that was dropped and made again is another table
	Public       bool       // no privacy unit: may be read as it is
	Unit         Unit       // the privacy unit; zero for public tables
	MaxRows      int64      // rows that one unit may contribute to one group; 1 for row units
	MaxGroups    int64      // groups of one GROUP BY that one unit may influence (L0); 1 for row units
	MaxValues    int64      // different values of one unit that count(DISTINCT x) counts in one group; 0: as many as rows
	MaxTotal     int64      // rows that one unit may contribute to all groups together; 0: MaxRows in each of MaxGroups
	Lines        Lines      // where the policy says so
	Prepare      int64      // rows of one unit that a prepared copy keeps; 0: the policy asks for none
	Ranks        [][]string // sets of columns, each sorted, by which that copy ranks groups and rows
	PreparedOnly bool       // questions are answered from its prepared copy, or not at all
	Append       Append     // how a prepared copy takes up new rows; zero: each run makes it anew
	Copy         *Copy      // of a prepared copy; nil: it is a table of the policy itself
	MostRows     int64      // of a public table: rows that it has at most, approved with headroom; 0: not known, or not public
	Together     []Together `json:",omitempty"` // columns whose keys are only those that a public table has together
	Columns      []*Column
	// Unique are sets of columns that no two rows share, rows with a NULL in one of them apart. A statement that relies on one makes sure
	// of it when it runs.
	Unique [][]string
	// Partitioned and Indexes (see [TableInfo]) are how its rows were stored when the policy was checked: hints for speed.
	Partitioned bool
	Indexes     [][]string

	RowSecurity bool     // row level security may be on: each row's visibility depends on that row alone
	NotCovered  []string // kinds of units that its rows are about too, and that answers about it do not protect
	mayLead     []uint32 // tables with a privacy unit, by OID, to which a foreign key of it may lead; see [Table.Apart]
	among       []*Table // all of its snapshot
	checked     *Table   // as Check gave it; nil: it matters not where foreign keys of it lead
}

func (t *Table) table() TableName { return TableName{t.Schema, t.Name} }

// Together are columns of a table whose keys are the values that columns of a public table have together.
type Together struct {
	Columns []string
	Table   TableName
	Values  []string // columns of Table, by place
}

// Source is the public table that has the keys; nil: it is not there.
func (t *Table) Source(of Together) *Table {
	for _, other := range t.among {
		if other.table() == of.Table && other.Public {
			return other
		}
	}
	return nil
}

// Lines are places in the policy's document; 0: it does not say.
type Lines struct{ Unit, MaxRows, MaxGroups, MaxValues, MaxTotal int }

// Column finds an exposed or hidden column by name.
func (t *Table) Column(name string) (*Column, bool) {
	for _, c := range t.Columns {
		if c.Name == name {
			return c, true
		}
	}
	return nil, false
}

// UnitKind says how a table's rows reach their privacy unit.
type UnitKind int

// The kinds of privacy unit.
const (
	NoUnit     UnitKind = iota // a public table
	RowUnit                    // each row is a unit; a unique, not-null key proves it
	ColumnUnit                 // a column holds the unit's id; rows where it is NULL are dropped
	PathUnit                   // foreign keys lead to a table that holds the unit
)

// Unit is how a table's rows reach their privacy unit.
type Unit struct {
	Kind   UnitKind
	Column string // RowUnit: the key; ColumnUnit: the id; PathUnit: the referencing column
	// For PathUnit: the table that Column refers to, and the referenced (unique) column there.
	ToSchema, ToTable, ToColumn string
	// Of is the kind of unit: rows of two kinds are never one unit's.
	Of string
}

// Type is the type of a column as far as Noisegate distinguishes types. Columns of any other type are not exposed.
type Type string

// The supported types; the names are PostgreSQL's own.
const (
	Int2        Type = "smallint"
	Int4        Type = "integer"
	Int8        Type = "bigint"
	Numeric     Type = "numeric"
	Float4      Type = "real"
	Float8      Type = "double precision"
	Text        Type = "text" // text and varchar
	Char        Type = "character"
	Bool        Type = "boolean"
	Date        Type = "date"
	Timestamp   Type = "timestamp without time zone"
	Timestamptz Type = "timestamp with time zone"
	UUID        Type = "uuid"
	Enum        Type = "enum"
)

// IsInteger reports whether values are whole numbers.
func (t Type) IsInteger() bool { return t == Int2 || t == Int4 || t == Int8 }

// IsNumber reports whether values can be summed.
func (t Type) IsNumber() bool {
	return t.IsInteger() || t == Numeric || t == Float4 || t == Float8
}

// IsText reports whether values are character strings.
func (t Type) IsText() bool { return t == Text || t == Char || t == Enum }

// IsTime reports whether values are dates or times.
func (t Type) IsTime() bool { return t == Date || t == Timestamp || t == Timestamptz }

// Column is one column of a table with its policy, pinned to the attribute that was checked.
type Column struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypMod  int32
	Type    Type
	Enum    string // Type == Enum: the enum's schema-qualified, quoted name
	NotNull bool
	// Collation is the OID of the collation that compares the texts; 0: the default of the database, or none. It takes no two texts for equal.
	Collation uint32
	// Identifies is the kind of units that the column identifies: it holds the unit's id, or refers to a row of a unit's, or is unique. Such a
	// value is counted and joined, and compared with nothing that a query could make up. "" for all other columns, and all of public tables.
	Identifies string
	// Exposed is false for columns that do not exist for analysts (expose: false, an unsupported type, a row unit's or
	// unit id's hidden key). The unit column itself may be named in count(DISTINCT unit) even when it is not exposed.
	Exposed     bool
	Bounds      *Bounds // nil: no bounds declared
	Domain      []Key   // public group keys in canonical order; nil: none declared (for a public table: none loaded)
	DomainLine  int     // where the policy declares the domain; 0: nowhere
	PrivateKeys bool    // may be grouped by, with partition selection
	// MostEqual is how many rows of a public table have one value of the column at most, NULL apart, approved with headroom; 0: as many as
	// the table has.
	MostEqual int64
	// MaxLength is how many bytes a text may have to count: a longer one is NULL for every purpose. 0: see [Column.LongestText].
	MaxLength int64
}

// DefaultMaxLength is how many bytes a text may have to count, where the policy does not say.
const DefaultMaxLength = 1024

// LongestText is how many bytes a text of the column can have that counts; for types of texts only.
func (c *Column) LongestText() int64 {
	const header, widest = 4, 4 // what PostgreSQL adds to a length in a type, and the bytes of the longest character
	limit := c.MaxLength
	if limit == 0 {
		limit = DefaultMaxLength
	}
	if characters := int64(c.TypMod) - header; characters > 0 && c.Type != Enum {
		return min(limit, widest*characters)
	}
	return limit
}

// Bounds are public bounds of a column's values and the public grid that values are rounded to.
//
// Numbers are in the column's own unit. Dates are days, timestamps microseconds, since 1970-01-01 (UTC).
// Step is positive and either a whole number or one over a whole number; nil when the policy gives none (integer
// columns then have step 1, the others a grid that the planner derives from the bounds alone).
type Bounds struct {
	Lo, Hi *big.Rat
	Step   *big.Rat
	Line   int // of the policy's document; 0: derived
}

// Key is one group-key value in the text that PostgreSQL's cast to text gives for the column's type ("true", "42",
// "2024-02-29").
type Key struct {
	Text string
	Null bool
}

// Scope says whose budget a [Budget] is.
type Scope string

// The scopes, in the order in which a charge takes their locks.
const (
	DatasetScope Scope = "dataset"
	GroupScope   Scope = "group"
	AnalystScope Scope = "analyst"
)

// Form is how a budget adds up losses.
type Form string

// The forms of budget; see docs/accounting.md.
const (
	Pure   Form = "pure"
	ZCDP   Form = "zcdp"
	Approx Form = "approx"
)

// Budget is one line of the policy's budgets, amounts still as exact decimals.
type Budget struct {
	Scope      Scope  // DatasetScope: the cap of the dataset; GroupScope: of a group together; AnalystScope: of one analyst
	Name       string // group or analyst; empty for the dataset
	PerAnalyst bool   // with a group's name: each member gets a separate account (Scope is then AnalystScope, Name the group)
	ReplayOnly bool   // may only read answers that exist already

	Form               Form
	Epsilon            *big.Rat // pure, approx
	Rho                *big.Rat // zcdp
	Delta              *big.Rat // approx; zcdp with partition selection; nil = 0
	MaxEpsilonPerQuery *big.Rat // nil: no cap on a single query
	MinEpsilon         *big.Rat `json:",omitempty"` // nil: the gateway's floor; at least [MinFloor]
	// DefaultEpsilon or DefaultRho is what a request costs that does not say so, DefaultDelta the δ of one that needs one and
	// names none; nil: such a request is refused.
	DefaultEpsilon *big.Rat `json:",omitempty"`
	DefaultRho     *big.Rat `json:",omitempty"`
	DefaultDelta   *big.Rat `json:",omitempty"`
	Mechanisms     []Noise  `json:",omitempty"` // what may charge the account; nil: all

	Tranche *Tranche `json:",omitempty"` // nil: the whole cap at once
	Rate    *Rate    `json:",omitempty"` // nil: as fast as they can

	pos fault.Position
}

// DefaultCost is the default price as a ρ, an ε as ε²/2, which an ε-DP mechanism has at most (Bun and Steinke 2016,
// Proposition 1.4); nil without one.
func (b Budget) DefaultCost() *big.Rat {
	if b.DefaultEpsilon == nil {
		return b.DefaultRho
	}
	half := big.NewRat(1, 2)
	return half.Mul(half, b.DefaultEpsilon).Mul(half, b.DefaultEpsilon)
}

// Noise is a family of mechanisms: those with a pure ε, or those with a ρ alone.
type Noise string

// The families.
const (
	LaplaceNoise  Noise = "laplace"
	GaussianNoise Noise = "gaussian"
)

// MinFloor is the lowest ε that a policy may let a question about protected rows cost, as a decimal.
const MinFloor = "0.0001"

// DefaultFloor is that ε where no line of the budgets that concerns the caller says another.
const DefaultFloor = mechanisms.EpsilonUnit / 1000

// Tranche releases a cap in parts: the first at once, then another after each Every.
type Tranche struct {
	Every   time.Duration
	Epsilon *big.Rat // pure, approx
	Rho     *big.Rat // zcdp
}

// Rate is how much ε may be spent in how short a time.
type Rate struct {
	Epsilon *big.Rat
	Per     time.Duration
}
