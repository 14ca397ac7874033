package stability

// named is the price of a builtin; of one that was not measured, more than that of nearly all that were.
func named(key string) price {
	if p, ok := PriceNamed(key); ok {
		return p
	}
	return price{unmeasuredPrice, 0}
}

// PriceNamed is the table of prices, as TestCostsAreMeasured measured them, rounded up to 1, 2 or 5 in their first digit: ns, and thousandths of ns for each byte or digit.
func PriceNamed(key string) (price, bool) {
	switch key {
	case "% integer", "* float", "* integer", "+ float", "+ integer", "- float", "- integer", "/ float",
		"/ integer", "< float", "< integer", "< other", "< time", "= float", "= integer", "= other", "= time",
		"abs float", "abs integer", "cast float float", "cast float integer", "cast integer float",
		"cast integer integer", "cast integer numeric", "cast numeric numeric", "cast other integer", "ceil float",
		"ceil integer", "ceiling float", "ceiling integer", "clamp float", "clamp integer", "clamp time",
		"coalesce float", "coalesce integer", "coalesce numeric", "coalesce other", "coalesce text", "coalesce time",
		"date_larger time", "date_smaller time", "div integer", "float4larger float", "float4smaller float",
		"float8larger float", "float8smaller float", "floor float", "floor integer", "greatest float",
		"greatest integer", "greatest time", "int2larger integer", "int2smaller integer", "int4larger integer",
		"int4smaller integer", "int8larger integer", "int8smaller integer", "least float", "least integer",
		"least time", "mod integer", "nullif float", "nullif integer", "nullif other", "nullif time", "round float",
		"round integer", "round numeric", "sign float", "sign integer", "sign numeric", "sqrt float", "test",
		"timestamp_larger time", "timestamp_smaller time", "timestamptz_larger time", "timestamptz_smaller time",
		"trunc float", "trunc integer", "width_bucket float", "width_bucket integer":
		return price{100, 0}, true
	case "starts_with text":
		return price{100, 200}, true
	case "cast time text", "concat text", "least numeric":
		return price{100, 500}, true
	case "cast numeric text", "greatest numeric", "numeric_larger numeric":
		return price{100, 1000}, true
	case "\"right\" text", "ceil numeric", "rtrim text", "substr text":
		return price{100, 2000}, true
	case "% numeric", "LIKE", "char_length text", "greatest text", "length text", "strpos text":
		return price{100, 5000}, true
	case "power numeric":
		return price{100, 20000}, true
	case "abs numeric", "cast integer text", "cast text text", "ceiling numeric", "exp float", "floor numeric",
		"in list", "ln float", "log float", "log10 float", "numeric_smaller numeric", "power float", "trunc numeric",
		"|| text":
		return price{200, 0}, true
	case "< numeric":
		return price{200, 200}, true
	case "= numeric":
		return price{200, 500}, true
	case "+ numeric", "= text", "clamp numeric", "width_bucket numeric":
		return price{200, 1000}, true
	case "- numeric", "least text", "ltrim text", "nullif text":
		return price{200, 2000}, true
	case "< text":
		return price{200, 5000}, true
	case "ILIKE", "cast numeric float":
		return price{200, 10000}, true
	case "+ time", "- interval", "< interval", "= interval", "cast float numeric", "cast float text",
		"cast interval interval", "cast interval text", "cast numeric integer", "cast other text", "cast time time",
		"clamp interval", "date_part time", "date_trunc time", "extract time", "make_interval integer",
		"make_interval numeric", "nullif numeric", "trim_scale numeric":
		return price{500, 0}, true
	case "/ numeric", "div numeric":
		return price{500, 2000}, true
	case "\"left\" text", "btrim text", "mod numeric":
		return price{500, 5000}, true
	case "* numeric", "lower text", "upper text":
		return price{500, 20000}, true
	case "~":
		return price{2000, 10000}, true
	case "initcap text":
		return price{20000, 50000}, true
	default:
		return price{}, false
	}
}
