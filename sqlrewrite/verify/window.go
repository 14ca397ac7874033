package verify

import (
	"math/big"
	"slices"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Windows. PARTITION BY has a value that names the unit of each row, so that a partition has rows of one unit; or all rows are public,
// and with them what is computed. Then a window's value in a row is a function of the unit's rows, if it does not depend on the order of
// rows that tie in ORDER BY, which others' rows may change:
//
//  1. rank, dense_rank, percent_rank, cume_dist, and aggregates whose frame takes rows that tie together (RANGE, GROUPS), do not.
//  2. All others are sequential: row_number, ntile, lag, lead, first_value, last_value, nth_value, and aggregates under ROWS. They are
//     taken where (a) no two rows of a partition tie, as ORDER BY has a key (relation.rows is 1); or (b) **Lemma 0a**: all windows of the
//     query that are sequential and not of (a) have one PARTITION BY and ORDER BY, and rows that tie are identical in every column that
//     an output of the query reads: each is among the sort keys in a form of which equal values are identical. Rows that tie can then be
//     exchanged.
//  3. (a) with a key that may be NULL: rows where it is NULL tie with each other only. The number of rows before a row where it is not
//     NULL is fixed: row_number and ntile are taken in CASE WHEN key IS NOT NULL THEN ... END.
//
// **Lemma 3.** row_number() <= m leaves at most m rows of a partition; dense_rank() <= G leaves rows with at most G different tuples of
// the ORDER BY values. Which ones is a function of the unit's rows and of constants (the seed). The rows are those that were numbered: a
// join makes several of one. So the limit is one of the whole relation only where it has the parts that were numbered, and no other; in a
// join it is one of the part, where only one was numbered, else one of the tuples of all that were (Lemma 12). It is never below 1, as
// LEFT JOIN leaves a row where there is no partner.
//
// *Example.* row_number() OVER (PARTITION BY person_id ORDER BY visit_id) <= 5 leaves 5 visits of a unit, the same ones whoever else is
// there, as visit_id is unique. ORDER BY minutes is refused where another column is read: visits that tie in minutes differ in it.
//
// Nothing in a window raises an error, in any row: a CASE around it leaves no row out. Numbers of rows are constants from 0 (ntile and
// nth_value: 1) to 2^31, offsets of RANGE constants that are not negative, over one number of the same type.

// windows are those of one query.
type windows struct{ all []*run }

type run struct {
	partition, order []*value.Value
	orderForm        string // directions
	sequential       bool
	positional       bool
	solid            []int // what CASE says is not NULL where the value counts
}

// Bits of a frame, in PostgreSQL's WindowDef.
const (
	frameNonDefault, frameRange, frameRows = 0x1, 0x2, 0x4
	unboundedPreceding, untilCurrentRow    = 0x20, 0x400
	untilUnbounded                         = 0x100
	startFollowing, endPreceding           = 0x2000, 0x1000
	startOffset, endOffset                 = 0x800 | startFollowing, endPreceding | 0x4000 // PRECEDING or FOLLOWING
	frameDefault                           = frameRange | unboundedPreceding | untilCurrentRow
	frameKnown                             = 0x7fff // all but EXCLUDE
)

func (s *scope) window(name string, f *pgquery.FuncCall) *value.Value {
	if s.runs == nil || s.group != nil {
		refuse("a window where there may be none")
	}
	d, w := s.d, f.Over
	if w.Name != "" || w.Refname != "" || f.AggDistinct {
		refuse("a named window, or DISTINCT in one")
	}
	x := &run{}
	for _, n := range s.narrow {
		if n.solid {
			x.solid = append(x.solid, n.id)
		}
	}
	in := *s // PostgreSQL computes a window's arguments for every row, in whatever branch of a CASE it stands
	in.narrow = nil
	s = &in
	for _, n := range w.PartitionClause {
		x.partition = append(x.partition, s.loose(n))
	}
	x.partition = s.unscattered(x.partition)
	s.ordered(w.OrderClause, x)
	offsets := s.frame(w, x)
	var args []*value.Value
	for _, n := range f.Args {
		args = append(args, s.expr(n))
	}
	filter := tree.Conjuncts(f.AggFilter, nil)
	if len(filter) > 0 && !value.IsAggregate(name) {
		refuse("FILTER of a window that is no aggregate")
	}
	reads := append(offsets, ids(x.partition)...)
	reads = append(append(reads, ids(x.order)...), ids(args)...)
	for _, n := range filter {
		reads = append(reads, s.truth(n).ID)
	}
	v := s.over(name, f, x, args, filter)
	v.ID = d.Intern("over "+d.Term(d.Fresh()).Op, reads...)
	v.Constant, v.Opaque, v.Whole = false, false, false
	if v.Nulls == nil || len(v.Nulls) > 0 {
		v.Nulls = []int{v.ID}
	}
	v.Anchors, v.Strict, v.Summed, v.Sum = nil, false, nil, nil
	s.runs.all = append(s.runs.all, x)
	return v
}

// ordered reads ORDER BY.
func (s *scope) ordered(list []*pgquery.Node, x *run) {
	var form strings.Builder
	for _, n := range list {
		b := n.GetSortBy()
		if b == nil || len(b.UseOp) > 0 || b.SortbyDir == pgquery.SortByDir_SORTBY_USING ||
			b.SortbyDir == pgquery.SortByDir_SORT_BY_DIR_UNDEFINED || b.SortbyNulls == pgquery.SortByNulls_SORT_BY_NULLS_UNDEFINED {
			refuse("an order that no rule covers")
		}
		v := s.loose(b.Node)
		if v.Kind == value.NoKind || v.Kind == value.Texts {
			refuse("an order of a type that has none")
		}
		x.order = append(x.order, v)
		form.WriteByte('a' + byte(b.SortbyDir))
		form.WriteByte('a' + byte(b.SortbyNulls))
		form.WriteString(v.Collation)
	}
	x.orderForm = form.String()
}

func ids(all []*value.Value) []int {
	list := make([]int, len(all))
	for i, v := range all {
		list[i] = v.ID
	}
	return list
}

// frame reads which rows a window's frame takes.
func (s *scope) frame(w *pgquery.WindowDef, x *run) (reads []int) {
	o := int(w.FrameOptions)
	if o&^frameKnown != 0 {
		refuse("a frame that no rule covers")
	}
	starts, ends := o&startOffset != 0, o&endOffset != 0
	if starts != (w.StartOffset != nil) || ends != (w.EndOffset != nil) {
		refuse("an offset of a frame that has none")
	}
	for _, n := range []*pgquery.Node{w.StartOffset, w.EndOffset} {
		if n == nil {
			continue
		}
		v := s.expr(n)
		at := v.Number()
		if at == nil || at.Sign() < 0 {
			refuse("an offset of a frame that may be negative")
		}
		if o&frameRange != 0 {
			if len(x.order) != 1 || !v.Kind.IsNumber() || v.Kind == value.Float4 || x.order[0].Kind != v.Kind &&
				!(v.Kind.IsInteger() && x.order[0].Kind.IsInteger()) {
				refuse("an offset of RANGE that no rule covers")
			}
		} else if !v.Kind.IsInteger() || at.Cmp(big.NewRat(1<<31, 1)) > 0 {
			refuse("an offset of a frame that is no number of rows")
		}
		reads = append(reads, v.ID)
	}
	x.sequential = o&frameRows != 0
	return reads
}

// windowFunction is a function of windows that is no aggregate.
type windowFunction struct {
	least, most int // arguments
	framed      bool
	sequential  bool
	positional  bool
	value       func(s *scope, name string, x *run, args []*value.Value) *value.Value
}

var windowFunctions = map[string]windowFunction{
	"row_number":   {sequential: true, positional: true, value: (*scope).placing},
	"rank":         {value: (*scope).placing},
	"dense_rank":   {value: (*scope).placing},
	"percent_rank": {value: (*scope).part},
	"cume_dist":    {value: (*scope).part},
	"ntile":        {least: 1, most: 1, sequential: true, positional: true, value: (*scope).ntile},
	"lag":          {least: 1, most: 3, sequential: true, value: (*scope).lag},
	"lead":         {least: 1, most: 3, sequential: true, value: (*scope).lag},
	"first_value":  {least: 1, most: 1, framed: true, sequential: true, value: (*scope).picked},
	"last_value":   {least: 1, most: 1, framed: true, sequential: true, value: (*scope).picked},
	"nth_value":    {least: 2, most: 2, framed: true, sequential: true, value: (*scope).nth},
}

// over is what is known of a window's value.
func (s *scope) over(name string, f *pgquery.FuncCall, x *run, args []*value.Value, filter []*pgquery.Node) *value.Value {
	if value.IsAggregate(name) {
		return s.overAll(name, f, x, args, filter)
	}
	if f.AggStar {
		refuse("a * in a window that is no aggregate")
	}
	w, known := windowFunctions[name]
	if !known || len(args) < w.least || len(args) > w.most || !w.framed && int(f.Over.FrameOptions) != frameDefault {
		refuse("window function %s with these arguments", name)
	}
	x.sequential, x.positional = x.sequential || w.sequential, w.positional
	return w.value(s, name, x, args)
}

// placing is row_number, rank or dense_rank.
func (s *scope) placing(name string, x *run, _ []*value.Value) *value.Value {
	v := s.d.Make(value.Int8, s.d.Fresh())
	v.Within = ranges.Of(1, value.MostRows)
	switch name {
	case "row_number":
		v.Place = s.rel.Placing(ids(x.partition), ids(x.order))
	case "dense_rank":
		v.Place = &value.Place{Dense: true, Partition: ids(x.partition), Order: ids(x.order)}
	}
	return v
}

// part is percent_rank or cume_dist.
func (s *scope) part(string, *run, []*value.Value) *value.Value {
	v := s.d.Make(value.Float8, s.d.Fresh())
	v.Within, v.Grain, v.Same = ranges.Of(0, 1), value.GrainOf(big.NewRat(1, value.MostRows)), true
	return v
}

func (s *scope) ntile(name string, _ *run, args []*value.Value) *value.Value {
	v := s.d.Make(value.Int4, s.d.Fresh())
	v.Within = ranges.Between(ranges.One, rowsOf(name, args[0], 1))
	return v
}

func (s *scope) lag(name string, x *run, args []*value.Value) *value.Value {
	if len(args) > 1 {
		rowsOf(name, args[1], -1<<31+1)
	}
	if len(args) < 3 {
		return s.picked(name, x, args[:1])
	}
	of, other := args[0], args[2]
	if other.Kind != of.Kind && !other.Null && !(of.Kind.IsText() && other.Kind.IsText()) {
		refuse("%s with a default of another type", name)
	}
	return s.picked(name, x, []*value.Value{of, other})
}

func (s *scope) nth(name string, x *run, args []*value.Value) *value.Value {
	rowsOf(name, args[1], 1)
	return s.picked(name, x, args[:1])
}

// rowsOf is a constant number of rows.
func rowsOf(name string, v *value.Value, least int64) *big.Rat {
	if v.Constant && v.Null {
		return ranges.One // the result is NULL
	}
	n := v.Number()
	if n == nil || !v.Kind.IsInteger() || n.Cmp(big.NewRat(least, 1)) < 0 || n.Cmp(big.NewRat(1<<31, 1)) > 0 {
		refuse("%s of a number of rows that is no constant", name)
	}
	return n
}

// picked is one of several rows' values, or NULL.
func (s *scope) picked(_ string, _ *run, all []*value.Value) *value.Value {
	for _, v := range all {
		if v.Vague {
			refuse("a window picks a value that stands for several")
		}
	}
	v := s.d.Choice("picked", all, nil)
	v.Nulls = []int{v.ID}
	if v.Kind == value.Text && all[0].Kind == value.Char {
		refuse("a window picks from character and text")
	}
	return v
}

// overAll is an aggregate over a window.
func (s *scope) overAll(name string, f *pgquery.FuncCall, x *run, args []*value.Value, filter []*pgquery.Node) *value.Value {
	d := s.d
	if f.AggStar != (len(args) == 0) || len(args) > 1 || f.AggStar && name != "count" {
		refuse("an aggregate of %d arguments over a window", len(args))
	}
	g := &grouping{Group: value.Group{Number: d.Fresh()}, keys: make(map[int]*value.Value)}
	inner := *s
	inner.group, inner.runs = g, nil
	call := &pgquery.FuncCall{Funcname: f.Funcname, Args: f.Args, AggFilter: f.AggFilter, AggStar: f.AggStar, Funcformat: f.Funcformat}
	v := *inner.aggregate(name, call)
	if name == "sum" && len(args) == 1 && args[0].Summed != nil && args[0].Summed.Count {
		v.Running = s.runOf(f.Over, x, args[0], filter)
		if v.Running != nil {
			v.Within, v.Digits, v.Scale, v.Same = ranges.Between(ranges.Zero, new(big.Rat).SetInt64(1<<62)), 0, 0, true
		}
	}
	if name == "sum" && len(args) == 1 && v.Running == nil {
		v.Running = s.totalRun(f.Over, x, args[0], filter)
	}
	v.Sum, v.Split = nil, nil
	s.slides(name, f.Over, x, args)
	return &v
}

// runOf recognises the two sums of Lemma 5.
func (s *scope) runOf(w *pgquery.WindowDef, x *run, n *value.Value, filter []*pgquery.Node) *value.WindowSum {
	p := &value.WindowSum{Added: n.ID, Partition: ids(x.partition), Of: s.number, Parts: s.rel.Numbers()}
	slices.Sort(p.Partition)
	switch {
	case len(x.order) == 0 && int(w.FrameOptions) == frameDefault && len(filter) == 1:
		t := filter[0].GetNullTest()
		if t == nil || t.Nulltesttype != pgquery.NullTestType_IS_NOT_NULL {
			return nil
		}
		p.Over = s.loose(t.Arg).ID
	case len(x.order) == 1 && x.orderForm == orderDefault &&
		int(w.FrameOptions) == frameNonDefault|frameRows|unboundedPreceding|untilCurrentRow && len(filter) == 0:
		p.Upto, p.Over = true, x.order[0].ID
	default:
		return nil
	}
	if rows := s.rel.Rows(s.d.Proof, append(ids(x.partition), p.Over), false); rows == nil || rows.Cmp(big.NewInt(1)) > 0 {
		return nil
	}
	return p
}

// orderDefault is the form of ORDER BY x: ascending, NULLs last.
var orderDefault = string([]byte{'a' + byte(pgquery.SortByDir_SORTBY_DEFAULT), 'a' + byte(pgquery.SortByNulls_SORTBY_NULLS_DEFAULT)})

// settle refuses windows whose values depend on the order of rows that tie.
func (s *scope) settle(r *relation.Relation) {
	d := s.d
	var shared *run
	for _, x := range s.runs.all {
		if !x.sequential || s.untied(x) {
			continue
		}
		if shared == nil {
			shared = x
		}
		if !slices.Equal(ids(x.partition), ids(shared.partition)) || !slices.Equal(ids(x.order), ids(shared.order)) ||
			x.orderForm != shared.orderForm {
			refuse("windows in several orders in which rows may tie")
		}
	}
	if shared == nil {
		return
	}
	seen := make(map[int]bool)
	var read func(id int)
	read = func(id int) {
		defer steps.Visit(s.d.Steps).Leave()
		if seen[id] || shared.tells(d, id) {
			return
		}
		seen[id] = true
		t := d.Term(id)
		if len(t.Args) == 0 {
			if strings.HasPrefix(t.Op, "#") {
				refuse("rows that tie in a window may differ in a column that is read")
			}
			return
		}
		for _, a := range t.Args {
			if a >= 0 {
				read(a)
			}
		}
	}
	for _, c := range r.Columns {
		read(c.Value.ID)
	}
}

// untied reports whether no two rows of a partition tie, or only rows where the value does not count.
func (s *scope) untied(x *run) bool {
	given := append(ids(x.partition), ids(x.order)...)
	r := *s.rel
	if x.positional && len(x.solid) > 0 {
		r.Solid = make(map[int]bool)
		for id := range s.rel.Solid {
			r.Solid[id] = true
		}
		for _, id := range x.solid {
			r.Solid[id] = true
		}
	}
	rows := r.Rows(s.d.Proof, given, slices.ContainsFunc(x.partition, func(v *value.Value) bool {
		return relation.Names(v, s.rel) && slices.Contains(s.rel.Roots, v.ID)
	}))
	return rows != nil && rows.Cmp(big.NewInt(1)) <= 0
}

// tells reports whether rows that agree in the sort keys and the partition are identical in a value.
func (x *run) tells(d *derivation, id int) bool {
	asText, octets := false, false
	for _, v := range append(slices.Clone(x.order), x.partition...) {
		if v.ID == id && v.Same {
			return true
		}
		t := d.Term(v.ID)
		if len(t.Args) == 1 && t.Args[0] == id {
			asText = asText || t.Op == "text"
			octets = octets || t.Op == "octet_length"
		}
	}
	of := d.Value(id)
	if !asText || of == nil {
		return false
	}
	return of.Kind == value.Numeric || of.Kind.IsFloat() || octets && of.Kind == value.Char
}
