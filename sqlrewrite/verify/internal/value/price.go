package value

import (
	"math"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// What operations take, in ns.
const (
	plain     = 40 // on numbers that fit into a register, a test, a choice
	windowRow = 1500
	numberRow = 2500

	textCompared = 20 // a text with an element of an array

	readDigits = 2 * tree.ShortDigits // of a numeric, that take no time to be read
	shortTakes = 500                  // to tell a short numeric, and to write it in one form
)

func Capped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func Product(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// price is what one evaluation of a node takes, in ns, and what it takes more where the elements of an array are compared one by one.
func (d *Terms) Price(n *pgquery.Node, v *Value, operands []Measure) (ns, listed int64) {
	ns = takes(n, v, operands)
	if n.GetColumnRef() != nil && v.ID >= 0 && d.Term(v.ID).Op == shortForm {
		ns += shortTakes // PostgreSQL writes the form out wherever it is named
	}
	if n.GetAExpr().GetKind() == pgquery.A_Expr_Kind_AEXPR_OP_ANY {
		listed = max(0, Product(textCompared, operands[1].items)-ns)
	}
	return ns, listed
}

// compiles is the regular expression that a node compiles, with its operator; "": none.
func Compiles(n *pgquery.Node, operands []Measure) string {
	if _, op := calledBy(n); len(operands) == 2 && strings.Contains(op, "~") {
		return op + operands[1].text
	}
	return ""
}

// takes is what one evaluation of a node takes, in ns, wherever it stands.
func takes(n *pgquery.Node, v *Value, operands []Measure) int64 {
	at := func(i int) Measure {
		if i < len(operands) {
			return operands[i]
		}
		return Measure{}
	}
	a, b := at(0), at(1)
	switch e := n.GetNode().(type) {
	case *pgquery.Node_ColumnRef:
		if long := v.longest[0] + v.longest[1]; v.Kind == Numeric && long > readDigits { // it is copied, and read from elsewhere if it is longer
			return Capped(plain/4, long/2)
		}
		return plain / 4
	case *pgquery.Node_CaseExpr:
		if tree.Short(e.CaseExpr) != nil {
			return shortTakes
		}
		return plain
	case *pgquery.Node_TypeCast:
		return castTakes(a, v.Kind)
	case *pgquery.Node_AExpr:
		switch e.AExpr.Kind {
		case pgquery.A_Expr_Kind_AEXPR_LIKE, pgquery.A_Expr_Kind_AEXPR_ILIKE:
			return likeTakes(a, b, e.AExpr.Kind == pgquery.A_Expr_Kind_AEXPR_ILIKE)
		case pgquery.A_Expr_Kind_AEXPR_OP:
			return operators[tree.Operator(e.AExpr.Name)].ns(operands)
		case pgquery.A_Expr_Kind_AEXPR_IN:
			if count := int64(len(operands)) - 1; count <= 8 || tree.Operator(e.AExpr.Name) == "<>" {
				return Product(count, comparing("=", a, a))
			}
			total := comparing("=", a, a)
			for _, o := range operands[1:] {
				if a.kind.IsText() || a.kind == Numeric || a.kind == Interval || o.kind == Numeric {
					total = Capped(total, 60+o.length()/10)
				} else {
					total = Capped(total, 16)
				}
			}
			return total
		case pgquery.A_Expr_Kind_AEXPR_OP_ANY:
			return 300 + a.bytes
		default:
			return comparing("=", a, b)
		}
	case *pgquery.Node_MinMaxExpr:
		total := int64(0)
		for i := range operands[min(1, len(operands)):] {
			total = Capped(total, 100+5*operands[i+1].length())
		}
		return total
	case *pgquery.Node_FuncCall:
		return callTakes(e.FuncCall, operands)
	default:
		return plain
	}
}

func callTakes(f *pgquery.FuncCall, operands []Measure) int64 {
	name := tree.Builtin(f.Funcname)
	switch price := functions[name].ns; {
	case f.Over != nil && name == "row_number":
		return numberRow
	case f.Over != nil:
		return windowRow
	case IsAggregate(name):
		return plain
	case price != nil:
		return price(operands)
	default:
		return ordinary(operands)
	}
}

func thousandths(n int64) int64 { return Capped(n, 999) / 1000 }

func castTakes(a Measure, to kind) int64 {
	switch {
	case a.kind == to:
		return 0
	case to.IsText() && a.kind.IsText():
		return 200 + 6*a.bytes
	case to.IsText():
		return 500 + 4*a.length()
	case a.kind == Numeric && to.IsFloat():
		return 200 + 10*a.length()
	case to.IsNumber() && to != Numeric && a.kind != Numeric:
		return plain
	default:
		return 500
	}
}

// perComparison is what it takes LIKE to compare a byte.
const perComparison = 7

func likeTakes(a, b Measure, folded bool) int64 {
	times := b.bytes // of a pattern that is not known
	if b.read {
		times = depthOf(b.text, folded)
	}
	if folded {
		return 1000 + 20*(a.bytes+b.bytes) + Product(a.bytes*3/2*perComparison, 1+times)
	}
	return 200 + Product(a.bytes*perComparison, 1+times)
}

func comparing(op string, a, b Measure) int64 {
	switch {
	case a.kind.IsText() && (op == "=" || op == "<>"):
		return 200 + a.bytes + b.bytes
	case a.kind.IsText():
		return 200 + 5*(a.bytes+b.bytes)
	case a.kind.IsFloat() && b.kind == Numeric || a.kind == Numeric && b.kind.IsFloat():
		return 400 + 10*(a.length()+b.length())
	case a.kind == Numeric || b.kind == Numeric:
		return 200 + (a.length()+b.length())/2
	case a.kind == Interval:
		return 500
	default:
		return plain
	}
}

// lengths is a price of so many ns, and some for each byte or digit of all operands.
func lengths(ns, each int64) func([]Measure) int64 {
	return func(operands []Measure) int64 { return ns + each*lengthOf(operands) }
}

func lengthOf(operands []Measure) (length int64) {
	for _, o := range operands {
		length += o.length()
	}
	return length
}

// ordinary is the price of a function without one of its own.
func ordinary(operands []Measure) int64 {
	if operands[0].kind.IsText() {
		return 200 + 5*lengthOf(operands)
	}
	return 200 + 2*lengthOf(operands)
}

func hashes(operands []Measure) int64 { return 100 + lengthOf(operands)/2 }

func looksUp(o []Measure) int64 { return 300 + Product(textCompared, o[0].items) }

func formats(o []Measure) int64 { return 1000 + 100*o[1].bytes }

func joins(o []Measure) int64 { return 200 + thousandths(200*(o[0].bytes+o[1].bytes)) }

func matches(o []Measure) int64 {
	states := int64(unknownBytes)
	if o[1].read {
		states = statesOf(o[1].text)
	}
	return 2000 + 2*o[0].bytes + Product(o[0].bytes/4*5+5, states)
}

// calculates is the price of an operator on numerics, and on what is none.
func calculates(numerics func(a, b Measure) int64) func([]Measure) int64 {
	return func(o []Measure) int64 {
		a, b := o[0], o[1]
		switch {
		case a.kind == Interval, b.kind == Interval, a.kind.IsTime(), b.kind.IsTime():
			return 500
		case a.kind != Numeric && b.kind != Numeric:
			return plain
		default:
			return numerics(a, b)
		}
	}
}

func adds(a, b Measure) int64 { return 200 + 2*(a.length()+b.length()) }

func multiplies(a, b Measure) int64 {
	return 500 + thousandths(500*Product(a.fours(), b.fours())) + a.length() + b.length()
}

func divides(whole bool) func(a, b Measure) int64 {
	return func(a, b Measure) int64 {
		return 500 + Product(4*quotientFours(a, b, whole), b.fours()) + a.length() + b.length()
	}
}

func divTakes(o []Measure) int64 {
	if o[0].kind != Numeric && o[1].kind != Numeric {
		return 100
	}
	return divides(true)(o[0], o[1])
}

func bucketsTake(operands []Measure) int64 {
	wide, numerics := Measure{whole: 11}, false
	for _, o := range operands {
		wide.whole, wide.scale, numerics = max(wide.whole, o.whole+11), max(wide.scale, o.scale), numerics || o.kind == Numeric
	}
	if !numerics {
		return 100
	}
	return 1000 + Product(4*quotientFours(wide, wide, false), wide.fours()) + lengthOf(operands)
}

func trims(operands []Measure) int64 {
	cut := int64(1)
	if len(operands) > 1 {
		cut = max(1, operands[1].bytes)
	}
	return 500 + 2*lengthOf(operands) + Product(5*operands[0].bytes, cut)
}

func finds(o []Measure) int64 {
	depth := max(1, o[1].bytes)
	if o[1].read {
		depth = 1 + needleOf(o[1].text)
	}
	return 500 + 2*lengthOf(o) + Product(o[0].bytes, depth)
}
