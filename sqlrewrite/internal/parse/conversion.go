package parse

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// conversion is what the converters of all dialects share: it counts what is limited and remembers the first refusal.
// What a converter returns after a refusal is not used.
//
// Nothing that an analyst wrote may be dropped silently. So a converter reads every field of a parser's node with [take],
// which empties it, and ends each node with [conversion.spent], which refuses the query when a field still holds
// something: what was not read is not understood.
type conversion struct {
	text    string
	depth   int
	joins   int
	refusal *fault.Error
}

// take reads a field of a parser's node and empties it.
func take[T any](field *T) T {
	value := *field
	*field = *new(T)
	return value
}

// spent refuses a node that still holds something after conversion took what it understands. The node is a pointer to a
// struct; of unexported fields only "state" is passed over, where protobuf keeps what is not part of the message.
func (c *conversion) spent(node any, at syntax.Pos) {
	v := reflect.ValueOf(node).Elem()
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() && v.Type().Field(i).Name != "state" {
			c.refuse(at, fmt.Sprintf("%s in this place (%s)", v.Type().Field(i).Name, v.Type().Name()), "")
		}
	}
}

// refuse records the refusal of a construct; the first one counts. It returns no expression, for its callers to return.
func (c *conversion) refuse(at syntax.Pos, what, hint string) syntax.Expr {
	if c.refusal == nil {
		c.refusal = fault.Unsupported(scalar.Position(c.text, at), what, hint)
	}
	return nil
}

func (c *conversion) tooComplex(at syntax.Pos, message string) {
	if c.refusal == nil {
		c.refusal = fault.TooComplex(scalar.Position(c.text, at), message)
	}
}

func (c *conversion) countJoins(at syntax.Pos, joins int) {
	if c.joins += joins; c.joins > maxJoins {
		c.tooComplex(at, fmt.Sprintf("the query has more than %d joins", maxJoins))
	}
}

// number converts a constant in decimal digits. The grammars have already folded a sign into it.
func (c *conversion) number(at syntax.Pos, text string) syntax.Expr {
	digits, negative := strings.CutPrefix(text, "-")
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(digits), "e")
	if strings.Trim(mantissa, "0123456789.") != "" {
		return c.refuse(at, "a number in this form", "write it in decimal: 255, 0.5, 1e3")
	}
	size, err := 0, error(nil)
	if scientific {
		size, err = strconv.Atoi(exponent)
	}
	if err != nil || len(mantissa) > maxDigits || size > maxDigits || size < -maxDigits {
		c.tooComplex(at, fmt.Sprintf("a number has more than %d digits", maxDigits))
		return nil
	}
	literal := &syntax.Literal{Pos: at, Kind: syntax.IntegerLiteral, Text: digits}
	if scientific || strings.Contains(mantissa, ".") {
		literal.Kind = syntax.DecimalLiteral
	} else { // 007 is 7: PostgreSQL's grammar has said so already, MySQL's has not
		literal.Text = cmp.Or(strings.TrimLeft(digits, "0"), "0")
	}
	if negative {
		return &syntax.Unary{Pos: at, Op: syntax.Subtract, X: literal}
	}
	return literal
}

// escaped is a pattern of LIKE whose escape character is the backslash, of one with another escape character, or with none.
func (c *conversion) escaped(at syntax.Pos, pattern, escape syntax.Expr) syntax.Expr {
	p, okP := pattern.(*syntax.Literal)
	e, okE := escape.(*syntax.Literal)
	if c.refusal != nil || !okP || !okE || p.Kind != syntax.StringLiteral || e.Kind != syntax.StringLiteral ||
		utf8.RuneCountInString(e.Text) > 1 {
		return c.refuse(at, "ESCAPE of what is no constant, or with more than one character", "write LIKE '50!%' ESCAPE '!'")
	}
	var b strings.Builder
	inside := false // what the escape character before it makes a plain one
	for _, r := range p.Text {
		switch {
		case !inside && string(r) == e.Text:
			inside = true
			b.WriteByte('\\')
			continue
		case !inside && r == '\\':
			b.WriteByte('\\')
		}
		inside = false
		b.WriteRune(r)
	}
	return &syntax.Literal{Pos: p.Pos, Kind: syntax.StringLiteral, Text: b.String()}
}

// balanced joins a chain of ANDs or ORs, which are associative, so that a chain of n is log n deep.
func balanced(at syntax.Pos, op syntax.Operator, args []syntax.Expr) syntax.Expr {
	if len(args) == 1 {
		return args[0]
	}
	half := (len(args) + 1) / 2
	return &syntax.Binary{Pos: at, Op: op, L: balanced(at, op, args[:half]), R: balanced(at, op, args[half:])}
}

// rowText is a text for each row of values, another one for each other row: each value's text behind its length. NULL is a value, or makes
// the whole NULL.
func rowText(at syntax.Pos, values []syntax.Expr, nulls bool) syntax.Expr {
	colon := &syntax.Literal{Pos: at, Kind: syntax.StringLiteral, Text: ":"}
	var parts []syntax.Expr
	for _, x := range values {
		text := &syntax.Cast{Pos: at, X: x, Type: "text"}
		length := &syntax.Cast{Pos: at, X: &syntax.Call{Pos: at, Name: "length", Args: []syntax.Expr{text}}, Type: "text"}
		part := balanced(at, syntax.Concat, []syntax.Expr{length, colon, text})
		if nulls {
			part = &syntax.Call{Pos: at, Name: "coalesce", Args: []syntax.Expr{part, colon}}
		}
		parts = append(parts, part)
	}
	return balanced(at, syntax.Concat, parts)
}

// textOf is the text of a constant, or of several that || or concat joins.
func textOf(e syntax.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *syntax.Literal:
		return e.Text, e.Kind == syntax.StringLiteral || e.Kind == syntax.IntegerLiteral
	case *syntax.Unary: // PostgreSQL writes 0 for -0, which the grammar has made of it
		number, isLiteral := e.X.(*syntax.Literal)
		if !isLiteral || number.Kind != syntax.IntegerLiteral || e.Op != syntax.Subtract {
			return "", false
		}
		return "-" + number.Text, true
	case *syntax.Cast:
		text, ok = textOf(e.X)
		return text, ok && (e.Type == "text" || e.Type == "varchar") && e.Mods == nil
	case *syntax.Binary:
		l, okL := textOf(e.L)
		r, okR := textOf(e.R)
		return l + r, okL && okR && e.Op == syntax.Concat
	case *syntax.Call:
		for _, arg := range e.Args {
			part, known := textOf(arg)
			if !known {
				return "", false
			}
			text += part
		}
		return text, e.Schema == "" && e.Name == "concat" && len(e.Args) > 0 && !e.Distinct && e.Filter == nil && e.Over == nil &&
			len(e.OrderBy)+len(e.Within) == 0
	default:
		return "", false
	}
}

// constantPattern is a pattern that is put together of constants as one constant; others stay.
func constantPattern(e syntax.Expr) syntax.Expr {
	if _, isLiteral := e.(*syntax.Literal); !isLiteral {
		if text, ok := textOf(e); ok {
			return &syntax.Literal{Pos: e.At(), Kind: syntax.StringLiteral, Text: text}
		}
	}
	return e
}
