package stability

import (
	"strings"

	"noisegate.example/sqlrewrite/internal/domain"
)

// named is the price of a builtin; of one that was not measured, more than that of nearly all that were.
func named(key string) domain.Price {
	if p, ok := PriceNamed(key); ok {
		return p
	}
	return domain.Price{Ns: unmeasuredPrice}
}

// PriceNamed is the price of an operation. Those of functions are in their table; operators, and functions that no analyst calls, are
// here. All are as TestCostsAreMeasured measured them, rounded up to 1, 2 or 5 in their first digit: ns, and thousandths of ns for each
// byte or digit.
func PriceNamed(key string) (domain.Price, bool) {
	switch key {
	case "% integer", "* float", "* integer", "+ float", "+ integer", "- float", "- integer", "/ float", "/ integer",
		"< float", "< integer", "< other", "< time", "= float", "= integer", "= other", "= time", "cast float float",
		"cast float integer", "cast integer float", "cast integer integer", "cast integer numeric",
		"cast numeric numeric", "cast other integer", "clamp float", "clamp integer", "clamp time", "date_larger time",
		"date_smaller time", "float4larger float", "float4smaller float", "float8larger float", "float8smaller float",
		"int2larger integer", "int2smaller integer", "int4larger integer", "int4smaller integer", "int8larger integer",
		"int8smaller integer", "test", "timestamp_larger time", "timestamp_smaller time", "timestamptz_larger time",
		"timestamptz_smaller time":
		return domain.Price{Ns: 100}, true
	case "cast time text":
		return domain.Price{Ns: 100, PerUnit: 500}, true
	case "cast numeric text", "numeric_larger numeric":
		return domain.Price{Ns: 100, PerUnit: 1000}, true
	case "% numeric", "LIKE":
		return domain.Price{Ns: 100, PerUnit: 5000}, true
	case "cast integer text", "cast text text", "in list", "numeric_smaller numeric", "|| text":
		return domain.Price{Ns: 200}, true
	case "< numeric":
		return domain.Price{Ns: 200, PerUnit: 200}, true
	case "= numeric":
		return domain.Price{Ns: 200, PerUnit: 500}, true
	case "+ numeric", "= text", "clamp numeric":
		return domain.Price{Ns: 200, PerUnit: 1000}, true
	case "- numeric":
		return domain.Price{Ns: 200, PerUnit: 2000}, true
	case "< text":
		return domain.Price{Ns: 200, PerUnit: 5000}, true
	case "ILIKE", "cast numeric float":
		return domain.Price{Ns: 200, PerUnit: 10000}, true
	case "+ time", "- interval", "< interval", "= interval", "cast float numeric", "cast float text",
		"cast interval interval", "cast interval text", "cast numeric integer", "cast other text", "cast time time",
		"clamp interval", "make_interval integer", "make_interval numeric", "trim_scale numeric":
		return domain.Price{Ns: 500}, true
	case "/ numeric":
		return domain.Price{Ns: 500, PerUnit: 2000}, true
	case "* numeric":
		return domain.Price{Ns: 500, PerUnit: 20000}, true
	case "~":
		return domain.Price{Ns: 2000, PerUnit: 10000}, true
	default:
		return builtinPrice(key)
	}
}

// builtinPrice is the price that the table of functions has: by a function's name and the kind of its operands.
func builtinPrice(key string) (domain.Price, bool) {
	at := strings.LastIndexByte(key, ' ')
	if at < 0 {
		return domain.Price{}, false
	}
	f := domain.BuiltinOf(key[:at])
	if f == nil {
		return domain.Price{}, false
	}
	return f.Cost.Of(key[at+1:])
}
