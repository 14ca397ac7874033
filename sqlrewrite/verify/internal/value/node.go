package value

import (
	"math/big"
	"strings"
	"unicode/utf8"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// calledBy gives the function or the operator of a node.
func calledBy(n *pgquery.Node) (name, op string) {
	if f := n.GetFuncCall(); f != nil {
		return tree.Builtin(f.Funcname), ""
	}
	if e := n.GetAExpr(); e != nil && len(e.Name) == 1 && e.Kind == pgquery.A_Expr_Kind_AEXPR_OP {
		return "", tree.Operator(e.Name)
	}
	return "", ""
}

// Measured gives the size of a value whose node has these operands. It notes the digits of a numeric.
func (v *Value) Measured(n *pgquery.Node, operands []Measure) Measure {
	m := Measure{Kind: v.Kind, constant: v.Constant, read: v.read() && !v.Null, text: v.text, items: int64(v.size)}
	switch {
	case v.Constant && v.Null:
	case v.Kind.IsText() || v.Kind == Enum:
		m.bytes = textBytes(n, v, operands)
		if m.letters = m.bytes; v.Chars > 0 {
			m.letters = min(m.bytes, int64(v.Chars))
		}
	case v.Kind == Numeric:
		m.whole, m.scale = numericDigits(n, v, operands)
	}
	if v.Kind == Numeric && v.longest == (places{}) {
		v.longest = places{m.whole, m.scale}
	}
	return m
}

func textBytes(n *pgquery.Node, v *Value, operands []Measure) int64 {
	if v.read() {
		return int64(len(v.text))
	}
	most := int64(0)
	lower := func(bytes int64) {
		if bytes > 0 && (most == 0 || bytes < most) {
			most = bytes
		}
	}
	lower(v.Octets)
	lower(v.Bytes)
	if v.Chars > 0 {
		lower(utf8.UTFMax * int64(v.Chars))
	}
	name, op := calledBy(n)
	if f := functions[name]; f.bytes != nil {
		lower(f.bytes(operands))
	} else if f := operators[op]; f.bytes != nil {
		lower(f.bytes(operands))
	} else if n.GetTypeCast() != nil {
		lower(ofAll(operands))
	}
	switch {
	case most > 0:
		return most
	case v.Kind == Enum:
		return labelBytes
	case n.GetColumnRef() != nil || ofAll(operands) >= storedBytes:
		return storedBytes
	default:
		return unknownBytes
	}
}

func numericDigits(n *pgquery.Node, v *Value, operands []Measure) (whole, scale int64) {
	_, op := calledBy(n)
	most := v.longest
	if most == (places{}) {
		for _, o := range operands {
			if of := (places{o.whole, o.scale}); op == "*" {
				most = places{most[0] + of[0], most[1] + of[1]}
			} else if o.Kind == Numeric {
				most = most.longer(of)
			}
		}
		most = most.longer(most)
	}
	whole, scale = most[0], most[1]
	if most := v.Within.Most(); v.Within.Finite() && most != nil {
		whole = int64(len(new(big.Int).Quo(most.Num(), most.Denom()).Text(10)))
	}
	if v.Digits >= 0 {
		return whole, int64(v.Digits)
	}
	if op == "/" && len(operands) == 2 {
		a, b := operands[0], operands[1]
		scale = min(1000, max(a.scale, b.scale, 24+b.whole+a.scale))
	}
	return whole, scale
}

// Price gives the time of one evaluation of a node, in ns, and the time to compare the elements of an array one by one.
func (d *Terms) Price(n *pgquery.Node, v *Value, operands []Measure) (ns, listed int64) {
	ns = takes(n, v, operands)
	if n.GetColumnRef() != nil && v.ID >= 0 && d.Term(v.ID).Op == shortForm {
		ns += shortTakes // PostgreSQL writes the form out at each reference
	}
	if n.GetAExpr().GetKind() == pgquery.A_Expr_Kind_AEXPR_OP_ANY {
		listed = max(0, Product(textCompared, operands[1].items)-ns)
	}
	return ns, listed
}

// Compiles gives the regular expression that a node compiles, with its operator; "": none.
func Compiles(n *pgquery.Node, operands []Measure) string {
	switch name, op := calledBy(n); {
	case len(operands) == 2 && strings.Contains(op, "~"):
		return op + operands[1].text
	case len(operands) > 2 && name == "regexp_replace":
		return name + operands[1].text + operands[len(operands)-1].text
	}
	return ""
}

// takes gives the time of one evaluation of a node, in ns, wherever it stands.
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
		if long := v.longest[0] + v.longest[1]; v.Kind == Numeric && long > readDigits { // copied, and read from elsewhere if longer
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
				if a.Kind.IsText() || a.Kind == Numeric || a.Kind == Interval || o.Kind == Numeric {
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
