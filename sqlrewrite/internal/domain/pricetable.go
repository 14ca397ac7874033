package domain

// priceKinds are the kinds of operands that functions are priced by.
var priceKinds = []string{"integer", "float", "numeric", "text", "time", "other"}

// operatorPrices are those of operators, and of functions that no analyst calls; those of functions are in their table. All are as
// TestCosts measured them, rounded up to 1, 2 or 5 in their first digit.
var operatorPrices = func() map[string]Price {
	all := map[string]Price{
		"LIKE":                    {Ns: 200, PerUnit: 7000, Grows: Matched},
		"ILIKE":                   {Ns: 1000, PerUnit: 7000, Grows: MatchedFolded, PerByte: 20000},
		"~":                       {Ns: 2000, PerUnit: 5000, Grows: Searched, PerByte: 2000},
		"in list":                 {Ns: 16},
		"in long list":            {Ns: 60, PerUnit: 100},
		"* numeric":               {Ns: 500, PerUnit: 500, Grows: Multiplied, PerByte: 1000},
		"/ numeric":               {Ns: 500, PerUnit: 4000, Grows: Divided, PerByte: 1000},
		"% numeric":               {Ns: 500, PerUnit: 4000, Grows: DividedWhole, PerByte: 1000},
		"cast time text":          {Ns: 100, PerUnit: 500},
		"cast numeric text":       {Ns: 100, PerUnit: 1000},
		"numeric_larger numeric":  {Ns: 100, PerUnit: 1000},
		"numeric_smaller numeric": {Ns: 200, PerUnit: 200},
		"< numeric":               {Ns: 200, PerUnit: 200},
		"= numeric":               {Ns: 200, PerUnit: 500},
		"+ numeric":               {Ns: 200, PerUnit: 1000},
		"clamp numeric":           {Ns: 200, PerUnit: 1000},
		"= text":                  {Ns: 200, PerUnit: 500},
		"- numeric":               {Ns: 200, PerUnit: 2000},
		"< text":                  {Ns: 200, PerUnit: 5000},
		"cast numeric float":      {Ns: 200, PerUnit: 10000},
		"|| text":                 {Ns: 200, PerUnit: 200},
		"cast text text":          {Ns: 200, PerUnit: 6000},
	}
	for ns, names := range map[int64][]string{
		100: {"% integer", "* float", "* integer", "+ float", "+ integer", "- float", "- integer", "/ float", "/ integer", "< float",
			"< integer", "< other", "< time", "= float", "= integer", "= other", "= time", "cast float float", "cast float integer",
			"cast integer float", "cast integer integer", "cast integer numeric", "cast numeric numeric", "cast other integer",
			"clamp float", "clamp integer", "clamp time", "date_larger time", "date_smaller time", "float4larger float",
			"float4smaller float", "float8larger float", "float8smaller float", "int2larger integer", "int2smaller integer",
			"int4larger integer", "int4smaller integer", "int8larger integer", "int8smaller integer", "test",
			"timestamp_larger time", "timestamp_smaller time", "timestamptz_larger time", "timestamptz_smaller time"},
		200:  {"cast integer text"},
		1200: {"clamp interval"},
		500: {"+ time", "- interval", "< interval", "= interval", "cast float numeric", "cast float text", "cast interval interval",
			"cast interval text", "cast numeric integer", "cast other text", "cast time time",
			"make_interval integer", "make_interval numeric", "trim_scale numeric"},
	} {
		for _, name := range names {
			if _, twice := all[name]; twice {
				panic("domain: two prices of " + name)
			}
			all[name] = Price{Ns: ns}
		}
	}
	return all
}()
