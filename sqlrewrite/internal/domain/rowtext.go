package sqlrewrite

import (
	"noisegate/catalog"
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

// textCall types a function of texts.
func (b *binder) textCall(n *syntax.Call, args []expr) (expr, error) {
	f, known := findTextFunction(n.Name)
	if !known {
		return nil, b.unsupported(n, "function "+n.Name+" over the columns of a row", "")
	}
	if len(args) < len(f.params)-f.optional || len(args) > len(f.params) && !f.variadic {
		return nil, b.arity(n, []string{"no argument", "one argument", "two arguments", "three arguments"}[len(f.params)])
	}
	e := call{name: f.as, t: f.t}
	for i, arg := range args {
		at, param := n.Args[i], f.params[min(i, len(f.params)-1)]
		x, err := b.coerce(at, arg, catalog.Text)
		if err != nil {
			return nil, err
		}
		c, isConstant := x.(constant)
		k, whole := wholeConstant(x)
		switch param {
		case anyText:
			if familyOf(x.typ()) != textFamily && !f.variadic {
				return nil, b.noFunction(n, x)
			}
		case constantText:
			if !isConstant || c.null || familyOf(c.t) != textFamily || len(c.text) > maxTrimSet {
				return nil, b.unsupported(at, "characters to trim that are not a short string constant", "")
			}
		case wholeNumber, wholeCount:
			if !whole || k > 1<<20 || k < -(1<<20) || param == wholeCount && k < 0 {
				return nil, b.unsupported(at, "a place in a text that is not a small whole constant", "")
			}
		}
		e.args = append(e.args, asTextOf(x))
	}
	return e, nil
}

// asTextOf casts what is neither text nor the number of a place.
func asTextOf(x expr) expr {
	if _, isConstant := x.(constant); isConstant || familyOf(x.typ()) == textFamily {
		return x
	}
	return asText(x)
}

// textTotal is the function itself, which is total for its constants. A length or a place is at most the length of the text.
func textTotal(e call, args []operand) operand {
	x := call{name: e.name, t: e.t}
	letters := int64(0)
	for i, arg := range args {
		if i == 0 {
			letters = maxLetters(e.args[0])
		}
		x.args = append(x.args, arg.x)
	}
	if e.t != catalog.Int4 {
		return result(x, nil)
	}
	return result(x, between(0, letters+1)) // the place of an empty text in an empty one is 1
}

// maxLetters is the largest number of characters of a text in its total form.
func maxLetters(e expr) int64 {
	switch e := e.(type) {
	case constant:
		return int64(len(e.text))
	case column:
		if n := int64(e.of.TypMod) - 4; n > 0 && n < maxText && e.of.Type != catalog.Enum {
			return n
		}
		return maxText
	case computed:
		return maxLetters(e.written)
	case cast:
		if familyOf(e.x.typ()) == textFamily {
			return maxLetters(e.x)
		}
		return maxText
	case binary:
		return maxLetters(e.l) + maxLetters(e.r)
	case choice:
		most := int64(0)
		if e.otherwise != nil {
			most = maxLetters(e.otherwise)
		}
		for _, a := range e.arms {
			most = max(most, maxLetters(a.result))
		}
		return most
	case call:
		return lettersOfCall(e)
	default:
		return maxText
	}
}

func lettersOfCall(e call) int64 {
	switch e.name {
	case "coalesce", "greatest", "least":
		most := int64(0)
		for _, a := range e.args {
			most = max(most, maxLetters(a))
		}
		return most
	case "concat":
		sum := int64(0)
		for _, a := range e.args {
			sum += maxLetters(a)
		}
		return sum
	case "upper", "lower", "initcap":
		return 3 * maxLetters(e.args[0]) // some letters have a longer other case
	case `"left"`, `"right"`:
		if k, ok := wholeConstant(e.args[1]); ok && k >= 0 {
			return min(int64(k), maxLetters(e.args[0]))
		}
	case "substr":
		if len(e.args) == 3 {
			if k, ok := wholeConstant(e.args[2]); ok {
				return min(int64(k), maxLetters(e.args[0]))
			}
		}
	}
	return maxLetters(e.args[0])
}
