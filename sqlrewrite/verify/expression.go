package verify

import (
	"math/big"
	"slices"
	"strconv"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/release"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Expressions (Lemmas 0 and 5a). The value of an expression in a row is a function of the row, of constants, and of nothing else, since
// every function that a rule allows is immutable (or stable, under settings that the session pins); so equal terms are equal values
// (Value.ID). And no expression raises an error, whatever the row holds and in whatever order PostgreSQL evaluates, but for CASE.
//
// *CASE narrows.* PostgreSQL evaluates a branch only where its condition is true and those before were not. In a branch of
// WHEN x > c, x lies in [c, ∞] or is NaN; in all that follow x is NULL or x <= c, hence not NaN, which sorts above all numbers. The
// operand in a branch is a column or a computed value of the row (id): the narrowed range holds for each occurrence in the branch.
// An expression that is constant could be evaluated when the statement is planned: there the range of a constant is known anyway.
//
// *Example.* In CASE WHEN x > 5 THEN 10 / x ELSE 0 END the divisor is at least 5, hence not 0; without CASE it is refused.
//
// *NULL.* Value.Nulls names parts such that the value is NULL exactly where one of them is: strict functions of total results join the sets
// of their arguments; where NULL arises otherwise (NULLIF, CASE without ELSE) the value is such a part itself.

// derivation is the state of one proof.
type derivation struct {
	*relation.Proof
	sql      string
	releases []*release.Release // by their numbers, less 1
	alone    bool               // no analyst waits for the text: it makes a copy

	operands []value.Measure // of the expression that is being read
	taken    Work            // cost.go
	several  bool            // tables are joined
	compiled map[string]bool // regular expressions
	work     *big.Int        // what one row is charged for at most, in any SELECT; nil: nothing bounds it
	queries  map[int]bool
	// EXISTS that PostgreSQL may make joins, with the relation that these may leave unread; nil: any
	joins map[*pgquery.SubLink]*relation.Relation
}

func newDerivation(sql string, args []any, on *catalog.Snapshot, pins []relation.Pin, count *steps.Count) *derivation {
	return &derivation{Proof: relation.NewProof(value.NewTerms(args, count), on, pins), sql: sql, work: big.NewInt(1),
		taken:    Work{RowWork: new(big.Int), UnitWork: new(big.Int), AllWork: new(big.Int)},
		compiled: make(map[string]bool), queries: make(map[int]bool), joins: make(map[*pgquery.SubLink]*relation.Relation)}
}

// releasing numbers a release.
func (d *derivation) releasing(x *release.Release) int {
	d.releases = append(d.releases, x)
	return len(d.releases)
}

// released gives the release whose columns a relation has; nil: of none.
func (d *derivation) released(r *relation.Relation) *release.Release {
	if r.Released == 0 {
		return nil
	}
	return d.releases[r.Released-1]
}

// refuse ends a derivation. Every exported function turns it into an error.
func refuse(format string, args ...any) { tree.Refuse(format, args...) }

// scope is where names are looked up.
type scope struct {
	d       *derivation
	number  int    // of FROM: no other has it
	parent  *scope // the query around an EXISTS or IN, or beside a LATERAL
	rel     *relation.Relation
	ctes    map[string]*pgquery.SelectStmt
	group   *grouping // the outputs and HAVING of a query that aggregates; nil: rows
	inside  bool      // the argument of an aggregate: rows again
	merged  []int     // the keys of the different tuples that the query counts (sorted.go); nil: it counts none
	numbers bool      // of units are counted
	narrow  []narrowed
	runs    *windows    // the windows of the query; nil: there may be none
	reads   *[]int      // of a query in an expression: what it reads of the rows around it
	besides bool        // its FROM reads some of them
	bill    *bill       // what each tuple of the query takes (cost.go)
	meeting *big.Int    // rows that each tuple of the query meets in EXISTS, IN and windows (relation/work.go)
	present [][2]string // columns, by table and name, that WHERE says are not NULL (present.go)
}

// narrowed is a range that CASE proves.
type narrowed struct {
	id     int
	within ranges.Span
	away   *big.Rat // no value is nearer to 0; nil: not known
	solid  bool     // it is not NULL
	chars  int      // it has at most so many characters; 0: not known
	bytes  int64    // and so many bytes
}

// expr derives what is known of an expression.
func (s *scope) expr(n *pgquery.Node) *value.Value {
	defer steps.Visit(s.d.Steps).Leave()
	outer := s.d.operands
	s.d.operands = nil
	v := s.bare(n)
	operands := s.d.operands
	s.charge(n, v, operands)
	s.d.Note(v)
	if s.group != nil && !s.inside {
		v = s.group.of(v)
	}
	for _, w := range s.narrow {
		if w.id == v.ID {
			c := *v
			c.Within = c.Within.Meet(w.within)
			c.Nonzero = c.Nonzero || !c.Within.Has(ranges.Zero)
			if w.chars > 0 && (c.Chars < 0 || c.Chars > w.chars) {
				c.Chars = w.chars
			}
			if w.bytes > 0 && (c.Bytes == 0 || c.Bytes > w.bytes) {
				c.Bytes = w.bytes
			}
			if w.away != nil && c.Kind.IsFloat() {
				c.Grain, c.Same = value.GrainOf(w.away), true // -0 is nearer to 0 too, and so is not here
			}
			v = &c
		}
	}
	s.d.Know(v)
	s.d.operands = append(outer, v.Measured(n, operands))
	return v
}

func (s *scope) bare(n *pgquery.Node) *value.Value {
	d := s.d
	switch e := n.GetNode().(type) {
	case *pgquery.Node_ColumnRef:
		return s.column(tree.Words(e.ColumnRef.Fields))
	case *pgquery.Node_AConst:
		return d.Written(e.AConst)
	case *pgquery.Node_TypeCast:
		return s.typeCast(e.TypeCast)
	case *pgquery.Node_CollateClause:
		return s.collate(e.CollateClause)
	case *pgquery.Node_AExpr:
		return s.operation(e.AExpr)
	case *pgquery.Node_BoolExpr:
		return s.logic(e.BoolExpr)
	case *pgquery.Node_NullTest:
		t := e.NullTest
		tree.Reads(t, "Arg", "Nulltesttype")
		if t.Nulltesttype != pgquery.NullTestType_IS_NULL && t.Nulltesttype != pgquery.NullTestType_IS_NOT_NULL {
			refuse("a test for NULL of another kind")
		}
		return d.Always(value.Boolean, "isnull:"+strconv.Itoa(int(t.Nulltesttype)), s.loose(t.Arg))
	case *pgquery.Node_BooleanTest:
		t := e.BooleanTest
		tree.Reads(t, "Arg", "Booltesttype")
		if t.Booltesttype == pgquery.BoolTestType_BOOL_TEST_TYPE_UNDEFINED {
			refuse("a test of truth of another kind")
		}
		return d.Always(value.Boolean, "is:"+strconv.Itoa(int(t.Booltesttype)), s.truth(t.Arg))
	case *pgquery.Node_CaseExpr:
		return s.cases(e.CaseExpr)
	case *pgquery.Node_CoalesceExpr:
		tree.Reads(e.CoalesceExpr, "Args")
		return s.d.Coalesce(s.list(e.CoalesceExpr.Args))
	case *pgquery.Node_MinMaxExpr:
		m := e.MinMaxExpr
		tree.Reads(m, "Args", "Op")
		op := map[pgquery.MinMaxOp]string{pgquery.MinMaxOp_IS_GREATEST: "greatest", pgquery.MinMaxOp_IS_LEAST: "least"}[m.Op]
		if op == "" {
			refuse("neither GREATEST nor LEAST")
		}
		return d.First(op, s.list(m.Args))
	case *pgquery.Node_FuncCall:
		return s.call(e.FuncCall)
	case *pgquery.Node_SubLink:
		return s.subquery(e.SubLink)
	default:
		refuse("a node of the parse tree that no rule covers: %T", e)
		return nil
	}
}

func (s *scope) list(nodes []*pgquery.Node) []*value.Value {
	all := make([]*value.Value, len(nodes))
	for i, n := range nodes {
		all[i] = s.expr(n)
	}
	return all
}

// loose is a value of which only equality and order are looked at: it may be vague.
func (s *scope) loose(n *pgquery.Node) *value.Value { return value.Clear(s.expr(n)) }

func (s *scope) truth(n *pgquery.Node) *value.Value {
	v := s.expr(n)
	if v.Kind != value.Boolean {
		refuse("a condition that is not boolean")
	}
	return v
}

// column looks a name up: in this query, or in one around it.
func (s *scope) column(name []string) *value.Value {
	defer steps.Visit(s.d.Steps).Leave()
	if len(name) == 0 || len(name) > 2 {
		refuse("a name of %d parts", len(name))
	}
	table, column := "", name[len(name)-1]
	if len(name) == 2 {
		table = name[0]
	}
	if s.rel != nil {
		if v := s.rel.Find(table, column); v != nil {
			if v.Numeral && !s.numbers {
				refuse("the number of a unit, which neighbours may give otherwise")
			}
			if s.group != nil && !s.inside {
				return s.group.key(v)
			}
			return v
		}
	}
	if s.parent == nil {
		refuse("a column that does not exist")
	}
	if s.rel != nil && s.rel.Hides(table) {
		refuse("a column of an outer query that one of this query may hide")
	}
	if s.inside {
		refuse("an aggregate over an outer query's column")
	}
	v := *s.parent.column(name)
	v.Outer = true
	if s.reads != nil {
		*s.reads = append(*s.reads, v.ID)
	}
	return &v
}

func (s *scope) collate(c *pgquery.CollateClause) *value.Value {
	w := tree.Words(c.Collname)
	if len(w) != 2 || w[0] != "pg_catalog" || w[1] != "C" && w[1] != "default" {
		refuse("a collation other than C and default")
	}
	v := s.expr(c.Arg)
	if !v.Kind.IsText() {
		refuse("a collation of what is no text")
	}
	under := *v // both are deterministic: the same values are equal, but their order is another, and what matches a pattern
	under.Collation = w[1]
	return &under
}

func (s *scope) logic(b *pgquery.BoolExpr) *value.Value {
	tree.Reads(b, "Args", "Boolop")
	if b.Boolop == pgquery.BoolExprType_BOOL_EXPR_TYPE_UNDEFINED {
		refuse("neither AND, OR nor NOT")
	}
	args := make([]*value.Value, len(b.Args))
	for i, n := range b.Args {
		args[i] = s.truth(n)
	}
	switch b.Boolop {
	case pgquery.BoolExprType_NOT_EXPR:
		return s.d.Apply(value.Boolean, "not", args...)
	case pgquery.BoolExprType_OR_EXPR:
		return s.d.Made(value.Boolean, "or", false, args...)
	default:
		return s.d.Made(value.Boolean, "and", false, args...)
	}
}

// cases is CASE WHEN ... THEN ... ELSE ... END.
func (s *scope) cases(c *pgquery.CaseExpr) *value.Value {
	tree.Reads(c, "Args", "Defresult") // no operand
	if v := s.cut(c); v != nil {       // Lemma 2
		return v
	}
	if v := s.share(c); v != nil { // Lemma 5
		return v
	}
	if v := s.shareOfTotal(c); v != nil { // Lemma 2b
		return v
	}
	if v := s.within(c); v != nil {
		return v
	}
	if v := s.short(c); v != nil {
		return v
	}
	deeper := *s
	deeper.narrow = slices.Clone(s.narrow)
	var all, conditions []*value.Value
	for _, n := range c.Args {
		w := n.GetCaseWhen()
		if w == nil {
			refuse("a branch of CASE that is none")
		}
		tree.Reads(w, "Expr", "Result")
		condition := deeper.truth(w.Expr)
		branch := deeper
		branch.narrow = append(slices.Clone(deeper.narrow), s.narrowing(w.Expr, true)...)
		conditions = append(conditions, condition)
		all = append(all, branch.expr(w.Result))
		deeper.narrow = append(deeper.narrow, s.narrowing(w.Expr, false)...)
	}
	open := c.Defresult == nil
	if !open {
		all = append(all, deeper.expr(c.Defresult))
	}
	v := s.d.Choice("case", all, conditions)
	switch {
	case open:
		v.MayBeNull()
	default:
		v.Nulls = s.nullsOfCase(c, all, conditions, v)
	}
	return v
}

// within is CASE WHEN octet_length(x) <= n THEN x END where no x is longer, which is x; nil for others.
func (s *scope) within(c *pgquery.CaseExpr) *value.Value {
	if len(c.Args) != 1 || c.Defresult != nil || c.Args[0].GetCaseWhen().GetResult().GetColumnRef() == nil {
		return nil
	}
	x := s.expr(c.Args[0].GetCaseWhen().Result)
	if x.Octets == 0 || s.d.Shorter(s.truth(c.Args[0].GetCaseWhen().Expr).ID, x.ID) < x.Octets {
		return nil
	}
	return x
}

// short is a numeric of few digits, else NULL; nil for another CASE.
func (s *scope) short(c *pgquery.CaseExpr) *value.Value {
	column := tree.Short(c)
	if column == nil {
		return nil
	}
	x := s.column(tree.Words(column.Fields))
	if x.Kind != value.Numeric {
		refuse("the bytes of what is no numeric")
	}
	return s.d.Shortened(x)
}

// nullsOfCase: where every branch but the last is a constant that is not NULL, and every condition is a comparison of the last branch's
// parts with constants, the value is NULL exactly where the last branch is: where a part is NULL no condition is true.
func (s *scope) nullsOfCase(c *pgquery.CaseExpr, all, conditions []*value.Value, v *value.Value) []int {
	last := all[len(all)-1]
	if !slices.ContainsFunc(all, func(b *value.Value) bool { return b.Null || len(b.Nulls) > 0 }) {
		return nil
	}
	if slices.ContainsFunc(all[:len(all)-1], func(b *value.Value) bool { return !b.Constant || len(b.Nulls) > 0 }) {
		return []int{v.ID}
	}
	for _, w := range conditions {
		// A condition that is NULL wherever the last branch is: every part of the latter is one of the former.
		if !value.Subset(last.Nulls, w.Nulls) || len(w.Nulls) == 0 {
			return []int{v.ID}
		}
	}
	return last.Nulls
}

// narrowing is what a condition says of its operands where it is true, or where it is false or NULL.
func (s *scope) narrowing(n *pgquery.Node, holds bool) []narrowed {
	defer steps.Visit(s.d.Steps).Leave()
	d := s.d
	if b := n.GetBoolExpr(); b != nil && b.Boolop == pgquery.BoolExprType_AND_EXPR {
		if holds {
			var all []narrowed
			for _, arg := range b.Args {
				all = append(all, s.narrowing(arg, true)...)
			}
			return all
		}
		return s.hole(b)
	}
	if t := n.GetNullTest(); t != nil && t.Nulltesttype == pgquery.NullTestType_IS_NOT_NULL && holds {
		return []narrowed{{id: s.loose(t.Arg).ID, solid: true}}
	}
	e := n.GetAExpr()
	if e.GetKind() != pgquery.A_Expr_Kind_AEXPR_OP || e.Lexpr == nil {
		return nil
	}
	x, c := s.expr(e.Lexpr), s.expr(e.Rexpr)
	r := c.Number()
	if r == nil || x.Constant || !(x.Kind.IsNumber() && c.Kind.IsNumber() || x.Kind.IsTime() && x.Kind == c.Kind) {
		return nil
	}
	if x.Kind.IsFloat() != c.Kind.IsFloat() { // compared as floats
		if c.Kind.IsFloat() {
			return nil
		}
		r = value.Floated(r)
	}
	op := tree.Operator(e.Name)
	if t := d.Term(x.ID); t.Op == "octet_length" && op == "<=" && holds && r.Sign() > 0 && r.Cmp(big.NewRat(1<<30, 1)) < 0 {
		return []narrowed{{id: t.Args[0], chars: int(r.Num().Int64()), bytes: r.Num().Int64()}} // a character has a byte at least
	}
	switch below, known := map[string]bool{"<": true, "<=": true, ">": false, ">=": false}[op]; {
	case !known:
		return nil
	case below == holds:
		return []narrowed{{id: x.ID, within: ranges.Span{Hi: r}}}
	default:
		return []narrowed{{id: x.ID, within: ranges.Span{Lo: r}}}
	}
}

// hole is what NOT (x > -c AND x < c) says: x is NULL, or at least c away from 0.
func (s *scope) hole(b *pgquery.BoolExpr) []narrowed {
	if len(b.Args) != 2 {
		return nil
	}
	above, below := s.narrowing(b.Args[0], true), s.narrowing(b.Args[1], true)
	if len(above) != 1 || len(below) != 1 || above[0].id != below[0].id || above[0].within.Lo == nil || below[0].within.Hi == nil {
		return nil
	}
	lo, hi := above[0].within.Lo, below[0].within.Hi
	if lo.Sign() >= 0 || hi.Sign() <= 0 {
		return nil
	}
	return []narrowed{{id: above[0].id, away: ranges.Lesser(new(big.Rat).Neg(lo), hi)}}
}

// operation is an operator, or what the grammar makes of one.
func (s *scope) operation(e *pgquery.A_Expr) *value.Value {
	op := tree.Operator(e.Name)
	switch e.Kind {
	case pgquery.A_Expr_Kind_AEXPR_OP:
		if e.Lexpr == nil {
			refuse("an operator with one operand")
		}
		return s.d.Operated(op, s.expr(e.Lexpr), s.expr(e.Rexpr))
	case pgquery.A_Expr_Kind_AEXPR_OP_ANY:
		l, r := s.expr(e.Lexpr), s.expr(e.Rexpr)
		if op != "=" || l.Kind != value.Text || l.Ident != "" || r.Kind != value.Texts || !r.Constant {
			refuse("= ANY of what is no constant array of texts")
		}
		return s.d.Apply(value.Boolean, "any", l, r)
	case pgquery.A_Expr_Kind_AEXPR_IN:
		return s.in(op, s.loose(e.Lexpr), e.Rexpr.GetList())
	case pgquery.A_Expr_Kind_AEXPR_DISTINCT, pgquery.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		if op != "=" {
			refuse("IS DISTINCT FROM with another operator")
		}
		l, r := s.d.Pair(s.loose(e.Lexpr), s.loose(e.Rexpr))
		s.d.Meet(l, r)
		return s.d.Always(value.Boolean, "distinct:"+strconv.Itoa(int(e.Kind)), l, r)
	case pgquery.A_Expr_Kind_AEXPR_LIKE, pgquery.A_Expr_Kind_AEXPR_ILIKE:
		return s.d.Like(op, s.expr(e.Lexpr), s.expr(e.Rexpr))
	case pgquery.A_Expr_Kind_AEXPR_NULLIF:
		return s.d.NullIf(op, s.expr(e.Lexpr), s.expr(e.Rexpr))
	default:
		refuse("an expression of kind %s", e.Kind)
		return nil
	}
}

// in is IN of a list, and NOT IN.
func (s *scope) in(op string, v *value.Value, list *pgquery.List) *value.Value {
	if list == nil || op != "=" && op != "<>" {
		refuse("IN of what is no list")
	}
	k, all := v.Kind, []*value.Value{v}
	for _, n := range list.Items {
		x := s.loose(n)
		value.Identities(v, x)
		k = value.Common(k, x.Kind)
		all = append(all, x)
	}
	all = s.d.Resolved(all)
	result := s.d.Made(value.Boolean, "in"+op, false, all...)
	for _, x := range all {
		s.d.Comparable(x, k)
	}
	return result
}

// typeCast is x::type.
func (s *scope) typeCast(c *pgquery.TypeCast) *value.Value {
	d := s.d
	k, precision, scale := value.TypeOf(c.TypeName)
	if p := c.Arg.GetParamRef(); p != nil {
		if precision != 0 {
			refuse("a constant cast to a type with modifiers")
		}
		return d.Parameter(p, k)
	}
	if a := c.Arg.GetAConst(); a != nil && a.Isnull {
		if a.Val != nil {
			refuse("a field of NULL")
		}
		return d.NullOf(k)
	}
	v := s.expr(c.Arg)
	if k.IsFloat() && v.Number() != nil && v.Number().Sign() == 0 && v.Kind == value.Int4 {
		return d.Literal(k, "0")
	}
	if precision != 0 {
		return d.Digits(v, precision, scale)
	}
	return d.Cast(value.Typed(v), k)
}

// call is a call of a function, an aggregate or a window.
func (s *scope) call(f *pgquery.FuncCall) *value.Value {
	if f.AggWithinGroup || f.FuncVariadic || len(f.AggOrder) > 0 {
		refuse("a function call that no rule covers")
	}
	name := tree.Builtin(f.Funcname)
	if f.Funcformat != pgquery.CoercionForm_COERCE_EXPLICIT_CALL &&
		(name != "extract" || f.Funcformat != pgquery.CoercionForm_COERCE_SQL_SYNTAX) {
		refuse("function %s called in another way", name)
	}
	switch {
	case f.Over != nil:
		return s.window(name, f)
	case f.AggStar || value.IsAggregate(name):
		return s.aggregate(name, f)
	case f.AggFilter != nil || f.AggDistinct:
		refuse("FILTER or DISTINCT of a function that is no aggregate")
	}
	return s.d.Called(name, s.list(f.Args)...)
}
