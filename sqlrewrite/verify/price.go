package verify

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

func capped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func product(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// price is what one evaluation of a node takes, in ns, and what it takes more where the elements of an array are compared one by one.
func (d *Terms) price(n *pgquery.Node, v *value, operands []measure) (ns, listed int64) {
	ns = takes(n, v, operands)
	if n.GetColumnRef() != nil && v.id >= 0 && d.term(v.id).op == shortForm {
		ns += shortTakes // PostgreSQL writes the form out wherever it is named
	}
	if n.GetAExpr().GetKind() == pgquery.A_Expr_Kind_AEXPR_OP_ANY {
		listed = max(0, product(textCompared, operands[1].items)-ns)
	}
	return ns, listed
}

// compiles is the regular expression that a node compiles, with its operator; "": none.
func compiles(n *pgquery.Node, operands []measure) string {
	if _, op := calledBy(n); len(operands) == 2 && strings.Contains(op, "~") {
		return op + operands[1].text
	}
	return ""
}

// takes is what one evaluation of a node takes, in ns, wherever it stands.
func takes(n *pgquery.Node, v *value, operands []measure) int64 {
	at := func(i int) measure {
		if i < len(operands) {
			return operands[i]
		}
		return measure{}
	}
	a, b := at(0), at(1)
	switch e := n.GetNode().(type) {
	case *pgquery.Node_ColumnRef:
		if long := v.longest[0] + v.longest[1]; v.kind == numeric && long > readDigits { // it is copied, and read from elsewhere if it is longer
			return capped(plain/4, long/2)
		}
		return plain / 4
	case *pgquery.Node_CaseExpr:
		if tree.Short(e.CaseExpr) != nil {
			return shortTakes
		}
		return plain
	case *pgquery.Node_TypeCast:
		return castTakes(a, v.kind)
	case *pgquery.Node_AExpr:
		switch e.AExpr.Kind {
		case pgquery.A_Expr_Kind_AEXPR_LIKE, pgquery.A_Expr_Kind_AEXPR_ILIKE:
			return likeTakes(a, b, e.AExpr.Kind == pgquery.A_Expr_Kind_AEXPR_ILIKE)
		case pgquery.A_Expr_Kind_AEXPR_OP:
			return operators[tree.Operator(e.AExpr.Name)].ns(operands)
		case pgquery.A_Expr_Kind_AEXPR_IN:
			if count := int64(len(operands)) - 1; count <= 8 || tree.Operator(e.AExpr.Name) == "<>" {
				return product(count, comparing("=", a, a))
			}
			total := comparing("=", a, a)
			for _, o := range operands[1:] {
				if a.kind.isText() || a.kind == numeric || a.kind == interval || o.kind == numeric {
					total = capped(total, 60+o.length()/10)
				} else {
					total = capped(total, 16)
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
			total = capped(total, 100+5*operands[i+1].length())
		}
		return total
	case *pgquery.Node_FuncCall:
		return callTakes(e.FuncCall, operands)
	default:
		return plain
	}
}

func callTakes(f *pgquery.FuncCall, operands []measure) int64 {
	name := tree.Builtin(f.Funcname)
	switch price := functions[name].ns; {
	case f.Over != nil && name == "row_number":
		return numberRow
	case f.Over != nil:
		return windowRow
	case isAggregate(name):
		return plain
	case price != nil:
		return price(operands)
	default:
		return ordinary(operands)
	}
}

func thousandths(n int64) int64 { return capped(n, 999) / 1000 }

func castTakes(a measure, to kind) int64 {
	switch {
	case a.kind == to:
		return 0
	case to.isText() && a.kind.isText():
		return 200 + 6*a.bytes
	case to.isText():
		return 500 + 4*a.length()
	case a.kind == numeric && to.isFloat():
		return 200 + 10*a.length()
	case to.isNumber() && to != numeric && a.kind != numeric:
		return plain
	default:
		return 500
	}
}

// perComparison is what it takes LIKE to compare a byte.
const perComparison = 7

func likeTakes(a, b measure, folded bool) int64 {
	times := b.bytes // of a pattern that is not known
	if b.read {
		times = depthOf(b.text, folded)
	}
	if folded {
		return 1000 + 20*(a.bytes+b.bytes) + product(a.bytes*3/2*perComparison, 1+times)
	}
	return 200 + product(a.bytes*perComparison, 1+times)
}

func comparing(op string, a, b measure) int64 {
	switch {
	case a.kind.isText() && (op == "=" || op == "<>"):
		return 200 + a.bytes + b.bytes
	case a.kind.isText():
		return 200 + 5*(a.bytes+b.bytes)
	case a.kind.isFloat() && b.kind == numeric || a.kind == numeric && b.kind.isFloat():
		return 400 + 10*(a.length()+b.length())
	case a.kind == numeric || b.kind == numeric:
		return 200 + (a.length()+b.length())/2
	case a.kind == interval:
		return 500
	default:
		return plain
	}
}

// lengths is a price of so many ns, and some for each byte or digit of all operands.
func lengths(ns, each int64) func([]measure) int64 {
	return func(operands []measure) int64 { return ns + each*lengthOf(operands) }
}

func lengthOf(operands []measure) (length int64) {
	for _, o := range operands {
		length += o.length()
	}
	return length
}

// ordinary is the price of a function without one of its own.
func ordinary(operands []measure) int64 {
	if operands[0].kind.isText() {
		return 200 + 5*lengthOf(operands)
	}
	return 200 + 2*lengthOf(operands)
}

func hashes(operands []measure) int64 { return 100 + lengthOf(operands)/2 }

func looksUp(o []measure) int64 { return 300 + product(textCompared, o[0].items) }

func formats(o []measure) int64 { return 1000 + 100*o[1].bytes }

func joins(o []measure) int64 { return 200 + thousandths(200*(o[0].bytes+o[1].bytes)) }

func matches(o []measure) int64 {
	states := int64(unknownBytes)
	if o[1].read {
		states = statesOf(o[1].text)
	}
	return 2000 + 2*o[0].bytes + product(o[0].bytes/4*5+5, states)
}

// calculates is the price of an operator on numerics, and on what is none.
func calculates(numerics func(a, b measure) int64) func([]measure) int64 {
	return func(o []measure) int64 {
		a, b := o[0], o[1]
		switch {
		case a.kind == interval, b.kind == interval, a.kind.isTime(), b.kind.isTime():
			return 500
		case a.kind != numeric && b.kind != numeric:
			return plain
		default:
			return numerics(a, b)
		}
	}
}

func adds(a, b measure) int64 { return 200 + 2*(a.length()+b.length()) }

func multiplies(a, b measure) int64 {
	return 500 + thousandths(500*product(a.fours(), b.fours())) + a.length() + b.length()
}

func divides(whole bool) func(a, b measure) int64 {
	return func(a, b measure) int64 {
		return 500 + product(4*quotientFours(a, b, whole), b.fours()) + a.length() + b.length()
	}
}

func divTakes(o []measure) int64 {
	if o[0].kind != numeric && o[1].kind != numeric {
		return 100
	}
	return divides(true)(o[0], o[1])
}

func bucketsTake(operands []measure) int64 {
	wide, numerics := measure{whole: 11}, false
	for _, o := range operands {
		wide.whole, wide.scale, numerics = max(wide.whole, o.whole+11), max(wide.scale, o.scale), numerics || o.kind == numeric
	}
	if !numerics {
		return 100
	}
	return 1000 + product(4*quotientFours(wide, wide, false), wide.fours()) + lengthOf(operands)
}

func trims(operands []measure) int64 {
	cut := int64(1)
	if len(operands) > 1 {
		cut = max(1, operands[1].bytes)
	}
	return 500 + 2*lengthOf(operands) + product(5*operands[0].bytes, cut)
}

func finds(o []measure) int64 {
	depth := max(1, o[1].bytes)
	if o[1].read {
		depth = 1 + needleOf(o[1].text)
	}
	return 500 + 2*lengthOf(o) + product(o[0].bytes, depth)
}
