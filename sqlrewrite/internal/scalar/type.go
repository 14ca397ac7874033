package scalar

import (
	"maps"
	"slices"
	"strings"

	"noisegate.example/catalog"
)

// TypeOfOutput is PostgreSQL's name of an output's type; an enum does not exist outside the protected database.
func TypeOfOutput(t catalog.Type) string {
	if t == catalog.Enum || t == UnknownType {
		return string(catalog.Text)
	}
	return string(t)
}

// TypeName names a type for people.
func TypeName(t catalog.Type) string {
	if t == UnknownType {
		return "unknown"
	}
	return string(t)
}

// UnknownType is the type of a string or NULL constant that nothing has given a type yet.
const UnknownType catalog.Type = ""

// family groups the types whose values compare with each other.
type family int

const (
	UnknownFamily family = iota
	NumberFamily
	TextFamily
	BoolFamily
	timeFamily
	UuidFamily
	intervalFamily
)

func FamilyOf(t catalog.Type) family {
	switch {
	case t.IsNumber():
		return NumberFamily
	case t.IsText():
		return TextFamily
	case t == catalog.Bool:
		return BoolFamily
	case t.IsTime():
		return timeFamily
	case t == catalog.UUID:
		return UuidFamily
	case t == IntervalType:
		return intervalFamily
	default:
		return UnknownFamily
	}
}

// IsFloat reports whether values of t are floating-point numbers.
func IsFloat(t catalog.Type) bool { return t == catalog.Float4 || t == catalog.Float8 }

// Wider is the type that PostgreSQL gives to arithmetic over two number types.
func Wider(a, b catalog.Type) catalog.Type {
	rank := func(t catalog.Type) int {
		switch t {
		case catalog.Int2:
			return 0
		case catalog.Int4:
			return 1
		case catalog.Int8:
			return 2
		case catalog.Numeric:
			return 3
		case catalog.Float4:
			return 4
		default:
			return 5
		}
	}
	if IsFloat(a) != IsFloat(b) {
		return catalog.Float8
	}
	if rank(a) >= rank(b) {
		return a
	}
	return b
}

// SystemColumns are PostgreSQL's own columns of every table. No table can have columns of its own by these names, and
// what they hold says where and when a row was written.
var SystemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// castTypes are the types that casts may name.
var castTypes = map[string]catalog.Type{
	"int2": catalog.Int2, "smallint": catalog.Int2, "int4": catalog.Int4, "int": catalog.Int4, "integer": catalog.Int4,
	"int8": catalog.Int8, "bigint": catalog.Int8, "numeric": catalog.Numeric, "decimal": catalog.Numeric,
	"float4": catalog.Float4, "real": catalog.Float4, "float8": catalog.Float8, "double precision": catalog.Float8,
	"text": catalog.Text, "varchar": catalog.Text, "bool": catalog.Bool, "boolean": catalog.Bool, "date": catalog.Date,
	"timestamp": catalog.Timestamp, "timestamptz": catalog.Timestamptz, "uuid": catalog.UUID,
}

// CastType is the type that a cast names.
func CastType(name string) (t catalog.Type, ok bool) {
	t, ok = castTypes[name]
	return t, ok
}

// CastTypes are the types that casts may name, in order.
func CastTypes() []string { return slices.Sorted(maps.Keys(castTypes)) }

// ElementOf is the type of an array's elements.
func ElementOf(t catalog.Type) catalog.Type {
	return catalog.Type(strings.TrimSuffix(string(t), ArraySuffix))
}

// ArrayType is the type of arrays of t.
func ArrayType(t catalog.Type) catalog.Type { return t + ArraySuffix }

const ArraySuffix = "[]"
