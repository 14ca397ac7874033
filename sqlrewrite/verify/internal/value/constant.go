package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// Constants (Lemma 5a). A parameter stands in a cast, which gives its type; the argument's text is read here as PostgreSQL will read it.
// An argument that is an int64 changes from one run to the next (a seed, an end of a range; a time, for a cast to one): of it only the
// type is used, so that a proof holds for each of them. A text that PostgreSQL could not read as the type fails whatever the rows
// hold. *Example.* $1::integer with the text "5" is 5, one value for the statement; with an int64 it is any integer. With [Any] it is any
// text that can be read as the type. The analyst chooses that text, so no unit's id is compared with it.

// Any is an argument whose type alone is used, like that of an int64: what is proven holds for every text that PostgreSQL can read as the
// type.
type Any struct{}

// Parameter is the constant that a cast of an argument makes.
func (d *Terms) Parameter(p *pgquery.ParamRef, k Kind) *Value {
	if p.Number < 1 || int(p.Number) > len(d.args) {
		refuse("a parameter without an argument")
	}
	d.read[p.Number-1] = true
	switch arg := d.args[p.Number-1].(type) {
	case nil:
		return d.NullOf(k)
	case int64:
		if !k.IsInteger() && k != Timestamptz {
			refuse("a changing argument that is no whole number and no time")
		}
		// PostgreSQL reads it as the first of them, and casts it where a row needs another: that fails on a number which is too large.
		if as := d.as[p.Number-1]; as != NoKind && as != k {
			refuse("a changing argument of two types")
		}
		d.as[p.Number-1] = k
		v := d.Make(k, d.Intern("$"+strconv.Itoa(int(p.Number))+":"+strconv.Itoa(int(k))))
		v.Constant, v.Opaque = true, true
		return v
	case Any:
		if !chosen[k] {
			refuse("any constant of type %d", k)
		}
		v := d.Make(k, d.Intern("$"+strconv.Itoa(int(p.Number))+":"+strconv.Itoa(int(k))))
		v.Constant, v.Opaque, v.asked = true, true, true
		return v
	case []string:
		if k != Texts {
			refuse("an array for another type")
		}
		v := d.Make(k, d.Intern("["+strconv.Itoa(int(p.Number))))
		v.Constant, v.size = true, len(arg)
		return v
	case string:
		return d.Literal(k, arg)
	default:
		refuse("an argument of another Go type")
		return nil
	}
}

// chosen are the types that [Any] may have.
var chosen = map[Kind]bool{Boolean: true, Int2: true, Int4: true, Int8: true, Numeric: true, Float8: true, Text: true, Date: true,
	Timestamp: true, Timestamptz: true, UUID: true}

// NullOf is NULL of a kind.
func (d *Terms) NullOf(k Kind) *Value {
	v := d.Make(k, d.Intern("null:"+strconv.Itoa(int(k))))
	v.Constant, v.Null, v.Digits, v.Scale, v.Chars, v.Nonzero, v.Same = true, true, 0, -1, 0, true, true
	// nothing else is ever there
	none := ranges.Point(ranges.Zero)
	v.Within, v.Grain, v.parts = none, 0, [3]ranges.Span{none, none, none}
	v.Nulls = []int{v.ID}
	return v
}

// instants read texts of dates and times, in the units of their ranges.
var instants = map[Kind]func(string) (int64, bool){Date: calendar.Date, Timestamp: calendar.Instant, Timestamptz: calendar.InUTC}

// Literal is a constant of a kind by its text.
func (d *Terms) Literal(k Kind, s string) *Value {
	v := d.Make(k, d.Intern("="+strconv.Itoa(int(k))+":"+s))
	v.Constant, v.text, v.Same = true, s, true
	exactly := func(r *big.Rat) { v.Within, v.Nonzero = ranges.Point(r), r.Sign() != 0 }
	switch k {
	case Int2, Int4, Int8:
		i, err := strconv.ParseInt(s, 10, 16<<(k-Int2))
		if err != nil {
			refuse("a constant that is no whole number of its type")
		}
		exactly(big.NewRat(i, 1))
	case Numeric:
		mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
		if len(mantissa) > 2000 || len(exponent) > 4 {
			refuse("a constant of many digits")
		}
		r, ok := new(big.Rat).SetString(s)
		if !ok || strings.ContainsAny(s, "/_xpXP") {
			v.Same = false // NaN and infinities
			return v
		}
		e, _ := strconv.Atoi(exponent)
		_, after, _ := strings.Cut(mantissa, ".")
		v.Digits = max(0, len(after)-e)
		v.Scale = v.Digits
		exactly(r)
	case Float4, Float8:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(s, "_xpXP") {
			v.Same = false
			return v
		}
		if k == Float4 && f != 0 {
			refuse("a constant in single precision")
		}
		r := new(big.Rat).SetFloat64(f)
		exactly(r)
		v.Same = f != 0 || !math.Signbit(f)
		v.Grain = r.Denom().BitLen() - 1 // the denominator is a power of two
	case Text:
		v.Chars = len([]rune(s))
	case Date, Timestamp, Timestamptz:
		if at, ok := instants[k](s); ok {
			exactly(big.NewRat(at, 1))
		}
	case Interval:
		v.parts = calendar.Interval(s)
	case Boolean, UUID:
	default:
		refuse("a constant of type %d", k)
	}
	return v
}

// Written is a constant that stands in the text.
func (d *Terms) Written(c *pgquery.A_Const) *Value {
	switch val := c.Val.(type) {
	case *pgquery.A_Const_Ival:
		if !c.Isnull && val.Ival != nil {
			return d.Literal(Int4, strconv.Itoa(int(val.Ival.Ival)))
		}
	case *pgquery.A_Const_Sval:
		if !c.Isnull && val.Sval != nil {
			v := d.Literal(Text, val.Sval.Sval)
			v.untyped = true
			return v
		}
	}
	refuse("a constant that no rule covers")
	return nil
}

// types are the names of the types that a cast may name.
var types = map[string]Kind{"bool": Boolean, "int2": Int2, "int4": Int4, "int8": Int8, "numeric": Numeric, "float4": Float4,
	"float8": Float8, "text": Text, "date": Date, "timestamp": Timestamp, "timestamptz": Timestamptz, "interval": Interval, "uuid": UUID}

// TypeOf reads the type of a cast, with numeric's digits: precision 0 means none are given.
func TypeOf(t *pgquery.TypeName) (k Kind, precision, scale int) {
	if t == nil || t.TypeOid != 0 || t.Setof || t.PctType || t.Typemod != -1 {
		refuse("a type written in another way")
	}
	k = types[tree.Builtin(t.Names)]
	if k == NoKind {
		refuse("a cast to type %s", tree.Builtin(t.Names))
	}
	switch {
	case len(t.Typmods) == 2 && k == Numeric && len(t.ArrayBounds) == 0:
		return k, int(tree.Integer(t.Typmods[0])), int(tree.Integer(t.Typmods[1]))
	case len(t.Typmods) == 1 && k == Numeric && len(t.ArrayBounds) == 0:
		return k, int(tree.Integer(t.Typmods[0])), 0
	case len(t.Typmods) != 0:
		refuse("a type with modifiers")
	case len(t.ArrayBounds) == 1 && k == Text:
		if i := t.ArrayBounds[0].GetInteger(); i == nil || i.Ival != -1 {
			refuse("an array with bounds")
		}
		return Texts, 0, 0
	case len(t.ArrayBounds) != 0:
		refuse("an array type")
	}
	return k, 0, 0
}

// ConstantOf is the type and the text of a literal; noKind for others.
func (d *Terms) ConstantOf(id int) (Kind, string) {
	t := d.Term(id)
	if len(t.Args) > 0 || !strings.HasPrefix(t.Op, "=") {
		return NoKind, ""
	}
	number, written, ok := strings.Cut(t.Op[1:], ":")
	k, err := strconv.Atoi(number)
	if !ok || err != nil {
		return NoKind, ""
	}
	return Kind(k), written
}

// Stored is a column as it is stored.
func (d *Terms) Stored(c *catalog.Column) *Value {
	v := d.Make(KindOf(c.Type), d.Fresh())
	v.Nulls, v.Ident = []int{v.ID}, c.Identifies
	switch {
	case v.Kind == Numeric && c.TypMod < 4:
		v.longest = mostPlaces
	case v.Kind == Numeric:
		precision, scale := int((c.TypMod-4)>>16&0xffff), int(c.TypMod-4)&0x7ff
		v.longest = places{int64(max(precision, precision+2048-scale)), 0}
		if scale < 1024 { // 11 bits, two's complement: the others are negative
			v.longest = places{int64(max(precision-scale, 1)), int64(scale)}
			v.Digits, v.Scale, v.Same, v.wide = scale, scale, true, max(precision, scale) <= 300
		}
	case v.Kind == Char && c.TypMod > 4:
		v.Scale, v.Same = int(c.TypMod), true
		v.Chars = int(c.TypMod) - 4
	case v.Kind == Text && c.TypMod > 4:
		v.Chars = int(c.TypMod) - 4
	}
	return v
}

// mostPlaces are the digits of the longest numeric that PostgreSQL stores.
var mostPlaces = places{131_072, 16_383}
