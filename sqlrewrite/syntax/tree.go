// Package syntax is the closed syntax tree of the SQL that Noisegate takes, for every dialect.
//
// It knows the shape of a query and where in the text each part stood. It does not know tables, types, privacy or any
// parser: the parsers (sqlrewrite/parse_*.go) convert into it and refuse what it cannot express. The set of nodes is
// closed by unexported marker methods; every consumer switches exhaustively and refuses in the default branch.
package syntax

// Pos is a byte offset into the query text; -1 when unknown.
type Pos int32

// Query is one SELECT statement.
type Query struct {
	Pos      Pos
	Distinct bool
	Items    []Item
	From     []Relation // comma-separated; usually one
	Where    Expr       // nil: none
	GroupBy  []Expr     // ordinals and output names are still what was written
	Having   Expr       // nil: none
	OrderBy  []OrderItem
	Limit    Expr // nil: none
	Offset   Expr // nil: none
}

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

// Relation is an item of FROM: [*Table] or [*Join].
type Relation interface {
	At() Pos
	relation()
}

// Table names a table.
type Table struct {
	Pos    Pos
	Schema string // "" when none was written
	Name   string
	Alias  string // "" when none was written
}

// Join joins two relations.
type Join struct {
	Pos         Pos
	Kind        JoinKind
	Left, Right Relation
	On          Expr     // nil: CROSS JOIN or USING
	Using       []string // nil: ON
}

// JoinKind is the kind of a join.
type JoinKind int

// The kinds of join.
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
	Qualifier string // table name or alias; "" when none was written
	Name      string
}

// LiteralKind is the kind of a literal.
type LiteralKind int

// The kinds of literal.
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

// The operators.
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
	Concat   Operator = "||"
)

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

// Like is x [NOT] LIKE pattern or ILIKE.
type Like struct {
	Pos             Pos
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

// Call is a function or aggregate call; coalesce, nullif, greatest and least are calls too.
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
}

// At gives each node's position.
func (n *Table) At() Pos      { return n.Pos }
func (n *Join) At() Pos       { return n.Pos }
func (n *Star) At() Pos       { return n.Pos }
func (n *Column) At() Pos     { return n.Pos }
func (n *Literal) At() Pos    { return n.Pos }
func (n *Unary) At() Pos      { return n.Pos }
func (n *Binary) At() Pos     { return n.Pos }
func (n *In) At() Pos         { return n.Pos }
func (n *Between) At() Pos    { return n.Pos }
func (n *Is) At() Pos         { return n.Pos }
func (n *IsDistinct) At() Pos { return n.Pos }
func (n *Like) At() Pos       { return n.Pos }
func (n *Case) At() Pos       { return n.Pos }
func (n *Cast) At() Pos       { return n.Pos }
func (n *Call) At() Pos       { return n.Pos }

func (*Table) relation() {}
func (*Join) relation()  {}

func (*Star) expr()       {}
func (*Column) expr()     {}
func (*Literal) expr()    {}
func (*Unary) expr()      {}
func (*Binary) expr()     {}
func (*In) expr()         {}
func (*Between) expr()    {}
func (*Is) expr()         {}
func (*IsDistinct) expr() {}
func (*Like) expr()       {}
func (*Case) expr()       {}
func (*Cast) expr()       {}
func (*Call) expr()       {}
