package domain

import (
	"cmp"
	"unicode/utf8"

	"noisegate.example/catalog"
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
		c, isConstant := x.(algebra.Constant)
		k, whole := WholeConstant(x)
		switch param {
		case anyText:
			if scalar.FamilyOf(x.Typ()) != scalar.TextFamily && f.Args.most != anyNumber {
				return nil, noFunction(b, n, x)
			}
		case constantText:
			if !isConstant || c.Null || scalar.FamilyOf(c.T) != scalar.TextFamily || len(c.Text) > maxTrimSet {
				return nil, b.Unsupported(at, "characters to trim that are not a short string constant", "")
			}
		case shortConstant:
			if !isConstant || c.Null || scalar.FamilyOf(c.T) != scalar.TextFamily || len(c.Text) > maxPiece {
				return nil, b.Unsupported(at, "a piece of a text that is not a short string constant", "")
			}
		case wholeNumber, wholeCount, wholePlace:
			if !whole || k > 1<<20 || k < -(1<<20) || param == wholeCount && k < 0 || param == wholePlace && k == 0 {
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
