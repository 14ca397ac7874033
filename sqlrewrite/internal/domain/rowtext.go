package domain

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// textParameter is what a parameter of a function of texts takes.
type textParameter int

const (
	anyText      textParameter = iota
	constantText               // a string constant
	wholeNumber                // an integer constant
	wholeCount                 // an integer constant that is not negative: PostgreSQL raises an error for others
)

// textFunction is a function of texts. Its cost and its result's size are bounded, as its texts are cut to maxText characters.
type textFunction struct {
	names    []string
	as       string // the name under which it is printed
	params   []textParameter
	optional int // how many of the last parameters may be left out
	variadic bool
	t        catalog.Type
}

func textFunctions() []textFunction {
	return []textFunction{
		{names: []string{"length", "char_length", "character_length"}, as: "length", params: []textParameter{anyText}, t: catalog.Int4},
		{names: []string{"upper"}, as: "upper", params: []textParameter{anyText}, t: catalog.Text},
		{names: []string{"lower"}, as: "lower", params: []textParameter{anyText}, t: catalog.Text},
		{names: []string{"initcap"}, as: "initcap", params: []textParameter{anyText}, t: catalog.Text},
		{names: []string{"trim", "btrim"}, as: "btrim", params: []textParameter{anyText, constantText}, optional: 1, t: catalog.Text},
		{names: []string{"ltrim"}, as: "ltrim", params: []textParameter{anyText, constantText}, optional: 1, t: catalog.Text},
		{names: []string{"rtrim"}, as: "rtrim", params: []textParameter{anyText, constantText}, optional: 1, t: catalog.Text},
		{names: []string{"left"}, as: `"left"`, params: []textParameter{anyText, wholeNumber}, t: catalog.Text},
		{names: []string{"right"}, as: `"right"`, params: []textParameter{anyText, wholeNumber}, t: catalog.Text},
		{names: []string{"substring", "substr"}, as: "substr", params: []textParameter{anyText, wholeNumber, wholeCount}, optional: 1, t: catalog.Text},
		{names: []string{"position", "strpos"}, as: "strpos", params: []textParameter{anyText, anyText}, t: catalog.Int4},
		{names: []string{"starts_with"}, as: "starts_with", params: []textParameter{anyText, anyText}, t: catalog.Bool},
		{names: []string{"concat"}, as: "concat", params: []textParameter{anyText}, variadic: true, t: catalog.Text},
	}
}

func findTextFunction(name string) (textFunction, bool) {
	for _, f := range textFunctions() {
		for _, known := range f.names {
			if known == name {
				return f, true
			}
		}
	}
	return textFunction{}, false
}

// maxTrimSet is how many characters a trim may look for: each of the text is compared with each of them.
const maxTrimSet = 10

// TextCall types a function of texts.
func TextCall(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	f, known := findTextFunction(n.Name)
	if !known {
		return nil, b.Unsupported(n, "function "+n.Name+" over the columns of a row", "")
	}
	if len(args) < len(f.params)-f.optional || len(args) > len(f.params) && !f.variadic {
		return nil, Arity(b, n, []string{"no argument", "one argument", "two arguments", "three arguments"}[len(f.params)])
	}
	e := algebra.Call{Name: f.as, T: f.t}
	for i, arg := range args {
		at, param := n.Args[i], f.params[min(i, len(f.params)-1)]
		x, err := Coerce(b, at, arg, catalog.Text)
		if err != nil {
			return nil, err
		}
		c, isConstant := x.(algebra.Constant)
		k, whole := WholeConstant(x)
		switch param {
		case anyText:
			if scalar.FamilyOf(x.Typ()) != scalar.TextFamily && !f.variadic {
				return nil, noFunction(b, n, x)
			}
		case constantText:
			if !isConstant || c.Null || scalar.FamilyOf(c.T) != scalar.TextFamily || len(c.Text) > maxTrimSet {
				return nil, b.Unsupported(at, "characters to trim that are not a short string constant", "")
			}
		case wholeNumber, wholeCount:
			if !whole || k > 1<<20 || k < -(1<<20) || param == wholeCount && k < 0 {
				return nil, b.Unsupported(at, "a place in a text that is not a small whole constant", "")
			}
		}
		e.Args = append(e.Args, asTextOf(x))
	}
	return e, nil
}

// asTextOf casts what is neither text nor the number of a place.
func asTextOf(x algebra.Expr) algebra.Expr {
	if _, isConstant := x.(algebra.Constant); isConstant || scalar.FamilyOf(x.Typ()) == scalar.TextFamily {
		return x
	}
	return asText(x)
}

// textTotal is the function itself, which is total for its constants. A length or a place is at most the length of the text.
func textTotal(e algebra.Call, args []Operand) Operand {
	x := algebra.Call{Name: e.Name, T: e.T}
	letters := int64(0)
	for i, arg := range args {
		if i == 0 {
			letters = MaxLetters(e.Args[0])
		}
		x.Args = append(x.Args, arg.X)
	}
	if e.T != catalog.Int4 {
		return result(x, nil)
	}
	return result(x, scalar.Between(0, letters+1)) // the place of an empty text in an empty one is 1
}

// MaxLetters is the largest number of characters of a text in its total form.
func MaxLetters(e algebra.Expr) int64 {
	switch e := e.(type) {
	case algebra.Constant:
		return int64(len(e.Text))
	case algebra.Column:
		if n := int64(e.Of.TypMod) - 4; n > 0 && n < maxText && e.Of.Type != catalog.Enum {
			return n
		}
		return maxText
	case algebra.Computed:
		return MaxLetters(e.Written)
	case algebra.Cast:
		if scalar.FamilyOf(e.X.Typ()) == scalar.TextFamily {
			return MaxLetters(e.X)
		}
		return maxText
	case algebra.Binary:
		return MaxLetters(e.L) + MaxLetters(e.R)
	case algebra.Choice:
		most := int64(0)
		if e.Otherwise != nil {
			most = MaxLetters(e.Otherwise)
		}
		for _, a := range e.Arms {
			most = max(most, MaxLetters(a.Result))
		}
		return most
	case algebra.Call:
		return lettersOfCall(e)
	default:
		return maxText
	}
}

func lettersOfCall(e algebra.Call) int64 {
	switch e.Name {
	case "coalesce", "greatest", "least":
		most := int64(0)
		for _, a := range e.Args {
			most = max(most, MaxLetters(a))
		}
		return most
	case "concat":
		sum := int64(0)
		for _, a := range e.Args {
			sum += MaxLetters(a)
		}
		return sum
	case "upper", "lower", "initcap":
		return 3 * MaxLetters(e.Args[0]) // some letters have a longer other case
	case `"left"`, `"right"`:
		if k, ok := WholeConstant(e.Args[1]); ok && k >= 0 {
			return min(int64(k), MaxLetters(e.Args[0]))
		}
	case "substr":
		if len(e.Args) == 3 {
			if k, ok := WholeConstant(e.Args[2]); ok {
				return min(int64(k), MaxLetters(e.Args[0]))
			}
		}
	}
	return MaxLetters(e.Args[0])
}
