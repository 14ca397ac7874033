package costs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/syntax"
)

// size is how large operands are: characters of texts, digits of numerics, elements of lists.
type size struct{ characters, digits, items int }

// The smallest operands, then those of n, 2n and 4n: a computed text counts by its first 200 characters, and numerics stay below 10^300.
var sizes = []size{{2, 4, 1}, {50, 36, 250}, {100, 72, 500}, {200, 144, 1000}}

// columns are a table's, by name: their types for operands of a size. Two of a kind are operands of one operation.
var columns = []struct {
	name string
	of   func(size) string
	pg   string
}{
	{"t", func(s size) string { return fmt.Sprintf("varchar(%d)", s.characters) }, "text"},
	{"u", func(s size) string { return fmt.Sprintf("varchar(%d)", s.characters) }, "text"},
	{"n", func(s size) string { return fmt.Sprintf("numeric(%d,0)", s.digits) }, "numeric"},
	{"m", func(s size) string { return fmt.Sprintf("numeric(%d,0)", s.digits) }, "numeric"},
	{"q", func(s size) string { return fmt.Sprintf("numeric(%d,%d)", s.digits, s.digits) }, "numeric"},
	{"r", func(s size) string { return fmt.Sprintf("numeric(%d,%d)", s.digits, s.digits/2) }, "numeric"},
	{"f", func(size) string { return "double" }, "float8"},
	{"g", func(size) string { return "real" }, "float4"},
	{"i", func(size) string { return "bigint" }, "int8"},
	{"j", func(size) string { return "integer" }, "int4"},
	{"h", func(size) string { return "smallint" }, "int2"},
	{"b", func(size) string { return "boolean" }, "boolean"},
	{"d", func(size) string { return "date" }, "date"},
	{"a", func(size) string { return "timestamp" }, "timestamp"},
	{"c", func(size) string { return "timestamp" }, "timestamp"},
	{"z", func(size) string { return "timestamptz" }, "timestamptz"},
	{"e", func(size) string { return "enum(a,bb,c)" }, "public.mood"},
	{"x", func(size) string { return "uuid" }, "uuid"},
	{"y", func(size) string { return "uuid" }, "uuid"},
	{"k", func(size) string { return "char" }, "bpchar"},
	{"l", func(size) string { return "text" }, "text"},
}

const costPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  t:
    unit: {row: id}
    columns:
      j: {bounds: [-1000, 1000]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// worldOf is what the rewriter knows of the table with operands of a size.
func worldOf(t testing.TB, s size) *catalog.Snapshot {
	t.Helper()
	lines := "t\n  id integer not null unique\n"
	for _, c := range columns {
		lines += "  " + c.name + " " + c.of(s) + "\n"
	}
	return rewritetest.ParseSnapshot(t, lines, costPolicy)
}

// hole is a constant in a form, whose text a search may change.
type hole int

const (
	textHole hole = iota
	patternHole
	regexHole
	setHole
	fieldHole
	templateHole
	numberHole
	placeHole
	spanHole
	listHole
)

// form is an expression as an analyst writes it, with %s where a constant stands.
type form struct {
	sql   string
	holes []hole
	known []string // constants that are taken; nil: none is known

	template template
	operands []form
}

// written is the form with constants.
func (f form) written(constants []string) string {
	args := make([]any, len(constants))
	for i, c := range constants {
		switch f.holes[i] {
		case numberHole, placeHole, listHole:
			args[i] = c
		default:
			args[i] = "'" + strings.ReplaceAll(c, "'", "''") + "'"
		}
	}
	return fmt.Sprintf(f.sql, args...)
}

// columnOperands and constantOperands are what operations are tried on.
var (
	columnOperands = func() (all []form) {
		for _, c := range columns {
			all = append(all, form{sql: c.name})
		}
		return append(all, form{sql: "(a - c)"})
	}()
	constantOperands = []form{constantOf(textHole), constantOf(fieldHole), constantOf(templateHole), constantOf(setHole),
		constantOf(numberHole), constantOf(placeHole), {sql: "INTERVAL %s", holes: []hole{spanHole}}}
	candidates = slices.Concat(columnOperands, constantOperands)
)

func constantOf(h hole) form { return form{sql: "%s", holes: []hole{h}} }

// template is an operation as an analyst writes it: one or two operands, then constants.
type template struct {
	sql  string
	free int // operands
	then []form
}

// of is the template with operands.
func (t template) of(operands ...form) form {
	f := form{template: t, operands: operands}
	all := slices.Concat(operands, t.then)
	args := make([]any, len(all))
	for i, o := range all {
		args[i] = o.sql
		f.holes = append(f.holes, o.holes...)
		if f.known = append(f.known, o.known...); o.known == nil {
			f.known = append(f.known, make([]string, len(o.holes))...)
		}
	}
	f.sql = fmt.Sprintf(t.sql, args...)
	return f
}

// templates are all operations that the rewriter may take: each function of its table, each operator of its syntax, each cast, and the
// tests that have a syntax of their own.
func templates() (all []template) {
	add := func(sql string, free int, then ...form) { all = append(all, template{sql, free, then}) }
	add(itself, 1)
	for _, f := range domain.Builtins {
		if f.Kind != domain.RowFunction {
			continue
		}
		if f.Args.Takes(1) {
			add(f.Name+"(%s)", 1)
		}
		if f.Args.Takes(2) {
			add(f.Name+"(%s, %s)", 2)
		}
		if f.Args.Takes(3) && !f.Args.Takes(10) {
			add(f.Name+"(%s, %s, %s)", 1, constantOf(textHole), constantOf(placeHole))
		}
		for _, y := range constantOperands {
			if f.Args.Takes(3) && !f.Args.Takes(10) { // of any number, two say it all
				add(f.Name+"(%s, %s, %s)", 1, y, y)
			}
			if f.Args.Takes(4) && !f.Args.Takes(10) {
				add(f.Name+"(%s, %s, %s, %s)", 1, y, y, constantOf(placeHole))
			}
		}
	}
	for _, op := range syntax.Operators {
		add("("+string(op)+" %s)", 1)
		add("(%s "+string(op)+" %s)", 2)
	}
	for _, to := range scalar.CastTypes() {
		add("(%s)::"+to, 1)
	}
	for _, test := range []string{"(%s IS NULL)", "(%s IS TRUE)", "CASE WHEN b THEN %s END"} {
		add(test, 1)
	}
	add("(%s IS DISTINCT FROM %s)", 2)
	for _, field := range starts(fieldHole, sizes[1]) {
		add("extract("+field+" FROM %s)", 1)
	}
	add("date_bin('7 days 00:00:01', %s, '2001-02-03 04:05')", 1)
	for _, zone := range []string{"America/New_York", "Asia/Gaza"} { // the second has the most changes
		add("(%s AT TIME ZONE '"+zone+"')", 1)
	}
	for op, h := range map[string]hole{"LIKE": patternHole, "ILIKE": patternHole, "~": regexHole, "~*": regexHole, "SIMILAR TO": regexHole} {
		add("(%s "+op+" %s)", 1, constantOf(h))
	}
	for _, flags := range []string{"", ", 'i'", ", 'g'"} {
		add("regexp_replace(%s, %s, 'xyz'"+flags+")", 1, constantOf(regexHole))
	}
	add("(%s IN (%s))", 1, constantOf(listHole))
	add("(%s NOT IN (%s))", 1, constantOf(listHole))
	slices.SortFunc(all, func(a, b template) int { return strings.Compare(a.sql, b.sql) })
	return all
}

// forms are all operations over each choice of operands.
func forms() (all []form) {
	for _, t := range templates() {
		for _, x := range candidates {
			if t.free == 1 {
				all = append(all, t.of(x))
				continue
			}
			for _, y := range beside(x) {
				all = append(all, t.of(x, y))
			}
		}
	}
	return all
}

// pairs are operations over what other operations compute: each in place of a column of its type, beside a column or a constant.
func pairs(single []taken) (all []form) {
	typeOf := make(map[string]catalog.Type)
	for _, x := range single {
		if x.form.template.sql == itself {
			typeOf[x.form.operands[0].sql] = algebra.CarrierOf(x.e)
		}
	}
	seen := make(map[string]bool)
	first := func(parts ...any) bool {
		id := fmt.Sprint(parts...)
		defer func() { seen[id] = true }()
		return !seen[id]
	}
	inner := make(map[catalog.Type][]form) // one of each operation
	for _, x := range single {
		if t := algebra.CarrierOf(x.e); x.form.template.sql != itself && !algebra.IsConstant(x.e) && first(key(root(x.e)), t) {
			g := x.form
			g.known = x.constants
			inner[t] = append(inner[t], g)
		}
	}
	for _, x := range single {
		for i, o := range x.form.operands {
			t, isColumn := typeOf[o.sql]
			beside := make([]bool, len(x.form.operands))
			for k, y := range x.form.operands {
				beside[k] = y.holes != nil
			}
			if !isColumn || x.form.template.sql == itself || !first(x.form.template.sql, i, t, beside) {
				continue
			}
			for _, g := range inner[t] {
				operands := slices.Clone(x.form.operands)
				operands[i] = g
				all = append(all, x.form.template.of(operands...))
			}
		}
	}
	return all
}

// itself is the template of columns.
const itself = "%s"

// beside are the operands that stand beside one: no column twice, since equal values are no worst case of most operations.
func beside(x form) []form {
	return slices.DeleteFunc(slices.Clone(candidates), func(y form) bool { return x.holes == nil && y.sql == x.sql })
}

// bound is an expression as the rewriter computes it; an error where it does not take it.
func bound(text string, snapshot *catalog.Snapshot) (algebra.Expr, error) {
	query, err := parse.Parse("SELECT count("+text+") FROM t", "")
	if err != nil {
		return nil, err
	}
	b, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
	switch {
	case err != nil:
		return nil, err
	case len(b.Statistics) == 0 || b.Statistics[0].X == nil:
		return nil, errNothing
	}
	return b.Statistics[0].X, nil
}

// errNothing says that an expression needs no row.
var errNothing = errors.New("nothing is computed")

// refused reports whether an error is a refusal, as opposed to a mistake of the rewriter.
func refused(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code != fault.CodeInternal
}

// within are an expression and all that it is computed of, in an order that depends on its form alone.
func within(e algebra.Expr) []algebra.Expr {
	if e == nil {
		return nil
	}
	var all []algebra.Expr
	if _, wrapped := e.(algebra.Computed); !wrapped {
		all = append(all, e)
	}
	for _, x := range algebra.Children(e) {
		all = append(all, within(x)...)
	}
	return all
}

// operands are what an operation is computed of.
func operands(e algebra.Expr) []algebra.Expr { return algebra.Children(e) }

// isOperation reports whether an expression computes something; a column does, as it is read.
func isOperation(e algebra.Expr) bool {
	switch e.(type) {
	case algebra.Constant, algebra.Computed, algebra.Collate:
		return false
	}
	return true
}

// keys are the names of an operation in the table of prices.
func keys(e algebra.Expr) []string {
	if _, ok := e.(algebra.Column); ok {
		return nil
	}
	in, ok := e.(algebra.In)
	if !ok {
		return []string{stability.CostKey(e)}
	}
	if equal := "= " + stability.KindOfType(in.X.Typ()); len(in.List) <= 8 || in.Not {
		return []string{equal}
	} else {
		return []string{equal, "in list", "in long list"}
	}
}

// key names an operation in reports.
func key(e algebra.Expr) string {
	switch e := e.(type) {
	case algebra.Column:
		return "column " + string(e.Of.Type)
	case algebra.In:
		if e.Not {
			return "NOT IN " + stability.KindOfType(e.X.Typ())
		}
		return "IN " + stability.KindOfType(e.X.Typ())
	case algebra.Like:
		if e.Regex && e.CaseInsensitive {
			return "~*"
		}
	}
	return stability.CostKey(e)
}

// shape is what operations have in common whose time is searched for once: the operation, and what its operands are.
func shape(e algebra.Expr) string {
	if c, ok := e.(algebra.Column); ok {
		return key(e) + "(" + c.Of.Name + ")"
	}
	all := operands(e)
	if in, ok := e.(algebra.In); ok { // lists are longer and shorter
		all = []algebra.Expr{in.X, in.List[0]}
	}
	var parts []string
	for _, x := range all {
		what := string(algebra.CarrierOf(x))
		if algebra.IsConstant(x) {
			what += " constant"
		}
		if x.Typ() == catalog.Numeric {
			for _, leaf := range within(x) {
				if c, ok := leaf.(algebra.Column); ok && c.Of.Type == catalog.Numeric {
					what += " " + strings.Replace(c.Of.Name, "m", "n", 1)
				}
			}
		}
		if len(parts) < 4 {
			parts = append(parts, what)
		}
	}
	return key(e) + "(" + strings.Join(parts, ", ") + ")"
}
