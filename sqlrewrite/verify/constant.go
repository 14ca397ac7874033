package verify

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Constants (Lemma 5a). A parameter stands in a cast, which gives its type; the argument's text is read here as PostgreSQL will read it.
// An argument that is an int64 changes from one run to the next (a seed, an end of a range; a time, for a cast to one): of it only the
// type is used, so that what is proven holds for every one. A text that PostgreSQL could not read as the type fails whatever the rows
// hold. *Example.* $1::integer with the text "5" is 5, one value for the statement; with an int64 it is any integer. With [Any] it is any
// text that can be read as the type. The analyst chooses that text, so no unit's id is compared with it.

// Any is an argument whose type alone is used, like that of an int64: what is proven holds for every text that PostgreSQL can read as the
// type.
type Any struct{}

// parameter is the constant that a cast of an argument makes.
func (d *Terms) parameter(p *pgquery.ParamRef, k kind) *value {
	if p.Number < 1 || int(p.Number) > len(d.args) {
		refuse("a parameter without an argument")
	}
	d.read[p.Number-1] = true
	switch arg := d.args[p.Number-1].(type) {
	case nil:
		return d.nullOf(k)
	case int64:
		if !k.isInteger() && k != timestamptz {
			refuse("a changing argument that is no whole number and no time")
		}
		v := d.make(k, d.intern("$"+strconv.Itoa(int(p.Number))+":"+strconv.Itoa(int(k))))
		v.constant, v.opaque = true, true
		return v
	case Any:
		if !chosen[k] {
			refuse("any constant of type %d", k)
		}
		v := d.make(k, d.intern("$"+strconv.Itoa(int(p.Number))+":"+strconv.Itoa(int(k))))
		v.constant, v.opaque, v.asked = true, true, true
		return v
	case []string:
		if k != texts {
			refuse("an array for another type")
		}
		v := d.make(k, d.intern("["+strconv.Itoa(int(p.Number))))
		v.constant, v.size = true, len(arg)
		return v
	case string:
		return d.literal(k, arg)
	default:
		refuse("an argument of another Go type")
		return nil
	}
}

// chosen are the types that [Any] may have.
var chosen = map[kind]bool{boolean: true, int2: true, int4: true, int8: true, numeric: true, float8: true, text: true, date: true,
	timestamp: true, timestamptz: true, uuid: true}

func (d *Terms) nullOf(k kind) *value {
	v := d.make(k, d.intern("null:"+strconv.Itoa(int(k))))
	v.constant, v.null, v.digits, v.scale, v.chars, v.nonzero, v.same = true, true, 0, -1, 0, true, true
	// nothing else is ever there
	v.within, v.grain, v.parts = ranges.Point(ranges.Zero), 0, [3]ranges.Span{ranges.Point(ranges.Zero), ranges.Point(ranges.Zero), ranges.Point(ranges.Zero)}
	v.nulls = []int{v.id}
	return v
}

// instants read texts of dates and times, in what their ranges are of.
var instants = map[kind]func(string) (int64, bool){date: calendar.Date, timestamp: calendar.Instant, timestamptz: calendar.InUTC}

// literal is a constant of a kind by its text.
func (d *Terms) literal(k kind, s string) *value {
	v := d.make(k, d.intern("="+strconv.Itoa(int(k))+":"+s))
	v.constant, v.text, v.same = true, s, true
	exactly := func(r *big.Rat) { v.within, v.nonzero = ranges.Point(r), r.Sign() != 0 }
	switch k {
	case int2, int4, int8:
		i, err := strconv.ParseInt(s, 10, 16<<(k-int2))
		if err != nil {
			refuse("a constant that is no whole number of its type")
		}
		exactly(big.NewRat(i, 1))
	case numeric:
		mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
		if len(mantissa) > 2000 || len(exponent) > 4 {
			refuse("a constant of many digits")
		}
		r, ok := new(big.Rat).SetString(s)
		if !ok || strings.ContainsAny(s, "/_xpXP") {
			v.same = false // NaN and infinities
			return v
		}
		e, _ := strconv.Atoi(exponent)
		_, after, _ := strings.Cut(mantissa, ".")
		v.digits = max(0, len(after)-e)
		v.scale = v.digits
		exactly(r)
	case float4, float8:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(s, "_xpXP") {
			v.same = false
			return v
		}
		if k == float4 && f != 0 {
			refuse("a constant in single precision")
		}
		r := new(big.Rat).SetFloat64(f)
		exactly(r)
		v.same = f != 0 || !math.Signbit(f)
		v.grain = r.Denom().BitLen() - 1 // the denominator is a power of two
	case text:
		v.chars = len([]rune(s))
	case date, timestamp, timestamptz:
		if at, ok := instants[k](s); ok {
			exactly(big.NewRat(at, 1))
		}
	case interval:
		v.parts = calendar.Interval(s)
	case boolean, uuid:
	default:
		refuse("a constant of type %d", k)
	}
	return v
}

// written is a constant that stands in the text.
func (d *Terms) written(c *pgquery.A_Const) *value {
	switch val := c.Val.(type) {
	case *pgquery.A_Const_Ival:
		if !c.Isnull && val.Ival != nil {
			return d.literal(int4, strconv.Itoa(int(val.Ival.Ival)))
		}
	case *pgquery.A_Const_Sval:
		if !c.Isnull && val.Sval != nil {
			v := d.literal(text, val.Sval.Sval)
			v.untyped = true
			return v
		}
	}
	refuse("a constant that no rule covers")
	return nil
}

// read reports whether a constant was written as it is: what is computed of constants is one too, but of that only the type is known.
func (v *value) read() bool { return v.constant && !v.opaque }

// number is what a constant is; nil for others.
func (v *value) number() *big.Rat {
	if v.constant && !v.null && !v.opaque && v.within.Lo != nil && v.within.Lo == v.within.Hi {
		return v.within.Lo
	}
	return nil
}

// types are the names of the types that a cast may name.
var types = map[string]kind{"bool": boolean, "int2": int2, "int4": int4, "int8": int8, "numeric": numeric, "float4": float4,
	"float8": float8, "text": text, "date": date, "timestamp": timestamp, "timestamptz": timestamptz, "interval": interval, "uuid": uuid}

// typeOf reads the type of a cast, with numeric's digits: precision 0 means none are given.
func typeOf(t *pgquery.TypeName) (k kind, precision, scale int) {
	if t == nil || t.TypeOid != 0 || t.Setof || t.PctType || t.Typemod != -1 {
		refuse("a type written in another way")
	}
	k = types[tree.Builtin(t.Names)]
	if k == noKind {
		refuse("a cast to type %s", tree.Builtin(t.Names))
	}
	switch {
	case len(t.Typmods) == 2 && k == numeric && len(t.ArrayBounds) == 0:
		return k, int(tree.Integer(t.Typmods[0])), int(tree.Integer(t.Typmods[1]))
	case len(t.Typmods) == 1 && k == numeric && len(t.ArrayBounds) == 0:
		return k, int(tree.Integer(t.Typmods[0])), 0
	case len(t.Typmods) != 0:
		refuse("a type with modifiers")
	case len(t.ArrayBounds) == 1 && k == text:
		if i := t.ArrayBounds[0].GetInteger(); i == nil || i.Ival != -1 {
			refuse("an array with bounds")
		}
		return texts, 0, 0
	case len(t.ArrayBounds) != 0:
		refuse("an array type")
	}
	return k, 0, 0
}

// constantOf is the type and the text of a literal; noKind for others.
func (d *Terms) constantOf(id int) (kind, string) {
	t := d.term(id)
	if len(t.args) > 0 || !strings.HasPrefix(t.op, "=") {
		return noKind, ""
	}
	number, written, ok := strings.Cut(t.op[1:], ":")
	k, err := strconv.Atoi(number)
	if !ok || err != nil {
		return noKind, ""
	}
	return kind(k), written
}
