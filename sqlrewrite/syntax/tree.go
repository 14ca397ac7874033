// Package syntax is the closed syntax tree of the SQL that Noisegate takes, for every dialect.
//
// It knows the shape of a query and where in the text each part stood. It does not know tables, types, privacy or any
// parser: the parsers (sqlrewrite/internal/parse) convert into it and refuse what it cannot express. The set of nodes is
// closed by unexported marker methods; every consumer switches exhaustively and refuses in the default branch.
package syntax

// Pos is a byte offset into the query text; -1 when unknown.
type Pos int32

// Query is one SELECT statement, or a set operation over two (Set is not nil; then only With, OrderBy, Limit and Offset are its own).
type Query struct {
	Pos      Pos
	With     []CTE
	Set      *SetOperation // nil: a plain SELECT
	Distinct bool
	// DistinctOn are the expressions of DISTINCT ON; Distinct is then false.
	DistinctOn []Expr
	Items      []Item
	From       []Relation // comma-separated; usually one
	Where      Expr       // nil: none
	GroupBy    []Expr     // ordinals and output names are still what was written
	Sets       [][]int    // of GROUPING SETS, ROLLUP and CUBE: the places in GroupBy of each set's keys; nil: one set, of all keys
	Having     Expr       // nil: none
	Windows    []NamedWindow
	OrderBy    []OrderItem
	Limit      Expr // nil: none
	Offset     Expr // nil: none
}

// Grouping is the name of the function that says which keys a group has.
const Grouping = "grouping"

// Groups reports whether a query has GROUP BY.
func (q *Query) Groups() bool { return q.GroupBy != nil || q.Sets != nil }

// CTE is one query of WITH; it is not recursive. MATERIALIZED means nothing here.
type CTE struct {
	Pos     Pos
	Name    string
	Columns []string // new names of the outputs; nil: their own
	Query   *Query
}

// SetOperation is UNION, INTERSECT or EXCEPT of two queries.
type SetOperation struct {
	Pos         Pos
	Kind        SetKind
	All         bool
	Left, Right *Query
}

// SetKind is the kind of a set operation, in upper case.
type SetKind string

// The kinds of set operation.
const (
	Union     SetKind = "UNION"
	Intersect SetKind = "INTERSECT"
	Except    SetKind = "EXCEPT"
)

// NamedWindow is an item of WINDOW.
type NamedWindow struct {
	Name   string
	Window *Window
}

// Window is OVER (...): Name refers to a named window, whose parts these add to.
type Window struct {
	Pos         Pos
	Name        string // "" when none
	PartitionBy []Expr
	OrderBy     []OrderItem
	Frame       *Frame // nil: the default
}

// Frame is the frame of a window, between Start and End.
type Frame struct {
	Mode       FrameMode
	Start, End FrameBound
}

// FrameMode is how a frame counts, in upper case.
type FrameMode string

// The ways of counting.
const (
	Rows   FrameMode = "ROWS"
	Range  FrameMode = "RANGE"
	Groups FrameMode = "GROUPS"
)

// FrameBound is one end of a frame; Offset is nil but for n PRECEDING and n FOLLOWING.
type FrameBound struct {
	Kind   FrameBoundKind
	Offset Expr
}

// FrameBoundKind is what one end of a frame is, in upper case.
type FrameBoundKind string

// The ends of a frame.
const (
	UnboundedPreceding FrameBoundKind = "UNBOUNDED PRECEDING"
	Preceding          FrameBoundKind = "PRECEDING"
	CurrentRow         FrameBoundKind = "CURRENT ROW"
	Following          FrameBoundKind = "FOLLOWING"
	UnboundedFollowing FrameBoundKind = "UNBOUNDED FOLLOWING"
)

// HasOffset reports whether a number of rows, or a distance, stands before it.
func (k FrameBoundKind) HasOffset() bool { return k == Preceding || k == Following }

// Item is one output of the select list.
type Item struct {
	Pos   Pos
	Expr  Expr
	Alias string // "" when none was written
}

// OrderItem is one key of ORDER BY.
type OrderItem struct {
	Pos        Pos
	Expr       Expr
	Descending bool
	Nulls      Nulls
}

// Nulls says where NULLs sort.
type Nulls int

// Where NULLs sort; the default is PostgreSQL's: last when ascending, first when descending.
const (
	NullsDefault Nulls = iota
	NullsFirst
	NullsLast
)

// Relation is an item of FROM: [*Table], [*Join] or [*Subquery].
type Relation interface {
	At() Pos
	relation()
}

// Table names a table.
type Table struct {
	Pos      Pos
	Database string // "" when none was written
	Schema   string // "" when none was written
	Name     string
	Alias    string // "" when none was written
}

// Subquery is a query in FROM.
type Subquery struct {
	Pos     Pos
	Lateral bool // it sees the items of FROM before it
	Query   *Query
	Alias   string   // "" when none was written
	Columns []string // new names of the outputs; nil: their own
}

// Join joins two relations.
type Join struct {
	Pos         Pos
	Kind        JoinKind
	Left, Right Relation
	On          Expr     // nil: CROSS JOIN or USING
	Using       []string // nil: ON
	Natural     bool     // USING all columns that both sides have
}

// JoinKind is the kind of a join.
type JoinKind int

const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
)

// Expr is an expression: one of the node types below.
type Expr interface {
	At() Pos
	expr()
}

// Star is * or t.*.
type Star struct {
	Pos       Pos
	Qualifier string
}

// Column names a column, or an output of the select list in GROUP BY and ORDER BY.
type Column struct {
	Pos       Pos
	Schema    string // of a table without an alias; "" when none was written
	Qualifier string // table name or alias; "" when none was written
	Name      string
}

// Table is how the column's table was written.
func (c *Column) Table() string {
	if c.Schema != "" {
		return c.Schema + "." + c.Qualifier
	}
	return c.Qualifier
}

// LiteralKind is the kind of a literal.
type LiteralKind int

const (
	NullLiteral    LiteralKind = iota
	BoolLiteral                // Text is "true" or "false"
	IntegerLiteral             // Text is decimal digits
	DecimalLiteral             // Text as written: 1.5, 1e3
	StringLiteral              // Text is the value, unquoted
)

// Literal is a constant.
type Literal struct {
	Pos  Pos
	Kind LiteralKind
	Text string
}

// Operator is a unary or binary operator or AND, OR, NOT, in upper case.
type Operator string

const (
	Or       Operator = "OR"
	And      Operator = "AND"
	Not      Operator = "NOT"
	Eq       Operator = "="
	Ne       Operator = "<>"
	Lt       Operator = "<"
	Le       Operator = "<="
	Gt       Operator = ">"
	Ge       Operator = ">="
	Add      Operator = "+"
	Subtract Operator = "-"
	Multiply Operator = "*"
	Divide   Operator = "/"
	Modulo   Operator = "%"
	Power    Operator = "^" // which binding makes a call of power
	Concat   Operator = "||"
)

// Operators are all of them.
var Operators = []Operator{Or, And, Not, Eq, Ne, Lt, Le, Gt, Ge, Add, Subtract, Multiply, Divide, Modulo, Concat}

// Unary is NOT x, -x or +x.
type Unary struct {
	Pos Pos
	Op  Operator
	X   Expr
}

// Binary is x op y.
type Binary struct {
	Pos  Pos
	Op   Operator
	L, R Expr
}

// In is x [NOT] IN (list).
type In struct {
	Pos  Pos
	Not  bool
	X    Expr
	List []Expr
}

// InQuery is (x, ...) IN (query).
type InQuery struct {
	Pos   Pos
	X     []Expr // one expression for each output of the query
	Query *Query
}

// Exists is EXISTS (query).
type Exists struct {
	Pos   Pos
	Query *Query
}

// Scalar is a query that stands for a value.
type Scalar struct {
	Pos   Pos
	Query *Query
}

// Array is ARRAY[...].
type Array struct {
	Pos   Pos
	Items []Expr
}

// Between is x [NOT] BETWEEN [SYMMETRIC] lo AND hi.
type Between struct {
	Pos       Pos
	Not       bool
	Symmetric bool
	X, Lo, Hi Expr
}

// Is is x IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
type Is struct {
	Pos  Pos
	Not  bool
	X    Expr
	What Truth
}

// Truth is what an [Is] tests for.
type Truth string

// The tests of [Is].
const (
	IsNull    Truth = "NULL"
	IsTrue    Truth = "TRUE"
	IsFalse   Truth = "FALSE"
	IsUnknown Truth = "UNKNOWN"
)

// IsDistinct is x IS [NOT] DISTINCT FROM y.
type IsDistinct struct {
	Pos  Pos
	Not  bool
	L, R Expr
}

// PatternLanguage is what a pattern is written in.
type PatternLanguage int

// The languages of patterns.
const (
	LikePattern PatternLanguage = iota
	RegexPattern
	SimilarPattern
)

// Like is x [NOT] LIKE pattern or ILIKE, x ~ pattern, or x SIMILAR TO pattern.
type Like struct {
	Pos             Pos
	Language        PatternLanguage
	Not             bool
	CaseInsensitive bool
	X, Pattern      Expr
}

// Case is CASE [operand] WHEN ... THEN ... [ELSE ...] END.
type Case struct {
	Pos     Pos
	Operand Expr // nil: searched CASE
	Whens   []When
	Else    Expr // nil: NULL
}

// When is one arm of a [Case].
type When struct {
	Cond, Result Expr
}

// Cast is x::type or CAST(x AS type). Type is PostgreSQL's own name, lower case, without schema ("int4", "numeric", "text").
type Cast struct {
	Pos  Pos
	X    Expr
	Type string
	Mods []int32 // numeric(10,2): 10, 2
}

// Call is a function or aggregate call; coalesce, nullif, greatest and least are calls too, and x AT TIME ZONE z is timezone(z, x).
type Call struct {
	Pos      Pos
	Schema   string // "" when none was written
	Name     string // lower case unless quoted
	Star     bool   // count(*)
	Distinct bool
	Args     []Expr
	OrderBy  []OrderItem // inside the parentheses
	Within   []OrderItem // WITHIN GROUP (ORDER BY ...)
	Filter   Expr        // nil: none
	Over     *Window     // nil: no window function
}

// At gives each node's position.
func (n *Table) At() Pos      { return n.Pos }
func (n *Join) At() Pos       { return n.Pos }
func (n *Subquery) At() Pos   { return n.Pos }
func (n *Star) At() Pos       { return n.Pos }
func (n *Column) At() Pos     { return n.Pos }
func (n *Literal) At() Pos    { return n.Pos }
func (n *Unary) At() Pos      { return n.Pos }
func (n *Binary) At() Pos     { return n.Pos }
func (n *In) At() Pos         { return n.Pos }
func (n *InQuery) At() Pos    { return n.Pos }
func (n *Exists) At() Pos     { return n.Pos }
func (n *Scalar) At() Pos     { return n.Pos }
func (n *Array) At() Pos      { return n.Pos }
func (n *Between) At() Pos    { return n.Pos }
func (n *Is) At() Pos         { return n.Pos }
func (n *IsDistinct) At() Pos { return n.Pos }
func (n *Like) At() Pos       { return n.Pos }
func (n *Case) At() Pos       { return n.Pos }
func (n *Cast) At() Pos       { return n.Pos }
func (n *Call) At() Pos       { return n.Pos }

func (*Table) relation()    {}
func (*Join) relation()     {}
func (*Subquery) relation() {}

func (*Star) expr()       {}
func (*Column) expr()     {}
func (*Literal) expr()    {}
func (*Unary) expr()      {}
func (*Binary) expr()     {}
func (*In) expr()         {}
func (*Between) expr()    {}
func (*InQuery) expr()    {}
func (*Exists) expr()     {}
func (*Scalar) expr()     {}
func (*Array) expr()      {}
func (*Is) expr()         {}
func (*IsDistinct) expr() {}
func (*Like) expr()       {}
func (*Case) expr()       {}
func (*Cast) expr()       {}
func (*Call) expr()       {}
