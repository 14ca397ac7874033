package domain

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// textParameter is what a parameter of a function of texts takes.
type textParameter int

const (
	anyText       textParameter = iota
	constantText                // a string constant of characters to trim
	shortConstant               // a string constant
	wholeNumber                 // an integer constant
	wholeCount                  // an integer constant that is not negative: PostgreSQL raises an error for others
	wholePlace                  // an integer constant that is not 0: PostgreSQL raises an error for 0
	regexConstant               // a pattern that [CheckRegex] takes; its groups remember nothing
	plainConstant               // a short constant without backslashes, which would name groups
	regexFlags                  // g, i or both
)

// maxTrimSet is how many characters a trim may look for: each of the text is compared with each of them.
const maxTrimSet = 10

// maxPiece is how many bytes a piece of a text may have that is looked for, or put into its place.
const maxPiece = 40

// textCall types a function of texts. Its cost and its result's size are bounded, as its texts are cut to maxText characters.
func textCall(b *algebra.Binder, f *Builtin, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	e := algebra.Call{Name: cmp.Or(f.Prints, f.Name), T: f.Result}
	for i, arg := range args {
		at, param := n.Args[i], f.Params[min(i, len(f.Params)-1)]
		x, err := Coerce(b, at, arg, catalog.Text)
		if err != nil {
			return nil, err
		}
		if param == anyText && scalar.FamilyOf(x.Typ()) != scalar.TextFamily && f.Args.most != anyNumber {
			return nil, noFunction(b, n, x)
		}
		if x, err = textArgument(b, at, param, x); err != nil {
			return nil, err
		}
		e.Args = append(e.Args, asTextOf(x))
	}
	return e, nil
}

// maxReplaced is the most bytes that the pattern of regexp_replace may have.
const maxReplaced = 200

// textArgument checks an argument of a function of texts, and gives it as it is printed.
func textArgument(b *algebra.Binder, at syntax.Expr, param textParameter, x algebra.Expr) (algebra.Expr, error) {
	c, isConstant := x.(algebra.Constant)
	k, whole := WholeConstant(x)
	isText := isConstant && !c.Null && scalar.FamilyOf(c.T) == scalar.TextFamily
	switch param {
	case anyText:
	case constantText:
		if !isText || len(c.Text) > maxTrimSet {
			return nil, b.Unsupported(at, "characters to trim that are not a short string constant", "")
		}
	case shortConstant:
		if !isText || len(c.Text) > maxPiece {
			return nil, b.Unsupported(at, "a piece of a text that is not a short string constant", "")
		}
	case wholeNumber, wholeCount, wholePlace:
		if !whole || k > 1<<20 || k < -(1<<20) || param == wholeCount && k < 0 || param == wholePlace && k == 0 {
			return nil, b.Unsupported(at, "a place in a text that is not a small whole constant", "")
		}
	default:
		if !isText {
			return nil, b.Unsupported(at, "regexp_replace by what is not a string constant", "")
		}
		return regexArgument(b, at, param, c)
	}
	return x, nil
}

// regexArgument is a constant of regexp_replace.
func regexArgument(b *algebra.Binder, at syntax.Expr, param textParameter, c algebra.Constant) (algebra.Expr, error) {
	switch param {
	case plainConstant:
		if len(c.Text) > maxPiece || strings.Contains(c.Text, `\`) {
			return nil, b.Unsupported(at, "the replacement "+fault.Quote(c.Text),
				fmt.Sprintf(`a replacement has at most %d bytes and no \: what a group matched is found by trial and error, which may take long`,
					maxPiece))
		}
	case regexFlags:
		if c.Text != "g" && c.Text != "i" && c.Text != "gi" && c.Text != "ig" {
			return nil, b.Unsupported(at, "regexp_replace with "+fault.Quote(c.Text),
				"write 'g' to replace all matches, 'i' to ignore case, or 'gi'")
		}
	default:
		err := CheckRegex(c.Text)
		if err == nil && len(c.Text) > maxReplaced {
			err = fmt.Errorf("it has more than %d bytes", maxReplaced)
		}
		if err != nil {
			return nil, b.Unsupported(at, "the pattern "+fault.Quote(c.Text), err.Error())
		}
		c.Text = withoutMemory(c.Text)
	}
	return c, nil
}

// asTextOf casts what is neither text nor the number of a place.
func asTextOf(x algebra.Expr) algebra.Expr {
	if _, isConstant := x.(algebra.Constant); isConstant || scalar.FamilyOf(x.Typ()) == scalar.TextFamily {
		return x
	}
	return asText(x)
}

// safeText is the function itself, which cannot fail for its constants. A length or a place is at most the length of the text.
func safeText(c safeCall) (Operand, error) {
	x := algebra.Call{Name: c.call.Name, T: c.call.T}
	for _, arg := range c.args {
		x.Args = append(x.Args, arg.X)
	}
	if c.call.T != catalog.Int4 {
		return result(x, nil), nil
	}
	return result(x, scalar.Between(0, c.letters+1)), nil // the place of an empty text in an empty one is 1
}

// MaxLetters is the largest number of characters of a text in its error-free form.
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

func longestArgument(e algebra.Call, of func(algebra.Expr) int64) int64 {
	most := int64(0)
	for _, a := range e.Args {
		most = max(most, of(a))
	}
	return most
}

func allLetters(e algebra.Call, of func(algebra.Expr) int64) int64 {
	sum := int64(0)
	for _, a := range e.Args {
		sum += of(a)
	}
	return sum
}

// otherCase is of upper, lower and initcap: some letters have a longer other case.
func otherCase(e algebra.Call, of func(algebra.Expr) int64) int64 { return 3 * of(e.Args[0]) }

// countedLetters is of a function whose last argument counts letters; of the second one of substr the rest is taken.
func countedLetters(e algebra.Call, of func(algebra.Expr) int64) int64 {
	last := len(e.Args) - 1
	if k, ok := WholeConstant(e.Args[last]); ok && k >= 0 && (last == 2 || e.Name != "substr") {
		return min(int64(k), of(e.Args[0]))
	}
	return of(e.Args[0])
}

// rewrittenLetters bounds the characters of what regexp_replace gives: it may put text before each character and at the end.
func rewrittenLetters(e algebra.Call, of func(algebra.Expr) int64) int64 {
	letters, finds := of(e.Args[0]), int64(1)
	if len(e.Args) > 3 && strings.Contains(e.Args[3].(algebra.Constant).Text, "g") {
		finds = letters + 1
	}
	return letters + finds*int64(utf8.RuneCountInString(e.Args[2].(algebra.Constant).Text))
}

// replacedLetters is of replace: each piece that is found becomes another one.
func replacedLetters(e algebra.Call, of func(algebra.Expr) int64) int64 {
	letters := of(e.Args[0])
	from := int64(utf8.RuneCountInString(e.Args[1].(algebra.Constant).Text))
	to := int64(utf8.RuneCountInString(e.Args[2].(algebra.Constant).Text))
	if from == 0 || to <= from {
		return letters
	}
	return letters/from*to + letters%from
}
